// SPDX-License-Identifier: BSD-2-Clause
//
// One NBD connection, from accept to close.
//
// 1. Its coroutine, timers and socket are used on its reactor's thread alone; during a step of the
//    handshake, which may wait for the store, its coroutine is on a worker instead.
// 2. A client that goes away, at any byte, ends its own session and nothing else. What it had sent
//    completely is still done, in order.
// 3. DISC, the end of the stream and stop() let what is in flight finish and be answered.
// Errors: none get out; exceptions end the session.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>

#include "common/store/store.hpp"
#include "server/nbd_commands.hpp"
#include "server/nbd_handshake.hpp"
#include "server/reactors.hpp"
#include "server/session_registry.hpp"
#include "server/socket_writer.hpp"

namespace vellum::server {

class NbdSession : public std::enable_shared_from_this<NbdSession> {
 public:
  struct Environment {
    store::Store& store;
    asio::thread_pool& workers;
    SessionRegistry& registry;
  };

  // `socket` belongs to `reactor`.
  NbdSession(StreamSocket socket, Reactor& reactor, const Environment& environment);
  ~NbdSession();

  // Once, after the registry has admitted it. From any thread.
  static void start(const std::shared_ptr<NbdSession>& session);
  // From any thread, any number of times.
  static void stop(std::shared_ptr<NbdSession> session);

 private:
  asio::awaitable<void> run();
  asio::awaitable<bool> handshake();
  asio::awaitable<void> transmission();
  asio::awaitable<void> finish();
  asio::awaitable<size_t> receive();
  asio::awaitable<bool> send_all();
  asio::awaitable<void> wait_for_progress();

  void prepare_socket();
  void on_stop();
  void close();
  // Closes the connection unless it is called again in time.
  void set_deadline(std::chrono::seconds from_now);
  void clear_deadline();
  void progressed();
  void consumed(size_t count);

  StreamSocket socket_;
  Reactor& reactor_;
  Environment environment_;
  SocketWriter writer_;
  asio::steady_timer deadline_;
  asio::steady_timer wakeup_;  // never expires; cancelled to wake the coroutine
  bool waiting_ = false;
  bool in_handshake_ = true;
  bool stopping_ = false;

  std::unique_ptr<std::byte[]> received_;
  size_t begin_ = 0;  // of what is not consumed
  size_t end_ = 0;
  std::optional<Commands> commands_;
};

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
//
// The server in front of one store: its sockets, its threads, and their orderly end.
//
// 1. The main thread runs run(): it accepts, handles signals, and serves the control sockets'
// bytes.
//    Reactors serve NBD; workers do what blocks, for NBD and for control apart from each other.
// 2. stop() ends accepting first, then sessions; run() returns when no session holds an export.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/thread_pool.hpp>

#include "common/control/dispatcher.hpp"
#include "common/store/store.hpp"
#include "server/control_session.hpp"
#include "server/listener.hpp"
#include "server/nbd_session.hpp"
#include "server/options.hpp"
#include "server/reactors.hpp"
#include "server/session_registry.hpp"

namespace vellum::server {

// Opened before the store is, so that what is wrong with them costs nothing.
struct ServerSockets {
  std::vector<ListeningSocket> nbd;
  std::vector<ListeningSocket> control;
};
Result<ServerSockets> open_sockets(const Options& options);

class Server {
 public:
  Server(store::Store& store, const Options& options, ServerSockets sockets);
  ~Server();

  // Until SIGTERM or SIGINT has been dealt with.
  void run();

 private:
  void listen_nbd(ListeningSocket socket);
  void listen_control(ListeningSocket socket);
  void accept_nbd(StreamSocket socket, Reactor& reactor);
  void accept_control(StreamSocket socket);
  void stop(int signal);

  asio::io_context context_{1};
  asio::signal_set signals_;
  asio::thread_pool workers_;
  asio::thread_pool control_workers_;
  SessionRegistry registry_;
  const NbdSession::Environment environment_;
  Reactors reactors_;
  control::Dispatcher dispatcher_;
  std::set<std::weak_ptr<ControlSession>, std::owner_less<>> control_sessions_;
  std::vector<std::unique_ptr<Listener>> listeners_;
};

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
//
// One connection of the control protocol: lines in, lines out, one after the other. What a line
// asks for is done on a worker.
//
// 1. Runs on one io_context's thread. A client that goes away ends its own session only; what it
//    asked for last is still done.
// 2. A line longer than kLineLengthMax is skipped to its end and answered with its error; no more
//    than that many bytes are kept.
#pragma once

#include <memory>
#include <string>

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>

#include "common/control/dispatcher.hpp"
#include "server/socket_writer.hpp"

namespace vellum::server {

class ControlSession : public std::enable_shared_from_this<ControlSession> {
 public:
  ControlSession(StreamSocket socket, control::Dispatcher& dispatcher, asio::thread_pool& workers);

  void start();
  // The answer to the line that is being worked on is still sent, if the client takes it soon.
  void stop();

 private:
  asio::awaitable<void> run();
  asio::awaitable<bool> send(std::string answer);
  void close();

  StreamSocket socket_;
  control::Dispatcher& dispatcher_;
  asio::thread_pool& workers_;
  asio::steady_timer deadline_;  // of everything, once the server stops
  bool reading_ = false;
  bool stopping_ = false;
};

}  // namespace vellum::server

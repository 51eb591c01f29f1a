// SPDX-License-Identifier: BSD-2-Clause
//
// Accepts connections at one socket and hands them on. Runs on the thread of its io_context. When
// descriptors run out it waits a little and goes on.
#pragma once

#include <functional>
#include <string>

#include <asio/basic_socket_acceptor.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "server/listening_socket.hpp"
#include "server/socket_writer.hpp"

namespace vellum::server {

class Listener {
 public:
  // Asked before each accept: whose connection the next one will be.
  using Choose = std::function<asio::io_context&()>;
  using Accepted = std::function<void(StreamSocket)>;

  Listener(asio::io_context& context, ListeningSocket socket, Choose choose, Accepted accepted);

  const std::string& uri() const { return socket_.uri(); }
  void stop();

 private:
  void accept();
  void accept_later();

  ListeningSocket socket_;
  asio::basic_socket_acceptor<asio::generic::stream_protocol> acceptor_;
  asio::steady_timer pause_;
  Choose choose_;
  Accepted accepted_;
  bool complained_ = false;
};

}  // namespace vellum::server

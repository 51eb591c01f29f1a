// SPDX-License-Identifier: BSD-2-Clause
#include "server/listener.hpp"

#include <chrono>
#include <utility>

#include "server/log.hpp"

namespace vellum::server {

namespace {
constexpr std::chrono::milliseconds kPause{100};
}

Listener::Listener(asio::io_context& context, ListeningSocket socket, Choose choose,
                   Accepted accepted)
    : socket_(std::move(socket)),
      acceptor_(context, asio::generic::stream_protocol(socket_.family(), 0), socket_.release()),
      pause_(context),
      choose_(std::move(choose)),
      accepted_(std::move(accepted)) {
  accept();
}

void Listener::stop() {
  asio::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

void Listener::accept() {
  acceptor_.async_accept(choose_(), [this](const asio::error_code& error, StreamSocket socket) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      complained_ = false;
      accepted_(std::move(socket));
      return accept();
    }
    // A client that gave up before it was accepted costs nothing; a lack of descriptors a pause.
    if (error == asio::error::connection_aborted) return accept();
    if (!complained_) log_warning("cannot accept at " + uri() + ": " + error.message());
    complained_ = true;
    accept_later();
  });
}

void Listener::accept_later() {
  pause_.expires_after(kPause);
  pause_.async_wait([this](const asio::error_code&) {
    if (acceptor_.is_open()) accept();
  });
}

}  // namespace vellum::server

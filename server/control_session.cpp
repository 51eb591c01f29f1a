// SPDX-License-Identifier: BSD-2-Clause
#include "server/control_session.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "server/log.hpp"
#include "server/on_worker.hpp"

namespace vellum::server {

namespace {
constexpr std::chrono::seconds kStopDeadline{5};
}

using asio::redirect_error;
using asio::use_awaitable;

ControlSession::ControlSession(StreamSocket socket, control::Dispatcher& dispatcher,
                               asio::thread_pool& workers)
    : socket_(std::move(socket)),
      dispatcher_(dispatcher),
      workers_(workers),
      deadline_(socket_.get_executor()) {}

void ControlSession::start() {
  asio::co_spawn(
      socket_.get_executor(),
      [self = shared_from_this()]() -> asio::awaitable<void> { co_await self->run(); },
      [](const std::exception_ptr& failure) {
        try {
          if (failure) std::rethrow_exception(failure);
        } catch (const std::exception& error) {
          log_warning("a control connection ended: " + std::string(error.what()));
        }
      });
}

void ControlSession::stop() {
  if (stopping_) return;
  stopping_ = true;
  asio::error_code ignored;
  if (reading_) socket_.cancel(ignored);
  // Also because the cancelled operation may just have begun its next read.
  deadline_.expires_after(kStopDeadline);
  deadline_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error) self->close();
  });
}

void ControlSession::close() {
  deadline_.cancel();
  asio::error_code ignored;
  socket_.shutdown(StreamSocket::shutdown_both, ignored);
  socket_.close(ignored);
}

asio::awaitable<void> ControlSession::run() {
  std::string received;
  auto buffer = asio::dynamic_buffer(received, control::kLineLengthMax + 1);
  bool skipping = false;
  while (!stopping_) {
    asio::error_code error;
    reading_ = true;
    const size_t length = co_await asio::async_read_until(socket_, buffer, '\n',
                                                          redirect_error(use_awaitable, error));
    reading_ = false;
    if (error == asio::error::not_found) {
      skipping = true;  // until the line's end
      buffer.consume(received.size());
      continue;
    }
    if (error || stopping_) break;
    if (std::exchange(skipping, false)) {
      buffer.consume(length);
      const bool sent = co_await send(control::Dispatcher::line_too_long());
      if (!sent) break;
      continue;
    }
    std::string line = received.substr(0, length - 1);
    buffer.consume(length);
    std::string answer;
    co_await on_worker(workers_, socket_.get_executor(),
                       [&] { answer = dispatcher_.handle(line); });
    if (answer.empty()) continue;  // a notification
    const bool sent = co_await send(std::move(answer));
    if (!sent) break;
  }
  close();
}

asio::awaitable<bool> ControlSession::send(std::string answer) {
  answer += '\n';
  asio::error_code error;
  co_await asio::async_write(socket_, asio::buffer(answer), redirect_error(use_awaitable, error));
  co_return !error;
}

}  // namespace vellum::server

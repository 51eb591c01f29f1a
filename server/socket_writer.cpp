// SPDX-License-Identifier: BSD-2-Clause
#include "server/socket_writer.hpp"

#include <utility>

namespace vellum::server {

namespace {
constexpr size_t kCopiedBytesMax = 16 << 10;  // a shorter reply joins the open buffer
}

SocketWriter::SocketWriter(StreamSocket& socket, std::function<void()> progressed)
    : socket_(socket), progressed_(std::move(progressed)) {}

void SocketWriter::append(OutBuffer reply) {
  if (failed_) return;
  if (reply.size() <= kCopiedBytesMax) return open_.put(reply.bytes());
  if (!open_.empty()) {
    queued_bytes_ += open_.size();
    queue_.push_back(std::exchange(open_, OutBuffer()));
  }
  queued_bytes_ += reply.size();
  queue_.push_back(std::move(reply));
}

void SocketWriter::flush() {
  if (failed_) return fail();
  if (waiting_) return;
  while (!queue_.empty()) {
    const size_t before = queue_.front().size();
    const bool sent = send(queue_.front());
    queued_bytes_ -= before - queue_.front().size();
    if (!sent) return;
    queue_.pop_front();
  }
  send(open_);
}

// True when all of `from` is on its way.
bool SocketWriter::send(OutBuffer& from) {
  while (!from.empty()) {
    asio::error_code error;
    const size_t sent =
        socket_.write_some(asio::buffer(from.bytes().data(), from.bytes().size()), error);
    from.consume(sent);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      wait_until_writable();
      return false;
    }
    if (error) {
      failed_ = true;  // fail() would take `from` away under the caller
      return false;
    }
  }
  return true;
}

void SocketWriter::wait_until_writable() {
  waiting_ = true;
  socket_.async_wait(StreamSocket::wait_write,
                     [this, owner = owner_.lock()](const asio::error_code& error) {
                       waiting_ = false;
                       // Aborted: the session's reading was interrupted, which stops this as well.
                       if (error && error != asio::error::operation_aborted) fail();
                       flush();
                       progressed_();
                     });
}

void SocketWriter::fail() {
  failed_ = true;
  queue_.clear();
  queued_bytes_ = 0;
  open_.truncate(0);
}

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
//
// The sending half of one connection: replies collect in a buffer, and flush() hands them to the
// kernel as far as it takes them, the rest when it takes more.
//
// 1. Everything runs on the thread of the connection's reactor.
// 2. Whole replies are put between two calls; their order is the order of sending.
// 3. After an error nothing is sent any more, and everything put is dropped.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include <asio/generic/stream_protocol.hpp>

#include "server/out_buffer.hpp"

namespace vellum::server {

using StreamSocket = asio::generic::stream_protocol::socket;

class SocketWriter {
 public:
  // `socket` is non-blocking. `progressed` is called when waiting has ended, well or not.
  SocketWriter(StreamSocket& socket, std::function<void()> progressed);

  // Keeps `owner`'s object, whose member this is, alive while the kernel is waited for.
  void set_owner(std::weak_ptr<void> owner) { owner_ = std::move(owner); }

  OutBuffer& buffer() { return open_; }
  // A long reply that was built elsewhere; not copied.
  void append(OutBuffer reply);
  void flush();

  size_t pending_bytes() const { return queued_bytes_ + open_.size(); }
  bool failed() const { return failed_; }

 private:
  bool send(OutBuffer& from);
  void wait_until_writable();
  void fail();

  StreamSocket& socket_;
  std::function<void()> progressed_;
  std::weak_ptr<void> owner_;
  std::deque<OutBuffer> queue_;  // sent before open_
  size_t queued_bytes_ = 0;
  OutBuffer open_;
  bool waiting_ = false;
  bool failed_ = false;
};

}  // namespace vellum::server

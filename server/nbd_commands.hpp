// SPDX-License-Identifier: BSD-2-Clause
//
// The transmission phase of one connection: received bytes become calls of the store, and their
// results replies. What the store can do at once is done on the reactor's thread, straight from the
// receive buffer and into the send buffer; what would wait goes to a worker as a Job.
//
// 1. Everything but run() of a job is on the reactor's thread.
// 2. A change takes its ticket when its header is read, in the order of the headers, before its
//    payload has arrived (P13).
// 3. Every request gets exactly one reply, unless the connection fails.
// 4. Memory is bounded: over_limits() stops feed() before requests and bytes in flight, or replies
//    that the client does not fetch, pass their maxima by more than one request.
// 5. A job keeps the session, and with it the export, alive; it gives both up on the reactor's
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <asio/any_io_executor.hpp>
#include <asio/thread_pool.hpp>

#include "common/store/store.hpp"
#include "server/nbd_handshake.hpp"
#include "server/nbd_request.hpp"
#include "server/socket_writer.hpp"

namespace vellum::server {

class Commands {
 public:
  struct Environment {
    store::Store& store;
    asio::thread_pool& workers;
    asio::any_io_executor reactor;
    SocketWriter& writer;
    std::weak_ptr<void> owner;         // whoever owns these commands
    std::function<void()> progressed;  // something in flight has ended
  };

  Commands(Environment environment, std::shared_ptr<store::Export> exported,
           const Negotiated& negotiated);
  ~Commands();

  // Takes the complete requests at the front of `in`, and returns how many bytes that were. What is
  // left is less than kLeftoverBytesMax, unless throttled() or disconnected().
  static constexpr size_t kInPlaceBytesMax = 32 << 10;
  static constexpr size_t kLeftoverBytesMax = kInPlaceBytesMax + nbd::kRequestBytes;
  size_t feed(std::span<const std::byte> in);

  // The part of a long payload that is still to come; to be received straight into its place.
  std::span<std::byte> payload_wanted();
  void payload_received(size_t count);

  bool over_limits() const;
  // The last feed() stopped at a limit: what it left comes before anything that is received.
  bool throttled() const { return throttled_; }
  // The client has said so, or is out of step: nothing more is read.
  bool disconnected() const { return disconnected_; }
  bool idle() const { return requests_in_flight_ == 0; }
  // From now on requests get ESHUTDOWN.
  void refuse_new() { refusing_ = true; }

 private:
  struct Job;
  struct FlushGroup;
  // A WRITE whose payload is not complete.
  struct Incoming {
    Request request;
    store::Ticket ticket;
    std::unique_ptr<std::byte[]> payload;  // if it is too long for the receive buffer
    size_t filled = 0;
  };

  void begin(const Request& request);
  void refuse(const Request& request, nbd::NbdError error);
  void reply(const Request& request, const Result<void>& result);
  void complete_change(const Request& request, const Result<void>& result);

  void begin_write(const Request& request);
  size_t take_payload(std::span<const std::byte> in);
  void write_owned();
  void write_batch();
  void read(const Request& request);
  void block_status(const Request& request);
  void discard(const Request& request);

  void start_flush();
  void flushed(FlushGroup& group);

  std::shared_ptr<Job> make_job(const Request& request, size_t memory_bytes);
  void start(const std::shared_ptr<Job>& job);
  void run(Job& job);
  Result<void> perform(Job& job);
  void finish(Job& job);
  Result<void> fill_status(class StatusReply& status, const Request& request, store::Wait wait);

  Environment environment_;
  const std::shared_ptr<store::Export> export_;  // outlives the tickets below
  const bool structured_;
  const bool base_allocation_;
  SocketWriter& writer_;

  std::optional<Incoming> incoming_;
  uint64_t skip_bytes_ = 0;  // payload of a WRITE that was refused
  std::vector<Request> write_requests_;
  std::vector<store::Write> writes_;     // the same, as the store wants them
  std::vector<Request> flush_requests_;  // FLUSH, and changes with FUA that are done
  std::vector<store::Extent> extents_;   // scratch

  size_t requests_in_flight_ = 0;
  size_t bytes_in_flight_ = 0;
  bool throttled_ = false;
  bool disconnected_ = false;
  bool refusing_ = false;
};

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
#include "server/nbd_commands.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <asio/post.hpp>

#include "server/nbd_errors.hpp"
#include "server/nbd_job.hpp"
#include "server/nbd_protocol.hpp"
#include "server/nbd_reply.hpp"

namespace vellum::server {

using namespace nbd;
using store::Wait;

namespace {

constexpr size_t kRequestsInFlightMax = 1024;
constexpr size_t kBytesInFlightMax = 64 << 20;  // more than the two longest payloads
constexpr size_t kPendingReplyBytesMax = 4 << 20;
constexpr size_t kBatchWritesMax = 32;
constexpr size_t kSendBytes = 64 << 10;          // so that client and server overlap
constexpr uint32_t kInlineBytesMax = 256 << 10;  // longer transfers leave the thread to others
constexpr uint32_t kInlineDiscardMax = 4 << 20;

std::string_view reason(NbdError error) {
  switch (error) {
    case NbdError::eperm:
      return "the export is read-only";
    case NbdError::enospc:
      return "the request reaches beyond the end of the export";
    case NbdError::eshutdown:
      return "the server is shutting down";
    default:
      return "unknown command or flag, more than 32 MiB, or beyond the end of the export";
  }
}

}  // namespace

Commands::Commands(Environment environment, std::shared_ptr<store::Export> exported,
                   const Negotiated& negotiated)
    : environment_(std::move(environment)),
      export_(std::move(exported)),
      structured_(negotiated.structured_replies),
      base_allocation_(negotiated.base_allocation),
      writer_(environment_.writer) {}

Commands::~Commands() = default;

bool Commands::over_limits() const {
  return requests_in_flight_ >= kRequestsInFlightMax || bytes_in_flight_ >= kBytesInFlightMax ||
         writer_.pending_bytes() >= kPendingReplyBytesMax;
}

size_t Commands::feed(std::span<const std::byte> in) {
  size_t used = 0;
  throttled_ = false;
  while (!disconnected_) {
    throttled_ = over_limits();
    if (throttled_) break;
    const auto rest = in.subspan(used);
    if (skip_bytes_ > 0) {
      const size_t skipped = std::min<uint64_t>(skip_bytes_, rest.size());
      skip_bytes_ -= skipped;
      used += skipped;
      if (skip_bytes_ > 0) break;
    } else if (incoming_) {
      used += take_payload(rest);
      if (incoming_) break;
    } else {
      if (rest.size() < kRequestBytes) break;
      const auto request = parse_request(rest.first<kRequestBytes>());
      used += kRequestBytes;
      if (request) {
        begin(*request);
      } else {
        disconnected_ = true;
      }
    }
  }
  write_batch();
  start_flush();
  return used;
}

void Commands::begin(const Request& request) {
  if (request.type == kCmdDisc) {
    disconnected_ = true;
    return;
  }
  const NbdError error = refusing_ ? NbdError::eshutdown
                                   : check_request(request, {.size_bytes = export_->size_bytes(),
                                                             .read_only = export_->read_only(),
                                                             .structured_replies = structured_,
                                                             .base_allocation = base_allocation_});
  if (error != NbdError::none) return refuse(request, error);
  switch (request.type) {
    case kCmdRead:
      return read(request);
    case kCmdWrite:
      return begin_write(request);
    case kCmdFlush:
      flush_requests_.push_back(request);
      return;
    case kCmdBlockStatus:
      return block_status(request);
    case kCmdCache:
      return start(make_job(request, 0));
    default:
      return discard(request);
  }
}

void Commands::refuse(const Request& request, NbdError error) {
  if (request.type == kCmdWrite) skip_bytes_ = request.length;
  put_error(writer_.buffer(), request, structured_, error, reason(error));
}

void Commands::reply(const Request& request, const Result<void>& result) {
  if (result.ok()) return put_success(writer_.buffer(), request);
  put_error(writer_.buffer(), request, structured_,
            nbd_error_of(result.error().code, request.writes()), result.error().message);
}

// A change with FUA is answered once it is durable.
void Commands::complete_change(const Request& request, const Result<void>& result) {
  if (result.ok() && request.has(kCmdFlagFua)) {
    flush_requests_.push_back(request);
  } else {
    reply(request, result);
  }
}

// -- Writes ---------------------------------------------------------------------------------------

void Commands::begin_write(const Request& request) {
  if (request.length == 0) return complete_change(request, {});
  incoming_.emplace(Incoming{.request = request,
                             .ticket = export_->enter(request.offset, request.length),
                             .payload = nullptr});
}

// Returns how much of `in` was taken. The write has begun if incoming_ is empty afterwards.
size_t Commands::take_payload(std::span<const std::byte> in) {
  const size_t length = incoming_->request.length;
  if (!incoming_->payload) {
    if (in.size() >= length) {
      write_requests_.push_back(incoming_->request);
      writes_.push_back({.offset = incoming_->request.offset,
                         .data = in.first(length),
                         .ticket = std::move(incoming_->ticket)});
      incoming_.reset();
      if (writes_.size() == kBatchWritesMax) write_batch();
      return length;
    }
    if (length <= kInPlaceBytesMax) return 0;
    incoming_->payload = std::make_unique_for_overwrite<std::byte[]>(length);
    bytes_in_flight_ += length;
  }
  const size_t taken = std::min(in.size(), length - incoming_->filled);
  if (taken > 0) std::memcpy(incoming_->payload.get() + incoming_->filled, in.data(), taken);
  payload_received(taken);
  return taken;
}

std::span<std::byte> Commands::payload_wanted() {
  if (!incoming_ || !incoming_->payload) return {};
  return std::span(incoming_->payload.get(), incoming_->request.length).subspan(incoming_->filled);
}

void Commands::payload_received(size_t count) {
  incoming_->filled += count;
  if (incoming_->filled == incoming_->request.length) write_owned();
}

// The incoming write, whose payload has a buffer of its own.
void Commands::write_owned() {
  write_batch();  // what came before it goes first, so that it need not wait
  Incoming done = *std::move(incoming_);
  incoming_.reset();
  bytes_in_flight_ -= done.request.length;
  if (done.request.length <= kInlineBytesMax) {
    const std::span<const std::byte> data(done.payload.get(), done.request.length);
    store::Write write{
        .offset = done.request.offset, .data = data, .ticket = std::move(done.ticket)};
    export_->write(std::span(&write, 1), Wait::never);
    if (write.result.ok() || write.result.error().code != Errc::would_block) {
      return complete_change(done.request, write.result);
    }
    done.ticket = std::move(write.ticket);
  }
  auto job = make_job(done.request, done.request.length);
  job->ticket = std::move(done.ticket);
  job->payload = std::move(done.payload);
  start(job);
}

void Commands::write_batch() {
  if (writes_.empty()) return;
  export_->write(writes_, Wait::never);
  for (size_t i = 0; i < writes_.size(); ++i) {
    const Request& request = write_requests_[i];
    store::Write& write = writes_[i];
    if (write.result.ok() || write.result.error().code != Errc::would_block) {
      complete_change(request, write.result);
      continue;
    }
    auto job = make_job(request, request.length);
    job->ticket = std::move(write.ticket);
    job->payload = std::make_unique_for_overwrite<std::byte[]>(request.length);
    std::memcpy(job->payload.get(), write.data.data(), request.length);
    start(job);
  }
  writes_.clear();
  write_requests_.clear();
  writer_.flush();
}

// TRIM and WRITE_ZEROES. Neither moves data, so FAST_ZERO has nothing to refuse.
void Commands::discard(const Request& request) {
  if (request.length == 0) return complete_change(request, {});
  store::Ticket ticket = export_->enter(request.offset, request.length);
  write_batch();
  if (request.length <= kInlineDiscardMax && ticket.ready()) {
    const Result<void> result =
        request.type == kCmdTrim
            ? export_->trim(ticket, request.offset, request.length, Wait::never)
            : export_->write_zeroes(ticket, request.offset, request.length, Wait::never);
    if (result.ok() || result.error().code != Errc::would_block) {
      return complete_change(request, result);
    }
  }
  auto job = make_job(request, 0);
  job->ticket = std::move(ticket);
  start(job);
}

// -- Reads ----------------------------------------------------------------------------------------

void Commands::read(const Request& request) {
  if (request.length <= kInlineBytesMax) {
    ReadReply read_reply(writer_.buffer(), request, structured_);
    extents_.clear();
    const Result<void> result = export_->read(request.offset, read_reply.data(), Wait::never,
                                              structured_ ? &extents_ : nullptr);
    if (result.ok()) {
      read_reply.finish(extents_);
      if (writer_.buffer().size() >= kSendBytes) writer_.flush();
      return;
    }
    read_reply.cancel();
    if (result.error().code != Errc::would_block) return reply(request, result);
  }
  start(make_job(request, request.length));
}

void Commands::block_status(const Request& request) {
  if (request.has(kCmdFlagReqOne)) {
    StatusReply status(request);
    const Result<void> result = fill_status(status, request, Wait::never);
    if (result.ok()) return status.put(writer_.buffer());
    if (result.error().code != Errc::would_block) return reply(request, result);
  }
  start(make_job(request, 0));
}

// The whole answer, whatever pieces the store gives it in: so it is the same each time.
Result<void> Commands::fill_status(StatusReply& status, const Request& request, Wait wait) {
  // One more than is wanted shows where the last extent ends.
  const size_t extents_max = request.has(kCmdFlagReqOne) ? 2 : kStatusExtentsMax;
  for (;;) {
    TRY_ASSIGN(const auto extents,
               export_->map(status.next_offset(), status.rest_bytes(), extents_max, wait));
    CHECK(!extents.empty());
    if (!status.add(extents)) return {};
  }
}

// -- Flushes --------------------------------------------------------------------------------------

struct Commands::FlushGroup {
  std::shared_ptr<void> owner;  // destroyed last
  Commands& commands;
  std::vector<Request> requests;
  Result<void> result;
};

void Commands::start_flush() {
  if (flush_requests_.empty()) return;
  auto group = std::make_shared<FlushGroup>(
      FlushGroup{environment_.owner.lock(), *this, std::exchange(flush_requests_, {}), {}});
  requests_in_flight_ += group->requests.size();
  environment_.store.flush_async([group, reactor = environment_.reactor](Result<void> result) {
    group->result = std::move(result);
    asio::post(reactor, [group] { group->commands.flushed(*group); });
  });
}

void Commands::flushed(FlushGroup& group) {
  const std::shared_ptr<void> owner = std::move(group.owner);
  requests_in_flight_ -= group.requests.size();
  for (const Request& request : group.requests) reply(request, group.result);
  writer_.flush();
  environment_.progressed();
}

// -- Jobs -----------------------------------------------------------------------------------------

std::shared_ptr<Commands::Job> Commands::make_job(const Request& request, size_t memory_bytes) {
  auto job = std::make_shared<Job>(environment_.owner.lock(), *this, request, memory_bytes);
  ++requests_in_flight_;
  bytes_in_flight_ += memory_bytes;
  return job;
}

void Commands::start(const std::shared_ptr<Job>& job) {
  // Copied first: once posted, the job may end at any moment.
  auto to_worker = [job, &workers = environment_.workers] {
    asio::post(workers, [job] { job->commands.run(*job); });
  };
  if (job->ticket.valid()) {
    job->ticket.when_ready(std::move(to_worker));
  } else {
    to_worker();
  }
}

void Commands::run(Job& job) {
  try {
    job.result = perform(job);
  } catch (const std::exception& error) {
    job.result = Error{Errc::io_error, std::string("the request failed: ") + error.what()};
  }
  job.ticket = store::Ticket();
  asio::post(environment_.reactor,
             [held = job.shared_from_this()] { held->commands.finish(*held); });
}

Result<void> Commands::perform(Job& job) {
  const Request& request = job.request;
  switch (request.type) {
    case kCmdRead: {
      ReadReply read_reply(job.reply, request, structured_);
      std::vector<store::Extent> extents;
      Result<void> result = export_->read(request.offset, read_reply.data(), Wait::allowed,
                                          structured_ ? &extents : nullptr);
      if (result.ok()) {
        read_reply.finish(extents);
      } else {
        read_reply.cancel();
      }
      return result;
    }
    case kCmdWrite: {
      store::Write write{.offset = request.offset,
                         .data = std::span(job.payload.get(), request.length),
                         .ticket = std::move(job.ticket)};
      export_->write(std::span(&write, 1), Wait::allowed);
      return write.result;
    }
    case kCmdTrim:
      return export_->trim(job.ticket, request.offset, request.length);
    case kCmdWriteZeroes:
      return export_->write_zeroes(job.ticket, request.offset, request.length);
    case kCmdCache:
      return export_->cache(request.offset, request.length);
    default: {
      StatusReply status(request);
      TRY(fill_status(status, request, Wait::allowed));
      status.put(job.reply);
      return {};
    }
  }
}

void Commands::finish(Job& job) {
  const std::shared_ptr<void> owner = std::move(job.owner);
  --requests_in_flight_;
  bytes_in_flight_ -= job.memory_bytes;
  if (job.result.ok() && !job.reply.empty()) {
    writer_.append(std::move(job.reply));
  } else {
    complete_change(job.request, job.result);
  }
  start_flush();
  writer_.flush();
  environment_.progressed();
}

}  // namespace vellum::server

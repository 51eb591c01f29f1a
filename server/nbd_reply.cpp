// SPDX-License-Identifier: BSD-2-Clause
#include "server/nbd_reply.hpp"

#include <algorithm>

#include "common/base/check.hpp"
#include "server/nbd_handshake.hpp"

namespace vellum::server {

using namespace nbd;
using store::Extent;
using store::ExtentKind;

namespace {

void put_simple(OutBuffer& out, uint64_t cookie, NbdError error) {
  std::byte* to = out.extend(kSimpleReplyBytes);
  store_be32(to, kSimpleReplyMagic);
  store_be32(to + 4, static_cast<uint32_t>(error));
  store_be64(to + 8, cookie);
}

void store_chunk(std::byte* to, uint16_t flags, uint16_t type, uint64_t cookie, uint32_t length) {
  store_be32(to, kStructuredReplyMagic);
  store_be16(to + 4, flags);
  store_be16(to + 6, type);
  store_be64(to + 8, cookie);
  store_be32(to + 16, length);
}

void put_chunk(OutBuffer& out, uint16_t flags, uint16_t type, uint64_t cookie, uint32_t length) {
  store_chunk(out.extend(kChunkHeaderBytes), flags, type, cookie, length);
}

constexpr size_t kOffsetBytes = sizeof(uint64_t);

}  // namespace

void put_success(OutBuffer& out, const Request& request) {
  put_simple(out, request.cookie, NbdError::none);
}

void put_error(OutBuffer& out, const Request& request, bool structured, NbdError error,
               std::string_view text) {
  if (!structured) return put_simple(out, request.cookie, error);
  const std::string message = wire_text(text);
  put_chunk(out, kReplyFlagDone, kReplyError, request.cookie,
            static_cast<uint32_t>(sizeof(uint32_t) + sizeof(uint16_t) + message.size()));
  out.put32(static_cast<uint32_t>(error));
  out.put16(static_cast<uint16_t>(message.size()));
  out.put(message);
}

ReadReply::ReadReply(OutBuffer& out, const Request& request, bool structured)
    : out_(out), request_(request), structured_(structured), start_(out.size()) {
  out.extend(header_bytes() + request.length);
}

size_t ReadReply::header_bytes() const {
  return structured_ ? kChunkHeaderBytes + kOffsetBytes : kSimpleReplyBytes;
}

std::span<std::byte> ReadReply::data() {
  return {out_.at(start_ + header_bytes()), request_.length};
}

void ReadReply::finish(std::span<const Extent> extents) {
  std::byte* to = out_.at(start_);
  if (!structured_) {
    store_be32(to, kSimpleReplyMagic);
    store_be32(to + 4, 0);
    store_be64(to + 8, request_.cookie);
  } else if (request_.length == 0) {
    out_.truncate(start_);
    put_chunk(out_, kReplyFlagDone, kReplyNone, request_.cookie, 0);
  } else if (request_.has(kCmdFlagDf) ||
             (extents.size() == 1 && extents[0].kind == ExtentKind::data)) {
    store_chunk(to, kReplyFlagDone, kReplyOffsetData, request_.cookie,
                kOffsetBytes + request_.length);
    store_be64(to + kChunkHeaderBytes, request_.offset);
  } else {
    split(extents);
  }
}

// A chunk for each extent. Data moves, so it is taken out first.
void ReadReply::split(std::span<const Extent> extents) {
  std::vector<std::byte> content;
  if (extents.size() > 1) content.assign(data().begin(), data().end());
  out_.truncate(start_);
  uint64_t covered = request_.offset;
  const uint64_t end = request_.offset + request_.length;
  for (const Extent& extent : extents) {
    CHECK(extent.offset == covered && extent.length > 0 && extent.length <= end - covered);
    covered += extent.length;
    const uint16_t flags = covered == end ? kReplyFlagDone : 0;
    const auto length = static_cast<uint32_t>(extent.length);
    if (extent.kind == ExtentKind::zero) {
      put_chunk(out_, flags, kReplyOffsetHole, request_.cookie, kOffsetBytes + sizeof length);
      out_.put64(extent.offset);
      out_.put32(length);
    } else {
      put_chunk(out_, flags, kReplyOffsetData, request_.cookie, kOffsetBytes + length);
      out_.put64(extent.offset);
      out_.put(std::span(content).subspan(extent.offset - request_.offset, length));
    }
  }
  CHECK(covered == end);
}

StatusReply::StatusReply(const Request& request)
    : request_(request),
      descriptors_max_(request.has(kCmdFlagReqOne) ? 1 : kStatusExtentsMax),
      next_(request.offset),
      end_(request.offset + request.length) {}

bool StatusReply::add(std::span<const Extent> extents) {
  for (const Extent& extent : extents) {
    CHECK(extent.offset == next_ && extent.length > 0);
    const uint64_t length = std::min(extent.length, end_ - next_);
    const uint32_t state = extent.kind == ExtentKind::zero ? kStateHole | kStateZero : 0;
    // A request has at most 2^32 - 1 bytes, so the sum of any descriptors fits.
    if (!descriptors_.empty() && descriptors_.back().state == state) {
      descriptors_.back().length_bytes += static_cast<uint32_t>(length);
    } else if (descriptors_.size() == descriptors_max_) {
      return false;
    } else {
      descriptors_.push_back({static_cast<uint32_t>(length), state});
    }
    next_ += length;
    if (next_ == end_) return false;
  }
  return true;
}

void StatusReply::put(OutBuffer& out) const {
  CHECK(!descriptors_.empty());
  put_chunk(out, kReplyFlagDone, kReplyBlockStatus, request_.cookie,
            static_cast<uint32_t>(sizeof(uint32_t) + 8 * descriptors_.size()));
  out.put32(kBaseAllocationId);
  for (const Descriptor& descriptor : descriptors_) {
    out.put32(descriptor.length_bytes);
    out.put32(descriptor.state);
  }
}

}  // namespace vellum::server

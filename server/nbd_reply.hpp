// SPDX-License-Identifier: BSD-2-Clause
//
// Replies of the transmission phase, apart from sockets. `structured`: structured replies were
// negotiated, and then READ and BLOCK_STATUS are never answered by a simple reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/store/types.hpp"
#include "server/nbd_protocol.hpp"
#include "server/nbd_request.hpp"
#include "server/out_buffer.hpp"

namespace vellum::server {

// Success of a command whose reply carries nothing.
void put_success(OutBuffer& out, const Request& request);

// `text` goes along where the protocol has room for it.
void put_error(OutBuffer& out, const Request& request, bool structured, nbd::NbdError error,
               std::string_view text);

// The reply to a READ, in two steps, so that the data is read straight into its place.
class ReadReply {
 public:
  ReadReply(OutBuffer& out, const Request& request, bool structured);

  // Where the data goes; valid until something else is put into the buffer.
  std::span<std::byte> data();

  // All of data() has been filled. `extents` covers the request; used with structured replies only.
  void finish(std::span<const store::Extent> extents);

  // The data could not be had: takes everything back.
  void cancel() { out_.truncate(start_); }

 private:
  size_t header_bytes() const;
  void split(std::span<const store::Extent> extents);

  OutBuffer& out_;
  const Request& request_;
  const bool structured_;
  const size_t start_;
};

// What BLOCK_STATUS says of a request, from Export::map(): coalesced, inside the request, each of
// at most 2^32 - 1 bytes.
class StatusReply {
 public:
  StatusReply(const Request& request);

  // Takes the next extents, in order. Returns false when no more are wanted.
  bool add(std::span<const store::Extent> extents);
  // Where add() goes on.
  uint64_t next_offset() const { return next_; }
  uint64_t rest_bytes() const { return end_ - next_; }
  void put(OutBuffer& out) const;

 private:
  struct Descriptor {
    uint32_t length_bytes;
    uint32_t state;
  };
  const Request& request_;
  const size_t descriptors_max_;
  uint64_t next_;
  const uint64_t end_;
  std::vector<Descriptor> descriptors_;
};

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
//
// Requests of the transmission phase, apart from sockets: header bytes to a struct, and the checks
// that come before anything is done. After check_request() a request is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "server/nbd_protocol.hpp"

namespace vellum::server {

struct Request {
  uint16_t flags = 0;
  uint16_t type = 0;
  uint64_t cookie = 0;
  uint64_t offset = 0;
  uint32_t length = 0;

  bool has(uint16_t flag) const { return (flags & flag) != 0; }
  bool writes() const { return type == nbd::kCmdWrite || type == nbd::kCmdWriteZeroes; }
};

// What the export and the handshake allow.
struct RequestLimits {
  uint64_t size_bytes = 0;
  bool read_only = false;
  bool structured_replies = false;
  bool base_allocation = false;
};

// Nothing if the magic is wrong: the stream is out of step, and the connection must be closed.
std::optional<Request> parse_request(std::span<const std::byte, nbd::kRequestBytes> header);

// NbdError::none, or what the request is refused with. For all commands but DISC.
nbd::NbdError check_request(const Request& request, const RequestLimits& limits);

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
#include "server/nbd_request.hpp"

#include "common/base/endian.hpp"

namespace vellum::server {

using namespace nbd;

namespace {

// FUA is accepted on every command. The rest belongs to single ones.
uint16_t flags_allowed(uint16_t type, const RequestLimits& limits) {
  switch (type) {
    case kCmdRead:
      return kCmdFlagFua | (limits.structured_replies ? kCmdFlagDf : 0);
    case kCmdWriteZeroes:
      return kCmdFlagFua | kCmdFlagNoHole | kCmdFlagFastZero;
    case kCmdBlockStatus:
      return kCmdFlagFua | kCmdFlagReqOne;
    default:
      return kCmdFlagFua;
  }
}

bool changes(uint16_t type) {
  return type == kCmdWrite || type == kCmdTrim || type == kCmdWriteZeroes;
}

bool in_range(const Request& request, uint64_t size_bytes) {
  return request.offset <= size_bytes && request.length <= size_bytes - request.offset;
}

}  // namespace

std::optional<Request> parse_request(std::span<const std::byte, kRequestBytes> header) {
  const std::byte* from = header.data();
  if (load_be32(from) != kRequestMagic) return std::nullopt;
  return Request{.flags = load_be16(from + 4),
                 .type = load_be16(from + 6),
                 .cookie = load_be64(from + 8),
                 .offset = load_be64(from + 16),
                 .length = load_be32(from + 24)};
}

NbdError check_request(const Request& request, const RequestLimits& limits) {
  switch (request.type) {
    case kCmdRead:
    case kCmdWrite:
    case kCmdTrim:
    case kCmdCache:
    case kCmdWriteZeroes:
      break;
    case kCmdFlush:
      if (request.offset != 0 || request.length != 0) return NbdError::einval;
      break;
    case kCmdBlockStatus:
      if (!limits.base_allocation || request.length == 0) return NbdError::einval;
      break;
    default:
      return NbdError::einval;
  }
  if ((request.flags & ~flags_allowed(request.type, limits)) != 0) return NbdError::einval;
  if (changes(request.type) && limits.read_only) return NbdError::eperm;
  if (!in_range(request, limits.size_bytes)) {
    return request.writes() ? NbdError::enospc : NbdError::einval;
  }
  const bool has_payload = request.type == kCmdRead || request.type == kCmdWrite;
  if (has_payload && request.length > kPayloadBytesMax) return NbdError::einval;
  return NbdError::none;
}

}  // namespace vellum::server

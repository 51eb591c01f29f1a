// SPDX-License-Identifier: BSD-2-Clause
#include "common/base/crc32c.hpp"

#include <algorithm>

#include <isa-l/crc.h>

namespace vellum {

uint32_t crc32c(std::span<const std::byte> data) { return crc32c_extend(0, data); }

uint32_t crc32c_extend(uint32_t crc, std::span<const std::byte> data) {
  constexpr size_t kPieceBytesMax = size_t{1} << 30;  // the library counts in int
  uint32_t state = ~crc;
  while (!data.empty()) {
    const std::span<const std::byte> piece = data.first(std::min(data.size(), kPieceBytesMax));
    // The library only reads, but its argument is not const.
    auto* bytes = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
    state = crc32_iscsi(bytes, static_cast<int>(piece.size()), state);
    data = data.subspan(piece.size());
  }
  return ~state;
}

}  // namespace vellum

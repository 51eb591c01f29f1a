// SPDX-License-Identifier: BSD-2-Clause
//
// CRC-32C (Castagnoli), the checksum of everything on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vellum {

uint32_t crc32c(std::span<const std::byte> data);

// Of bytes in several pieces: pass on the result for the pieces before, 0 at first.
// crc32c_extend(crc32c(a), b) == crc32c(a followed by b).
uint32_t crc32c_extend(uint32_t crc, std::span<const std::byte> data);

}  // namespace vellum

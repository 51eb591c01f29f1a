// SPDX-License-Identifier: BSD-2-Clause
//
// What simulated disks are made of: blocks of 4 KiB that never change, and are shared.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace vellum::support {

inline constexpr uint64_t kBlockBytes = 4096;

using Block = std::array<std::byte, kBlockBytes>;
using BlockPointer = std::shared_ptr<const Block>;  // null: zeros

uint64_t total_bytes(std::span<const iovec> parts);

// The whole blocks of a write.
std::vector<BlockPointer> blocks_of(std::span<const iovec> parts);

// What the block with this index reads as after a discard: garbage.
BlockPointer discarded_block(uint64_t index);

// Fills the parts of a read at `offset` of the disk. block_at(index) gives each block, ascending.
void read_blocks(uint64_t offset, std::span<const iovec> parts, auto block_at);

// -- Details -------------------------------------------------------------------------------------

// `bytes` of the block from `within` on.
void copy_from(const BlockPointer& block, uint64_t within, std::byte* out, size_t bytes);

void read_blocks(uint64_t offset, std::span<const iovec> parts, auto block_at) {
  uint64_t at = offset;
  for (const iovec& part : parts) {
    auto* out = static_cast<std::byte*>(part.iov_base);
    for (size_t done = 0; done < part.iov_len;) {
      const uint64_t within = at % kBlockBytes;
      const auto bytes = std::min<size_t>(kBlockBytes - within, part.iov_len - done);
      copy_from(block_at(at / kBlockBytes), within, out + done, bytes);
      done += bytes;
      at += bytes;
    }
  }
}

}  // namespace vellum::support

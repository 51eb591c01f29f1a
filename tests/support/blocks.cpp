// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/blocks.hpp"

#include <cstring>

#include "tests/support/random.hpp"

namespace vellum::support {

uint64_t total_bytes(std::span<const iovec> parts) {
  uint64_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  return total;
}

std::vector<BlockPointer> blocks_of(std::span<const iovec> parts) {
  std::vector<std::byte> flat;
  flat.reserve(total_bytes(parts));
  for (const iovec& part : parts) {
    const auto* begin = static_cast<const std::byte*>(part.iov_base);
    flat.insert(flat.end(), begin, begin + part.iov_len);
  }
  std::vector<BlockPointer> blocks;
  for (uint64_t at = 0; at + kBlockBytes <= flat.size(); at += kBlockBytes) {
    auto block = std::make_shared<Block>();
    std::memcpy(block->data(), flat.data() + at, kBlockBytes);
    blocks.push_back(std::move(block));
  }
  return blocks;
}

BlockPointer discarded_block(uint64_t index) {
  auto garbage = std::make_shared<Block>();
  Random random(index * kBlockBytes);
  for (size_t i = 0; i < kBlockBytes; i += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(garbage->data() + i, &word, sizeof word);
  }
  return garbage;
}

void copy_from(const BlockPointer& block, uint64_t within, std::byte* out, size_t bytes) {
  if (block)
    std::memcpy(out, block->data() + within, bytes);
  else
    std::memset(out, 0, bytes);
}

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
//
// What one version of a volume holds, in memory: the oracle of model and crash tests.
//
// 1. A block that is absent was never written, or was trimmed or zeroed as a whole: it reads as
// zeros
//    and no map of the store may call it data.
// 2. Two versions share the pointer of a block exactly when the store shares the block.
//
// The data of a write is made from its tag and its place, so that a wrong block tells which write
// it came from. Offsets and lengths are bytes. A value: copies share their blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace vellum::support {

inline constexpr uint64_t kContentBlockBytes = 4096;

using ContentBlock = std::array<std::byte, kContentBlockBytes>;
using ContentPointer = std::shared_ptr<const ContentBlock>;

// The bytes that the write with this tag puts at [offset, offset + length).
void fill_pattern(uint64_t tag, uint64_t offset, std::span<std::byte> out);
std::vector<std::byte> pattern(uint64_t tag, uint64_t offset, uint64_t length);
// For messages: which write a stretch of 8 bytes came from.
std::string describe_word(uint64_t word);

// What a map of the store must say of a block. `either`: it was written, and is all zeros now.
enum class Held { nothing, data, either };

class Content {
 public:
  using Blocks = std::map<uint64_t, ContentPointer>;

  explicit Content(uint64_t size_bytes = 0) : size_bytes_(size_bytes) {}

  uint64_t size_bytes() const { return size_bytes_; }
  const Blocks& blocks() const { return *blocks_; }
  uint64_t block_count() const {
    return (size_bytes_ + kContentBlockBytes - 1) / kContentBlockBytes;
  }

  void write(uint64_t tag, uint64_t offset, uint64_t length);
  void zero(uint64_t offset, uint64_t length);
  void resize(uint64_t size_bytes);  // what is cut off is gone

  void read(uint64_t offset, std::span<std::byte> out) const;
  ContentPointer block(uint64_t index) const;  // null: absent
  bool reads_as_zeros(uint64_t index) const;
  Held held(uint64_t index) const;
  // The first block from `index` on that is not absent; null when there is none.
  const std::pair<const uint64_t, ContentPointer>* next_block(uint64_t index) const;
  // A whole block at or beyond `size_bytes`, or a part of one, holds something but zeros.
  bool holds_data_beyond(uint64_t size_bytes) const;

  // Compares bytes of a read with what they must be: empty, or what is wrong first.
  std::string difference(uint64_t offset, std::span<const std::byte> got) const;

 private:
  Blocks& own();

  uint64_t size_bytes_;
  std::shared_ptr<Blocks> blocks_ =
      std::make_shared<Blocks>();  // shared with copies until a change
};

bool is_zero(std::span<const std::byte> bytes);

// Whether every block reads the same, however it came to.
bool read_alike(const Content& a, const Content& b);

}  // namespace vellum::support

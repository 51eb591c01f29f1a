// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/content.hpp"

#include <algorithm>
#include <cstring>

namespace vellum::support {

namespace {

constexpr uint64_t kPlaceBits = 40;  // of the index of an 8-byte word, above them the tag
constexpr uint64_t kPlaceMask = (uint64_t{1} << kPlaceBits) - 1;

uint64_t pattern_word(uint64_t tag, uint64_t index) {
  return (tag << kPlaceBits) | ((index + 1) & kPlaceMask);
}

// Calls piece(block index, offset within it, length, offset within the range) for each block.
template <typename Piece>
void for_each_block(uint64_t offset, uint64_t length, Piece piece) {
  for (uint64_t done = 0; done < length;) {
    const uint64_t at = offset + done;
    const uint64_t within = at % kContentBlockBytes;
    const uint64_t bytes = std::min(kContentBlockBytes - within, length - done);
    piece(at / kContentBlockBytes, within, bytes, done);
    done += bytes;
  }
}

}  // namespace

void fill_pattern(uint64_t tag, uint64_t offset, std::span<std::byte> out) {
  uint64_t at = offset;
  for (size_t done = 0; done < out.size();) {
    const uint64_t word = pattern_word(tag, at / 8);
    const size_t within = at % 8;
    const size_t bytes = std::min(8 - within, out.size() - done);
    std::memcpy(out.data() + done, reinterpret_cast<const std::byte*>(&word) + within, bytes);
    done += bytes;
    at += bytes;
  }
}

std::vector<std::byte> pattern(uint64_t tag, uint64_t offset, uint64_t length) {
  std::vector<std::byte> data(length);
  fill_pattern(tag, offset, data);
  return data;
}

std::string describe_word(uint64_t word) {
  if (word == 0) return "zeros";
  return "write " + std::to_string(word >> kPlaceBits) + " at offset " +
         std::to_string(((word & kPlaceMask) - 1) * 8) + " (modulo 8 TiB)";
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Content::Blocks& Content::own() {
  if (blocks_.use_count() > 1) blocks_ = std::make_shared<Blocks>(*blocks_);
  return *blocks_;
}

void Content::write(uint64_t tag, uint64_t offset, uint64_t length) {
  Blocks& blocks = own();
  for_each_block(offset, length, [&](uint64_t index, uint64_t within, uint64_t bytes, uint64_t) {
    ContentPointer& old = blocks[index];
    auto fresh = old ? std::make_shared<ContentBlock>(*old) : std::make_shared<ContentBlock>();
    fill_pattern(tag, index * kContentBlockBytes + within,
                 std::span(*fresh).subspan(within, bytes));
    old = std::move(fresh);
  });
}

void Content::zero(uint64_t offset, uint64_t length) {
  Blocks& blocks = own();
  // The last block is whole if all that the volume has of it is.
  const uint64_t end =
      offset + length == size_bytes_ ? block_count() * kContentBlockBytes : offset + length;
  auto at = blocks.lower_bound(offset / kContentBlockBytes);
  while (at != blocks.end() && at->first * kContentBlockBytes < end) {
    const uint64_t base = at->first * kContentBlockBytes;
    const uint64_t from = std::max(base, offset) - base;
    const uint64_t to = std::min(base + kContentBlockBytes, end) - base;
    if (from == to) {
      ++at;
    } else if (to - from == kContentBlockBytes) {
      at = blocks.erase(at);
    } else {
      auto fresh = std::make_shared<ContentBlock>(*at->second);
      std::fill(fresh->begin() + static_cast<ptrdiff_t>(from),
                fresh->begin() + static_cast<ptrdiff_t>(to), std::byte{0});
      at->second = std::move(fresh);
      ++at;
    }
  }
}

void Content::resize(uint64_t size_bytes) {
  if (size_bytes < size_bytes_) {
    const uint64_t end = block_count() * kContentBlockBytes;
    zero(size_bytes, end - size_bytes);
  }
  size_bytes_ = size_bytes;
}

void Content::read(uint64_t offset, std::span<std::byte> out) const {
  for_each_block(offset, out.size(),
                 [&](uint64_t index, uint64_t within, uint64_t bytes, uint64_t done) {
                   if (const ContentPointer found = block(index))
                     std::memcpy(out.data() + done, found->data() + within, bytes);
                   else
                     std::memset(out.data() + done, 0, bytes);
                 });
}

ContentPointer Content::block(uint64_t index) const {
  auto found = blocks_->find(index);
  return found == blocks_->end() ? nullptr : found->second;
}

bool Content::reads_as_zeros(uint64_t index) const {
  const ContentPointer found = block(index);
  return !found || is_zero(*found);
}

Held Content::held(uint64_t index) const {
  const ContentPointer found = block(index);
  if (!found) return Held::nothing;
  return is_zero(*found) ? Held::either : Held::data;
}

const std::pair<const uint64_t, ContentPointer>* Content::next_block(uint64_t index) const {
  auto found = blocks_->lower_bound(index);
  return found == blocks_->end() ? nullptr : &*found;
}

bool Content::holds_data_beyond(uint64_t size_bytes) const {
  for (auto at = blocks_->lower_bound(size_bytes / kContentBlockBytes); at != blocks_->end();
       ++at) {
    const uint64_t base = at->first * kContentBlockBytes;
    const uint64_t from = std::max(base, size_bytes) - base;
    if (!is_zero(std::span(*at->second).subspan(from))) return true;
  }
  return false;
}

std::string Content::difference(uint64_t offset, std::span<const std::byte> got) const {
  std::vector<std::byte> expected(got.size());
  read(offset, expected);
  const auto [here, there] = std::mismatch(expected.begin(), expected.end(), got.begin());
  if (here == expected.end()) return {};
  const auto index = static_cast<uint64_t>(here - expected.begin());
  const uint64_t at = offset + index;
  auto word_at = [&](std::span<const std::byte> bytes) {
    const uint64_t start = at % 8 > index ? index : index - at % 8;
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + start, std::min<uint64_t>(8, bytes.size() - start));
    return describe_word(word);
  };
  return "at offset " + std::to_string(at) + " (block " + std::to_string(at / kContentBlockBytes) +
         "): expected " + word_at(expected) + ", got " + word_at(got);
}

bool read_alike(const Content& a, const Content& b) {
  const auto within = [](const Content& one, const Content& other) {
    return std::all_of(one.blocks().begin(), one.blocks().end(), [&](const auto& each) {
      const ContentPointer there = other.block(each.first);
      return there ? *there == *each.second : is_zero(*each.second);
    });
  };
  return within(a, b) && within(b, a);
}

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
//
// Bytes on their way to a client. Grows without clearing what it grows by, so that data can be read
// straight into a reply.
//
// 1. What extend() returned is valid until the next call that adds bytes.
// 2. Positions (size(), truncate()) count from the first byte that has not been consumed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/check.hpp"
#include "common/base/endian.hpp"

namespace vellum::server {

class OutBuffer {
 public:
  OutBuffer() = default;
  OutBuffer(OutBuffer&& other) noexcept { swap(other); }
  OutBuffer& operator=(OutBuffer&& other) noexcept {
    swap(other);
    return *this;
  }

  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  std::span<const std::byte> bytes() const { return {data_.get() + begin_, size()}; }
  std::byte* at(size_t position) { return data_.get() + begin_ + position; }

  // Adds `count` bytes of any content.
  std::byte* extend(size_t count) {
    if (capacity_ - end_ < count) make_room(count);
    std::byte* added = data_.get() + end_;
    end_ += count;
    return added;
  }

  void truncate(size_t size_bytes) {
    CHECK(size_bytes <= size());
    end_ = begin_ + size_bytes;
  }

  void consume(size_t count) {
    CHECK(count <= size());
    begin_ += count;
    if (begin_ != end_) return;
    begin_ = end_ = 0;
    if (capacity_ > kKeptBytesMax) {
      data_.reset();
      capacity_ = 0;
    }
  }

  void put16(uint16_t value) { store_be(extend(sizeof value), value); }
  void put32(uint32_t value) { store_be(extend(sizeof value), value); }
  void put64(uint64_t value) { store_be(extend(sizeof value), value); }
  void put(std::string_view text) { put(std::as_bytes(std::span(text))); }
  void put(std::span<const std::byte> data) {
    if (!data.empty()) std::memcpy(extend(data.size()), data.data(), data.size());
  }
  void put_zeros(size_t count) { std::memset(extend(count), 0, count); }

 private:
  static constexpr size_t kKeptBytesMax = 2 << 20;  // more is given back once it is empty

  void swap(OutBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

  void make_room(size_t count) {
    const size_t used = size();
    if (used + count <= capacity_ / 2) {
      std::memmove(data_.get(), data_.get() + begin_, used);
    } else {
      const size_t capacity = std::max<size_t>({4096, 2 * capacity_, used + count});
      auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
      if (used > 0) std::memcpy(larger.get(), data_.get() + begin_, used);
      data_ = std::move(larger);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = used;
  }

  std::unique_ptr<std::byte[]> data_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace vellum::server

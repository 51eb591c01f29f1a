// SPDX-License-Identifier: BSD-2-Clause
//
// What is fuzzed: everything that reads what lies on a disk. A target takes any bytes, within a
// bounded time and memory, and throws Failure or dies where the store does not do what it should.
// libFuzzer drives the same functions (libfuzzer.cpp) as the test that runs everywhere
// (replay_test.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace vellum::fuzz {

using Input = std::span<const std::byte>;

// One superblock, with the rest of a disk that is empty.
void superblock(Input input);
// Sectors of the journal: the chain, and how records are cut out of it.
void journal(Input input);
// One record of the journal.
void record(Input input);
// A node of a map.
void node(Input input);
// A small store whose tables and bitmaps are edited, with checksums that fit.
void tables(Input input);
// A small store that is edited anywhere, with checksums that fit or without.
void image(Input input);

struct Target {
  std::string_view name;
  void (*run)(Input);
};
inline constexpr Target kTargets[] = {{"superblock", superblock}, {"journal", journal},
                                      {"record", record},         {"node", node},
                                      {"tables", tables},         {"image", image}};

// Takes an input apart. Beyond its end there are zeros.
class Bytes {
 public:
  explicit Bytes(Input input) : left_(input) {}
  bool empty() const { return left_.empty(); }
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && !left_.empty(); ++i) {
      value |= static_cast<uint64_t>(left_[0]) << (8 * i);
      left_ = left_.subspan(1);
    }
    return value;
  }
  Input some(size_t bytes_max) {
    const Input taken = left_.first(bytes_max < left_.size() ? bytes_max : left_.size());
    left_ = left_.subspan(taken.size());
    return taken;
  }

 private:
  Input left_;
};

}  // namespace vellum::fuzz

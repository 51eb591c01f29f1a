// SPDX-License-Identifier: BSD-2-Clause
//
// Randomness of tests: one seed replays all, on every compiler and library (std::uniform_* does not
// promise that). SplitMix64. Not thread-safe: each thread makes its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "common/base/check.hpp"

namespace vellum::support {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  }

  // 0 to bound - 1. The bias of the remainder does not matter here.
  uint64_t below(uint64_t bound) {
    CHECK(bound > 0);
    return next() % bound;
  }

  // first to last, both included.
  uint64_t between(uint64_t first, uint64_t last) { return first + below(last - first + 1); }

  bool chance(unsigned percent) { return below(100) < percent; }

  template <typename Container>
  auto& pick(Container& container) {
    return container[below(std::size(container))];
  }

 private:
  uint64_t state_;
};

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace vellum::store {

struct Volume;

// What a change may take at worst.
struct Cost {
  size_t record_bytes = 0;
  size_t records = 1;
  uint64_t blocks = 0;             // that take_blocks() will be asked for
  uint64_t nodes = 0;              // of the map that may become dirty
  const Volume* volume = nullptr;  // whose promise of space it may use
  bool takes_space() const { return blocks + nodes > 0; }
};

}  // namespace vellum::store

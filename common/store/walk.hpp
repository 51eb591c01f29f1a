// SPDX-License-Identifier: BSD-2-Clause
//
// Walking trees without changing them: what is allocated, and what differs. Guarded by the store's
// mutex; does no I/O: nodes that are not in memory are collected, and the result counts only if
// there are none. Blocks are those of the volume.
//
// 1. A walk visits what is allocated (or differs) in its range and the paths to it, nothing else.
// 2. It visits at most `nodes_max` nodes, then it stops early and says where: reached().
// 3. What lies below a node that cannot be read (NodeCache::is_damaged) counts as data that
//    differs: whoever reads it there gets the error, and nothing is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/store/node_cache.hpp"
#include "common/store/tree.hpp"

namespace vellum::store {

struct BlockExtent {
  uint64_t block = 0, count = 0;
  ExtentKind kind = ExtentKind::data;
};

class Walk {
 public:
  static constexpr size_t kNodesMax = 1024;

  Walk(NodeCache& nodes, MissingNodes& missing, uint64_t first, uint64_t last, size_t extents_max)
      : nodes_(nodes),
        missing_(missing),
        first_(first),
        last_(last),
        extents_max_(extents_max),
        reached_(last) {}

  // Data in [first, last).
  void data(const Entry& root) { data_at(root, kLevels, 0); }
  // Where `target` differs from `base`.
  void difference(const Entry& target, const Entry& base) {
    difference_at(target, base, kLevels, 0);
  }

  const std::vector<BlockExtent>& extents() const { return extents_; }
  // Everything before this block has been looked at.
  uint64_t reached() const { return reached_; }

 private:
  bool data_at(const Entry& entry, unsigned level, uint64_t base);
  bool difference_at(const Entry& target, const Entry& base_entry, unsigned level, uint64_t base);
  bool add(uint64_t block, uint64_t count, ExtentKind kind);
  bool add_unreadable(unsigned level, uint64_t base);
  bool outside(unsigned level, uint64_t base) const {
    return base >= last_ || base + span_blocks(level) <= first_;
  }
  bool may_visit(uint64_t base);
  size_t first_slot(unsigned level, uint64_t base) const;

  NodeCache& nodes_;
  MissingNodes& missing_;
  const uint64_t first_, last_;
  const size_t extents_max_;
  size_t visited_ = 0;
  uint64_t reached_;
  std::vector<BlockExtent> extents_;
};

// A bit for each chunk of [first, last) in which anything is allocated, or differs. chunk_blocks: a
// power of two.
class ChunkWalk {
 public:
  ChunkWalk(NodeCache& nodes, MissingNodes& missing, uint64_t first, uint64_t last,
            uint64_t chunk_blocks)
      : nodes_(nodes),
        missing_(missing),
        first_(first),
        last_(last),
        chunk_blocks_(chunk_blocks),
        reached_(last),
        bits_((last - first + chunk_blocks - 1) / chunk_blocks) {}

  // Where `root` differs from `base`; from a hole: what is allocated.
  void difference(const Entry& root, const Entry& base) { at(root, base, kLevels, 0); }
  const std::vector<bool>& bits() const { return bits_; }
  uint64_t reached() const { return reached_; }  // a border of chunks, or the end

 private:
  bool at(const Entry& entry, const Entry& other, unsigned level, uint64_t base);

  static constexpr size_t kNodesMax = 8192;
  NodeCache& nodes_;
  MissingNodes& missing_;
  const uint64_t first_, last_, chunk_blocks_;
  size_t visited_ = 0;
  uint64_t reached_;
  std::vector<bool> bits_;
};

// Chunks of `chunk_blocks`, a power of two, from block `from`, a multiple of that, to block `last`.
struct ChunkRange {
  uint64_t from = 0, last = kTreeBlocks, chunk_blocks = 1;
};

// The first chunk of them, by its first block, in which something differs from `base`.
std::optional<uint64_t> next_difference(NodeCache& nodes, MissingNodes& missing, const Entry& root,
                                        const Entry& base, const ChunkRange& in);
// The first block at or after `from` that is allocated.
std::optional<uint64_t> next_allocated(NodeCache& nodes, MissingNodes& missing, const Entry& root,
                                       uint64_t from);

}  // namespace vellum::store

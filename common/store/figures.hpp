// SPDX-License-Identifier: BSD-2-Clause
//
// What a volume or snapshot takes, counted from the trees. Guarded by the store's mutex; does no
// I/O: nodes that are not in memory are collected, and a step counts only if there are none.
//
// 1. What would come back if a set of visible versions went: of each of them, and of the zombies
//    above, what they own and no visible version beneath that stays (a keeper) has. No other
//    version can have it.
// 2. Where nothing stays beneath a visible version, that is all that it owns, and needs no walk.
//    Of a zombie only what one that goes has counts: it may hold nodes of its own that nobody
//    reads.
// 3. A count goes on from a place to a place, so that it can be done in bounded steps.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/store/forest.hpp"
#include "common/store/tree.hpp"

namespace vellum::store {

// What one version has to give.
struct Share {
  const Version* version = nullptr;
  std::vector<const Version*> keepers;
  std::vector<const Version*> givers;  // of a zombie: only what one of these has counts
};

// True for the versions that would go.
using Goes = std::function<bool(const Version&)>;
std::vector<Share> shares_of(const std::vector<const Version*>& going, const Goes& goes);

// Blocks and nodes of a share, from block `from` of the tree on. Moves `from`; kTreeBlocks: done.
class ShareCount {
 public:
  ShareCount(NodeCache& nodes, MissingNodes& missing) : nodes_(nodes), missing_(missing) {}
  uint64_t step(const Share& share, uint64_t& from);

 private:
  using Others = std::vector<Entry>;
  bool visit(const Entry& entry, const Others& keepers, const Others& givers, unsigned level,
             uint64_t base);
  bool below(const Others& entries, unsigned level, uint64_t base, size_t slot, Others& found);

  static constexpr size_t kNodesMax = 256;
  NodeCache& nodes_;
  MissingNodes& missing_;
  VersionId floor_ = 0;
  bool any_giver_ = false;  // whatever it has counts
  uint64_t from_ = 0, reached_ = 0, count_ = 0;
  size_t visited_ = 0;
};

// Data blocks from `from` on, as ShareCount does.
uint64_t count_data(NodeCache& nodes, MissingNodes& missing, const Entry& root, uint64_t& from);

}  // namespace vellum::store

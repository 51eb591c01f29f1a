// SPDX-License-Identifier: BSD-2-Clause
//
// The system tree of one checkpoint: tables and bitmaps, in blocks found by area and index
// (FORMAT.md, "System tree"). Immutable once its checkpoint is committed; an Update makes the next
// one by copying paths. Not thread-safe; reads need no lock, since nothing live is overwritten.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/store/block_io.hpp"

namespace vellum::store {

class SystemTree {
 public:
  SystemTree(disk::Disk& disk, AddressLimits limits, Entry root)
      : disk_(disk), limits_(limits), root_(root) {}

  const Entry& root() const { return root_; }
  // The content of a table block, zeros if it is a hole.
  Result<Page> read(uint64_t block) const;
  // Told of a part that cannot be read: so many table blocks of the area, from `index` on. The walk
  // goes on behind it; without one, it ends with the error.
  using OnDamage = std::function<void(uint64_t index, uint64_t count, const Error& error)>;
  // Calls `visit` for every table block of `area` that is no hole, ascending.
  using Visitor = std::function<Result<void>(uint64_t index, const Page& page)>;
  Result<void> for_each(Area area, const Visitor& visit, const OnDamage& on_damage = {}) const;
  // Calls `visit` for every table block of `area` that may differ from that of `other`, ascending.
  Result<void> differing(const SystemTree& other, Area area,
                         const std::function<void(uint64_t index)>& visit) const;
  // Calls `visit` with the address in blocks of everything in the tree, nodes included; of a node
  // that cannot be read, only its own.
  void for_each_address(const std::function<void(uint64_t)>& visit) const;

 private:
  friend class SystemUpdate;
  struct AreaWalk {
    uint64_t first, last;  // block numbers
    const Visitor& visit;
    const OnDamage& on_damage;
  };
  Result<void> walk(const Entry& entry, unsigned level, uint64_t base, const AreaWalk& in) const;
  Result<void> compare(const Entry& mine, const Entry& other, unsigned level, uint64_t base,
                       uint64_t first, const std::function<void(uint64_t)>& visit) const;
  void addresses(const Entry& entry, unsigned level,
                 const std::function<void(uint64_t)>& visit) const;

  disk::Disk& disk_;
  AddressLimits limits_;
  Entry root_;
};

// A set of table blocks with new content. First touch() all of them, then look at what they free
// and need, then write them.
class SystemUpdate {
 public:
  explicit SystemUpdate(const SystemTree& tree) : tree_(tree) {}

  // The block will be written, or become a hole. Addresses that the new tree has no more are added
  // to `freed`. A damaged node over answers becomes one over holes.
  Result<void> touch(uint64_t block, bool becomes_hole, std::vector<uint64_t>& freed);
  uint64_t blocks_needed() const;  // grows with every touch

  // Asked for the new content of each block that does not become a hole, ascending; `page` holds
  // the old content of a bitmap or of region counts (zeros for a hole), else zeros.
  using Content = std::function<Result<void>(uint64_t block, Page& page)>;
  // Writes everything to the addresses of `supply` and returns the root of the new tree.
  Result<Entry> write(BlockSupply& supply, const Content& content);

 private:
  struct Leaf {
    Entry old;
    bool hole = false;
  };
  using Place = std::pair<unsigned, uint64_t>;  // level, number of the node in its level
  bool becomes_hole(unsigned level, uint64_t number) const;
  Result<void> write_leaves(BlockSupply& supply, const Content& content);

  const SystemTree& tree_;
  std::map<uint64_t, Leaf> leaves_;
  std::map<Place, Pointers> nodes_;  // by level, then ascending
};

}  // namespace vellum::store

// SPDX-License-Identifier: BSD-2-Clause
//
// Changing the trees of versions. Guarded by the store's mutex; does no I/O: a caller first asks
// whether all nodes that a change needs are in memory, reads those that are not, and asks again.
//
// 1. The free rule: when head H stops pointing to a target that version t created, the target is
//    free if t > parent(H).id; else some ancestor still reads it. While the parent is collapsed
//    into H, what its cursor has passed is judged by the parent's parent already.
// 2. A node is changed in place only if it carries the head's id and is dirty and not frozen;
//    otherwise it is copied.
// 3. No node is all holes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "common/store/allocator.hpp"
#include "common/store/forest.hpp"
#include "common/store/node_cache.hpp"

namespace vellum::store {

// Nodes that have to be read before a change or a walk can be done.
struct Missing {
  Entry pointer;
  unsigned level;
  uint64_t block;  // any that it maps
};
using MissingNodes = std::vector<Missing>;

// Whether a target is charged to this version, or to its parent in what the parent's collapse has
// passed: of all versions, exactly one holds it. What a job has passed in a version dangles.
bool holds(const Version& version, const Entry& entry, const Cursor& place);

class Tree {
 public:
  Tree(Forest& forest, NodeCache& nodes, Allocator& allocator)
      : forest_(forest), nodes_(nodes), allocator_(allocator) {}

  // -- Data pointers. `block` and `count` stay within one leaf. -----------------------------------
  // The leaf of `block`; null if there is none, or if a node is missing.
  const Node* leaf(const Version& version, uint64_t block, MissingNodes& missing);
  bool can_write(const Version& head, uint64_t block, MissingNodes& missing) {
    const size_t before = missing.size();
    leaf(head, block, missing);
    return missing.size() == before;
  }
  // The blocks of `runs`, allocated already, become the content from `block` on.
  void write(Version& head, uint64_t block, std::span<const Run> runs,
             std::span<const uint32_t> crcs);

  // -- Trim ---------------------------------------------------------------------------------------
  // Whole subtrees from kDetachLevel on are moved away as they are; the rest is freed at once.
  bool can_trim(const Version& head, uint64_t block, uint64_t count, MissingNodes& missing);
  void trim(Version& head, uint64_t block, uint64_t count);

  // -- For reclaim --------------------------------------------------------------------------------
  // Nothing reads the target any more that `owner` is charged with. References are not its
  // business.
  void free_target(Version& owner, const Entry& entry, unsigned level);

 private:
  // `block` is any block below the place in question.
  Node& writable(Version& head, Entry& slot, Node* parent, uint64_t block, unsigned level);
  static Version* owner_of(Version& head, const Entry& entry, uint64_t block, unsigned level);
  static VersionId kept_by_ancestors(const Version& head, uint64_t base);
  void let_go(Version& head, const Entry& entry, uint64_t block, unsigned level);
  void release(Version& head, const Entry& entry, uint64_t block, unsigned level);
  std::optional<uint64_t> count_cheaply(const Entry& entry, unsigned level);
  void uncount(Version& head, const Entry& entry, unsigned level, uint64_t base);
  void release_tree(Version& head, const Entry& entry, unsigned level, uint64_t base);
  bool is_detached(const Version& head, const Entry& entry, unsigned level) const;
  void find_missing_to_detach(const Version& head, unsigned level, uint64_t base,
                              MissingNodes& missing);
  bool has_room(const Version& zombie, unsigned level, uint64_t base);
  void detach(Version& head, const Entry& entry, unsigned level, uint64_t base);
  void trim_slot(Version& head, Entry& slot, Node* parent, unsigned level, uint64_t base,
                 uint64_t first, uint64_t last);
  bool any_allocated(const Entry& entry, unsigned level, uint64_t base, uint64_t first,
                     uint64_t last);
  void find_missing_for_trim(const Version& head, const Entry& entry, unsigned level, uint64_t base,
                             uint64_t first, uint64_t last, MissingNodes& missing);

  Forest& forest_;
  NodeCache& nodes_;
  Allocator& allocator_;
};

}  // namespace vellum::store

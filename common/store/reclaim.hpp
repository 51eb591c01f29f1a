// SPDX-License-Identifier: BSD-2-Clause
//
// The jobs that give back what zombies hold: versions that no name refers to. Guarded by the
// store's mutex; does no I/O. The specification is tests/model/version_forest.py.
//
// 1. drop, for a version without children, frees all that its parent does not have.
// 2. collapse, for a version with one child, frees what neither the child nor its parent has; then
//    the child takes its place.
// 3. sweep, for a version with more children, lets it forget what none of them has.
// 4. A job passes the places of the tree in post-order and finds its own by its cursor, from the
//    root each time: what it does depends on the trees and the cursor alone, so that recovery, told
//    how far it got, does the same.
// 5. One job runs at a time. Left of the cursor of drop and collapse a tree dangles.
#pragma once

#include "common/store/tree.hpp"

namespace vellum::store {

class Reclaim {
 public:
  Reclaim(Forest& forest, NodeCache& nodes, Tree& tree)
      : forest_(forest), nodes_(nodes), tree_(tree) {}

  // One place of the version's job: a leaf with its data, or a node. Moves the cursor; at the end
  // it is kCursorEnd. False if a node is missing, and then nothing was done.
  bool step(Version& version, MissingNodes& missing);

 private:
  enum class Pass { nothing, done, missing };
  // What other versions have at a place. Holes are left out.
  using Others = std::vector<Entry>;
  Pass give_back(Version& version, Entry& slot, Node* parent, const Others& others, unsigned level,
                 uint64_t base, MissingNodes& missing);
  Pass sweep(Version& zombie, const Entry& slot, const Others& others, unsigned level,
             uint64_t base, VersionId floor, MissingNodes& missing);
  void forget(Version& zombie, const Node& leaf, std::span<const Node* const> others, uint64_t base,
              VersionId floor);
  bool find(const Entry& entry, const Others& others, unsigned level, uint64_t base, Node*& node,
            std::vector<const Node*>& other_nodes, MissingNodes& missing);

  Forest& forest_;
  NodeCache& nodes_;
  Tree& tree_;
};

}  // namespace vellum::store

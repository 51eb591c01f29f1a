// SPDX-License-Identifier: BSD-2-Clause
//
// Owns every node in memory: dirty ones until a checkpoint has written them, clean ones within a
// budget. Guarded by the store's mutex.
//
// 1. A clean node stays findable by its address until it is evicted or freed; it is evicted only
//    while nothing refers to it and nobody has pinned it.
// 2. A dirty node lives until its last reference goes or, if it is frozen, until it is written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/store/node.hpp"

namespace vellum::store {

class NodeCache {
 public:
  explicit NodeCache(size_t nodes_max) : nodes_max_(nodes_max) {}
  ~NodeCache();
  NodeCache(const NodeCache&) = delete;
  NodeCache& operator=(const NodeCache&) = delete;

  // The node that `entry` leads to, or null if it has to be read first.
  Node* find(const Entry& entry);

  // A new dirty node of the current epoch, without references yet.
  Node* create(VersionId version, unsigned level);
  // A new dirty node with the entries of `source`, whose references it shares.
  Node* copy(const Node& source, VersionId version);
  // A clean node as it was read from disk. Returns the one that is there already, if there is.
  Node* insert(const Entry& pointer, unsigned level, const std::array<Entry, kFanout>& entries);

  void ref(const Entry& entry) {
    if (entry.is_in_memory()) entry.target()->refs++;
  }
  void unref(const Entry& entry);
  // Of nodes and of data: what a pointer leads to could not be read. False if that is known
  // already, or if too many are. insert() takes it back.
  bool note_damaged(const Entry& pointer);
  bool is_damaged(const Entry& pointer) const;
  void forget_damaged() { damaged_.clear(); }

  void pin(Node& node) { node.pins++; }
  void unpin(Node& node);

  // No version holds the node any more. It is gone with its last reference, which may be one in a
  // tree that dangles. A frozen one stays for the checkpoint; no later checkpoint writes any other.
  // The references that it holds are given up with it.
  void mark_freed(Node& node);

  // -- The checkpoint --------------------------------------------------------------------------
  uint32_t epoch() const { return epoch_; }
  // All nodes that are dirty now become frozen. None may be frozen before.
  void freeze();
  // Up to `count` frozen nodes of `level`, in the order in which they became dirty.
  std::vector<Node*> frozen(unsigned level, size_t count);
  // The node has been written to `block`: it is clean from now on, or gone if it was freed.
  void written(Node& node, uint64_t block, uint32_t crc);
  // References to nodes that have an address, in nodes that are still dirty, become pointers.
  void settle_references();
  // The same for one entry outside of any node, such as the root of a version.
  void settle(Entry& entry);

  size_t count() const { return count_; }
  size_t dirty_count() const { return dirty_count_; }
  size_t nodes_max() const { return nodes_max_; }
  // Evicts clean nodes until the budget is kept, as far as possible.
  void shrink();

 private:
  void destroy(Node& node);
  void destroy_if_unused(Node& node);

  size_t nodes_max_;
  size_t count_ = 0;
  size_t dirty_count_ = 0;  // frozen ones included, abandoned ones not
  uint32_t epoch_ = 1;
  std::unordered_map<uint64_t, Node*> by_block_;
  std::unordered_map<uint64_t, uint32_t> damaged_;  // block, CRC
  std::array<NodeLink, kLevels + 1> dirty_;
  std::array<NodeLink, kLevels + 1> frozen_;
  NodeLink abandoned_;
  NodeLink clean_;  // the clock: the hand is at the front
};

}  // namespace vellum::store

// SPDX-License-Identifier: BSD-2-Clause
//
// Pointers and nodes in memory.
//
// 1. An Entry is a pointer as FORMAT.md has it, or, in memory only, a reference to a Node that may
//    not have an address yet (Kind::in_memory). Every such reference is counted in Node::refs.
// 2. A node is dirty while it has no address. A dirty node is one object, however many parents lead
//    to it, and gets its address once, when a checkpoint writes it.
// 3. A dirty node is frozen if its epoch is older than the current one: its entries do not change
//    any more, and the checkpoint at work will write it.
// 4. A node that has an address never changes its content. Its references are turned into plain
//    pointers when the parent is written, or at the end of the checkpoint.
//
// All of this is guarded by the store's mutex, except that the checkpoint reads the entries of
// frozen nodes without it.
#pragma once

#include <array>
#include <cstdint>

#include "common/base/check.hpp"
#include "common/store/format.hpp"

namespace vellum::store {

using VersionId = uint32_t;

struct Node;

class Entry {
 public:
  Entry() = default;
  static Entry data(uint64_t block, VersionId version, uint32_t crc) {
    return Entry(pack(block, Kind::data), version, crc);
  }
  static Entry node(uint64_t block, VersionId version, uint32_t crc) {
    return Entry(pack(block, Kind::node), version, crc);
  }
  static Entry in_memory(Node* node, VersionId version) {
    const auto address = reinterpret_cast<uint64_t>(node);
    CHECK((address & ~kAddressMask) == 0);
    return Entry(address | uint64_t{static_cast<uint8_t>(Kind::in_memory)} << 56, version, 0);
  }
  static Entry raw(uint64_t word, VersionId version, uint32_t crc) {
    return Entry(word, version, crc);
  }

  Kind kind() const { return static_cast<Kind>(word_ >> 56); }
  bool is_hole() const { return word_ == 0; }
  bool is_in_memory() const { return kind() == Kind::in_memory; }
  Node* target() const {
    return reinterpret_cast<Node*>(word_ & kAddressMask);  // NOLINT(performance-no-int-to-ptr)
  }
  uint64_t block() const { return (word_ & kAddressMask) / kSectorsPerBlock; }
  VersionId version() const { return version_; }
  uint32_t crc() const { return crc_; }
  uint64_t word() const { return word_; }

 private:
  static constexpr uint64_t kAddressMask = (uint64_t{1} << 48) - 1;
  static uint64_t pack(uint64_t block, Kind kind) {
    return block * kSectorsPerBlock | kSectorsPerBlock << 48 |
           uint64_t{static_cast<uint8_t>(kind)} << 56;
  }
  Entry(uint64_t word, VersionId version, uint32_t crc)
      : word_(word), version_(version), crc_(crc) {}

  uint64_t word_ = 0;
  VersionId version_ = 0;
  uint32_t crc_ = 0;
};
static_assert(sizeof(Entry) == 16);

// Membership in one circular list: of dirty nodes of a level, or of clean ones.
struct NodeLink {
  NodeLink() = default;
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  void unlink() {
    previous->next = next;
    next->previous = previous;
    previous = next = this;
  }
  void insert_before(NodeLink& other) {
    next = &other;
    previous = other.previous;
    previous->next = this;
    other.previous = this;
  }

  NodeLink* previous = this;
  NodeLink* next = this;
};

struct Node : NodeLink {
  std::array<Entry, kFanout> entries;
  uint64_t block = 0;  // its address in blocks; 0: dirty
  uint32_t crc = 0;    // once it has an address
  VersionId version = 0;
  uint32_t epoch = 0;  // of a dirty node: the checkpoint interval it belongs to
  uint32_t refs = 0;   // entries in memory that lead to it by reference
  uint32_t pins = 0;   // calls at work that must find it again
  uint16_t used = 0;   // entries that are no holes
  uint8_t level = 0;
  bool freed = false;       // no version holds it any more
  bool abandoned = false;   // freed while it was dirty and not frozen: it is never written
  bool referenced = false;  // used since the cache last looked

  bool dirty() const { return block == 0; }
  bool frozen(uint32_t current_epoch) const {
    return block == 0 && !abandoned && epoch != current_epoch;
  }
};

// The pointer to a target as it stands on disk: for a reference, that of a node with an address. An
// abandoned node is referred to only where a tree dangles, and becomes a hole there.
inline Entry as_pointer(const Entry& entry) {
  if (!entry.is_in_memory()) return entry;
  const Node* node = entry.target();
  if (node->abandoned) return Entry();
  CHECK(node->block != 0);
  return Entry::node(node->block, node->version, node->crc);
}

// Whether two pointers lead to the same target: one object, or one address. Two dirty nodes are
// never the same by content.
inline bool same_target(const Entry& a, const Entry& b) {
  if (a.word() == b.word()) return true;
  if (a.is_hole() || b.is_hole() || (!a.is_in_memory() && !b.is_in_memory())) return false;
  const auto block_of = [](const Entry& entry) {
    return entry.is_in_memory() ? entry.target()->block : entry.block();
  };
  const bool nodes = a.kind() != Kind::data && b.kind() != Kind::data;
  return nodes && block_of(a) != 0 && block_of(a) == block_of(b);
}

}  // namespace vellum::store

// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/node_cache.hpp"

#include <utility>

namespace vellum::store {

namespace {

bool empty(const NodeLink& list) { return list.next == &list; }

void append_all(NodeLink& to, NodeLink& from) {
  if (empty(from)) return;
  from.next->previous = to.previous;
  to.previous->next = from.next;
  from.previous->next = &to;
  to.previous = from.previous;
  from.next = from.previous = &from;
}

}  // namespace

NodeCache::~NodeCache() {
  const auto drain = [](NodeLink& list) {
    for (NodeLink* at = list.next; at != &list;) {
      const auto* node = static_cast<Node*>(at);
      at = at->next;
      delete node;
    }
  };
  for (auto& list : dirty_) drain(list);
  for (auto& list : frozen_) drain(list);
  drain(abandoned_);
  drain(clean_);
}

Node* NodeCache::find(const Entry& entry) {
  if (entry.is_in_memory()) return entry.target();
  const auto found = by_block_.find(entry.block());
  if (found == by_block_.end()) return nullptr;
  found->second->referenced = true;
  return found->second;
}

Node* NodeCache::create(VersionId version, unsigned level) {
  auto* node = new Node;
  node->version = version;
  node->level = static_cast<uint8_t>(level);
  node->epoch = epoch_;
  node->insert_before(dirty_[level]);
  count_++;
  dirty_count_++;
  return node;
}

Node* NodeCache::copy(const Node& source, VersionId version) {
  Node* node = create(version, source.level);
  node->entries = source.entries;
  node->used = source.used;
  if (source.level > 1) {
    for (Entry& entry : node->entries) {
      if (!entry.is_in_memory()) continue;
      if (entry.target()->dirty()) {
        entry.target()->refs++;
      } else {
        entry = as_pointer(entry);
      }
    }
  }
  return node;
}

Node* NodeCache::insert(const Entry& pointer, unsigned level,
                        const std::array<Entry, kFanout>& entries) {
  const auto [place, fresh] = by_block_.try_emplace(pointer.block(), nullptr);
  if (!fresh) return place->second;
  damaged_.erase(pointer.block());
  auto* node = new Node;
  node->entries = entries;
  for (const Entry& entry : entries) node->used += entry.is_hole() ? 0 : 1;
  node->block = pointer.block();
  node->crc = pointer.crc();
  node->version = pointer.version();
  node->level = static_cast<uint8_t>(level);
  node->referenced = true;
  node->insert_before(clean_);
  place->second = node;
  count_++;
  return node;
}

bool NodeCache::note_damaged(const Entry& pointer) {
  constexpr size_t kDamagedMax = 65536;
  if (is_damaged(pointer)) return false;
  if (damaged_.size() == kDamagedMax && !damaged_.contains(pointer.block())) return false;
  damaged_[pointer.block()] = pointer.crc();
  return true;
}

bool NodeCache::is_damaged(const Entry& pointer) const {
  if (damaged_.empty() || pointer.is_in_memory()) return false;
  const auto found = damaged_.find(pointer.block());
  return found != damaged_.end() && found->second == pointer.crc();
}

void NodeCache::unref(const Entry& entry) {
  if (!entry.is_in_memory()) return;
  Node& node = *entry.target();
  CHECK(node.refs > 0);
  node.refs--;
  destroy_if_unused(node);
}

void NodeCache::unpin(Node& node) {
  CHECK(node.pins > 0);
  node.pins--;
  destroy_if_unused(node);
}

void NodeCache::mark_freed(Node& node) {
  node.freed = true;
  if (!node.dirty()) {
    const auto found = by_block_.find(node.block);
    if (found != by_block_.end() && found->second == &node) by_block_.erase(found);
  } else if (!node.frozen(epoch_)) {
    node.abandoned = true;
    node.unlink();
    node.insert_before(abandoned_);
    dirty_count_--;
  }
  destroy_if_unused(node);
}

void NodeCache::destroy_if_unused(Node& node) {
  if (node.refs > 0 || node.pins > 0 || node.frozen(epoch_)) return;
  if (node.dirty() || node.freed) destroy(node);
}

void NodeCache::destroy(Node& node) {
  if (node.dirty() && !node.abandoned) dirty_count_--;
  node.unlink();
  if (node.level > 1) {
    for (const Entry& entry : node.entries) unref(entry);
  }
  count_--;
  delete &node;
}

void NodeCache::freeze() {
  for (unsigned level = 1; level <= kLevels; level++) {
    CHECK(empty(frozen_[level]));
    append_all(frozen_[level], dirty_[level]);
  }
  epoch_++;
}

std::vector<Node*> NodeCache::frozen(unsigned level, size_t count) {
  std::vector<Node*> nodes;
  NodeLink& list = frozen_[level];
  for (NodeLink* at = list.next; at != &list && nodes.size() < count; at = at->next) {
    nodes.push_back(static_cast<Node*>(at));
  }
  return nodes;
}

void NodeCache::written(Node& node, uint64_t block, uint32_t crc) {
  CHECK(node.frozen(epoch_));
  node.unlink();
  dirty_count_--;
  node.block = block;
  node.crc = crc;
  if (node.level > 1) {
    for (Entry& entry : node.entries) settle(entry);
  }
  node.insert_before(clean_);
  if (!node.freed) {
    Node*& known = by_block_[block];
    if (known != nullptr) {
      // Read by somebody while it was freed: nothing leads to it, and the block is used again.
      CHECK(!known->dirty() && known->refs == 0);
      known->freed = true;
      Node& stale = *std::exchange(known, &node);
      destroy_if_unused(stale);
    } else {
      known = &node;
    }
  }
  destroy_if_unused(node);
}

void NodeCache::settle(Entry& entry) {
  if (!entry.is_in_memory() || entry.target()->dirty()) return;
  const Entry reference = entry;
  entry = as_pointer(entry);
  unref(reference);
}

void NodeCache::settle_references() {
  for (unsigned level = 2; level <= kLevels; level++) {
    for (NodeLink* at = dirty_[level].next; at != &dirty_[level]; at = at->next) {
      for (Entry& entry : static_cast<Node*>(at)->entries) settle(entry);
    }
  }
}

void NodeCache::shrink() {
  size_t looked_at = 0;
  const size_t looks_max = 2 * (count_ - dirty_count_);
  while (count_ > nodes_max_ && looked_at++ < looks_max && !empty(clean_)) {
    auto& node = *static_cast<Node*>(clean_.next);
    if (node.referenced || node.refs > 0 || node.pins > 0) {
      node.referenced = false;
      node.unlink();
      node.insert_before(clean_);
      continue;
    }
    by_block_.erase(node.block);
    destroy(node);
  }
}

}  // namespace vellum::store

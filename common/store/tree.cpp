// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/tree.hpp"

#include <algorithm>

namespace vellum::store {

bool holds(const Version& version, const Entry& entry, const Cursor& place) {
  const bool dangles = version.job == Job::drop || version.job == Job::collapse;
  if (version.parent == nullptr || (dangles && place <= version.cursor)) return false;
  const Version& parent = *version.parent;
  if (entry.version() > parent.id) return true;
  const bool passed = parent.job == Job::collapse && place <= parent.cursor;
  return passed && entry.version() > parent.parent->id;
}

const Node* Tree::leaf(const Version& version, uint64_t block, MissingNodes& missing) {
  Entry entry = version.root;
  for (unsigned level = kLevels;; level--) {
    if (entry.is_hole()) return nullptr;
    const Node* node = nodes_.find(entry);
    if (node == nullptr) {
      missing.push_back({entry, level, block});
      return nullptr;
    }
    if (level == 1) return node;
    entry = node->entries[slot_of(block, level)];
  }
}

void Tree::free_target(Version& owner, const Entry& entry, unsigned level) {
  if (owner.owned == 0) return allocator_.contradict();
  owner.owned--;
  forest_.touch(owner);
  if (level == 0) {
    forest_.data_blocks--;
    allocator_.free(entry.block());
    return;
  }
  const uint64_t block = entry.is_in_memory() ? entry.target()->block : entry.block();
  if (block != 0) allocator_.free(block);
  if (Node* node = nodes_.find(entry)) nodes_.mark_freed(*node);
}

// Whose the target is that `head` stops pointing to, if it is free now; else null.
Version* Tree::owner_of(Version& head, const Entry& entry, uint64_t block, unsigned level) {
  Version& parent = *head.parent;
  if (entry.version() > parent.id) return &head;
  if (parent.job != Job::collapse || place_of(block, level) > parent.cursor) return nullptr;
  return entry.version() > parent.parent->id ? &parent : nullptr;
}

// Nothing of a tree from block `base` on that this version or an older one created can be free.
VersionId Tree::kept_by_ancestors(const Version& head, uint64_t base) {
  const Version& parent = *head.parent;
  const bool passed = parent.job == Job::collapse && base < parent.cursor.end;
  return passed ? parent.parent->id : parent.id;
}

void Tree::let_go(Version& head, const Entry& entry, uint64_t block, unsigned level) {
  if (Version* owner = owner_of(head, entry, block, level)) {
    free_target(*owner, entry, level);
  } else {
    head.parent->released++;
  }
}

void Tree::release(Version& head, const Entry& entry, uint64_t block, unsigned level) {
  let_go(head, entry, block, level);
  nodes_.unref(entry);
}

Node& Tree::writable(Version& head, Entry& slot, Node* parent, uint64_t block, unsigned level) {
  if (slot.is_hole()) {
    Node* node = nodes_.create(head.id, level);
    slot = Entry::in_memory(node, head.id);
    nodes_.ref(slot);
    if (parent != nullptr) parent->used++;
    head.owned++;
    return *node;
  }
  Node* node = nodes_.find(slot);
  CHECK(node != nullptr);
  if (node->version == head.id && node->dirty() && !node->frozen(nodes_.epoch())) return *node;
  Node* copy = nodes_.copy(*node, head.id);
  const Entry old = slot;
  slot = Entry::in_memory(copy, head.id);
  nodes_.ref(slot);
  head.owned++;
  release(head, old, block, level);
  return *copy;
}

void Tree::write(Version& head, uint64_t block, std::span<const Run> runs,
                 std::span<const uint32_t> crcs) {
  Node* node = nullptr;
  Entry* slot = &head.root;
  for (unsigned level = kLevels; level > 0; level--) {
    node = &writable(head, *slot, node, block, level);
    slot = &node->entries[slot_of(block, level)];
  }
  size_t at = slot_of(block, 1), crc = 0;
  for (const Run& run : runs) {
    for (uint64_t i = 0; i < run.count; i++, at++, crc++) {
      const Entry old = node->entries[at];
      node->entries[at] = Entry::data(run.block + i, head.id, crcs[crc]);
      head.owned++;
      forest_.data_blocks++;
      if (old.is_hole()) {
        node->used++;
        if (block + crc < head.counted_to) head.referenced++;
      } else {
        release(head, old, block + crc, 0);
      }
    }
  }
  forest_.touch(head);
  forest_.note_change(head);
}

bool Tree::any_allocated(const Entry& entry, unsigned level, uint64_t base, uint64_t first,
                         uint64_t last) {
  const uint64_t end = base + span_blocks(level);
  if (entry.is_hole() || end <= first || base >= last) return false;
  if (base >= first && end <= last) return true;
  const Node* node = nodes_.find(entry);
  CHECK(node != nullptr);
  for (size_t i = 0; i < kFanout; i++) {
    if (any_allocated(node->entries[i], level - 1, base + i * span_blocks(level - 1), first,
                      last)) {
      return true;
    }
  }
  return false;
}

void Tree::find_missing_for_trim(const Version& head, const Entry& entry, unsigned level,
                                 uint64_t base, uint64_t first, uint64_t last,
                                 MissingNodes& missing) {
  const uint64_t end = base + span_blocks(level);
  if (level == 0 || entry.is_hole() || end <= first || base >= last) return;
  const bool whole = base >= first && end <= last;
  if (whole && entry.version() <= kept_by_ancestors(head, base)) return;
  if (whole && is_detached(head, entry, level)) {
    return find_missing_to_detach(head, level, base, missing);
  }
  const Node* node = nodes_.find(entry);
  if (node == nullptr) {
    missing.push_back({entry, level, base});
    return;
  }
  const uint64_t span = span_blocks(level - 1);
  const size_t from = first > base ? (first - base) / span : 0;
  const size_t to = std::min<uint64_t>(kFanout, (last - base + span - 1) / span);
  for (size_t i = from; i < to; i++) {
    find_missing_for_trim(head, node->entries[i], level - 1, base + i * span, first, last, missing);
  }
}

bool Tree::can_trim(const Version& head, uint64_t block, uint64_t count, MissingNodes& missing) {
  const size_t before = missing.size();
  find_missing_for_trim(head, head.root, kLevels, 0, block, block + count, missing);
  return missing.size() == before;
}

// How much data lies beneath, if that can be told from memory with little work.
std::optional<uint64_t> Tree::count_cheaply(const Entry& entry, unsigned level) {
  constexpr unsigned kLevelMax = 2;
  if (entry.is_hole()) return 0;
  if (level == 0) return 1;
  const Node* node = level <= kLevelMax ? nodes_.find(entry) : nullptr;
  if (node == nullptr) return std::nullopt;
  if (level == 1) return node->used;
  uint64_t sum = 0;
  for (const Entry& child : node->entries) {
    const auto below = count_cheaply(child, level - 1);
    if (!below) return std::nullopt;
    sum += *below;
  }
  return sum;
}

// The subtree is about to leave the head's tree as a whole.
void Tree::uncount(Version& head, const Entry& entry, unsigned level, uint64_t base) {
  if (base >= head.counted_to) return;
  const auto count = count_cheaply(entry, level);
  if (count && base + span_blocks(level) <= head.counted_to) {
    head.referenced -= *count;
  } else {
    head.referenced = head.counted_to = 0;  // it is counted again in the background
  }
}

void Tree::release_tree(Version& head, const Entry& entry, unsigned level, uint64_t base) {
  if (entry.is_hole()) return;
  if (level > 0 && entry.version() > kept_by_ancestors(head, base)) {
    const Node* node = nodes_.find(entry);
    CHECK(node != nullptr);
    const uint64_t span = span_blocks(level - 1);
    for (size_t i = 0; i < kFanout; i++) {
      release_tree(head, node->entries[i], level - 1, base + i * span);
    }
  }
  let_go(head, entry, base, level);
}

bool Tree::is_detached(const Version& head, const Entry& entry, unsigned level) const {
  return level >= kDetachLevel && entry.version() > head.parent->id && forest_.can_detach(head);
}

void Tree::find_missing_to_detach(const Version& head, unsigned level, uint64_t base,
                                  MissingNodes& missing) {
  const Version* zombie = Forest::detached(head);
  if (zombie == nullptr) return;
  Entry entry = zombie->root;
  for (unsigned at = kLevels; at > level && entry.version() == zombie->id; at--) {
    const Node* node = nodes_.find(entry);
    if (node == nullptr) return missing.push_back({entry, at, base});
    entry = node->entries[slot_of(base, at)];
  }
}

// The reference that the head held becomes the zombie's.
void Tree::detach(Version& head, const Entry& entry, unsigned level, uint64_t base) {
  Version* there = Forest::detached(head);
  const bool fits = there != nullptr && has_room(*there, level, base);
  Version& zombie = fits ? *there : forest_.begin_detached(head);
  Node* node = nullptr;
  Entry* slot = &zombie.root;
  for (unsigned at = kLevels; at > level; at--) {
    node = &writable(zombie, *slot, node, base, at);
    slot = &node->entries[slot_of(base, at)];
  }
  *slot = entry;
  if (node != nullptr) node->used++;
  forest_.touch(zombie);
}

// Whether only nodes of its own lie above the place, and nothing is there. Else it has been trimmed
// before, and written again.
bool Tree::has_room(const Version& zombie, unsigned level, uint64_t base) {
  Entry entry = zombie.root;
  for (unsigned at = kLevels; at > level && entry.version() == zombie.id; at--) {
    const Node* node = nodes_.find(entry);
    CHECK(node != nullptr);
    entry = node->entries[slot_of(base, at)];
  }
  return entry.is_hole();
}

void Tree::trim_slot(Version& head, Entry& slot, Node* parent, unsigned level, uint64_t base,
                     uint64_t first, uint64_t last) {
  const uint64_t end = base + span_blocks(level);
  if (slot.is_hole() || end <= first || base >= last) return;
  if (base >= first && end <= last) {
    // The reference is held until the whole subtree has been looked at.
    const Entry old = slot;
    uncount(head, old, level, base);
    slot = Entry();
    if (parent != nullptr) parent->used--;
    if (is_detached(head, old, level)) return detach(head, old, level, base);
    release_tree(head, old, level, base);
    nodes_.unref(old);
    return;
  }
  if (!any_allocated(slot, level, base, first, last)) return;
  Node& node = writable(head, slot, parent, base, level);
  const uint64_t span = span_blocks(level - 1);
  const size_t from = first > base ? (first - base) / span : 0;
  const size_t to = std::min<uint64_t>(kFanout, (last - base + span - 1) / span);
  for (size_t i = from; i < to; i++) {
    trim_slot(head, node.entries[i], &node, level - 1, base + i * span, first, last);
  }
  if (node.used > 0) return;
  const Entry old = slot;
  slot = Entry();
  if (parent != nullptr) parent->used--;
  release(head, old, base, level);
}

void Tree::trim(Version& head, uint64_t block, uint64_t count) {
  trim_slot(head, head.root, nullptr, kLevels, 0, block, block + count);
  forest_.touch(head);
  forest_.note_change(head);
}

}  // namespace vellum::store

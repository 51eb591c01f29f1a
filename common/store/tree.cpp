// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/tree.hpp"

#include <algorithm>

namespace vellum::store {

const Node* Tree::leaf(const Version& version, uint64_t block, MissingNodes& missing) {
  Entry entry = version.root;
  for (unsigned level = kLevels;; level--) {
    if (entry.is_hole()) return nullptr;
    const Node* node = nodes_.find(entry);
    if (node == nullptr) {
      missing.push_back({entry, level});
      return nullptr;
    }
    if (level == 1) return node;
    entry = node->entries[slot_of(block, level)];
  }
}

void Tree::free_target(Version& owner, const Entry& entry, unsigned level) {
  CHECK(owner.owned > 0);
  owner.owned--;
  forest_.touch(owner);
  if (level == 0) {
    allocator_.free(entry.block());
    return;
  }
  const uint64_t block = entry.is_in_memory() ? entry.target()->block : entry.block();
  if (block != 0) allocator_.free(block);
  if (Node* node = nodes_.find(entry)) nodes_.mark_freed(*node);
}

void Tree::release(Version& head, const Entry& entry, unsigned level) {
  if (entry.version() > head.parent->id) free_target(head, entry, level);
  nodes_.unref(entry);
}

Node& Tree::writable(Version& head, Entry& slot, Node* parent, unsigned level) {
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
  release(head, old, level);
  return *copy;
}

void Tree::write(Version& head, uint64_t block, std::span<const Run> runs,
                 std::span<const uint32_t> crcs) {
  Node* node = nullptr;
  Entry* slot = &head.root;
  for (unsigned level = kLevels; level > 0; level--) {
    node = &writable(head, *slot, node, level);
    slot = &node->entries[slot_of(block, level)];
  }
  size_t at = slot_of(block, 1), crc = 0;
  for (const Run& run : runs) {
    for (uint64_t i = 0; i < run.count; i++, at++, crc++) {
      const Entry old = node->entries[at];
      node->entries[at] = Entry::data(run.block + i, head.id, crcs[crc]);
      head.owned++;
      if (old.is_hole()) {
        node->used++;
      } else {
        release(head, old, 0);
      }
    }
  }
  forest_.touch(head);
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
  if (whole && entry.version() <= head.parent->id) return;  // not ours to free
  const Node* node = nodes_.find(entry);
  if (node == nullptr) {
    missing.push_back({entry, level});
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

void Tree::release_tree(Version& head, const Entry& entry, unsigned level) {
  if (entry.is_hole() || entry.version() <= head.parent->id) return;
  if (level > 0) {
    const Node* node = nodes_.find(entry);
    CHECK(node != nullptr);
    for (const Entry& child : node->entries) release_tree(head, child, level - 1);
  }
  free_target(head, entry, level);
}

void Tree::trim_slot(Version& head, Entry& slot, Node* parent, unsigned level, uint64_t base,
                     uint64_t first, uint64_t last) {
  const uint64_t end = base + span_blocks(level);
  if (slot.is_hole() || end <= first || base >= last) return;
  if (base >= first && end <= last) {
    // The reference is held until the whole subtree has been looked at.
    const Entry old = slot;
    slot = Entry();
    if (parent != nullptr) parent->used--;
    release_tree(head, old, level);
    nodes_.unref(old);
    return;
  }
  if (!any_allocated(slot, level, base, first, last)) return;
  Node& node = writable(head, slot, parent, level);
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
  release(head, old, level);
}

void Tree::trim(Version& head, uint64_t block, uint64_t count) {
  trim_slot(head, head.root, nullptr, kLevels, 0, block, block + count);
  forest_.touch(head);
}

bool Tree::drop_step(Version& version, MissingNodes& missing) {
  switch (drop_at(version, version.root, nullptr, kLevels, 0, missing)) {
    case Drop::missing:
      return false;
    case Drop::nothing:
      forest_.set_cursor(version, kCursorEnd);
      return true;
    case Drop::done:
      return true;
  }
  return true;
}

Tree::Drop Tree::drop_at(Version& version, Entry& slot, Node* parent, unsigned level, uint64_t base,
                         MissingNodes& missing) {
  const Cursor end{base + span_blocks(level), level};
  const VersionId floor = version.parent->id;
  if (end <= version.cursor || slot.is_hole() || slot.version() <= floor) return Drop::nothing;
  Node* node = nodes_.find(slot);
  if (node == nullptr) {
    missing.push_back({slot, level});
    return Drop::missing;
  }
  if (level == 1) {
    for (const Entry& entry : node->entries) {
      if (!entry.is_hole() && entry.version() > floor) free_target(version, entry, 0);
    }
  } else {
    const uint64_t span = span_blocks(level - 1);
    const uint64_t passed = version.cursor.end > base ? version.cursor.end - base - 1 : 0;
    for (size_t i = passed / span; i < kFanout; i++) {
      const Drop below =
          drop_at(version, node->entries[i], node, level - 1, base + i * span, missing);
      if (below != Drop::nothing) return below;
    }
  }
  const Entry gone = slot;
  // A parent that is not frozen yet would be written with what has no address.
  const bool in_place = parent == nullptr || (parent->dirty() && !parent->frozen(nodes_.epoch()));
  free_target(version, gone, level);
  if (in_place) {
    slot = Entry();
    if (parent != nullptr) parent->used--;
    nodes_.unref(gone);
  }
  forest_.set_cursor(version, end);
  return Drop::done;
}

}  // namespace vellum::store

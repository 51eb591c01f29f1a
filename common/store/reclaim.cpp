// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/reclaim.hpp"

#include <algorithm>

namespace vellum::store {

namespace {

bool is_among(const Entry& entry, const std::vector<Entry>& others) {
  return std::any_of(others.begin(), others.end(),
                     [&](const Entry& other) { return same_target(entry, other); });
}

bool any_has(std::span<const Node* const> nodes, size_t slot, const Entry& entry) {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const Node* node) { return same_target(entry, node->entries[slot]); });
}

std::vector<Entry> entries_at(std::span<const Node* const> nodes, size_t slot) {
  std::vector<Entry> entries;
  for (const Node* node : nodes) {
    if (!node->entries[slot].is_hole()) entries.push_back(node->entries[slot]);
  }
  return entries;
}

// The first slot of a node from `base` on that the cursor has not passed.
size_t first_slot(const Cursor& cursor, uint64_t base, unsigned level) {
  const uint64_t passed = cursor.end > base ? cursor.end - base - 1 : 0;
  return passed / span_blocks(level - 1);
}

Version& charged_with(Version& version, const Entry& entry) {
  const bool is_debt = version.charged_to != nullptr && entry.version() != version.id;
  return is_debt ? *version.charged_to : version;
}

// What a visible version created is not a zombie's to forget.
VersionId nearest_visible(const Version& zombie) {
  const Version* above = zombie.parent;
  while (above->state == State::zombie) above = above->parent;
  return above->id;
}

}  // namespace

bool Reclaim::step(Version& version, MissingNodes& missing) {
  Others others;
  for (const Version* child : version.children) {
    if (!child->root.is_hole()) others.push_back(child->root);
  }
  const Pass pass =
      version.job == Job::sweep
          ? sweep(version, version.root, others, kLevels, 0, nearest_visible(version), missing)
          : give_back(version, version.root, nullptr, others, kLevels, 0, missing);
  if (pass == Pass::missing) return false;
  if (pass == Pass::nothing) forest_.set_cursor(version, kCursorEnd);
  return true;
}

// The node of an entry, and those of the others. False if any has to be read first.
bool Reclaim::find(const Entry& entry, const Others& others, unsigned level, uint64_t base,
                   Node*& node, std::vector<const Node*>& other_nodes, MissingNodes& missing) {
  const size_t before = missing.size();
  node = nodes_.find(entry);
  if (node == nullptr) missing.push_back({entry, level, base});
  for (const Entry& other : others) {
    other_nodes.push_back(nodes_.find(other));
    if (other_nodes.back() == nullptr) missing.push_back({other, level, base});
  }
  return missing.size() == before;
}

Reclaim::Pass Reclaim::give_back(Version& version, Entry& slot, Node* parent, const Others& others,
                                 unsigned level, uint64_t base, MissingNodes& missing) {
  const Cursor place = place_of(base, level);
  const VersionId floor = version.parent->id;
  if (place <= version.cursor || slot.is_hole() || slot.version() <= floor) return Pass::nothing;
  if (is_among(slot, others)) return Pass::nothing;
  Node* node = nullptr;
  std::vector<const Node*> other_nodes;
  if (!find(slot, others, level, base, node, other_nodes, missing)) return Pass::missing;
  if (level == 1) {
    for (size_t i = 0; i < kFanout; i++) {
      const Entry& entry = node->entries[i];
      if (entry.is_hole() || entry.version() <= floor || any_has(other_nodes, i, entry)) continue;
      tree_.free_target(charged_with(version, entry), entry, 0);
    }
  } else {
    const uint64_t span = span_blocks(level - 1);
    for (size_t i = first_slot(version.cursor, base, level); i < kFanout; i++) {
      const Pass below = give_back(version, node->entries[i], node, entries_at(other_nodes, i),
                                   level - 1, base + i * span, missing);
      if (below != Pass::nothing) return below;
    }
  }
  const Entry gone = slot;
  // A parent that is not frozen yet would be written with what has no address.
  const bool in_place = parent == nullptr || (parent->dirty() && !parent->frozen(nodes_.epoch()));
  tree_.free_target(charged_with(version, gone), gone, level);
  if (in_place) {
    slot = Entry();
    if (parent != nullptr) parent->used--;
    nodes_.unref(gone);
  }
  forest_.set_cursor(version, place);
  return Pass::done;
}

Reclaim::Pass Reclaim::sweep(Version& zombie, const Entry& slot, const Others& others,
                             unsigned level, uint64_t base, VersionId floor,
                             MissingNodes& missing) {
  const Cursor place = place_of(base, level);
  if (place <= zombie.cursor || slot.is_hole() || slot.version() <= floor) return Pass::nothing;
  if (is_among(slot, others)) return Pass::nothing;
  Node* node = nullptr;
  std::vector<const Node*> other_nodes;
  if (!find(slot, others, level, base, node, other_nodes, missing)) return Pass::missing;
  if (level == 1) {
    zombie.swept++;
    forget(zombie, *node, other_nodes, base, floor);
    forest_.set_cursor(zombie, place);
    return Pass::done;
  }
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = first_slot(zombie.cursor, base, level); i < kFanout; i++) {
    const Pass below = sweep(zombie, node->entries[i], entries_at(other_nodes, i), level - 1,
                             base + i * span, floor, missing);
    if (below != Pass::nothing) return below;
  }
  return Pass::nothing;
}

// An ordinary trim of what the children of a zombie do not have. It frees what is the zombie's own,
// and leaves what its parent has to the parent's sweep.
void Reclaim::forget(Version& zombie, const Node& leaf, std::span<const Node* const> others,
                     uint64_t base, VersionId floor) {
  std::vector<Run> runs;
  for (size_t i = 0; i < kFanout; i++) {
    const Entry& entry = leaf.entries[i];
    if (entry.is_hole() || entry.version() <= floor || any_has(others, i, entry)) continue;
    append_run(runs, base + i, 1);
  }
  for (const Run& run : runs) tree_.trim(zombie, run.block, run.count);
}

}  // namespace vellum::store

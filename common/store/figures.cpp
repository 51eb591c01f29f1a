// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/figures.hpp"

#include <algorithm>
#include <set>

namespace vellum::store {

namespace {

bool is_visible(const Version& version) { return version.state != State::zombie; }

// The nearest visible versions beneath, of which those that go are looked through for keepers.
void find_below(const Version& version, const Goes& goes, Share& share) {
  std::vector<const Version*> left(version.children.begin(), version.children.end());
  while (!left.empty()) {
    const Version* child = left.back();
    left.pop_back();
    if (is_visible(*child) && !goes(*child)) {
      share.keepers.push_back(child);
      continue;
    }
    if (is_visible(*child)) share.givers.push_back(child);
    left.insert(left.end(), child->children.begin(), child->children.end());
  }
}

bool any_has(const std::vector<Entry>& others, const Entry& entry) {
  return std::any_of(others.begin(), others.end(),
                     [&](const Entry& other) { return same_target(other, entry); });
}

std::vector<Entry> roots_of(const std::vector<const Version*>& versions) {
  std::vector<Entry> roots;
  for (const Version* version : versions) {
    if (!version->root.is_hole()) roots.push_back(version->root);
  }
  return roots;
}

}  // namespace

std::vector<Share> shares_of(const std::vector<const Version*>& going, const Goes& goes) {
  std::vector<Share> shares;
  std::set<const Version*> zombies;
  for (const Version* version : going) {
    Share share{version, {}, {}};
    find_below(*version, goes, share);
    share.givers.clear();
    shares.push_back(std::move(share));
    for (const Version* above = version->parent; above != nullptr && !is_visible(*above);
         above = above->parent) {
      zombies.insert(above);
    }
  }
  for (const Version* zombie : zombies) {
    Share share{zombie, {}, {}};
    find_below(*zombie, goes, share);
    shares.push_back(std::move(share));
  }
  return shares;
}

// The entries at one slot of all the nodes. False: one of them is missing.
bool ShareCount::below(const Others& entries, unsigned level, uint64_t base, size_t slot,
                       Others& found) {
  for (const Entry& entry : entries) {
    const Node* node = nodes_.find(entry);
    if (node == nullptr) {
      missing_.push_back({entry, level, base});
      return false;
    }
    if (!node->entries[slot].is_hole()) found.push_back(node->entries[slot]);
  }
  return true;
}

// False: the step ends here.
bool ShareCount::visit(const Entry& entry, const Others& keepers, const Others& givers,
                       unsigned level, uint64_t base) {
  if (entry.is_hole() || base + span_blocks(level) <= from_) return true;
  if (entry.version() <= floor_ || any_has(keepers, entry)) return true;
  if (visited_ > kNodesMax) {
    reached_ = base;
    return false;
  }
  if (base >= from_ && (any_giver_ || any_has(givers, entry))) count_++;
  if (level == 0) return true;
  visited_ += 1 + keepers.size() + givers.size();
  const Node* node = nodes_.find(entry);
  if (node == nullptr) {
    missing_.push_back({entry, level, base});
    return false;
  }
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = from_ > base ? (from_ - base) / span : 0; i < kFanout; i++) {
    if (node->entries[i].is_hole()) continue;
    Others keepers_below, givers_below;
    if (!below(keepers, level, base, i, keepers_below) ||
        !below(givers, level, base, i, givers_below) ||
        !visit(node->entries[i], keepers_below, givers_below, level - 1, base + i * span)) {
      return false;
    }
  }
  return true;
}

uint64_t ShareCount::step(const Share& share, uint64_t& from) {
  floor_ = share.version->parent->id;
  any_giver_ = is_visible(*share.version);
  from_ = from;
  reached_ = kTreeBlocks;
  count_ = visited_ = 0;
  visit(share.version->root, roots_of(share.keepers), roots_of(share.givers), kLevels, 0);
  if (missing_.empty()) from = reached_;
  return count_;
}

namespace {

bool count_at(NodeCache& nodes, MissingNodes& missing, const Entry& entry, unsigned level,
              uint64_t base, uint64_t from, size_t& leaves, uint64_t& count, uint64_t& reached) {
  constexpr size_t kLeavesMax = 256;
  if (entry.is_hole() || base + span_blocks(level) <= from) return true;
  if (level == 1 && ++leaves > kLeavesMax) {
    reached = base;
    return false;
  }
  const Node* node = nodes.find(entry);
  if (node == nullptr) {
    missing.push_back({entry, level, base});
    return false;
  }
  if (level == 1) {
    count += node->used;
    return true;
  }
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = from > base ? (from - base) / span : 0; i < kFanout; i++) {
    if (!count_at(nodes, missing, node->entries[i], level - 1, base + i * span, from, leaves, count,
                  reached)) {
      return false;
    }
  }
  return true;
}

}  // namespace

uint64_t count_data(NodeCache& nodes, MissingNodes& missing, const Entry& root, uint64_t& from) {
  size_t leaves = 0;
  uint64_t count = 0, reached = kTreeBlocks;
  count_at(nodes, missing, root, kLevels, 0, from, leaves, count, reached);
  if (missing.empty()) from = reached;
  return count;
}

}  // namespace vellum::store

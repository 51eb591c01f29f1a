// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/walk.hpp"

#include <algorithm>

namespace vellum::store {

namespace {

const Node& empty_node() {
  static const Node kEmpty;
  return kEmpty;
}

// Of a hole, a node of holes. Null if it has to be read first, or cannot be.
const Node* node_or_missing(NodeCache& nodes, MissingNodes& missing, const Entry& entry,
                            unsigned level, uint64_t base) {
  if (entry.is_hole()) return &empty_node();
  const Node* found = nodes.find(entry);
  if (found == nullptr && !nodes.is_damaged(entry)) missing.push_back({entry, level, base});
  return found;
}

// Of two entries with different targets: whether it is certain that some block before `last`
// differs. No node is all holes, but what a node has may lie beyond the end.
bool surely_differ(const Entry& entry, const Entry& other, unsigned level, uint64_t base,
                   uint64_t last) {
  if (level == 0) return true;
  return (entry.is_hole() || other.is_hole()) && base + span_blocks(level) <= last;
}

}  // namespace

bool Walk::may_visit(uint64_t base) {
  if (++visited_ <= kNodesMax) return true;
  reached_ = std::max(base, first_);
  return false;
}

size_t Walk::first_slot(unsigned level, uint64_t base) const {
  return first_ > base ? (first_ - base) / span_blocks(level - 1) : 0;
}

bool Walk::add(uint64_t block, uint64_t count, ExtentKind kind) {
  const uint64_t from = std::max(block, first_), to = std::min(block + count, last_);
  if (from >= to) return true;
  if (!extents_.empty()) {
    BlockExtent& back = extents_.back();
    if (back.block + back.count == from && back.kind == kind) {
      back.count += to - from;
      return true;
    }
  }
  if (extents_.size() == extents_max_) {
    reached_ = from;
    return false;
  }
  extents_.push_back({from, to - from, kind});
  return true;
}

// If it only has to be read first, what this adds comes to nothing.
bool Walk::add_unreadable(unsigned level, uint64_t base) {
  return !missing_.empty() || add(base, span_blocks(level), ExtentKind::data);
}

bool Walk::data_at(const Entry& entry, unsigned level, uint64_t base) {
  if (entry.is_hole() || outside(level, base)) return true;
  if (!may_visit(base)) return false;
  const Node* here = node_or_missing(nodes_, missing_, entry, level, base);
  if (here == nullptr) return add_unreadable(level, base);
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = first_slot(level, base); i < kFanout; i++) {
    const Entry& child = here->entries[i];
    if (child.is_hole()) continue;
    if (outside(level - 1, base + i * span)) break;
    const bool go_on = level == 1 ? add(base + i, 1, ExtentKind::data)
                                  : data_at(child, level - 1, base + i * span);
    if (!go_on) return false;
  }
  return true;
}

bool Walk::difference_at(const Entry& target, const Entry& base_entry, unsigned level,
                         uint64_t base) {
  if (outside(level, base) || same_target(target, base_entry)) return true;
  if (level == 0) {
    return add(base, 1, target.is_hole() ? ExtentKind::zero : ExtentKind::data);
  }
  if (!may_visit(base)) return false;
  const Node* ours = node_or_missing(nodes_, missing_, target, level, base);
  const Node* theirs = node_or_missing(nodes_, missing_, base_entry, level, base);
  if (ours == nullptr || theirs == nullptr) return add_unreadable(level, base);
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = first_slot(level, base); i < kFanout; i++) {
    if (base + i * span >= last_) break;
    if (!difference_at(ours->entries[i], theirs->entries[i], level - 1, base + i * span)) {
      return false;
    }
  }
  return true;
}

bool ChunkWalk::at(const Entry& entry, const Entry& other, unsigned level, uint64_t base) {
  const uint64_t end = base + span_blocks(level);
  if (same_target(entry, other) || base >= last_ || end <= first_) return true;
  if (span_blocks(level) <= chunk_blocks_) {
    // Chunks are aligned, but the range may begin anywhere when it only reaches the end.
    const uint64_t chunk = (std::max(base, first_) - first_) / chunk_blocks_;
    if (bits_[chunk]) return true;
    if (surely_differ(entry, other, level, base, last_)) {
      bits_[chunk] = true;
      return true;
    }
  }
  if (++visited_ > kNodesMax) {
    reached_ = std::max(base, first_) / chunk_blocks_ * chunk_blocks_;
    return false;
  }
  CHECK(level > 0);  // a block has been dealt with
  const Node* ours = node_or_missing(nodes_, missing_, entry, level, base);
  const Node* theirs = node_or_missing(nodes_, missing_, other, level, base);
  if (ours == nullptr || theirs == nullptr) {
    const uint64_t from = std::max(base, first_) - first_, to = std::min(end, last_) - first_;
    for (uint64_t chunk = from / chunk_blocks_; chunk * chunk_blocks_ < to; chunk++) {
      bits_[chunk] = true;
    }
    return true;
  }
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = first_ > base ? (first_ - base) / span : 0; i < kFanout; i++) {
    if (!at(ours->entries[i], theirs->entries[i], level - 1, base + i * span)) return false;
  }
  return true;
}

namespace {

std::optional<uint64_t> next_at(NodeCache& nodes, MissingNodes& missing, const Entry& entry,
                                const Entry& other, unsigned level, uint64_t base,
                                const ChunkRange& in) {
  if (same_target(entry, other)) return std::nullopt;
  if (base >= in.last || base + span_blocks(level) <= in.from) return std::nullopt;
  if (span_blocks(level) <= in.chunk_blocks && surely_differ(entry, other, level, base, in.last)) {
    return std::max(base, in.from);
  }
  CHECK(level > 0);  // a block has been dealt with
  const Node* ours = node_or_missing(nodes, missing, entry, level, base);
  const Node* theirs = node_or_missing(nodes, missing, other, level, base);
  if (ours == nullptr || theirs == nullptr) return std::max(base, in.from);
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = in.from > base ? (in.from - base) / span : 0; i < kFanout; i++) {
    const auto found = next_at(nodes, missing, ours->entries[i], theirs->entries[i], level - 1,
                               base + i * span, in);
    if (found || !missing.empty()) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> next_difference(NodeCache& nodes, MissingNodes& missing, const Entry& root,
                                        const Entry& base, const ChunkRange& in) {
  const auto found = next_at(nodes, missing, root, base, kLevels, 0, in);
  if (!found) return std::nullopt;
  return *found / in.chunk_blocks * in.chunk_blocks;
}

std::optional<uint64_t> next_allocated(NodeCache& nodes, MissingNodes& missing, const Entry& root,
                                       uint64_t from) {
  return next_difference(nodes, missing, root, Entry(), {from, kTreeBlocks, 1});
}

}  // namespace vellum::store

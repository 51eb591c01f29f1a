// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/walk.hpp"

#include <algorithm>

namespace vellum::store {

const Node* Walk::node(const Entry& entry, unsigned level) {
  const Node* found = nodes_.find(entry);
  if (found == nullptr) missing_.push_back({entry, level});
  return found;
}

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

bool Walk::data_at(const Entry& entry, unsigned level, uint64_t base) {
  if (entry.is_hole() || outside(level, base)) return true;
  if (!may_visit(base)) return false;
  const Node* here = node(entry, level);
  if (here == nullptr) return true;
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
  static const Node kEmpty;
  const Node* ours = target.is_hole() ? &kEmpty : node(target, level);
  const Node* theirs = base_entry.is_hole() ? &kEmpty : node(base_entry, level);
  if (ours == nullptr || theirs == nullptr) return true;
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = first_slot(level, base); i < kFanout; i++) {
    if (base + i * span >= last_) break;
    if (!difference_at(ours->entries[i], theirs->entries[i], level - 1, base + i * span)) {
      return false;
    }
  }
  return true;
}

bool ChunkWalk::at(const Entry& entry, unsigned level, uint64_t base) {
  const uint64_t end = base + span_blocks(level);
  if (entry.is_hole() || base >= last_ || end <= first_) return true;
  if (span_blocks(level) <= chunk_blocks_) {
    // Chunks are aligned, but the range may begin anywhere when it only reaches the end.
    bits_[(std::max(base, first_) - first_) / chunk_blocks_] = true;
    return true;
  }
  if (++visited_ > kNodesMax) {
    reached_ = std::max(base, first_) / chunk_blocks_ * chunk_blocks_;
    return false;
  }
  const Node* node = nodes_.find(entry);
  if (node == nullptr) {
    missing_.push_back({entry, level});
    return true;
  }
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = first_ > base ? (first_ - base) / span : 0; i < kFanout; i++) {
    if (!at(node->entries[i], level - 1, base + i * span)) return false;
  }
  return true;
}

namespace {

std::optional<uint64_t> next_at(NodeCache& nodes, MissingNodes& missing, const Entry& entry,
                                unsigned level, uint64_t base, uint64_t from,
                                uint64_t chunk_blocks) {
  if (entry.is_hole() || base + span_blocks(level) <= from) return std::nullopt;
  if (span_blocks(level) <= chunk_blocks) return std::max(base, from);
  const Node* node = nodes.find(entry);
  if (node == nullptr) {
    missing.push_back({entry, level});
    return std::nullopt;
  }
  const uint64_t span = span_blocks(level - 1);
  for (size_t i = from > base ? (from - base) / span : 0; i < kFanout; i++) {
    const auto found =
        next_at(nodes, missing, node->entries[i], level - 1, base + i * span, from, chunk_blocks);
    if (found || !missing.empty()) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> next_allocated(NodeCache& nodes, MissingNodes& missing, const Entry& root,
                                       uint64_t from, uint64_t chunk_blocks) {
  const auto found = next_at(nodes, missing, root, kLevels, 0, from, chunk_blocks);
  if (!found) return std::nullopt;
  return *found / chunk_blocks * chunk_blocks;
}

}  // namespace vellum::store

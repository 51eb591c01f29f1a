// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/system_tree.hpp"

#include <algorithm>

#include "common/base/crc32c.hpp"

namespace vellum::store {

Result<Page> SystemTree::read(uint64_t block) const {
  Entry entry = root_;
  for (unsigned level = kLevels; level > 0 && !entry.is_hole(); level--) {
    TRY_ASSIGN(const Pointers pointers, read_node(disk_, entry, level, limits_));
    entry = pointers[slot_of(block, level)];
  }
  Page page{};
  if (!entry.is_hole()) TRY(read_block(disk_, entry, "a table block", page));
  return page;
}

Result<void> SystemTree::walk(const Entry& entry, unsigned level, uint64_t base,
                              const AreaWalk& in) const {
  const uint64_t end = base + span_blocks(level);
  if (entry.is_hole() || base > in.last || end <= in.first) return {};
  const auto skip = [&](const Error& error) -> Result<void> {
    if (!in.on_damage) return error;
    const uint64_t from = std::max(base, in.first);
    in.on_damage(from - in.first, std::min(end, in.last + 1) - from, error);
    return {};
  };
  if (level == 0) {
    Page page;
    const auto read = read_block(disk_, entry, "a table block", page);
    if (!read.ok()) return skip(read.error());
    return in.visit(base - in.first, page);
  }
  const auto pointers = read_node(disk_, entry, level, limits_);
  if (!pointers.ok()) return skip(pointers.error());
  for (size_t i = 0; i < kFanout; i++) {
    TRY(walk((*pointers)[i], level - 1, base + i * span_blocks(level - 1), in));
  }
  return {};
}

Result<void> SystemTree::for_each(Area area, const Visitor& visit,
                                  const OnDamage& on_damage) const {
  const uint64_t first = system_block(area, 0);
  return walk(root_, kLevels, 0, {first, first + (uint64_t{1} << 32) - 1, visit, on_damage});
}

Result<void> SystemTree::compare(const Entry& mine, const Entry& other, unsigned level,
                                 uint64_t base, uint64_t first,
                                 const std::function<void(uint64_t)>& visit) const {
  const uint64_t last = first + (uint64_t{1} << 32) - 1;
  if (same_target(mine, other) || base > last || base + span_blocks(level) <= first) return {};
  if (level == 0) {
    visit(base - first);
    return {};
  }
  Pointers left{}, right{};
  if (!mine.is_hole()) {
    TRY_ASSIGN(left, read_node(disk_, mine, level, limits_));
  }
  if (!other.is_hole()) {
    TRY_ASSIGN(right, read_node(disk_, other, level, limits_));
  }
  for (size_t i = 0; i < kFanout; i++) {
    TRY(compare(left[i], right[i], level - 1, base + i * span_blocks(level - 1), first, visit));
  }
  return {};
}

Result<void> SystemTree::differing(const SystemTree& other, Area area,
                                   const std::function<void(uint64_t)>& visit) const {
  return compare(root_, other.root_, kLevels, 0, system_block(area, 0), visit);
}

void SystemTree::addresses(const Entry& entry, unsigned level,
                           const std::function<void(uint64_t)>& visit) const {
  if (entry.is_hole()) return;
  visit(entry.block());
  if (level == 0) return;
  const auto pointers = read_node(disk_, entry, level, limits_);
  if (!pointers.ok()) return;
  for (const Entry& pointer : *pointers) addresses(pointer, level - 1, visit);
}

void SystemTree::for_each_address(const std::function<void(uint64_t)>& visit) const {
  addresses(root_, kLevels, visit);
}

namespace {

// The others are written whole.
bool is_edited(uint64_t block) {
  return block >= system_block(Area::bitmaps, 0) && block < system_block(Area::segments, 0);
}

// Answers go with a damaged node; what was beneath it stays allocated.
bool may_be_lost(uint64_t block, unsigned level) {
  return block >= system_block(Area::answers, 0) && span_blocks(level) <= system_block(Area{1}, 0);
}

}  // namespace

Result<void> SystemUpdate::touch(uint64_t block, bool becomes_hole, std::vector<uint64_t>& freed) {
  if (leaves_.contains(block)) return {};
  Entry entry = tree_.root_;
  for (unsigned level = kLevels; level > 0; level--) {
    const Place place{level, block >> (kFanoutBits * level)};
    auto node = nodes_.find(place);
    if (node == nodes_.end()) {
      Pointers pointers{};
      if (!entry.is_hole()) {
        const auto read = read_node(tree_.disk_, entry, level, tree_.limits_);
        const bool is_lost = !read.ok() && read.error().code == Errc::corrupt;
        if (!read.ok() && !(is_lost && may_be_lost(block, level))) return read.error();
        if (read.ok()) pointers = *read;
        freed.push_back(entry.block());
      }
      node = nodes_.emplace(place, pointers).first;
    }
    entry = node->second[slot_of(block, level)];
  }
  if (!entry.is_hole()) freed.push_back(entry.block());
  leaves_.emplace(block, Leaf{entry, becomes_hole});
  return {};
}

bool SystemUpdate::becomes_hole(unsigned level, uint64_t number) const {
  const Pointers& pointers = nodes_.at({level, number});
  for (size_t i = 0; i < kFanout; i++) {
    const uint64_t child = number << kFanoutBits | i;
    if (level == 1) {
      const auto leaf = leaves_.find(child);
      if (leaf != leaves_.end() ? !leaf->second.hole : !pointers[i].is_hole()) return false;
    } else if (nodes_.contains({level - 1, child})) {
      if (!becomes_hole(level - 1, child)) return false;
    } else if (!pointers[i].is_hole()) {
      return false;
    }
  }
  return true;
}

uint64_t SystemUpdate::blocks_needed() const {
  uint64_t needed = 0;
  for (const auto& [block, leaf] : leaves_) needed += leaf.hole ? 0 : 1;
  for (const auto& [place, pointers] : nodes_) {
    needed += becomes_hole(place.first, place.second) ? 0 : 1;
  }
  return needed;
}

Result<void> SystemUpdate::write_leaves(BlockSupply& supply, const Content& content) {
  constexpr size_t kPagesAtOnce = 64;
  BlockWriter writer(tree_.disk_);
  std::vector<Page> pages(kPagesAtOnce);
  size_t used = 0;
  for (const auto& [block, leaf] : leaves_) {
    Entry pointer;
    if (!leaf.hole) {
      if (used == kPagesAtOnce) {
        TRY(writer.flush());
        used = 0;
      }
      Page& page = pages[used++];
      page.fill(std::byte{0});
      if (!leaf.old.is_hole() && is_edited(block)) {
        TRY(read_block(tree_.disk_, leaf.old, "a table block", page));
      }
      TRY(content(block, page));
      const uint64_t address = supply.next();
      TRY(writer.add(address, page));
      pointer = Entry::data(address, 0, crc32c(page));
    }
    nodes_.at({1, block >> kFanoutBits})[slot_of(block, 1)] = pointer;
  }
  return writer.flush();
}

Result<Entry> SystemUpdate::write(BlockSupply& supply, const Content& content) {
  if (leaves_.empty()) return tree_.root_;
  TRY(write_leaves(supply, content));
  BlockWriter writer(tree_.disk_);
  Entry root;
  std::vector<std::unique_ptr<Page>> pages;
  for (const auto& [place, pointers] : nodes_) {  // leaves first: the map is ordered by level
    const auto [level, number] = place;
    Entry pointer;
    if (std::any_of(pointers.begin(), pointers.end(), [](auto& e) { return !e.is_hole(); })) {
      auto page = std::make_unique<Page>();
      for (size_t i = 0; i < kFanout; i++) {
        store_entry(page->data() + i * sizeof(Entry), pointers[i]);
      }
      const uint64_t address = supply.next();
      TRY(writer.add(address, *page));
      pointer = Entry::node(address, 0, crc32c(*page));
      pages.push_back(std::move(page));
    }
    if (level == kLevels) {
      root = pointer;
    } else {
      nodes_.at({level + 1, number >> kFanoutBits})[number & (kFanout - 1)] = pointer;
    }
  }
  TRY(writer.flush());
  return root;
}

}  // namespace vellum::store

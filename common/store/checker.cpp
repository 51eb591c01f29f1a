// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/checker.hpp"

#include <algorithm>

#include "common/base/units.hpp"

namespace vellum::store {

namespace {

constexpr size_t kErrorsMax = 100;

std::string blocks_at(uint64_t first, uint64_t count) {
  return (count == 1 ? "the block" : std::to_string(count) + " blocks") + " from byte " +
         std::to_string(first * kBlockSize) + " on";
}

}  // namespace

Checker::Checker(disk::Disk& disk, const Superblock& superblock, bool read_data)
    : disk_(disk),
      limits_(superblock.limits()),
      region_blocks_(superblock.region_size / kBlockSize),
      read_data_(read_data),
      allocated_(region_blocks_),
      visited_(region_blocks_),
      system_(region_blocks_),
      named_(region_blocks_) {}

void Checker::error(const std::string& message) {
  report.errors_total++;
  if (report.errors.size() < kErrorsMax) report.errors.push_back(message);
}

void Checker::wrong_table(const std::string& message) {
  wrong_tables_++;
  error(message);
}

Result<void> Checker::load_bitmaps(const SystemTree& tree, const Allocator& allocator) {
  const auto load = [&](uint64_t region, const Page& page) -> Result<void> {
    if (region >= allocator.regions()) {
      wrong_table("there is a bitmap for region " + std::to_string(region) +
                  ", beyond the capacity");
      return {};
    }
    for (uint64_t i = 0; i < region_blocks_; i++) {
      const std::byte mask{static_cast<uint8_t>(1u << (i % 8))};
      if ((page[i / 8] & mask) != std::byte{0}) allocated_.insert(region * region_blocks_ + i);
    }
    const auto is_set = [](std::byte bits) { return bits != std::byte{0}; };
    if (std::any_of(page.begin() + static_cast<ptrdiff_t>((region_blocks_ + 7) / 8), page.end(),
                    is_set)) {
      wrong_table("the bitmap of region " + std::to_string(region) + " goes on beyond its end");
    }
    return {};
  };
  TRY(tree.for_each(Area::bitmaps, load, [&](uint64_t region, uint64_t count, const Error& why) {
    const uint64_t end = std::min(region + count, allocator.regions_used());
    for (; region < end; region++) {
      if (allocator.allocated_in(region) > 0) damaged_bitmaps_.insert(region);
    }
    wrong_table("a part of the bitmaps cannot be read: " + why.message);
  }));
  tree.for_each_address([&](uint64_t block) {
    visit_block(block, "the system tree");
    system_.insert(block);
    report.system_blocks++;
  });
  return {};
}

void Checker::apply(const Allocator::Interval& since) {
  const auto is_known = [&](uint64_t block) {
    return !damaged_bitmaps_.contains(block / region_blocks_);
  };
  for (const Run& run : since.allocated) {
    for (uint64_t block = run.block; block < run.end(); block++) {
      if (!allocated_.insert(block) && is_known(block)) {
        wrong_table("block " + std::to_string(block) + " is allocated twice");
      }
    }
  }
  for (const Run& run : since.freed) {
    for (uint64_t block = run.block; block < run.end(); block++) {
      if (!allocated_.erase(block) && is_known(block)) {
        wrong_table("block " + std::to_string(block) + " is freed twice");
      }
    }
  }
}

void Checker::visit_version(const Version& version) {
  version_ = &version;
  report.versions++;
  walk(version.root, kLevels, 0);
}

// Others may be the owners of what it reads.
void Checker::reach(const Version& version) {
  if (read_data_) reach(version.root, kLevels);
}

void Checker::reach(const Entry& entry, unsigned level) {
  if (entry.is_hole()) return;
  const bool in_memory = entry.is_in_memory();
  const uint64_t block = in_memory ? entry.target()->block : entry.block();
  if (block != 0 && !named_.insert(block)) return;
  if (level == 0) return;
  if (in_memory) {
    for (const Entry& child : entry.target()->entries) reach(child, level - 1);
    return;
  }
  const auto pointers = read_node(disk_, entry, level, limits_);
  if (!pointers.ok()) return;  // visit_version() says it
  for (const Entry& child : *pointers) reach(child, level - 1);
}

uint64_t Checker::owned_by(VersionId version) const {
  const auto found = owned_.find(version);
  return found == owned_.end() ? 0 : found->second;
}

void Checker::compare(const Forest& forest, uint64_t allocated_blocks) {
  report.volumes = forest.volumes().size();
  report.snapshots = forest.snapshot_count();
  tell_damages(forest);
  compare_bitmaps();
  if (!damaged_bitmaps_.empty()) {
    // What they hold is not known, so nothing can be compared with it.
  } else if (report.allocated_blocks != allocated_blocks) {
    wrong_table("the region counts add up to " + std::to_string(allocated_blocks) +
                " blocks, and the bitmaps hold " + std::to_string(report.allocated_blocks));
  }
  if (!map_is_whole()) return;
  for (const auto& [id, version] : forest.versions()) {
    if (owned_by(id) == version->owned) continue;
    wrong_charges_++;
    wrong_table(name_of(*version) + " is charged with " + std::to_string(version->owned) +
                " blocks and nodes, and owns " + std::to_string(owned_by(id)));
  }
  if (report.data_blocks != forest.data_blocks) {
    wrong_table("the store counts " + std::to_string(forest.data_blocks) +
                " blocks of data, and there are " + std::to_string(report.data_blocks));
  }
}

void Checker::compare_bitmaps() {
  uint64_t first = 0, count = 0;
  const auto tell = [&] {
    if (count == 0) return;
    report.unreached_blocks += count;
    // Of what a damaged node leads to, nobody knows.
    if (map_is_whole())
      wrong_table(blocks_at(first, count) + " is allocated, and nothing leads to it");
  };
  allocated_.for_each([&](uint64_t block) {
    report.allocated_blocks++;
    if (visited_.contains(block)) return;
    if (count > 0 && block == first + count) {
      count++;
      return;
    }
    tell();
    first = block;
    count = 1;
  });
  tell();
}

void Checker::visit_block(uint64_t block, const std::string& from) {
  if (!allocated_.contains(block) && !damaged_bitmaps_.contains(block / region_blocks_)) {
    report.unallocated_blocks++;
    wrong_table(blocks_at(block, 1) + " is not allocated, and " + from + " leads to it");
  }
  if (!visited_.insert(block)) {
    report.doubly_reached_blocks++;
    wrong_table(blocks_at(block, 1) + " is reached twice, also from " + from);
  }
}

// What a collapse has passed in the parent is charged to the parent still, and visited from here.
void Checker::walk(const Entry& entry, unsigned level, uint64_t base) {
  const Version& parent = *version_->parent;
  const bool is_own = entry.version() > parent.id;
  const Cursor place = place_of(base, level);
  if (entry.is_hole() || (dangles() && place <= version_->cursor)) return;
  if (!is_own) {
    const bool passed = parent.job == Job::collapse && place <= parent.cursor;
    if (!passed || entry.version() <= parent.parent->id) return;
  }
  const bool is_debt = version_->charged_to != nullptr && entry.version() != version_->id;
  const Version& own = is_debt ? *version_->charged_to : *version_;
  owned_[is_own ? own.id : parent.id]++;
  if (level == 0) {
    report.data_blocks++;
    if (read_data_ && !named_.contains(entry.block())) report.hidden_data_blocks++;
  } else {
    report.nodes++;
  }
  const bool in_memory = entry.is_in_memory();  // a node that replay made
  if (!in_memory || entry.target()->block != 0) {
    visit_block(in_memory ? entry.target()->block : entry.block(), name_of(*version_));
  }
  if (level == 0) {
    check_data(entry, base);
    return;
  }
  if (in_memory) {
    visit_children(entry.target()->entries, level, base);
    return;
  }
  const auto pointers = read_node(disk_, entry, level, limits_);
  if (pointers.ok()) {
    visit_children(*pointers, level, base);
    return;
  }
  report.unreadable_nodes++;
  damage(entry, level, base, pointers.error());
}

void Checker::visit_children(const Pointers& pointers, unsigned level, uint64_t base) {
  bool empty = true;
  for (size_t i = 0; i < kFanout; i++) {
    empty = empty && pointers[i].is_hole();
    walk(pointers[i], level - 1, base + i * span_blocks(level - 1));
  }
  if (empty && !dangles()) wrong_table("a map node of " + name_of(*version_) + " is all holes");
}

void Checker::check_data(const Entry& entry, uint64_t block) {
  if (!read_data_) return;
  Page page;
  const auto read = read_block(disk_, entry, "a block", page);
  if (read.ok()) return;
  report.damaged_data_blocks++;
  damage(entry, 0, block, read.error());
}

void Checker::damage(const Entry& pointer, unsigned level, uint64_t base, const Error& error) {
  damages_total_++;
  if (damages_.size() == kErrorsMax) return;
  damages_.push_back({version_, pointer, level, base, error.message});
}

// The volumes and snapshots that read it; or else whose it is.
std::string Checker::readers_of(const Forest& forest, const Damage& damage) const {
  std::vector<std::string> names;
  const auto reads = [&](const Version& version) {
    Entry entry = version.root;
    for (unsigned level = kLevels; level > damage.level && !entry.is_hole(); level--) {
      const size_t slot = slot_of(damage.base, level);
      if (entry.is_in_memory()) {
        entry = entry.target()->entries[slot];
        continue;
      }
      const auto pointers = read_node(disk_, entry, level, limits_);
      if (!pointers.ok()) return false;
      entry = (*pointers)[slot];
    }
    return same_target(entry, damage.pointer);
  };
  for (const auto& [id, version] : forest.versions()) {
    const bool has_name = version->volume != nullptr || !version->names.empty();
    if (has_name && reads(*version)) add_names(*version, names);
  }
  if (names.empty()) return name_of(*damage.owner);
  std::sort(names.begin(), names.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

void Checker::tell_damages(const Forest& forest) {
  for (const Damage& damage : damages_) {
    error(readers_of(forest, damage) + ": damaged at offset " +
          std::to_string(damage.base * kBlockSize) + " (" +
          format_size(span_blocks(damage.level) * kBlockSize) + "): " + damage.message);
  }
  report.errors_total += damages_total_ - damages_.size();
}

}  // namespace vellum::store

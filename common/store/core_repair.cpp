// SPDX-License-Identifier: BSD-2-Clause
//
// Repair: bitmaps, counts and charges are made anew from what the versions reach. At rest only.
#include <map>
#include <set>
#include <utility>

#include "common/base/endian.hpp"
#include "common/base/units.hpp"
#include "common/store/checker.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

std::string blocks_of(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " block (" : " blocks (") +
         format_size(count * kBlockSize) + ")";
}

// What is allocated besides the system tree. Where a part of the map cannot be read, nothing is
// freed: it may be in use there.
BlockSet in_use(const Checker& checker, const AddressLimits& limits, uint64_t region_blocks) {
  BlockSet used(region_blocks);
  // A block that the tables share with a version by mistake is not given away.
  const bool is_sure = checker.report.doubly_reached_blocks == 0;
  const auto add = [&](uint64_t block) {
    if (!is_sure || !checker.system().contains(block)) used.insert(block);
  };
  checker.reached().for_each(add);
  if (checker.map_is_whole()) return used;
  checker.allocated().for_each(add);
  for (const uint64_t region : checker.damaged_bitmaps()) {
    const uint64_t first = std::max(region * region_blocks, limits.first_block);
    const uint64_t end = std::min((region + 1) * region_blocks, limits.end_block);
    for (uint64_t block = first; block < end; block++) add(block);
  }
  return used;
}

uint32_t count_in(const BlockSet& blocks, uint64_t region) {
  uint32_t count = 0;
  blocks.for_each_in(region, [&](uint64_t /*block*/) { count++; });
  return count;
}

}  // namespace

// The tables with nothing taken over but records, into blocks that nothing uses.
Result<Entry> Core::write_new_tables(const Checker& checker, BlockSet& used) {
  const AddressLimits limits = superblock_.limits();
  const uint64_t region_blocks = allocator_->region_blocks();
  const SystemTree nothing(disk_, limits, Entry());
  SystemUpdate update(nothing);
  std::vector<uint64_t> none;
  for (const Area area : {Area::versions, Area::objects}) {
    TRY(system_tree_->for_each(area, [&](uint64_t index, const Page& /*page*/) {
      return update.touch(system_block(area, index), false, none);
    }));
  }
  std::map<uint64_t, Page> answers;
  for (const uint32_t slot : answers_.used_slots()) {
    uint64_t block = system_block(Area::answers, uint64_t{slot} * kAnswerSlotBlocks);
    for (const Page& page : answers_.store(slot)) answers.emplace(block++, page);
  }
  for (const auto& [block, page] : answers) TRY(update.touch(block, false, none));
  std::set<uint64_t> regions;
  used.for_each([&](uint64_t block) { regions.insert(block / region_blocks); });
  const auto touch = [&](uint64_t region) -> Result<void> {
    TRY(update.touch(system_block(Area::bitmaps, region), false, none));
    return update.touch(system_block(Area::region_counts, region / kCountsPerBlock), false, none);
  };
  for (const uint64_t region : regions) TRY(touch(region));
  std::vector<Run> own;
  uint64_t taken = 0;
  for (uint64_t at = limits.first_block; taken < update.blocks_needed(); at++) {
    while (used.contains(at) || checker.system().contains(at)) at++;
    if (at >= limits.end_block) {
      return Error{Errc::no_space,
                   "the store has no free block left for its tables; grow it first"};
    }
    used.insert(at);
    append_run(own, at, 1);
    taken++;
    if (regions.insert(at / region_blocks).second) TRY(touch(at / region_blocks));
  }
  BlockSupply supply(own);
  return update.write(supply, [&](uint64_t block, Page& page) -> Result<void> {
    const auto area = static_cast<Area>(block >> 32);
    const uint64_t index = block & 0xffffffff;
    if (area == Area::bitmaps) {
      used.for_each_in(index, [&](uint64_t allocated) {
        const uint64_t bit = allocated % region_blocks;
        page[bit / 8] |= std::byte{static_cast<uint8_t>(1u << (bit % 8))};
      });
      return {};
    }
    if (area == Area::region_counts) {
      for (size_t i = 0; i < kCountsPerBlock; i++) {
        store_le32(page.data() + i * 4, count_in(used, index * kCountsPerBlock + i));
      }
      return {};
    }
    if (area == Area::answers) {
      page = answers.at(block);
      return {};
    }
    TRY_ASSIGN(page, system_tree_->read(block));
    if (area != Area::versions || !checker.map_is_whole()) return {};
    for (const auto& [id, version] : forest_.versions()) {
      if (id == 0 || id / kVersionsPerBlock != index) continue;
      store_le64(page.data() + id % kVersionsPerBlock * kVersionRecord + kOwnedAt,
                 checker.owned_by(id));
    }
    return {};
  });
}

Result<void> Core::rebuild(const Checker& checker) {
  // From now on nobody goes back to the older checkpoint, and what only it uses can be taken.
  {
    Lock lock(mutex_);
    Superblock next = superblock_;
    next.older = next.newer;
    TRY(write_next_superblock(lock, next));
  }
  BlockSet used = in_use(checker, superblock_.limits(), allocator_->region_blocks());
  CheckpointRecord record = superblock_.newer;
  TRY_ASSIGN(record.system_root, write_new_tables(checker, used));
  TRY(disk_.sync());
  record.number++;
  record.allocated_blocks = 0;
  used.for_each([&](uint64_t /*block*/) { record.allocated_blocks++; });
  if (checker.map_is_whole()) record.data_blocks = checker.report.data_blocks;
  Lock lock(mutex_);
  Superblock next = superblock_;
  next.older = record;
  next.newer = record;
  return write_next_superblock(lock, next);
}

Result<std::vector<std::string>> Core::repair() {
  std::vector<std::string> done = findings_;
  for (const size_t slot : damaged_slots_) {
    done.push_back("superblock " + std::to_string(slot) + " is written anew");
  }
  findings_.clear();
  TRY_ASSIGN(const Checker before, survey(false));
  uint64_t unallocated = 0;
  {
    // Before anything is written: what is in use must not be taken.
    const Lock lock(mutex_);
    before.reached().for_each([&](uint64_t block) {
      const bool is_known = !before.damaged_bitmaps().contains(block / allocator_->region_blocks());
      if (!is_known || before.allocated().contains(block)) return;
      allocator_->record_unreserved({block, 1});
      unallocated++;
    });
  }
  // What the journal holds is to be in the tables. If it holds nothing, no space is needed for it.
  if (journal_->position().sequence != superblock_.newer.position.sequence) TRY(checkpoint());
  if (!before.tables_are_wrong() && !answers_.is_damaged()) return done;
  TRY_ASSIGN(const Checker checker, survey(false));
  TRY(rebuild(checker));
  if (unallocated > 0) {
    done.push_back(blocks_of(unallocated) + " in use were not allocated, and are now");
  }
  if (!checker.damaged_bitmaps().empty()) {
    done.push_back("damaged bitmaps are made anew, of " +
                   std::to_string(checker.damaged_bitmaps().size()) + " x " +
                   format_size(superblock_.region_size));
  }
  if (!checker.map_is_whole()) {
    done.emplace_back(
        "nothing is freed while a part of the map cannot be read; destroy what reads it, and "
        "repair again");
  } else if (checker.report.unreached_blocks > 0) {
    done.push_back(blocks_of(checker.report.unreached_blocks) +
                   " were allocated with nothing leading to them, and are free");
  }
  if (checker.wrong_charges() > 0) {
    done.push_back("space is charged anew, of " + std::to_string(checker.wrong_charges()) +
                   " versions");
  }
  return done;
}

}  // namespace vellum::store

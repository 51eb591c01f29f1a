// SPDX-License-Identifier: BSD-2-Clause
//
// Examples of damage to what the store keeps for itself (P3): superblocks, checkpoints, bitmaps,
// what the journal needs; and of repair.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "common/base/endian.hpp"
#include "common/store/superblock.hpp"
#include "common/store/system_tree.hpp"
#include "tests/model/damage_fixture.hpp"

namespace vellum::support {
namespace {

using store::Area;
using store::Page;

class Repair : public Damaged {
 protected:
  // Volumes, snapshots and clones, on which checkpoints and records of the journal follow.
  void fill() {
    create("v", 4 * kMib);
    for (const uint64_t at : {uint64_t{0}, kMib, 3 * kMib}) write("v", 1, at, 40 * kBlock);
    snap("v", "s");
    ASSERT_TRUE(store_->clone("v@s", "c").ok());
    ASSERT_TRUE(store_->checkpoint().ok());
    write("v", 2, 0, 10 * kBlock);
    write("c", 3, kMib, 10 * kBlock);
    ASSERT_TRUE(store_->checkpoint().ok());
    write("v", 4, 2 * kMib, 10 * kBlock);
    ASSERT_TRUE(attach("c")->trim(3 * kMib, 20 * kBlock).ok());
    ASSERT_TRUE(store_->flush().ok());
  }

  void expect_filled() {
    EXPECT_EQ(read("v", 0, 10 * kBlock), pattern(2, 0, 10 * kBlock));
    EXPECT_EQ(read("v", 2 * kMib, 10 * kBlock), pattern(4, 2 * kMib, 10 * kBlock));
    EXPECT_EQ(read("v@s", 0, 40 * kBlock), pattern(1, 0, 40 * kBlock));
    EXPECT_EQ(read("c", kMib, 10 * kBlock), pattern(3, kMib, 10 * kBlock));
    EXPECT_EQ(read("c", 3 * kMib, 20 * kBlock), std::vector<std::byte>(20 * kBlock));
    EXPECT_EQ(read("c", 3 * kMib + 20 * kBlock, kBlock),
              pattern(1, 3 * kMib + 20 * kBlock, kBlock));
  }

  store::Superblock superblock() { return store::find_superblock(disk_)->superblock; }

  std::set<uint64_t> blocks_of(const store::CheckpointRecord& checkpoint) {
    std::set<uint64_t> blocks;
    store::SystemTree(disk_, superblock().limits(), checkpoint.system_root)
        .for_each_address([&](uint64_t block) { blocks.insert(block); });
    return blocks;
  }

  // Those that both checkpoints have; how many.
  size_t damage_bitmaps() {
    const auto newer = blocks_of(superblock().newer), older = blocks_of(superblock().older);
    size_t damaged = 0;
    Page page;
    for (const uint64_t block : newer) {
      if (!older.contains(block)) continue;
      EXPECT_TRUE(disk_.read(block * kBlock, page).ok());
      const bool is_tail = std::any_of(page.begin() + 8, page.end(),
                                       [](std::byte byte) { return byte != std::byte{0}; });
      if (is_tail) continue;
      disk_.flip_bit(block * kBlock + 3, 5);
      damaged++;
    }
    return damaged;
  }

  void expect_sound() {
    const store::CheckReport report = checked();
    EXPECT_TRUE(report.errors.empty()) << report.errors[0];
    EXPECT_TRUE(report.notes.empty()) << report.notes[0];
  }

  store::CheckReport checked() {
    auto report = store::check(disk_, options(), {.read_data = true});
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? *report : store::CheckReport{};
  }

  store::RepairReport repaired() {
    auto report = store::repair(disk_, options(), {.read_data = true});
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? *report : store::RepairReport{};
  }

  static bool any_has(const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  }

  // Puts other tables in their places, with checksums that are right.
  void forge(const std::map<uint64_t, std::function<void(Page&)>>& changes) {
    store::Superblock forged = superblock();
    const store::SystemTree tree(disk_, forged.limits(), forged.newer.system_root);
    store::SystemUpdate update(tree);
    std::vector<uint64_t> freed;
    for (const auto& [block, change] : changes) {
      ASSERT_TRUE(update.touch(block, false, freed).ok());
    }
    const uint64_t needed = update.blocks_needed();
    ASSERT_LE(needed, freed.size()) << "every one is to be written where it was";
    std::vector<store::Run> runs;
    runs.reserve(freed.size());
    for (const uint64_t block : freed) runs.push_back({block, 1});
    store::BlockSupply supply(runs);
    const auto root = update.write(supply, [&](uint64_t block, Page& page) -> Result<void> {
      page = tree.read(block).value();
      changes.at(block)(page);
      return {};
    });
    ASSERT_TRUE(root.ok());
    forged.newer.system_root = *root;
    forged.sequence++;
    ASSERT_TRUE(store::write_all_slots(disk_, forged, 0).ok());
  }
};

TEST_F(Repair, OneSuperblockIsEnough) {
  fill();
  close();
  for (uint64_t slot = 0; slot < 4; slot++) {
    for (uint64_t other = 0; other < 4; other++) {
      if (other != slot) disk_.flip_bit(other * 4 * kBlock + 300, 3);
    }
    EXPECT_EQ(checked().notes.size(), 3U);
    EXPECT_EQ(checked().errors_total, 0U);
    const store::RepairReport report = repaired();
    EXPECT_EQ(report.done.size(), 3U);
    EXPECT_TRUE(any_has(report.done, "superblock " + std::to_string((slot + 1) % 4)));
    expect_sound();
    open();
    expect_filled();
    close();
  }
  for (uint64_t slot = 0; slot < 4; slot++) disk_.flip_bit(slot * 4 * kBlock + 300, 3);
  EXPECT_TRUE(fails_with(store::check(disk_, options(), {}), Errc::corrupt));
}

TEST_F(Repair, ASoundStoreIsLeftAsItIs) {
  fill();
  store_.reset();
  const uint64_t writes = disk_.counts()[static_cast<size_t>(Call::write)].calls;
  const store::RepairReport report = repaired();
  EXPECT_TRUE(report.done.empty());
  EXPECT_TRUE(report.after.errors.empty());
  EXPECT_EQ(disk_.counts()[static_cast<size_t>(Call::write)].calls, writes);
  open();
  expect_filled();
}

// Of either checkpoint, whether it was closed or the power went off.
TEST_F(Repair, EachBlockOfACheckpointMayBeDamaged) {
  fill();
  for (const bool is_closed : {false, true}) {
    if (is_closed) {
      open();
      close();
    }
    store_.reset();
    const store::Superblock before = superblock();
    const auto newer = blocks_of(before.newer), older = blocks_of(before.older);
    ASSERT_GT(newer.size(), 10U);
    for (const auto* blocks : {&newer, &older}) {
      for (const uint64_t block : *blocks) {
        SCOPED_TRACE("block " + std::to_string(block));
        const bool is_shared = newer.contains(block) && older.contains(block);
        Random random(1);
        const auto copy = disk_.survivor(Survival::everything, random);
        copy->flip_bit(block * kBlock + 17, 5);
        const auto damaged = store::check(*copy, options(), {});
        ASSERT_TRUE(damaged.ok()) << damaged.error().message;
        if (is_shared) {
          EXPECT_TRUE(any_has(damaged->errors, "a part of the bitmaps cannot be read"));
        } else if (blocks == &newer) {
          ASSERT_EQ(damaged->errors_total, 1U);
          EXPECT_EQ(damaged->errors[0].find("the newest checkpoint is damaged"), 0U);
        }
        auto opened = store::Store::open(*copy, options_with_log());
        ASSERT_TRUE(opened.ok()) << opened.error().message;
        const store::Superblock taken = store::find_superblock(*copy)->superblock;
        const bool takes_older = taken.newer.number == before.older.number;
        EXPECT_EQ(takes_older, blocks == &newer && !is_shared);
        store_ = std::move(opened).value();
        expect_filled();
        settle(*store_);
        close();
        if (is_shared) {
          ASSERT_TRUE(store::repair(*copy, options(), {}).ok());
        }
        const auto after = store::check(*copy, options(), {.read_data = true});
        ASSERT_TRUE(after.ok());
        EXPECT_TRUE(after->errors.empty()) << after->errors[0];
      }
    }
  }
}

// One that both checkpoints have.
TEST_F(Repair, ABitmapIsMadeAnew) {
  fill();
  settle(*store_);
  write("v", 5, 100 * kBlock, kBlock);
  close();
  const uint64_t allocated = checked().allocated_blocks;
  const size_t damaged = damage_bitmaps();
  ASSERT_GE(damaged, 2U);
  EXPECT_TRUE(any_has(checked().errors, "a part of the bitmaps cannot be read"));
  open();
  expect_filled();
  write("v", 6, 200 * kBlock, 100 * kBlock);
  ASSERT_TRUE(store_->flush().ok());
  store_.reset();
  const store::RepairReport report = repaired();
  EXPECT_TRUE(any_has(
      report.done, "damaged bitmaps are made anew, of " + std::to_string(damaged) + " x 256 KiB"));
  expect_sound();
  EXPECT_GE(checked().allocated_blocks, allocated);
  open();
  expect_filled();
  EXPECT_EQ(read("v", 200 * kBlock, 100 * kBlock), pattern(6, 200 * kBlock, 100 * kBlock));
  for (const char* name : {"v", "c"}) ASSERT_TRUE(store_->destroy_volume(name, false, true).ok());
  settle(*store_);
  EXPECT_EQ(store_->info().data, 0U);
  close();
  expect_sound();
}

// What is in use is not allocated, and the other way round.
TEST_F(Repair, AllocationIsWhatIsReached) {
  fill();
  settle(*store_);
  close();
  const uint64_t allocated = checked().allocated_blocks - checked().system_blocks;
  const uint64_t in_use = address_of(1, 10 * kBlock) / kBlock;
  uint64_t free = superblock().limits().end_block - 10;
  const auto set = [](uint64_t block, bool value) {
    return [block, value](Page& page) {
      const std::byte mask{static_cast<uint8_t>(1u << (block % 8))};
      std::byte& in = page[block % 64 / 8];
      in = value ? in | mask : in & ~mask;
    };
  };
  const auto count = [](uint64_t block, uint32_t by) {
    return [block, by](Page& page) {
      std::byte* at = page.data() + block / 64 % store::kCountsPerBlock * 4;
      store_le32(at, load_le32(at) + by);
    };
  };
  while (free / 64 != in_use / 64) free--;  // of a bitmap that exists
  const auto newer = blocks_of(superblock().newer);
  std::set<uint64_t> used(newer.begin(), newer.end());
  const store::SystemTree tree(disk_, superblock().limits(), superblock().newer.system_root);
  const auto bitmap = tree.read(store::system_block(Area::bitmaps, in_use / 64));
  while (((*bitmap)[free % 64 / 8] >> (free % 8) & std::byte{1}) != std::byte{0} && free > 0)
    free--;
  const bool same_region = free / 64 == in_use / 64;
  if (same_region) {
    forge({{store::system_block(Area::bitmaps, in_use / 64), [&](Page& page) {
              set(in_use, false)(page);
              set(free, true)(page);
            }}});
  } else {
    forge({{store::system_block(Area::bitmaps, in_use / 64), set(in_use, false)},
           {store::system_block(Area::region_counts, 0), count(in_use, ~0u)}});
  }
  EXPECT_EQ(checked().unallocated_blocks, 1U);
  EXPECT_EQ(checked().unreached_blocks, same_region ? 1U : 0U);
  const store::RepairReport report = repaired();
  EXPECT_TRUE(any_has(report.done, "1 block (4 KiB) in use were not allocated")) << report.done[0];
  expect_sound();
  EXPECT_EQ(checked().allocated_blocks - checked().system_blocks, allocated);
  open();
  expect_filled();
}

TEST_F(Repair, ChargesAreCountedAnew) {
  fill();
  settle(*store_);
  close();
  forge({{store::system_block(Area::versions, 0), [](Page& page) {
            for (size_t i = 0; i < store::kVersionsPerBlock; i++) {
              std::byte* record = page.data() + i * store::kVersionRecord;
              if (load_le32(record) != 0) store_le64(record + store::kOwnedAt, 1000 + i);
            }
          }}});
  EXPECT_TRUE(any_has(checked().errors, "volume \"v\" is charged with 100"));
  const store::RepairReport report = repaired();
  EXPECT_TRUE(any_has(report.done, "space is charged anew, of 3 versions")) << report.done[0];
  expect_sound();
  open();
  expect_filled();
}

// Damage to the map is named and stays; what it led to is free once its readers are gone.
TEST_F(Repair, WhatWasLostIsNamedAndFreedWithItsReaders) {
  fill();
  settle(*store_);
  const uint64_t lost = address_of(1, 30 * kBlock);
  close();
  const auto allocated = [&] {
    const store::CheckReport report = checked();
    return report.allocated_blocks - report.system_blocks;
  };
  const uint64_t before = allocated();
  damage_leaves_over(lost);
  const store::CheckReport found = checked();
  EXPECT_EQ(found.unreadable_nodes, 2U);
  EXPECT_EQ(found.errors_total, 2U);
  EXPECT_TRUE(any_has(found.errors, "c, v@s: damaged at offset 0 (1 MiB): a map node at byte "));
  EXPECT_TRUE(any_has(found.errors, "v: damaged at offset 0 (1 MiB): a map node at byte "));
  EXPECT_GT(found.unreached_blocks, 40U);
  store::RepairReport report = repaired();
  EXPECT_EQ(report.after.errors_total, 2U);
  EXPECT_EQ(allocated(), before) << "nothing is freed";
  open();
  EXPECT_EQ(read("v", 2 * kMib, 10 * kBlock), pattern(4, 2 * kMib, 10 * kBlock));
  for (const char* name : {"v", "c"}) ASSERT_TRUE(store_->destroy_volume(name, false, true).ok());
  create("w");
  write("w", 9, 0, 10 * kBlock);
  settle(*store_);
  EXPECT_EQ(store_->info().zombies, 0U);
  close();
  EXPECT_EQ(checked().unreached_blocks, found.unreached_blocks + 2);
  report = repaired();
  EXPECT_TRUE(any_has(report.done, "were allocated with nothing leading to them, and are free"));
  expect_sound();
  open();
  EXPECT_EQ(store_->info().data, 10 * kBlock);
  EXPECT_EQ(read("w", 0, 10 * kBlock), pattern(9, 0, 10 * kBlock));
}

// Bitmaps are made anew beside damage to the map: what that may lead to stays allocated.
TEST_F(Repair, WhatCannotBeReadIsNotFreed) {
  fill();
  settle(*store_);
  const uint64_t lost = address_of(1, 30 * kBlock);
  close();
  const uint64_t before = checked().allocated_blocks;
  damage_leaves_over(lost);
  ASSERT_GT(damage_bitmaps(), 0U);
  const store::RepairReport report = repaired();
  EXPECT_TRUE(any_has(report.done, "damaged bitmaps are made anew"));
  EXPECT_TRUE(any_has(report.done, "nothing is freed while a part of the map cannot be read"));
  EXPECT_EQ(report.after.errors_total, 2U);
  EXPECT_GE(report.after.allocated_blocks, before);
  damage_leaves_over(lost);  // readable again
  const store::CheckReport readable = checked();
  EXPECT_EQ(readable.unreadable_nodes, 0U);
  EXPECT_FALSE(any_has(readable.errors, "not allocated"));
  open();
  expect_filled();
}

// The power may go off at any call of a repair: then there is a store still, and the next repair
// ends it.
TEST_F(Repair, SurvivesAPowerFailureAtEachCall) {
  fill();
  settle(*store_);
  write("v", 5, 100 * kBlock, kBlock);
  const uint64_t lost = address_of(2, 0);  // of v alone
  close();
  damage_leaves_over(lost);
  open();
  ASSERT_TRUE(store_->destroy_volume("v", false, true).ok());
  while (*store_->reclaim_step()) {
  }
  write("c", 6, 2 * kMib, 10 * kBlock);
  ASSERT_TRUE(store_->flush().ok());
  store_.reset();
  Random random(5);
  for (uint64_t call = 1;; call++) {
    SCOPED_TRACE("call " + std::to_string(call));
    auto disk = disk_.survivor(Survival::everything, random);
    disk->power_off_at(call);
    const auto report = store::repair(*disk, options(), {});
    if (!disk->power_is_off()) {
      ASSERT_TRUE(report.ok()) << report.error().message;
      EXPECT_TRUE(any_has(report->done, "with nothing leading to them, and are free"));
      break;
    }
    disk = disk->survivor(Survival::torn_units, random);
    const auto again = store::repair(*disk, options(), {.read_data = true});
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_TRUE(again->after.errors.empty()) << again->after.errors[0];
    auto opened = store::Store::open(*disk, options());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(opened).value();
    EXPECT_EQ(read("c", kMib, 10 * kBlock), pattern(3, kMib, 10 * kBlock));
    EXPECT_EQ(read("c", 2 * kMib, 10 * kBlock), pattern(6, 2 * kMib, 10 * kBlock));
    store_.reset();
    ASSERT_LT(call, 10000U);
  }
}

// Replay meets a damaged leaf: what the journal has for it is lost with it, and nothing else.
TEST_F(Repair, ReplayLeavesOutWhatADamagedLeafMaps) {
  create("v", 4 * kMib);
  for (const uint64_t at : {uint64_t{0}, kMib, 3 * kMib}) write("v", 1, at, 40 * kBlock);
  const uint64_t lost = address_of(1, kMib + 20 * kBlock);
  settle(*store_);
  close();
  open();
  write("v", 2, 5 * kBlock, kBlock);
  write("v", 2, kMib, 5 * kBlock);
  ASSERT_TRUE(attach("v")->trim(10 * kBlock, 3 * kMib).ok());
  write("v", 2, 3 * kMib + 20 * kBlock, kBlock);
  ASSERT_TRUE(store_->flush().ok());
  store_.reset();
  damage_leaves_over(address_of(1, 30 * kBlock));
  const store::CheckReport found = checked();
  EXPECT_TRUE(any_has(found.errors,
                      "left out of what the journal holds: volume \"v\" is damaged at "
                      "offset 0 (1 MiB)"));
  for (int again = 0; again < 2; again++) {
    open_with_log();
    std::vector<std::byte> block(kBlock);
    EXPECT_TRUE(fails_with(attach("v")->read(5 * kBlock, block), Errc::corrupt));
    EXPECT_EQ(read("v", kMib, 2 * kMib), std::vector<std::byte>(2 * kMib));
    EXPECT_EQ(read("v", 3 * kMib, 10 * kBlock), std::vector<std::byte>(10 * kBlock));
    EXPECT_EQ(read("v", 3 * kMib + 20 * kBlock, kBlock),
              pattern(2, 3 * kMib + 20 * kBlock, kBlock));
    store_.reset();
    // It becomes readable again, and must not be what the journal then says of it.
    if (again == 0) damage_leaves_over(lost);
  }
  EXPECT_FALSE(any_has(checked().errors, "left out"));
}

// What is cut off is free, or its loss is named as what it is: the disk is shorter than it was.
TEST_F(Repair, ATruncatedStoreSaysWhatIsMissing) {
  fill();
  settle(*store_);
  close();
  const uint64_t size = disk_.size_bytes();
  Page page;
  uint64_t sound = 0, refused = 0;
  for (uint64_t cut = 1; cut < 60; cut++) {
    SCOPED_TRACE(std::to_string(cut) + " blocks cut off");
    SimulatedDisk shorter;
    for (uint64_t at = 0; at + cut * kBlock < size; at += kBlock) {
      ASSERT_TRUE(disk_.read(at, page).ok());
      ASSERT_TRUE(shorter.write(at, page).ok());
    }
    const auto report = store::check(shorter, options(), {.read_data = true});
    if (report.ok()) {
      EXPECT_EQ(refused, 0U);
      sound += report->errors.empty() ? 1 : 0;
      for (const std::string& error : report->errors) {
        EXPECT_NE(error.find("truncated"), std::string::npos) << error;
      }
      store_ = std::move(store::Store::open(shorter, options())).value();
      if (report->errors.empty()) expect_filled();
      store_.reset();
      continue;
    }
    refused++;
    const std::string& message = report.error().message;
    EXPECT_NE(message.find("lies beyond its end, so it was truncated"), std::string::npos)
        << message;
    EXPECT_FALSE(store::Store::open(shorter, options()).ok());
    EXPECT_FALSE(store::repair(shorter, options(), {}).ok());
  }
  EXPECT_GT(sound, 0U);
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace vellum::support

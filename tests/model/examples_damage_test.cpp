// SPDX-License-Identifier: BSD-2-Clause
//
// Examples of damage (P3): what is lost with a block or a node, what is not, and what is said.
#include <set>

#include "tests/model/damage_fixture.hpp"

namespace vellum::support {
namespace {

TEST_F(Damaged, ALeafCostsOnlyWhatItMaps) {
  create("v", 4 * kMib);
  for (const uint64_t at : {uint64_t{0}, kMib, 2 * kMib}) write("v", 1, at, kBlock);
  snap("v", "s");
  write("v", 2, 0, kBlock);
  const uint64_t lost = address_of(1, kMib);
  close();
  const std::vector<uint64_t> leaves = leaves_over(lost);
  ASSERT_EQ(leaves.size(), 1U);
  damage_leaves_over(lost);
  open_with_log();
  auto opened = attach("v");
  std::vector<std::byte> block(kBlock);
  for (int again = 0; again < 2; again++) {
    const auto failed = opened->read(kMib + 7 * kBlock, block);
    ASSERT_TRUE(fails_with(failed, Errc::corrupt));
    EXPECT_EQ(failed.error().message.find("\"v\" is damaged at offset 1048576 (1 MiB)"), 0U)
        << failed.error().message;
  }
  EXPECT_TRUE(log_has("at byte " + std::to_string(leaves[0]) + " of "));
  EXPECT_EQ(log_.size(), 1U) << "each block once";
  EXPECT_EQ(store_->stats().checksum_errors, 2U);
  EXPECT_EQ(store_->stats("v")->checksum_errors, 2U);
  EXPECT_TRUE(fails_with(opened->write(kMib, pattern(3, kMib, kBlock)), Errc::corrupt));
  EXPECT_TRUE(fails_with(opened->trim(kMib, kBlock), Errc::corrupt));
  EXPECT_TRUE(opened->write(kBlock, pattern(3, kBlock, kBlock)).ok());
  EXPECT_EQ(read("v", 0, kBlock), pattern(2, 0, kBlock));
  EXPECT_EQ(read("v", 2 * kMib, kBlock), pattern(1, 2 * kMib, kBlock));
}

// A map must not leave out what may be data: whoever reads it gets the error.
TEST_F(Damaged, ALeafCountsAsDataInMaps) {
  create("v", 4 * kMib);
  snap("v", "empty");
  for (const uint64_t at : {uint64_t{0}, kMib, 3 * kMib}) write("v", 1, at, kBlock);
  const uint64_t lost = address_of(1, kMib);
  close();
  damage_leaves_over(lost);
  open_with_log();
  const std::vector<store::Extent> expected{{0, kBlock}, {kMib, kMib}, {3 * kMib, kBlock}};
  const auto listed = store_->extents("v", 0, 100);
  ASSERT_TRUE(listed.ok()) << listed.error().message;
  EXPECT_EQ(listed->extents, expected);
  const auto differing = store_->diff("v", "v@empty", 0, 100);
  ASSERT_TRUE(differing.ok());
  EXPECT_EQ(differing->extents, expected);
  const auto map = store_->allocated("v", 0, 2 * kMib, 512 << 10, true);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->bitmap, std::vector<std::byte>{std::byte{0b1101}});
  EXPECT_EQ(map->next_allocated, 3 * kMib);
  EXPECT_EQ(store_->allocated("v", 0, kMib, kMib, true)->next_allocated, kMib);
  const auto all = attach("v")->map(kMib - kBlock, 2 * kMib, 100);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all, (std::vector<store::Extent>{{kMib - kBlock, kBlock, store::ExtentKind::zero},
                                              {kMib, kMib, store::ExtentKind::data},
                                              {2 * kMib, kMib - kBlock, store::ExtentKind::zero}}));
  EXPECT_TRUE(fails_with(store_->resize_volume("v", kMib, false), Errc::precondition));
  EXPECT_EQ(log_.size(), 1U);
}

TEST_F(Damaged, ADiskThatFailsToReadIsNamedAndAskedAgain) {
  create("v");
  write("v", 1, 0, kBlock);
  close();
  open_with_log();
  auto opened = attach("v");
  std::vector<std::byte> block(kBlock);
  disk_.fail(Call::read, 1, Fault::io_error);
  const auto failed = opened->read(0, block);
  ASSERT_TRUE(fails_with(failed, Errc::io_error));
  EXPECT_EQ(failed.error().message.find("\"v\" cannot be read at offset 0"), 0U);
  EXPECT_EQ(store_->stats().checksum_errors, 0U);
  EXPECT_TRUE(opened->read(0, block).ok());
  EXPECT_EQ(block, pattern(1, 0, kBlock));
}

// A block that recovery wants to compare, and the disk cannot read any more: what was flushed with
// it is there.
TEST_F(Damaged, ABlockThatCannotBeReadCostsOnlyItself) {
  create("v", 4 * kMib);
  ASSERT_TRUE(store_->checkpoint().ok());
  write("v", 1, 0, kBlock);
  write("v", 2, kMib, kBlock);
  ASSERT_TRUE(store_->flush().ok());
  store_.reset();
  const uint64_t unreadable = address_of(1, 0);
  std::set<uint64_t> failing;  // numbers of reads, from 1
  for (bool more = true; more;) {
    more = false;
    Random random(1);
    const auto disk = disk_.survivor(Survival::everything, random);
    for (const uint64_t number : failing) disk->fail(Call::read, number, Fault::io_error);
    disk->log_calls(true);
    auto opened = store::Store::open(*disk, options_with_log());
    uint64_t number = 0;
    for (const CallEntry& call : disk->log()) {
      if (call.kind != Call::read) continue;
      number++;
      const bool reads = call.offset <= unreadable && unreadable < call.offset + call.length_bytes;
      if (reads && failing.insert(number).second) more = true;
    }
    if (more) continue;
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(opened).value();
    EXPECT_EQ(read("v", kMib, kBlock), pattern(2, kMib, kBlock));
    EXPECT_EQ(read("v", 0, kBlock), pattern(1, 0, kBlock)) << "it can be read again";
    store_.reset();
  }
  EXPECT_GE(failing.size(), 2U);
}

TEST_F(Damaged, DropPassesOverALeaf) {  // P6, but for what the damage hides
  create("v", 4 * kMib);
  for (const uint64_t at : {uint64_t{0}, kMib, 3 * kMib}) write("v", 1, at, 5 * kBlock);
  create("w");
  write("w", 2, 0, kBlock);
  const uint64_t lost = address_of(1, kMib);
  close();
  damage_leaves_over(lost);
  open_with_log();
  ASSERT_TRUE(store_->destroy_volume("v", false, true).ok());
  ASSERT_TRUE(store_->destroy_volume("w", false, true).ok());
  reclaim_through_crashes();
  EXPECT_TRUE(log_has("passes over the unreadable map node"));
  EXPECT_EQ(store_->info().zombies, 0U);
  EXPECT_EQ(leaked(), 6U) << "the leaf, and what it leads to";
}

// Whichever of the two trees is damaged that are compared.
TEST_F(Damaged, CollapsePassesOverALeaf) {
  for (const uint64_t tag : {1, 2}) {
    store_.reset();
    format();
    open_with_log();
    log_.clear();
    create("v", 4 * kMib);
    for (const uint64_t at : {uint64_t{0}, kMib, 3 * kMib}) write("v", 1, at, 5 * kBlock);
    snap("v", "s");
    for (const uint64_t at : {uint64_t{0}, kMib, 3 * kMib}) write("v", 2, at, 2 * kBlock);
    const uint64_t lost = address_of(tag, kMib);
    close();
    damage_leaves_over(lost);
    open_with_log();
    ASSERT_TRUE(store_->destroy_snapshot("v@s", true).ok());
    reclaim_through_crashes();
    EXPECT_TRUE(log_has("passes over the unreadable map node"));
    EXPECT_EQ(store_->info().zombies, 0U);
    EXPECT_EQ(read("v", 0, 2 * kBlock), pattern(2, 0, 2 * kBlock));
    EXPECT_EQ(read("v", 3 * kMib + 2 * kBlock, 3 * kBlock),
              pattern(1, 3 * kMib + 2 * kBlock, 3 * kBlock));
    std::vector<std::byte> block(kBlock);
    const auto there = attach("v")->read(kMib, block);
    if (tag == 1) {
      EXPECT_EQ(block, pattern(2, kMib, kBlock));
    } else {
      EXPECT_TRUE(fails_with(there, Errc::corrupt));
    }
    // Its leaf and the two blocks that the volume has no more; or the three that only the volume's
    // damaged leaf leads to, and the two below that.
    EXPECT_GE(leaked(), 3U);
  }
}

TEST_F(Damaged, SweepPassesOverALeaf) {
  create("v", 4 * kMib);
  for (const uint64_t at : {uint64_t{0}, kMib, 3 * kMib}) write("v", 1, at, 5 * kBlock);
  snap("v", "s");
  for (const char* clone : {"c", "d"}) {
    ASSERT_TRUE(store_->clone("v@s", clone).ok());
    for (const uint64_t at : {uint64_t{0}, kMib, 3 * kMib}) write(clone, 2, at, 2 * kBlock);
  }
  const uint64_t lost = address_of(1, kMib);
  close();
  const std::vector<uint64_t> leaves = leaves_over(lost);
  damage_leaves_over(lost);
  open_with_log();
  ASSERT_TRUE(store_->destroy_volume("v", false, true).ok());
  reclaim_through_crashes();
  EXPECT_EQ(store_->info().zombies, 1U);
  EXPECT_TRUE(log_has("passes over the unreadable map node"));
  EXPECT_EQ(read("c", 0, 2 * kBlock), pattern(2, 0, 2 * kBlock));
  EXPECT_EQ(read("d", 3 * kMib + 2 * kBlock, 3 * kBlock),
            pattern(1, 3 * kMib + 2 * kBlock, 3 * kBlock));
}

// It may be a cable: only after many tries it counts as damaged.
TEST_F(Damaged, ReclaimTriesADiskThatFailsAgain) {
  for (const int failures : {11, 12}) {
    store_.reset();
    format();
    open();
    create("v");
    write("v", 1, 0, 5 * kBlock);
    close();
    open_with_log();
    ASSERT_TRUE(store_->destroy_volume("v", false, true).ok());
    int failed = 0;
    for (bool more = true; more;) {
      if (failed < failures) disk_.fail(Call::read, 1, Fault::io_error);
      const auto stepped = store_->reclaim_step();
      if (!stepped.ok()) {
        EXPECT_EQ(stepped.error().code, Errc::io_error);
      }
      failed++;
      more = !stepped.ok() || *stepped;
      ASSERT_LT(failed, 100);
    }
    EXPECT_EQ(store_->info().reclaim_skipped, failures == 12 ? 1U : 0U);
    EXPECT_EQ(store_->info().zombies, 0U);
  }
}

TEST_F(Damaged, FiguresOfWhatCannotBeCountedAreNotExact) {
  create("v", 4 * kMib);
  for (const uint64_t at : {uint64_t{0}, kMib}) write("v", 1, at, 5 * kBlock);
  snap("v", "s");
  write("v", 2, kMib, 2 * kBlock);
  create("w");
  write("w", 3, 0, kBlock);
  const uint64_t lost = address_of(1, kMib);
  close();
  damage_leaves_over(lost);
  open_with_log();
  write("v", 2, kBlock, kBlock);
  settle(*store_);
  const auto figures = store_->space({});
  ASSERT_TRUE(figures.ok());
  for (const store::SpaceInfo& info : *figures) {
    EXPECT_EQ(info.exact, info.name != "v@s") << info.name;
  }
}

class Scrubbing : public Damaged {
 protected:
  store::ScrubInfo scrub() {
    store_->start_scrub();
    run_to_the_end(*store_, &store::Store::scrub_step);
    return store_->scrub_info();
  }

  void fill() {
    create("v", 4 * kMib);
    for (const uint64_t at : {uint64_t{0}, kMib, 3 * kMib}) write("v", 1, at, 100 * kBlock);
    snap("v", "s");
    ASSERT_TRUE(store_->clone("v@s", "c").ok());
    write("v", 2, 0, 50 * kBlock);
    write("c", 3, kMib, 100 * kBlock);
    ASSERT_TRUE(store_->checkpoint().ok());
  }
};

TEST_F(Scrubbing, ReadsEverythingOnce) {
  EXPECT_EQ(store_->scrub_info().state, store::ScrubState::never);
  EXPECT_FALSE(*store_->scrub_step());
  fill();
  const store::ScrubInfo info = scrub();
  EXPECT_EQ(info.state, store::ScrubState::finished);
  EXPECT_EQ(info.errors, 0U);
  ASSERT_TRUE(info.started && info.finished);
  EXPECT_GE(*info.finished, *info.started);
  // The nodes of the system tree are not counted, and a node where a step ended is read again.
  const store::StoreInfo store = store_->info();
  EXPECT_GE(info.checked_bytes, store.data + 20 * kBlock);
  EXPECT_LE(info.checked_bytes, store.used + 10 * kBlock);
}

TEST_F(Scrubbing, NamesAllThatReadADamagedBlock) {
  fill();
  const uint64_t shared = address_of(1, 3 * kMib + 70 * kBlock);
  const uint64_t own = address_of(3, kMib + 5 * kBlock);
  disk_.flip_bit(shared + 9, 2);
  disk_.flip_bit(own + 4095, 7);
  const store::ScrubInfo info = scrub();
  EXPECT_EQ(info.errors, 2U);
  ASSERT_EQ(info.damages.size(), 2U);
  EXPECT_EQ(info.damages[0].names, (std::vector<std::string>{"c", "v", "v@s"}));
  EXPECT_EQ(info.damages[0].offset, 3 * kMib + 70 * kBlock);
  EXPECT_EQ(info.damages[0].length, kBlock);
  EXPECT_EQ(info.damages[0].address, shared);
  EXPECT_FALSE(info.damages[0].is_map);
  EXPECT_EQ(info.damages[1].names, std::vector<std::string>{"c"});
  EXPECT_EQ(info.damages[1].address, own);
  EXPECT_EQ(store_->stats().checksum_errors, 2U);
  ASSERT_TRUE(attach("v")->write(3 * kMib + 70 * kBlock, pattern(4, 0, kBlock)).ok());
  EXPECT_EQ(scrub().damages[0].names, (std::vector<std::string>{"c", "v@s"}));
  ASSERT_TRUE(store_->destroy_volume("c", false, true).ok());
  ASSERT_TRUE(store_->destroy_volume("v", false, true).ok());
  settle(*store_);
  EXPECT_EQ(scrub().errors, 0U);
}

TEST_F(Scrubbing, GoesOnBehindADamagedNode) {
  fill();
  const uint64_t lost = address_of(1, 50 * kBlock);
  const uint64_t behind = address_of(1, 3 * kMib);
  disk_.flip_bit(behind, 0);
  close();
  damage_leaves_over(lost);
  open_with_log();
  const store::ScrubInfo info = scrub();
  EXPECT_EQ(info.state, store::ScrubState::finished);
  ASSERT_EQ(info.damages.size(), 3U);
  EXPECT_TRUE(info.damages[0].is_map);
  EXPECT_EQ(info.damages[0].names, (std::vector<std::string>{"c", "v@s"}));
  EXPECT_EQ(info.damages[0].length, kMib);
  EXPECT_EQ(info.damages[1].address, behind);
  EXPECT_TRUE(info.damages[2].is_map);
  EXPECT_EQ(info.damages[2].names, (std::vector<std::string>{"v"}));
  EXPECT_EQ(scrub().errors, 3U) << "each is found again";
}

TEST_F(Scrubbing, CanBeStoppedAndIsStartedOnce) {
  fill();
  store_->start_scrub();
  EXPECT_TRUE(*store_->scrub_step());
  EXPECT_TRUE(*store_->scrub_step());
  const uint64_t so_far = store_->scrub_info().checked_bytes;
  EXPECT_GT(so_far, 0U);
  EXPECT_EQ(store_->start_scrub().checked_bytes, so_far) << "it goes on";
  EXPECT_EQ(store_->stop_scrub().state, store::ScrubState::stopped);
  EXPECT_FALSE(*store_->scrub_step());
  EXPECT_EQ(store_->start_scrub().checked_bytes, 0U);
}

// Beside jobs of reclaim, whose cursors decide what belongs to whom.
TEST_F(Scrubbing, GoesOnBesideReclaim) {
  for (const uint64_t steps_before : {1, 2, 5}) {
    store_.reset();
    format();
    open();
    fill();
    ASSERT_TRUE(store_->destroy_volume("c", false, true).ok());
    ASSERT_TRUE(store_->destroy_snapshot("v@s", true).ok());
    const uint64_t lost = address_of(1, 3 * kMib + kBlock);
    disk_.flip_bit(lost, 1);
    store_->start_scrub();
    bool scrubbing = true, reclaiming = true;
    while (scrubbing || reclaiming) {
      for (uint64_t i = 0; i < steps_before; i++) reclaiming = *store_->reclaim_step();
      scrubbing = *store_->scrub_step();
    }
    const store::ScrubInfo info = store_->scrub_info();
    ASSERT_GE(info.damages.size(), 1U);
    EXPECT_EQ(info.damages[0].address, lost);
    EXPECT_EQ(info.damages[0].names.front(), "v");
  }
}

}  // namespace
}  // namespace vellum::support

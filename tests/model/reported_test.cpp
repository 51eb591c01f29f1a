// SPDX-License-Identifier: BSD-2-Clause
//
// What users of other systems reported, and the right answer here: rows of CASES.md.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "common/store/superblock.hpp"
#include "tests/model/cost_fixture.hpp"

namespace vellum::support {
namespace {

class Reported : public CostTest {
 protected:
  void reopen_with(const store::Options& options) {
    store_.reset();
    auto opened = store::Store::open(*disk_, options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(opened).value();
  }

  void close() {
    ASSERT_TRUE(store_->close().ok());
    store_.reset();
  }

  CallCount reads_and_writes_of(const std::function<void()>& calls) {
    CallCount writes;
    const CallCount reads = cost_of(Call::read, [&] { writes = cost_of(Call::write, calls); });
    return {reads.calls + writes.calls, reads.bytes + writes.bytes};
  }
};

// Case 1: deleting a snapshot and going back to one cost the same after any delta.
TEST_F(Reported, DeletesAndRevertsDoNotDependOnTheDelta) {
  std::vector<CallCount> costs;
  for (const uint64_t changed : {uint64_t{1}, uint64_t{20000}}) {  // blocks, a leaf each
    begin(8 << 20);
    create("v", 40 * kTib);
    write("v", 1, 0, kBlock);
    snap("v", "empty");
    const auto opened = attach("v");
    for (uint64_t i = 0; i < changed; ++i) {
      ASSERT_TRUE(opened->write(i * kMib, pattern(2, i * kMib, kBlock)).ok());
    }
    snap("v", "full");
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(store_->checkpoint().ok());
    costs.push_back(reads_and_writes_of([&] {
      ASSERT_TRUE(store_->revert("v", "empty", false).ok());
      ASSERT_TRUE(store_->destroy_snapshot("v@full").ok());
    }));
    EXPECT_EQ(read("v", 0, kBlock), pattern(1, 0, kBlock));
    EXPECT_EQ(store_->list_snapshots("v").size(), 1U);
  }
  EXPECT_TRUE(same(costs[1], costs[0]));
  EXPECT_GE(costs[0].calls, 2U) << "both are durable";
  EXPECT_LE(costs[0].calls, 4U);
}

// Case 2: what is used comes back to the size of the volume and its map.
TEST_F(Reported, UsageIsThatOfTheVolumeOnceReclaimIsIdle) {
  constexpr uint64_t kSize = 32 * kMib;
  create("v", kSize);
  const auto fill = [&](uint64_t tag) {
    const auto opened = attach("v");
    for (uint64_t at = 0; at < kSize; at += kMib) {
      ASSERT_TRUE(opened->write(at, pattern(tag, at, kMib)).ok());
    }
  };
  fill(1);
  settle(*store_);
  ASSERT_EQ(store_->info().data, kSize);
  for (uint64_t round = 2; round < 8; ++round) {
    snap("v", "s");
    fill(round);
    EXPECT_EQ(store_->info().data, 2 * kSize);
    ASSERT_TRUE(store_->destroy_snapshot("v@s").ok());
    fill(round);
    settle(*store_);
    EXPECT_EQ(store_->info().data, kSize);
    EXPECT_EQ(store_->info().waiting_for_reclaim, 0U);
    EXPECT_LE(store_->info().metadata, kSize / 50) << "the map, bitmaps, and counts";
  }
}

// Case 5: a month of snapshots, one in 20 minutes, each kept for a day, with a little reclaim after
// each.
TEST_F(Reported, AMonthOfSnapshotsLeavesNoBacklog) {
  constexpr size_t kMonth = 30 * 72, kDay = 72;
  constexpr uint64_t kSize = 64 * kMib;
  constexpr int kSteps = 12;  // of reclaim, each of a place in a map
  create("v", kSize);
  for (uint64_t at = 0; at < kSize; at += kMib) write("v", 1, at, kMib);
  Random random(5);
  std::vector<std::string> kept;
  uint64_t backlog = 0;
  for (size_t i = 0; i < kMonth; ++i) {
    for (int j = 0; j < 8; ++j) write("v", i + 2, random.below(kSize / kBlock) * kBlock, kBlock);
    kept.push_back(snap("v", "at-" + std::to_string(i)));
    if (kept.size() > kDay) {
      ASSERT_TRUE(store_->destroy_snapshot(kept.front()).ok());
      kept.erase(kept.begin());
    }
    for (int j = 0; j < kSteps; ++j) ASSERT_TRUE(store_->reclaim_step().ok());
    backlog = std::max(backlog, store_->info().waiting_for_reclaim);
  }
  EXPECT_LE(backlog, kSize / 16);
  for (const std::string& name : kept) ASSERT_TRUE(store_->destroy_snapshot(name).ok());
  settle(*store_);
  EXPECT_EQ(store_->info().data, kSize);
  EXPECT_EQ(store_->info().versions, 1U);
  EXPECT_EQ(store_->info().waiting_for_reclaim, 0U);
}

// Case 6: the 100,000th snapshot costs what the first did, and so many open with a few reads.
TEST_F(Reported, AHundredThousandSnapshotsCostWhatTheFirstDid) {
  constexpr uint64_t kSnapshots = 100000, kCounted = 100;
  create("v");
  uint64_t next = 0;
  const auto take = [&](uint64_t count) {
    for (const uint64_t end = next + count; next < end; ++next) {
      if (next % 10 == 0) {
        write("v", next, 0, kBlock);
      }
      ASSERT_TRUE(store_->create_snapshots({"v"}, "s" + std::to_string(next)).ok());
    }
  };
  const auto checkpoint = [&] {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(store_->checkpoint().ok());
  };
  checkpoint();
  const CallCount first = reads_and_writes_of([&] { take(kCounted); });
  take(kSnapshots - 2 * kCounted);
  checkpoint();
  const CallCount last = reads_and_writes_of([&] { take(kCounted); });
  EXPECT_EQ(last.calls, first.calls);
  EXPECT_LE(last.bytes, first.bytes + first.bytes / 10) << "the names are longer";
  EXPECT_EQ(store_->info().snapshots, kSnapshots);
  close();
  const auto began = std::chrono::steady_clock::now();
  const CallCount reads = cost_of(Call::read, [&] { reopen_with(options()); });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("opened with %lu snapshots in %.2f s, by %lu reads of %lu MiB\n", kSnapshots,
              took.count(), reads.calls, reads.bytes >> 20);
  EXPECT_LE(reads.bytes, kSnapshots * 512);
  EXPECT_EQ(store_->info().snapshots, kSnapshots);
  EXPECT_EQ(read("v@s99999", 0, kBlock), pattern(99990, 0, kBlock));
}

// Case 7: where snapshots end, one is refused with the reason; volumes work on, and open again.
TEST_F(Reported, AVolumeOpensWhateverWasRefused) {
  create("v");
  write("v", 1, 0, kBlock);
  snap("v", "last");
  close();
  auto found = store::find_superblock(*disk_);
  ASSERT_TRUE(found.ok());
  store::Superblock used_up = found->superblock;
  for (store::CheckpointRecord* one : {&used_up.newer, &used_up.older}) {
    one->next_version = 0xfffffff0U - 6;  // the last is not far
  }
  used_up.sequence++;
  ASSERT_TRUE(store::write_all_slots(*disk_, used_up, 0).ok());
  reopen_with(options());
  int taken = 0;
  for (;; ++taken) {
    write("v", 2 + static_cast<uint64_t>(taken), 0, kBlock);
    const auto refused = store_->create_snapshots({"v"}, "s" + std::to_string(taken));
    if (refused.ok() && taken < 10) continue;
    ASSERT_TRUE(fails_with(refused, Errc::limit));
    EXPECT_NE(refused.error().message.find("2^32 version numbers"), std::string::npos);
    break;
  }
  EXPECT_GE(taken, 1);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(read("v@last", 0, kBlock), pattern(1, 0, kBlock));
    EXPECT_EQ(read("v", 0, kBlock), pattern(2 + static_cast<uint64_t>(taken), 0, kBlock));
    write("v", 100, kBlock, kBlock);
    close();
    reopen_with(options());
  }
}

// Case 8: a snapshot of what has not changed is a name and nothing else; one of a snapshot is
// refused.
TEST_F(Reported, ASnapshotOfWhatHasNotChangedIsANameOnly) {
  create("v");
  write("v", 1, 0, kBlock);
  snap("v", "first");
  ASSERT_TRUE(store_->checkpoint().ok());
  const store::StoreInfo before = store_->info();
  for (int i = 0; i < 1000; ++i) snap("v", std::to_string(i));
  EXPECT_EQ(store_->info().versions, before.versions);
  EXPECT_EQ(store_->info().data, before.data);
  EXPECT_EQ(store_->info().snapshots, before.snapshots + 1000);
  EXPECT_EQ(read("v@999", 0, kBlock), pattern(1, 0, kBlock));
  const auto refused = store_->create_snapshots({"v@first"}, "s");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("v@first"), std::string::npos);
}

// Case 19: one change near the end of a large volume is in the first answer, or is where the first
// answer points to.
TEST_F(Reported, OneChangeNearTheEndIsInTheFirstAnswer) {
  constexpr uint64_t kAt = 40 * kTib - 3 * kMib;
  create("v", 40 * kTib);
  write("v", 1, 0, kMib);
  snap("v", "s");
  write("v", 2, kAt, kBlock);
  const auto diff = store_->diff("v", "v@s", 0, 1);
  ASSERT_TRUE(diff.ok());
  EXPECT_EQ(diff->extents, (std::vector<store::Extent>{{kAt, kBlock, store::ExtentKind::data}}));
  const auto unshared = store_->unshared("v", "v@s", 0, 32 * kMib, kBlock, true);
  ASSERT_TRUE(unshared.ok());
  EXPECT_EQ(unshared->allocated_chunks, 0U);
  EXPECT_EQ(unshared->next_allocated, kAt);
  const auto allocated = store_->allocated("v", kMib, 32 * kMib, kBlock, true);
  ASSERT_TRUE(allocated.ok());
  EXPECT_EQ(allocated->allocated_chunks, 0U);
  EXPECT_EQ(allocated->next_allocated, kAt);
}

// Case 24: the first writes after a snapshot read nothing, and write what other writes do.
TEST_F(Reported, FirstWritesAfterASnapshotAreLikeAnyOther) {
  constexpr uint64_t kWrites = 500;
  create("v", 600 * kBlock);
  write("v", 1, 0, 600 * kBlock);
  std::vector<CallCount> reads, writes;
  for (const bool has_snapshot : {false, false, true}) {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(store_->checkpoint().ok());
    read("v", 0, 600 * kBlock);
    if (has_snapshot) snap("v", "s");
    const auto opened = attach("v");
    reads.push_back(cost_of(Call::read, [&] {
      writes.push_back(cost_of(Call::write, [&] {
        for (uint64_t i = 0; i < kWrites; ++i) {
          const uint64_t at = i * 7 % 600 * kBlock;
          ASSERT_TRUE(opened->write(at, pattern(2, at, kBlock)).ok());
        }
        ASSERT_TRUE(store_->flush().ok());
      }));
    }));
  }
  EXPECT_EQ(reads[2].calls, 0U);
  EXPECT_TRUE(same(writes[2], writes[1]));
  EXPECT_GE(writes[0].calls, kWrites);
}

}  // namespace
}  // namespace vellum::support

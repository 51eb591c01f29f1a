// SPDX-License-Identifier: BSD-2-Clause
//
// What others do to the store while one call waits for a node that it reads from disk: the node is
// given up and its block used again, the version is destroyed, a checkpoint is written. Without
// background threads, so that each step comes when the test says so.
#include <chrono>
#include <functional>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "tests/concurrency/counted_blocks.hpp"
#include "tests/model/store_fixture.hpp"
#include "tests/support/random.hpp"

namespace vellum::support {
namespace {

constexpr std::chrono::milliseconds kPatience{20000};
constexpr uint64_t kBlock = kContentBlockBytes;
constexpr uint64_t kSize = 64 * kBlock;

class SlowReads : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    create("v", kSize);
    write("v", 1, 0, kSize);
  }

  // With nothing in memory but what opening takes.
  void make_cold() { reopen(); }

  // The addresses of what `call` reads from disk, in its order.
  template <typename Action>
  std::vector<uint64_t> reads_of(Action action) {
    disk_.log_calls(true);
    action();
    std::vector<uint64_t> offsets;
    for (const CallEntry& entry : disk_.log())
      if (entry.kind == Call::read) offsets.push_back(entry.offset);
    disk_.log_calls(false);
    return offsets;
  }

  // Where the last node of the map above a block lies. Leaves the store cold.
  uint64_t leaf_of(const std::string& name, uint64_t offset) {
    make_cold();
    const auto offsets = reads_of([&] { read(name, offset, kBlock); });
    EXPECT_GE(offsets.size(), 2u);
    make_cold();
    return offsets.size() < 2 ? 0 : offsets[offsets.size() - 2];
  }

  // Starts `call`, which then waits, as it is the first to read at `offset`.
  std::future<void> start_and_stall(uint64_t offset, std::function<void()> action) {
    auto first = std::make_shared<std::atomic<bool>>(true);
    disk_.stall_reads([offset, first](uint64_t at, std::span<const iovec>) {
      return at == offset && first->exchange(false);
    });
    auto running = std::async(std::launch::async, std::move(action));
    EXPECT_TRUE(disk_.wait_until_stalled(1, kPatience)) << "nothing was read at " << offset;
    return running;
  }

  void reclaim_all() {
    for (;;) {
      const auto more = store_->reclaim_step();
      ASSERT_TRUE(more.ok()) << more.error().message;
      if (!*more) return;
    }
  }

  void checkpoints(int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(store_->checkpoint().ok());
  }

  void close_and_check() {
    ASSERT_TRUE(store_->close().ok());
    store_.reset();
    check_at_rest(disk_);
  }
};

TEST_F(SlowReads, OfANodeWhoseBlockIsANodeAgain) {
  const uint64_t leaf = leaf_of("v", 0);
  std::vector<std::byte> seen;
  auto slow = start_and_stall(leaf, [&] { seen = read("v", 0, kBlock); });
  read("v", kBlock, kBlock);  // reads the same leaf, and is faster
  write("v", 2, 0, kBlock);   // and now the leaf on disk is one that nothing leads to
  ASSERT_TRUE(store_->checkpoint().ok());
  disk_.release();
  slow.get();
  EXPECT_EQ(seen, pattern(2, 0, kBlock));
  // Until its block has been written many times: mostly as a node, since each turn writes one block
  // of data and a path of nodes.
  int times = 0;
  for (uint64_t turn = 0; times < 8; ++turn) {
    ASSERT_LT(turn, 100000u) << "the block is never used again";
    disk_.log_calls(true);
    write("v", 3 + turn, kBlock * (turn % 64), kBlock);
    ASSERT_TRUE(store_->checkpoint().ok());
    for (const CallEntry& entry : disk_.log())
      times += entry.kind == Call::write && entry.offset <= leaf &&
               leaf < entry.offset + entry.length_bytes;
    disk_.log_calls(false);
    ASSERT_EQ(read("v", kBlock * (turn % 64), kBlock),
              pattern(3 + turn, kBlock * (turn % 64), kBlock));
  }
  close_and_check();
}

TEST_F(SlowReads, OfDataWhoseBlockStaysAsItIs) {  // P3
  constexpr uint64_t kTurns = 30;
  uint64_t tag = 1;
  // How often a block is written to while the volume is, again and again.
  const auto times_written = [&](uint64_t place) {
    uint64_t times = 0;
    for (uint64_t turn = 0; turn < kTurns; ++turn) {
      disk_.log_calls(true);
      write("v", ++tag, 0, kSize);
      EXPECT_TRUE(store_->checkpoint().ok());
      for (const CallEntry& entry : disk_.log())
        times += entry.kind == Call::write && entry.offset <= place &&
                 place < entry.offset + entry.length_bytes;
      disk_.log_calls(false);
    }
    return times;
  };
  const auto place_of_data = [&] {
    make_cold();
    const uint64_t place = reads_of([&] { read("v", 0, kBlock); }).back();
    make_cold();
    return place;
  };
  EXPECT_GT(times_written(place_of_data()), 0u);
  const uint64_t place = place_of_data(), tag_there = tag;
  std::vector<std::byte> seen;
  auto slow = start_and_stall(place, [&] { seen = read("v", 0, kBlock); });
  EXPECT_EQ(times_written(place), 0u);
  disk_.release();
  slow.get();
  EXPECT_EQ(seen, pattern(tag_there, 0, kBlock));
  close_and_check();
}

// P2: what is written while a sync is at work is not durable once that has succeeded.
TEST_F(SlowReads, BesideASlowSync) {
  constexpr uint64_t kWrites = 300;  // whose records fill several sectors of the journal
  create("w", kWrites * kBlock);
  const auto syncs = [&] { return disk_.counts()[static_cast<size_t>(Call::sync)].calls; };
  const uint64_t syncs_before = syncs();
  disk_.set_sync_delay(std::chrono::milliseconds(300));
  write("v", 2, 0, kBlock);
  auto slow = std::async(std::launch::async, [&] { return store_->flush().ok(); });
  while (syncs() == syncs_before) std::this_thread::yield();
  for (uint64_t i = 0; i < kWrites; ++i) write("w", 1, i * kBlock, kBlock);
  EXPECT_TRUE(slow.get());
  disk_.set_sync_delay(std::chrono::milliseconds(0));
  disk_.fail(Call::sync, 1, Fault::io_error);
  EXPECT_FALSE(store_->flush().ok());
  store_.reset();
  Random random(1);
  std::vector<std::byte> block(kBlock);
  for (int i = 0; i < 20; ++i) {
    auto crashed = disk_.survivor(Survival::all_but_one, random);
    auto again = store::Store::open(*crashed, options());
    ASSERT_TRUE(again.ok()) << again.error().message;
    const auto opened = *(*again)->open_export("w");
    for (uint64_t at = 0; at < kWrites * kBlock; at += kBlock) {
      const Result<void> done = opened->read(at, block);
      ASSERT_TRUE(done.ok()) << done.error().message;
    }
  }
}

TEST_F(SlowReads, InAStepOfReclaimBeforeACheckpoint) {
  create("w", 4 * kMib);
  for (uint64_t at = 0; at < 4 * kMib; at += kMib / 4) write("w", 1, at, kBlock);
  snap("w", "s");
  for (uint64_t at = 0; at < 4 * kMib; at += kMib / 2) write("w", 2, at, kBlock);
  const uint64_t leaf = leaf_of("w", 2 * kMib);  // of 1 MiB each; two are dropped before this one
  ASSERT_TRUE(store_->destroy_volume("w", false).ok());
  Result<bool> stepped = true;
  auto slow = start_and_stall(leaf, [&] {
    while (stepped.ok() && *stepped) stepped = store_->reclaim_step();
  });
  ASSERT_TRUE(store_->checkpoint().ok());
  disk_.release();
  slow.get();
  ASSERT_TRUE(stepped.ok()) << stepped.error().message;
  Random random(1);
  for (Survival how : {Survival::nothing, Survival::everything}) {
    auto crashed = disk_.survivor(how, random);
    check_at_rest(*crashed);
    auto again = store::Store::open(*crashed, options());
    ASSERT_TRUE(again.ok()) << again.error().message;
    for (Result<bool> more = true; *more;) {
      more = (*again)->reclaim_step();
      ASSERT_TRUE(more.ok()) << more.error().message;
    }
    EXPECT_EQ((*again)->info().zombies, 0u);
    ASSERT_TRUE((*again)->close().ok());
    again->reset();
    check_at_rest(*crashed);
  }
}

TEST_F(SlowReads, OfASnapshotThatIsDestroyedMeanwhile) {
  snap("v", "base");
  write("v", 2, 0, kSize / 2);
  snap("v", "s");
  ASSERT_TRUE(store_->revert("v", "base", false).ok());  // so that nothing grows beneath v@s
  const auto expected = store_->diff("v@s", "v@base", 0, 1000);
  ASSERT_TRUE(expected.ok());
  const uint64_t leaf = leaf_of("v@s", 0);
  Result<store::ExtentList> seen = store::ExtentList();
  auto slow = start_and_stall(leaf, [&] { seen = store_->diff("v@s", "v@base", 0, 1000); });
  ASSERT_TRUE(store_->destroy_snapshot("v@s").ok());
  reclaim_all();
  EXPECT_EQ(store_->info().zombies, 1u) << "what is being read must stay";
  checkpoints(4);
  for (uint64_t i = 0; i < 64; ++i) write("v", 3 + i, i * kBlock, kBlock);
  checkpoints(4);
  disk_.release();
  slow.get();
  ASSERT_TRUE(seen.ok()) << seen.error().message;
  EXPECT_EQ(seen->extents, expected->extents);
  reclaim_all();
  EXPECT_EQ(store_->info().zombies, 0u);
  close_and_check();
}

TEST_F(SlowReads, OfAVolumeThatIsDestroyedMeanwhile) {
  const uint64_t leaf = leaf_of("v", 0);
  Result<store::AllocatedMap> seen = store::AllocatedMap();
  auto slow = start_and_stall(leaf, [&] { seen = store_->allocated("v", 0, kSize, 0, true); });
  ASSERT_TRUE(store_->destroy_volume("v", false).ok());
  reclaim_all();
  create("v", kSize);
  for (uint64_t i = 0; i < 8; ++i) {
    write("v", 2 + i, i * kBlock, kBlock);
    checkpoints(1);
  }
  disk_.release();
  slow.get();
  EXPECT_TRUE(fails_with(seen, Errc::destroyed));
  close_and_check();
}

// -- With background threads ---------------------------------------------------------------------

TEST(Background, SyncsUnderASteadyLoadThatNeverFlushes) {
  SimulatedDisk disk;
  format_small(disk);
  auto store = open_busy(disk);
  ASSERT_TRUE(store->create_volume("v", kSize, store::Provision::thin).ok());
  auto opened = *store->open_export("v");
  const auto syncs = [&] { return disk.counts()[static_cast<size_t>(Call::sync)].calls; };
  ASSERT_TRUE(store->checkpoint().ok());
  const uint64_t before = syncs();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (uint64_t i = 0; syncs() < before + 2 && std::chrono::steady_clock::now() < end; ++i) {
    ASSERT_TRUE(opened->write(0, pattern(i, 0, kBlock)).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // too little for a checkpoint
  }
  EXPECT_GE(syncs(), before + 2);
  opened.reset();
  ASSERT_TRUE(store->close().ok());
}

TEST(Background, AnswersAFlushAfterTheStoreIsClosed) {
  SimulatedDisk disk;
  format_small(disk);
  auto store = open_busy(disk);
  ASSERT_TRUE(store->close().ok());
  Result<void> result;
  auto flushed = std::async(std::launch::async, [&] { result = store->flush(); });
  ASSERT_EQ(flushed.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(fails_with(result, Errc::shut_down));
}

}  // namespace
}  // namespace vellum::support

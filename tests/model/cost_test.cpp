// SPDX-License-Identifier: BSD-2-Clause
//
// What calls cost, counted in I/Os on the simulated disk: the same with many snapshots as with none
// (P7), and the same for a large volume as for a small one (P8); and the memory that it takes
// (P12).
#include <chrono>
#include <thread>

#include "tests/model/cost_fixture.hpp"

namespace vellum::support {

namespace {

constexpr uint64_t kBlocks = 600;  // of the volume that is written to

class Cost : public CostTest {
 protected:
  void write_some(uint64_t seed, uint64_t writes) {
    Random random(seed);
    auto opened = attach("v");
    for (uint64_t i = 0; i < writes; ++i) {
      const uint64_t offset = random.below(kBlocks) * kBlock;
      ASSERT_TRUE(opened->write(offset, pattern(seed, offset, kBlock)).ok());
    }
  }

  // Writes, reads and flushes of which each is followed by no work of the background.
  void trace() {
    for (uint64_t round = 0; round < 10; ++round) {
      write_some(1000 + round, 20);
      ASSERT_TRUE(store_->flush().ok());
      read("v", round * 40 * kBlock, 8 * kBlock);
    }
  }

  // The same writes, with so many snapshots among them.
  void prepare(uint64_t snapshots) {
    constexpr uint64_t kRounds = 200;
    create("v", kBlocks * kBlock);
    write("v", 1, 0, kBlocks * kBlock);
    for (uint64_t i = 0; i < kRounds; ++i) {
      if (i < snapshots) snap("v", "s" + std::to_string(i));
      write_some(i, 5);
    }
    ASSERT_TRUE(store_->checkpoint().ok());
    ASSERT_TRUE(store_->checkpoint().ok());
    read("v", 0, kBlocks * kBlock);
  }
};

TEST_F(Cost, OfForegroundIoDoesNotDependOnSnapshots) {  // P7
  for (Call kind : {Call::write, Call::read, Call::sync}) {
    std::vector<CallCount> costs;
    for (uint64_t snapshots : {0, 10, 200}) {
      begin(64 << 20);
      prepare(snapshots);
      costs.push_back(cost_of(kind, [&] { trace(); }));
    }
    // Where nothing is freed, space is found with fewer reads.
    const bool reads = kind == Call::read;
    for (const CallCount& cost : {costs[1], costs[2]}) {
      EXPECT_TRUE(reads || same(cost, costs[0])) << static_cast<int>(kind);
      EXPECT_TRUE(!reads || (cost.calls <= costs[0].calls && cost.bytes <= costs[0].bytes));
    }
    EXPECT_GE(costs[0].calls, 10u);
  }
}

TEST_F(Cost, OfForegroundIoDoesNotDependOnGenerationsOfClones) {  // P7
  std::vector<CallCount> costs;
  for (uint64_t generations : {0, 100}) {
    begin(64 << 20);
    prepare(0);
    for (uint64_t i = 0; i < generations; ++i) {
      ASSERT_TRUE(store_->rename_volume("v", "old" + std::to_string(i)).ok());
      ASSERT_TRUE(store_->clone("old" + std::to_string(i), "v").ok());
      write_some(i, 5);
    }
    ASSERT_TRUE(store_->checkpoint().ok());
    ASSERT_TRUE(store_->checkpoint().ok());
    read("v", 0, kBlocks * kBlock);
    costs.push_back(cost_of(Call::write, [&] { trace(); }));
  }
  EXPECT_TRUE(same(costs[1], costs[0]));
  EXPECT_GE(costs[0].calls, 10u);
}

TEST_F(Cost, OfVolumeCallsDoesNotDependOnTheSizeOfTheVolume) {  // P8
  std::vector<CallCount> writes, reads;
  for (uint64_t size : {uint64_t{256} * kMib, 40 * kTib}) {
    begin(64 << 20);
    create("v", size);
    const uint64_t islands = 16;
    for (uint64_t i = 0; i < islands; ++i)
      write("v", 1, size / islands / kMib * kMib * i, 16 * kBlock);
    create("target", size);
    ASSERT_TRUE(store_->checkpoint().ok());
    auto calls = [&] {
      snap("v", "s");
      ASSERT_TRUE(store_->clone("v", "c").ok());
      ASSERT_TRUE(store_->copy("v", "target", true, true).ok());
      ASSERT_TRUE(store_->revert("target", "1", false).ok());
      ASSERT_TRUE(store_->destroy_volume("c", false).ok());
      ASSERT_TRUE(store_->destroy_snapshot("v@s").ok());
    };
    reads.push_back(cost_of(Call::read, [&] { writes.push_back(cost_of(Call::write, calls)); }));
  }
  EXPECT_TRUE(same(writes[1], writes[0]));
  EXPECT_TRUE(same(reads[1], reads[0]));
  EXPECT_GE(writes[0].calls, 6u) << "each is durable when it returns";
  EXPECT_LE(writes[0].calls, 12u);
  EXPECT_LE(reads[0].calls, 8u);
}

TEST_F(Cost, OfDifferencesAndMapsFollowsWhatThereIs) {  // P8, case 15
  create("v", 40 * kTib);
  for (uint64_t i = 0; i < 64; ++i) write("v", 1, i * (kTib / 2), kBlock);
  snap("v", "s");
  write("v", 2, 20 * kTib, kBlock);
  ASSERT_TRUE(store_->close().ok());
  store_.reset();
  store_ = std::move(store::Store::open(*disk_, options())).value();
  const CallCount diff = cost_of(Call::read, [&] {
    const auto list = store_->diff("v", "v@s", 0, 100);
    ASSERT_TRUE(list.ok());
    EXPECT_EQ(list->extents.size(), 1u);
  });
  EXPECT_LE(diff.calls, 12u);  // two paths of five levels, and the table of versions
  const CallCount map =
      cost_of(Call::read, [&] { ASSERT_TRUE(store_->allocated("v", 0, 40 * kTib, 0, true).ok()); });
  EXPECT_LE(map.calls, 64u * 4);
}

TEST_F(Cost, OfATrimDoesNotDependOnWhatIsTrimmed) {  // P8
  std::vector<CallCount> reads;
  for (const uint64_t leaves : {uint64_t{1}, uint64_t{500}}) {
    begin(256 << 10);  // which holds few of the leaves
    create("v", 40 * kTib);
    for (uint64_t i = 0; i < leaves; ++i) write("v", 1, i * 1024 * kMib, kBlock);
    ASSERT_TRUE(store_->checkpoint().ok());
    reads.push_back(
        cost_of(Call::read, [&] { ASSERT_TRUE(attach("v")->trim(0, 40 * kTib).ok()); }));
    EXPECT_EQ(store_->allocated("v", 0, 40 * kTib, 0, true)->allocated_chunks, 0u);
    while (*store_->reclaim_step()) {
    }
    EXPECT_EQ(store_->info().zombies, 0u);
  }
  EXPECT_LE(reads[1].calls, reads[0].calls + 4);
}

// What a checkpoint rewrites and frees itself is no reason for the next one.
TEST_F(Cost, OfAStoreThatNobodyUsesIsNothing) {
  ASSERT_TRUE(store_->close().ok());
  store_.reset();
  store::Options served = options();
  served.background = true;
  served.cache_bytes = 64 << 20;
  store_ = std::move(store::Store::open(*disk_, served)).value();
  create("v");
  for (uint64_t i = 0; i < 4000; ++i) {
    write("v", i, i % 256 * kBlock, kBlock);
    snap("v", "s" + std::to_string(i));
  }
  constexpr int kRounds = 5;
  int round = 0;
  for (bool quiet = false; !quiet && round < kRounds; ++round) {
    const CallCount written =
        cost_of(Call::write, [] { std::this_thread::sleep_for(std::chrono::seconds(8)); });
    quiet = written.calls == 0;
  }
  EXPECT_LT(round, kRounds);
}

TEST_F(Cost, OfMemoryStaysInsideTheBudget) {  // P12
  begin(1 << 20);
  create("v", 40 * kTib);
  for (uint64_t i = 0; i < 3000; ++i) {
    write("v", 1, i * 1024 * kMib, kBlock);
    if (i % 500 == 0) snap("v", "s" + std::to_string(i));
    const store::StoreInfo info = store_->info();
    ASSERT_LE(info.cache_used, info.cache_size) << "after write " << i;
  }
  Random random(1);
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t offset = random.below(3000) * 1024 * kMib;
    ASSERT_EQ(read("v", offset, kBlock), pattern(1, offset, kBlock));
    ASSERT_LE(store_->info().cache_used, store_->info().cache_size) << "after read " << i;
  }
}

}  // namespace
}  // namespace vellum::support

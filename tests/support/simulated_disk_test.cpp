// SPDX-License-Identifier: BSD-2-Clause
//
// The invariants of the simulated disk, by the numbers of simulated_disk.hpp.
#include "tests/support/simulated_disk.hpp"

#include <algorithm>
#include <set>
#include <thread>

#include <gtest/gtest.h>

namespace vellum::support {
namespace {

using std::chrono::milliseconds;

std::vector<std::byte> filled(char letter, uint64_t blocks = 1) {
  return std::vector<std::byte>(blocks * kBlockBytes, static_cast<std::byte>(letter));
}

Result<void> put(SimulatedDisk& disk, uint64_t offset, const std::vector<std::byte>& data) {
  return disk.write(offset, std::span<const std::byte>(data));
}

std::vector<std::byte> get(disk::Disk& disk, uint64_t offset, uint64_t blocks = 1) {
  std::vector<std::byte> data(blocks * kBlockBytes, std::byte{0xee});
  EXPECT_TRUE(disk.read(offset, data).ok());
  return data;
}

TEST(SimulatedDisk, ReadsWhatWasWrittenAndZerosElsewhere) {
  SimulatedDisk disk;
  std::vector<std::byte> a = filled('a'), b = filled('b', 2);
  const iovec parts[] = {{a.data(), a.size()}, {b.data(), b.size()}};
  ASSERT_TRUE(disk.write(8192, parts).ok());
  EXPECT_EQ(get(disk, 8192), a);
  EXPECT_EQ(get(disk, 12288, 2), b);
  EXPECT_EQ(get(disk, 0), filled(0));
  EXPECT_EQ(disk.size_bytes(), 20480u);
}

TEST(SimulatedDisk, ScattersAReadAtAnySplit) {
  SimulatedDisk disk;
  ASSERT_TRUE(put(disk, 0, filled('a')).ok());
  ASSERT_TRUE(put(disk, 4096, filled('b')).ok());
  std::vector<std::byte> first(5000), second(3192);
  const iovec parts[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  ASSERT_TRUE(disk.read(0, parts, disk::Wait::allowed).ok());
  EXPECT_EQ(first[4095], std::byte{'a'});
  EXPECT_EQ(first[4096], std::byte{'b'});
  EXPECT_EQ(second.back(), std::byte{'b'});
}

TEST(SimulatedDisk, SyncedDataSurvives) {  // 1
  SimulatedDisk disk;
  Random random(1);
  ASSERT_TRUE(put(disk, 0, filled('a')).ok());
  ASSERT_TRUE(disk.sync().ok());
  ASSERT_TRUE(put(disk, 0, filled('b')).ok());
  EXPECT_EQ(get(*disk.survivor(Survival::nothing, random), 0), filled('a'));
  EXPECT_EQ(get(*disk.survivor(Survival::everything, random), 0), filled('b'));
  EXPECT_EQ(get(disk, 0), filled('b'));
}

TEST(SimulatedDisk, UnitsSurviveInAnySubset) {  // 1
  SimulatedDisk disk;
  Random random(2);
  ASSERT_TRUE(put(disk, 0, filled('a', 2)).ok());
  std::set<std::vector<std::byte>> seen;
  for (int i = 0; i < 100; ++i)
    seen.insert(get(*disk.survivor(Survival::whole_units, random), 0, 2));
  EXPECT_EQ(seen.size(), 4u);
}

TEST(SimulatedDisk, AllUnitsButOneSurvive) {  // 1
  SimulatedDisk disk;
  Random random(2);
  ASSERT_TRUE(put(disk, 0, filled('a', 3)).ok());
  std::set<std::vector<std::byte>> seen;
  for (int i = 0; i < 100; ++i)
    seen.insert(get(*disk.survivor(Survival::all_but_one, random), 0, 3));
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_FALSE(seen.contains(filled('a', 3)));
}

TEST(SimulatedDisk, AnyOfSeveralVersionsSurvives) {  // 2
  SimulatedDisk disk;
  Random random(3);
  for (char letter : {'a', 'b', 'c'}) ASSERT_TRUE(put(disk, 0, filled(letter)).ok());
  std::set<std::byte> seen;
  for (int i = 0; i < 100; ++i)
    seen.insert(get(*disk.survivor(Survival::whole_units, random), 0)[0]);
  const std::set<std::byte> all{std::byte{0}, std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  EXPECT_EQ(seen, all);
}

TEST(SimulatedDisk, TearsAtSectorBorders) {  // 1
  SimulatedDisk disk;
  Random random(4);
  ASSERT_TRUE(put(disk, 0, filled('a')).ok());
  ASSERT_TRUE(disk.sync().ok());
  ASSERT_TRUE(put(disk, 0, filled('b')).ok());
  int torn = 0;
  for (int i = 0; i < 100; ++i) {
    const std::vector<std::byte> data = get(*disk.survivor(Survival::torn_units, random), 0);
    for (uint64_t at = 0; at < kBlockBytes; at += kSectorBytes)
      for (uint64_t j = 0; j < kSectorBytes; ++j) ASSERT_EQ(data[at + j], data[at]);
    torn += data != filled('a') && data != filled('b');
  }
  EXPECT_GT(torn, 10);
}

TEST(SimulatedDisk, SurvivorsDependOnTheSeedAlone) {
  SimulatedDisk disk;
  ASSERT_TRUE(put(disk, 0, filled('a', 64)).ok());
  Random one(5), other(5);
  EXPECT_EQ(get(*disk.survivor(Survival::torn_units, one), 0, 64),
            get(*disk.survivor(Survival::torn_units, other), 0, 64));
}

TEST(SimulatedDisk, AFailedSyncIsNeverMadeGood) {  // 3
  SimulatedDisk disk;
  Random random(6);
  ASSERT_TRUE(put(disk, 0, filled('a')).ok());
  disk.fail(Call::sync, 1, Fault::io_error);
  const Result<void> failed = disk.sync();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::io_error);
  ASSERT_TRUE(put(disk, 4096, filled('b')).ok());
  EXPECT_TRUE(disk.sync().ok());
  EXPECT_EQ(get(disk, 0), filled('a'));
  auto left = disk.survivor(Survival::nothing, random);
  EXPECT_EQ(get(*left, 0), filled(0));
  EXPECT_EQ(get(*left, 4096), filled('b'));
}

TEST(SimulatedDisk, AWriteDuringASyncIsNotPromised) {  // 1
  SimulatedDisk disk;
  Random random(7);
  disk.set_sync_delay(milliseconds(200));
  ASSERT_TRUE(put(disk, 0, filled('a')).ok());
  std::thread syncing([&] { EXPECT_TRUE(disk.sync().ok()); });
  while (disk.counts()[static_cast<size_t>(Call::sync)].calls == 0) std::this_thread::yield();
  ASSERT_TRUE(put(disk, 0, filled('b')).ok());
  syncing.join();
  EXPECT_EQ(get(*disk.survivor(Survival::nothing, random), 0), filled('a'));
}

TEST(SimulatedDisk, DiscardedRangesHoldGarbage) {  // 4
  SimulatedDisk disk;
  ASSERT_TRUE(put(disk, 0, filled('a', 2)).ok());
  ASSERT_TRUE(disk.discard(4096, 4096).ok());
  EXPECT_EQ(get(disk, 0), filled('a'));
  EXPECT_NE(get(disk, 4096), filled('a'));
  EXPECT_NE(get(disk, 4096), filled(0));
  ASSERT_TRUE(disk.prepare(4096, 8192).ok());
  EXPECT_EQ(get(disk, 4096, 2), filled(0, 2));
}

TEST(SimulatedDisk, ThePowerGoesOffAtACall) {  // 5
  SimulatedDisk disk;
  Random random(8);
  disk.power_off_at(2);
  ASSERT_TRUE(put(disk, 0, filled('a')).ok());
  EXPECT_FALSE(disk.power_is_off());
  const Result<void> last = put(disk, 4096, filled('b'));
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().message, "simulated disk: the power is off");
  EXPECT_TRUE(disk.power_is_off());
  ASSERT_FALSE(put(disk, 8192, filled('c')).ok());
  EXPECT_FALSE(disk.sync().ok());
  std::vector<std::byte> out(4096);
  EXPECT_FALSE(disk.read(0, out).ok());
  auto left = disk.survivor(Survival::everything, random);
  EXPECT_FALSE(left->power_is_off());
  EXPECT_EQ(get(*left, 4096), filled('b'));
  EXPECT_EQ(left->size_bytes(), 8192u);
}

TEST(SimulatedDisk, FailsTheNthCallOfAKind) {
  SimulatedDisk disk;
  disk.fail(Call::write, 2, Fault::no_space);
  disk.fail(Call::read, 1, Fault::io_error);
  EXPECT_TRUE(put(disk, 0, filled('a')).ok());
  const Result<void> full = put(disk, 0, filled('b'));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Errc::no_space);
  std::vector<std::byte> out(4096);
  EXPECT_FALSE(disk.read(0, out).ok());
  EXPECT_EQ(get(disk, 0), filled('a'));
  EXPECT_TRUE(put(disk, 0, filled('c')).ok());
}

TEST(SimulatedDisk, LosesAndMisdirectsWrites) {
  SimulatedDisk disk;
  disk.fail(Call::write, 1, Fault::lost);
  disk.fail(Call::write, 2, Fault::misdirected);
  EXPECT_TRUE(put(disk, 0, filled('a')).ok());
  EXPECT_TRUE(put(disk, 4096, filled('b')).ok());
  EXPECT_EQ(get(disk, 0, 2), filled(0, 2));
  EXPECT_EQ(get(disk, 4096 + (1 << 20)), filled('b'));
}

TEST(SimulatedDisk, FlipsABitInEveryVersion) {
  SimulatedDisk disk;
  Random random(9);
  ASSERT_TRUE(put(disk, 0, filled('a')).ok());
  ASSERT_TRUE(disk.sync().ok());
  ASSERT_TRUE(put(disk, 0, filled('a')).ok());
  disk.flip_bit(100, 1);
  for (Survival how : {Survival::nothing, Survival::everything}) {
    const std::vector<std::byte> data = get(*disk.survivor(how, random), 0);
    EXPECT_EQ(data[100], std::byte{'a' ^ 2});
    EXPECT_EQ(std::count(data.begin(), data.end(), std::byte{'a'}), 4095);
  }
}

TEST(SimulatedDisk, StallsAWriteUntilReleased) {
  SimulatedDisk disk;
  const std::vector<std::byte> marker(8, std::byte{'s'});
  disk.stall_writes(
      [&](uint64_t, std::span<const iovec> parts) { return holds_at_block_start(parts, marker); });
  std::thread stalled([&] { EXPECT_TRUE(put(disk, 0, filled('s')).ok()); });
  ASSERT_TRUE(disk.wait_until_stalled(1, milliseconds(10000)));
  EXPECT_TRUE(put(disk, 0, filled('a')).ok());
  EXPECT_EQ(get(disk, 0), filled('a'));
  disk.release();
  stalled.join();
  EXPECT_EQ(get(disk, 0), filled('s'));
}

TEST(SimulatedDisk, CountsAndLogsCalls) {
  SimulatedDisk disk;
  disk.log_calls(true);
  ASSERT_TRUE(put(disk, 4096, filled('a', 2)).ok());
  disk.start_writeback(4096, 8192);
  ASSERT_TRUE(disk.sync().ok());
  EXPECT_EQ(disk.call_number(), 2u);
  ASSERT_EQ(disk.log().size(), 2u);
  EXPECT_EQ(disk.log()[0].kind, Call::write);
  EXPECT_EQ(disk.log()[0].offset, 4096u);
  EXPECT_EQ(disk.log()[0].length_bytes, 8192u);
  EXPECT_EQ(disk.counts()[static_cast<size_t>(Call::write)].bytes, 8192u);
  EXPECT_EQ(disk.counts()[static_cast<size_t>(Call::writeback)].calls, 1u);
}

TEST(SimulatedDisk, ADeviceEndsAtItsSize) {
  SimulatedDisk disk(8192, false);
  EXPECT_EQ(disk.size_bytes(), 8192u);
  EXPECT_TRUE(put(disk, 4096, filled('a')).ok());
  EXPECT_FALSE(put(disk, 8192, filled('b')).ok());
  disk.set_cold(true);
  std::vector<std::byte> out(4096);
  const Result<void> cold = disk.read(4096, out, disk::Wait::never);
  ASSERT_FALSE(cold.ok());
  EXPECT_EQ(cold.error().code, Errc::would_block);
  EXPECT_TRUE(disk.read(4096, out).ok());
}

}  // namespace
}  // namespace vellum::support

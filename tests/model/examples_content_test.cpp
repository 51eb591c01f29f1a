// SPDX-License-Identifier: BSD-2-Clause
//
// Examples of the facade's calls on content: I/O, tickets, maps, differences, and their errors.
#include <set>

#include "common/store/format.hpp"
#include "tests/model/store_fixture.hpp"

namespace vellum::support {
namespace {

using store::Extent;
using store::ExtentKind;
using Extents = std::vector<Extent>;

using Io = StoreTest;
using Tickets = StoreTest;
using Maps = StoreTest;
using Opening = StoreTest;

TEST_F(Io, IsOfAnyAlignment) {  // case 25
  create("v");
  write("v", 1, 0, 12288);
  write("v", 2, 513, 7000);
  std::vector<std::byte> expected = pattern(1, 0, 12288);
  const std::vector<std::byte> over = pattern(2, 513, 7000);
  std::copy(over.begin(), over.end(), expected.begin() + 513);
  EXPECT_EQ(read("v", 0, 12288), expected);
  EXPECT_EQ(read("v", 4095, 3),
            std::vector<std::byte>(expected.begin() + 4095, expected.begin() + 4098));
  ASSERT_TRUE(attach("v")->write_zeroes(100, 5000).ok());
  std::fill(expected.begin() + 100, expected.begin() + 5100, std::byte{0});
  EXPECT_EQ(read("v", 0, 12288), expected);
}

TEST_F(Io, StaysInsideItsVolume) {
  create("v", 5120);
  auto opened = attach("v");
  std::vector<std::byte> data(1024);
  EXPECT_TRUE(opened->write(4096, data).ok());
  EXPECT_TRUE(fails_with(opened->write(4608, data), Errc::out_of_range));
  EXPECT_TRUE(fails_with(opened->read(5120, data), Errc::out_of_range));
  EXPECT_TRUE(fails_with(opened->read(UINT64_MAX - 10, data), Errc::out_of_range));
  EXPECT_TRUE(fails_with(opened->trim(0, 5121), Errc::out_of_range));
  EXPECT_TRUE(fails_with(opened->write_zeroes(1, UINT64_MAX), Errc::out_of_range));
  EXPECT_TRUE(fails_with(opened->map(5120, 1, 1), Errc::out_of_range));
  EXPECT_TRUE(fails_with(opened->cache(0, 5121), Errc::out_of_range));
}

TEST_F(Io, IsCounted) {
  create("v");
  write("v", 1, 0, 8192);
  read("v", 0, 4096);
  ASSERT_TRUE(attach("v")->trim(0, 4096).ok());
  ASSERT_TRUE(attach("v")->write_zeroes(4096, 4096).ok());
  ASSERT_TRUE(store_->flush().ok());
  ASSERT_TRUE(store_->clone("v", "c").ok());
  const store::IoStats stats = store_->stats();
  EXPECT_EQ(stats.writes, 1u);
  EXPECT_EQ(stats.write_bytes, 8192u);
  EXPECT_EQ(stats.reads, 1u);
  EXPECT_EQ(stats.read_bytes, 4096u);
  EXPECT_EQ(stats.trim_bytes, 4096u);
  EXPECT_EQ(stats.zero_bytes, 4096u);
  EXPECT_EQ(stats.flushes, 1u);
  EXPECT_EQ(stats.copies, 1u);
  EXPECT_EQ(stats.copy_bytes, kMib);
  ASSERT_TRUE(store_->stats("v").ok());
  EXPECT_EQ(store_->stats("v")->writes, 1u);
  EXPECT_EQ(store_->stats("c")->writes, 0u);
  EXPECT_TRUE(fails_with(store_->stats("nobody"), Errc::not_found));
}

TEST_F(Io, NamesDamage) {  // P3
  create("v");
  write("v", 1, 0, 4096);
  ASSERT_TRUE(store_->checkpoint().ok());
  const std::vector<std::byte> data = pattern(1, 0, 4096);
  std::vector<std::byte> block(4096);
  uint64_t place = 0;
  for (uint64_t at = 0; at < disk_.size_bytes(); at += 4096)
    if (disk_.read(at, block).ok() && block == data) place = at;
  ASSERT_GT(place, 0u);
  disk_.flip_bit(place + 17, 3);
  reopen();
  auto opened = attach("v");
  const auto damaged = opened->read(0, block);
  EXPECT_TRUE(fails_with(damaged, Errc::corrupt));
  EXPECT_GT(store_->stats().checksum_errors, 0u);
  EXPECT_TRUE(opened->write(0, pattern(2, 0, 4096)).ok()) << "a whole block replaces the damage";
  EXPECT_TRUE(opened->read(0, block).ok());
}

TEST_F(Tickets, OrderOverlappingChanges) {  // P13
  create("v");
  auto opened = attach("v");
  store::Ticket first = opened->enter(0, 4096);
  store::Ticket second = opened->enter(1000, 100);
  store::Ticket elsewhere = opened->enter(4096, 4096);
  EXPECT_TRUE(first.ready());
  EXPECT_FALSE(second.ready());
  EXPECT_TRUE(elsewhere.ready());
  bool told = false;
  second.when_ready([&] { told = true; });
  EXPECT_FALSE(told);
  const std::vector<std::byte> old = pattern(1, 0, 4096), newer = pattern(2, 1000, 100);
  std::vector<store::Write> late(1);
  late[0].offset = 1000;
  late[0].data = newer;
  late[0].ticket = std::move(second);
  opened->write(late, disk::Wait::never);
  EXPECT_TRUE(fails_with(late[0].result, Errc::would_block));
  std::vector<store::Write> early(1);
  early[0].offset = 0;
  early[0].data = old;
  early[0].ticket = std::move(first);
  opened->write(early);
  EXPECT_TRUE(early[0].result.ok());
  EXPECT_TRUE(told);
  EXPECT_TRUE(late[0].ticket.valid());
  opened->write(late);
  EXPECT_TRUE(late[0].result.ok());
  std::vector<std::byte> expected = old;
  std::copy(newer.begin(), newer.end(), expected.begin() + 1000);
  EXPECT_EQ(read("v", 0, 4096), expected);
}

TEST_F(Tickets, OverlapWhereverTheyBegin) {  // P13
  create("v");
  auto opened = attach("v");
  const store::Ticket middle = opened->enter(8192, 8192);
  const store::Ticket before = opened->enter(4096, 8192), inside = opened->enter(12288, 1);
  const store::Ticket across = opened->enter(0, kMib);
  for (const store::Ticket* later : {&before, &inside, &across}) EXPECT_FALSE(later->ready());
  EXPECT_TRUE(opened->enter(kMib, 0).ready());
}

TEST_F(Tickets, AreGivenUp) {
  create("v");
  auto opened = attach("v");
  store::Ticket first = opened->enter(0, 4096);
  store::Ticket second = opened->enter(0, 4096);
  store::Ticket third = opened->enter(0, 4096);
  int told = 0;
  third.when_ready([&] { ++told; });
  second = store::Ticket();
  EXPECT_EQ(told, 0);
  first = store::Ticket();
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(third.ready());
  EXPECT_FALSE(first.valid());
  ASSERT_TRUE(opened->trim(third, 0, 4096).ok());
  EXPECT_FALSE(third.valid());
}

TEST_F(Maps, ShowDataAndHoles) {
  create("v", 4 * kMib);
  write("v", 1, 8192, 4096);
  write("v", 2, kMib - 4096, 8192);
  ASSERT_TRUE(attach("v")->trim(kMib, 4096).ok());
  const auto list = store_->extents("v", 0, 100);
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->extents,
            (Extents{{8192, 4096, ExtentKind::data}, {kMib - 4096, 4096, ExtentKind::data}}));
  EXPECT_FALSE(list->next_offset.has_value());
  const auto paged = store_->extents("v", 0, 1);
  ASSERT_TRUE(paged.ok());
  EXPECT_EQ(paged->extents.size(), 1u);
  ASSERT_TRUE(paged->next_offset.has_value());
  const auto map = attach("v")->map(0, 16384, 10);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(*map, (Extents{{0, 8192, ExtentKind::zero},
                           {8192, 4096, ExtentKind::data},
                           {12288, 4096, ExtentKind::zero}}));
  EXPECT_TRUE(fails_with(store_->extents("v", 0, 0), Errc::invalid_argument));
  EXPECT_TRUE(fails_with(store_->extents("v", 0, 65537), Errc::invalid_argument));
  EXPECT_TRUE(fails_with(store_->extents("v", 4 * kMib + 1, 1), Errc::out_of_range));
}

TEST_F(Maps, OfAllocatedChunksJumpOverHoles) {
  create("v", uint64_t{40} << 40);
  const uint64_t place = uint64_t{39} << 40;
  write("v", 1, 0, 4096);
  write("v", 2, place + 4096, 4096);
  const auto first = store_->allocated("v", 0, kMib, 4096, true);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->scanned_length, kMib);
  EXPECT_EQ(first->allocated_chunks, 1u);
  EXPECT_EQ(first->bitmap.size(), 32u);
  EXPECT_EQ(first->bitmap[0], std::byte{1});
  EXPECT_EQ(first->next_allocated, place + 4096);
  const auto rest = store_->allocated("v", place + 4096, kMib, 4096, true);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->allocated_chunks, 1u);
  EXPECT_FALSE(rest->next_allocated.has_value());
  const auto whole = store_->allocated("v", 0, uint64_t{40} << 40, 0, false);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->chunk, uint64_t{8} << 30);
  EXPECT_EQ(whole->allocated_chunks, 2u);
}

TEST_F(Maps, RefuseBadChunksAndRanges) {
  create("v", 5 * kMib);
  for (uint64_t chunk : {uint64_t{512}, uint64_t{5000}, uint64_t{12288}})
    EXPECT_TRUE(fails_with(store_->allocated("v", 0, 0, chunk, true), Errc::invalid_argument));
  EXPECT_TRUE(fails_with(store_->allocated("v", 100, kMib, 4096, true), Errc::invalid_argument));
  EXPECT_TRUE(fails_with(store_->allocated("v", 0, 5000, 4096, true), Errc::invalid_argument));
  EXPECT_TRUE(fails_with(store_->allocated("v", 0, 6 * kMib, 4096, true), Errc::out_of_range));
}

TEST_F(Maps, OfDifferencesAreExact) {
  create("v");
  write("v", 1, 0, 16384);
  snap("v", "a");
  write("v", 2, 4096, 4096);
  snap("v", "b");
  ASSERT_TRUE(attach("v")->trim(8192, 4096).ok());
  write("v", 3, 65536, 4096);
  const auto ab = store_->diff("v@b", "v@a", 0, 100);
  ASSERT_TRUE(ab.ok());
  EXPECT_EQ(ab->extents, (Extents{{4096, 4096, ExtentKind::data}}));
  const auto va = store_->diff("v", "v@a", 0, 100);
  ASSERT_TRUE(va.ok());
  EXPECT_EQ(va->extents, (Extents{{4096, 4096, ExtentKind::data},
                                  {8192, 4096, ExtentKind::zero},
                                  {65536, 4096, ExtentKind::data}}));
  ASSERT_TRUE(store_->destroy_snapshot("v@b").ok());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(store_->reclaim_step().ok());
  EXPECT_EQ(store_->diff("v", "v@a", 0, 100)->extents, va->extents);
  EXPECT_TRUE(store_->diff("v", "v", 0, 100)->extents.empty());
  EXPECT_TRUE(fails_with(store_->diff("v", "nobody", 0, 1), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->diff("v", "v@a", 0, 0), Errc::invalid_argument));
}

TEST_F(Opening, RefusesWhatIsNoStore) {
  SimulatedDisk empty;
  EXPECT_FALSE(store::Store::open(empty, options()).ok());
  SimulatedDisk other;
  const std::vector<std::byte> noise = pattern(9, 0, kMib);
  ASSERT_TRUE(other.write(0, std::span<const std::byte>(noise)).ok());
  const auto refused = store::Store::open(other, options());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find(other.name()), std::string::npos);
}

TEST_F(Opening, KeepsWhatWasFlushedWithoutAClose) {
  create("v");
  write("v", 1, 0, 4096);
  ASSERT_TRUE(store_->flush().ok());
  write("v", 2, 4096, 4096);
  store_.reset();
  Random random(1);
  auto crashed = disk_.survivor(Survival::nothing, random);
  auto again = store::Store::open(*crashed, options());
  ASSERT_TRUE(again.ok()) << again.error().message;
  std::vector<std::byte> out(8192);
  ASSERT_TRUE((*(*again)->open_export("v"))->read(0, out).ok());
  std::vector<std::byte> expected = pattern(1, 0, 4096);
  expected.resize(8192);
  EXPECT_EQ(out, expected);
}

// Where a trim moves a subtree must not depend on what a checkpoint does not keep.
TEST_F(Opening, ReplaysTrimsOfSubtreesThatAreBeingReclaimed) {
  constexpr uint64_t kSubtree = 256 * kMib;
  create("v", 2 * kSubtree);
  for (uint64_t tag = 1; tag <= 2; ++tag) {
    write("v", tag, 0, 8192);
    ASSERT_TRUE(attach("v")->trim(0, kSubtree).ok());
  }
  EXPECT_EQ(store_->info().zombies, 2u) << "the second found the place of the first taken";
  ASSERT_TRUE(*store_->reclaim_step());  // begins with the younger
  ASSERT_TRUE(store_->checkpoint().ok());
  write("v", 3, kSubtree, 8192);
  ASSERT_TRUE(attach("v")->trim(kSubtree, kSubtree).ok());
  EXPECT_EQ(store_->info().zombies, 3u) << "whatever the older one has room for";
  create("w");
  write("w", 4, 0, 4096);
  ASSERT_TRUE(store_->flush().ok());
  store_.reset();
  Random random(1);
  for (const Survival how : {Survival::nothing, Survival::everything}) {
    auto crashed = disk_.survivor(how, random);
    auto again = store::Store::open(*crashed, options());
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ((*again)->info().zombies, 3u);
    while (*(*again)->reclaim_step()) {
    }
    EXPECT_EQ((*again)->info().zombies, 0u);
    std::vector<std::byte> out(4096);
    ASSERT_TRUE((*(*again)->open_export("w"))->read(0, out).ok());
    EXPECT_EQ(out, pattern(4, 0, 4096));
    ASSERT_TRUE((*again)->close().ok());
    again->reset();
    check_disk(*crashed, "after reclaim");
  }
}

// P2: the end of the journal was cut off, since data of it was missing. Then the same data comes to
// lie in the same place, and the store crashes again.
TEST_F(Opening, DoesNotBringBackWhatWasCutOff) {
  create("v");
  disk_.log_calls(true);
  write("v", 1, 0, 4096);
  const uint64_t place = disk_.log().back().offset;
  write("v", 2, 4096, 4096);
  ASSERT_TRUE(store_->flush().ok());
  store_.reset();
  Random random(1);
  auto disk = disk_.survivor(Survival::everything, random);
  disk->flip_bit(place, 0);
  auto again = store::Store::open(*disk, options());
  ASSERT_TRUE(again.ok()) << again.error().message;
  auto volume = *(*again)->open_export("v");
  std::vector<std::byte> out(8192);
  ASSERT_TRUE(volume->read(0, out).ok());
  ASSERT_EQ(out, std::vector<std::byte>(8192)) << "the data is not what the journal says";
  disk->log_calls(true);
  ASSERT_TRUE(volume->write(0, pattern(1, 0, 4096)).ok());
  ASSERT_EQ(disk->log().back().offset, place);
  volume.reset();
  again->reset();
  again = store::Store::open(*disk, options());
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_TRUE((*(*again)->open_export("v"))->read(0, out).ok());
  EXPECT_EQ(out, std::vector<std::byte>(8192));
}

// P11: a crash never meets all slots half-written.
TEST_F(Opening, LeavesASuperblockThatIsSyncedAtAnyTime) {
  disk_.log_calls(true);
  create("v");
  ASSERT_TRUE(store_->checkpoint().ok());
  reopen();
  std::set<uint64_t> unsynced;
  uint64_t written = 0;
  for (const CallEntry& call : disk_.log()) {
    if (call.kind == Call::sync) unsynced.clear();
    const uint64_t slot = call.offset / store::kSlotStride;
    if (call.kind != Call::write || call.offset % store::kSlotStride != 0) continue;
    if (slot >= store::kSuperblockSlots) continue;
    unsynced.insert(slot);
    written++;
    EXPECT_LT(unsynced.size(), store::kSuperblockSlots);
  }
  EXPECT_GE(written, 6u);
}

TEST_F(Opening, OfAStoreThatWasFormattedAgainShowsNothingOld) {
  create("v");
  write("v", 1, 0, 4096);
  ASSERT_TRUE(store_->close().ok());
  store_.reset();
  format();
  open();
  EXPECT_TRUE(store_->list_volumes().empty());
  create("v");
  EXPECT_EQ(read("v", 0, 4096), std::vector<std::byte>(4096));
  ASSERT_TRUE(store_->close().ok());
  store_.reset();
  const auto report = store::check(disk_, options(), {.read_data = true});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->errors.empty());
}

}  // namespace
}  // namespace vellum::support

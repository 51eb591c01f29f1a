// SPDX-License-Identifier: BSD-2-Clause
//
// A store without room: what must still work (P10).
#include "tests/model/store_fixture.hpp"

namespace vellum::support {
namespace {

constexpr uint64_t kBlock = kContentBlockBytes;

// P10: one block at a time, so that a write that is refused has changed nothing.
TEST(FullStore, StillReadsFlushesAndDeletes) {
  SimulatedDisk disk;
  store::Geometry geometry;
  geometry.capacity = 8 * kMib;
  geometry.segment_size = 64 << 10;
  geometry.region_size = 256 << 10;
  geometry.journal_size = 64 << 10;
  store::Options options;
  options.background = false;
  options.cache_bytes = kMib;
  ASSERT_TRUE(store::Store::format(disk, geometry, options).ok());
  auto store = std::move(store::Store::open(disk, options)).value();
  ASSERT_TRUE(store->create_volume("v", 64 * kMib, store::Provision::thin).ok());
  auto volume = *store->open_export("v");
  Content content(64 * kMib);
  Random random(1);
  auto fill = [&](uint64_t tag) {
    uint64_t written = 0;
    for (;;) {
      const uint64_t offset = random.below(content.block_count()) * kBlock;
      const Result<void> done = volume->write(offset, pattern(tag, offset, kBlock));
      if (!done.ok()) {
        EXPECT_TRUE(fails_with(done, Errc::no_space));
        return written;
      }
      content.write(tag, offset, kBlock);
      ++written;
      if (written > 10000) return written;
    }
  };
  const uint64_t first = fill(1);
  EXPECT_GT(first, 500u);
  EXPECT_LT(first, 10000u);
  const auto same = [&] {
    for (const auto& [index, block] : content.blocks()) {
      std::vector<std::byte> out(kBlock);
      ASSERT_TRUE(volume->read(index * kBlock, out).ok());
      ASSERT_EQ(content.difference(index * kBlock, out), "");
    }
  };
  same();
  EXPECT_TRUE(store->flush().ok());
  for (int round = 2; round < 6; ++round) {
    const auto taken = store->create_snapshots({"v"}, std::nullopt);
    if (taken.ok()) {
      EXPECT_TRUE(store->destroy_snapshot((*taken)[0].name).ok());
    }
    for (uint64_t i = 0; i < content.block_count(); ++i) {
      if (!content.block(i) || random.chance(40)) continue;
      ASSERT_TRUE(volume->trim(i * kBlock, kBlock).ok());
    }
    // A trim without credits may have had no effect.
    for (uint64_t i = 0; i < content.block_count(); ++i) {
      if (!content.block(i)) continue;
      std::vector<std::byte> out(kBlock);
      ASSERT_TRUE(volume->read(i * kBlock, out).ok());
      if (is_zero(out)) content.zero(i * kBlock, kBlock);
    }
    for (int i = 0; i < 1000; ++i) {
      const auto worked = store->reclaim_step();
      ASSERT_TRUE(worked.ok()) << worked.error().message;
      if (!*worked) break;
    }
    ASSERT_TRUE(store->checkpoint().ok());
    ASSERT_TRUE(store->checkpoint().ok());
    EXPECT_GT(fill(static_cast<uint64_t>(round)), 100u) << "round " << round;
    same();
  }
  volume.reset();
  ASSERT_TRUE(store->destroy_volume("v", false).ok());
  ASSERT_TRUE(store->close().ok());
  const auto report = store::check(disk, options, true);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->errors, std::vector<std::string>());
}

}  // namespace
}  // namespace vellum::support

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
  ASSERT_TRUE(store->create_volume("other", 2 * kMib, store::Provision::thin).ok());
  ASSERT_TRUE((*store->open_export("other"))->write(0, pattern(7, 0, 2 * kMib)).ok());
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
  for (uint64_t i = 0; i < content.block_count(); ++i) {
    if (!content.block(i) || random.chance(40)) continue;
    const Result<void> trimmed = volume->trim(i * kBlock, kBlock);
    ASSERT_TRUE(trimmed.ok()) << trimmed.error().message;
  }
  // A trim without credits may have had no effect.
  for (uint64_t i = 0; i < content.block_count(); ++i) {
    if (!content.block(i)) continue;
    std::vector<std::byte> out(kBlock);
    ASSERT_TRUE(volume->read(i * kBlock, out).ok());
    if (is_zero(out)) content.zero(i * kBlock, kBlock);
  }
  const Result<void> other_gone = store->destroy_volume("other", false);
  ASSERT_TRUE(other_gone.ok()) << other_gone.error().message;
  for (int i = 0; i < 1000; ++i) {
    const auto worked = store->reclaim_step();
    ASSERT_TRUE(worked.ok()) << worked.error().message;
    if (!*worked) break;
  }
  for (int i = 0; i < 2; ++i) {
    const Result<void> written = store->checkpoint();
    ASSERT_TRUE(written.ok()) << written.error().message;
  }
  ASSERT_TRUE(store->create_volume("other", 2 * kMib, store::Provision::thin).ok());
  ASSERT_TRUE((*store->open_export("other"))->write(0, pattern(7, 0, 200 * kBlock)).ok());
  EXPECT_GT(fill(2), 100u);
  EXPECT_TRUE(store->flush().ok());
  same();
  volume.reset();
  const Result<void> destroyed = store->destroy_volume("v", false);
  ASSERT_TRUE(destroyed.ok()) << destroyed.error().message;
  ASSERT_TRUE(store->close().ok());
  const auto report = store::check(disk, options, true);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->errors, std::vector<std::string>());
}

}  // namespace
}  // namespace vellum::support

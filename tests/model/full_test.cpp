// SPDX-License-Identifier: BSD-2-Clause
//
// A store without room: what must still work (P10).
#include "tests/model/store_fixture.hpp"

namespace vellum::support {
namespace {

constexpr uint64_t kBlock = kContentBlockBytes;

// P10, case 23: one block at a time, so that a write that is refused has changed nothing.
TEST(FullStore, StillReadsFlushesAndDeletes) {
  SimulatedDisk disk;
  const store::Geometry geometry = tiny_geometry(8 * kMib);
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
  const auto other_gone = store->destroy_volume("other", false);
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
  const auto destroyed = store->destroy_volume("v", false);
  ASSERT_TRUE(destroyed.ok()) << destroyed.error().message;
  ASSERT_TRUE(store->close().ok());
  const auto report = store::check(disk, options, {.read_data = true});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->errors, std::vector<std::string>());
}

// P10: what is dirty can be written, however much that is.
TEST(FullStore, OfSparseWritesIsCheckpointed) {
  SimulatedDisk disk;
  store::Geometry geometry = tiny_geometry(32 * kMib);
  geometry.region_size = kMib;
  geometry.journal_size = 4 * kMib;
  store::Options options;
  options.background = false;
  options.cache_bytes = 64 * kMib;
  ASSERT_TRUE(store::Store::format(disk, geometry, options).ok());
  const auto store = std::move(store::Store::open(disk, options)).value();
  ASSERT_TRUE(store->create_volume("v", 1024 * 1024 * kMib, store::Provision::thin).ok());
  auto volume = *store->open_export("v");
  uint64_t written = 0;  // each block needs a leaf of its own
  while (volume->write(written * kMib, pattern(1, written * kMib, kBlock)).ok()) ++written;
  EXPECT_GT(written, 2000u);
  for (int i = 0; i < 3; ++i) {
    const Result<void> done = store->checkpoint();
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  volume.reset();
  ASSERT_TRUE(store->close().ok());
}

// P10: what reclaim frees is scattered, so that each checkpoint writes all bitmaps anew; and what a
// checkpoint frees comes back two checkpoints later.
TEST(FullStore, IsReclaimedAcrossManyRegions) {
  SimulatedDisk disk;
  store::Geometry geometry = tiny_geometry(32 * kMib);
  geometry.region_size = 64 << 10;
  store::Options options;
  options.background = false;
  options.cache_bytes = kMib;
  options.reclaim_places = 1;
  ASSERT_TRUE(store::Store::format(disk, geometry, options).ok());
  const auto store = std::move(store::Store::open(disk, options)).value();
  // Neighbours in the volume are far from each other on the disk.
  constexpr uint64_t kBlocks = 8192;
  const auto fill = [&](const std::string& name) {
    EXPECT_TRUE(store->create_volume(name, kBlocks * kBlock, store::Provision::thin).ok());
    const auto volume = *store->open_export(name);
    uint64_t written = 0;
    for (; written < kBlocks; ++written) {
      const uint64_t offset = written * 389 % kBlocks * kBlock;
      if (!volume->write(offset, pattern(1, offset, kBlock)).ok()) break;
    }
    return written;
  };
  const uint64_t written = fill("v");
  EXPECT_LT(written, kBlocks);
  ASSERT_TRUE(store->destroy_volume("v", false).ok());
  while (store->info().waiting_for_reclaim > 0) {
    const auto step = store->reclaim_step();
    ASSERT_TRUE(step.ok()) << step.error().message;
    const Result<void> done = store->checkpoint();
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  EXPECT_GT(fill("w"), written / 10 * 9);
  ASSERT_TRUE(store->close().ok());
}

class SmallStore : public testing::Test {
 protected:
  void SetUp() override {
    store::Geometry geometry = tiny_geometry(8 * kMib);
    geometry.region_size = kMib;
    ASSERT_TRUE(store::Store::format(disk_, geometry, options()).ok());
    open();
  }

  static store::Options options() {
    store::Options options;
    options.background = false;
    options.cache_bytes = kMib;
    return options;
  }

  void open() { store_ = std::move(store::Store::open(disk_, options())).value(); }

  void reopen() {
    ASSERT_TRUE(store_->close().ok());
    store_.reset();
    open();
  }

  // Blocks written one by one until there is no room for another.
  uint64_t fill(const std::string& name, uint64_t tag) {
    const auto opened = *store_->open_export(name);
    for (uint64_t at = 0; at < opened->size_bytes(); at += kBlock) {
      const auto written = opened->write(at, pattern(tag, at, kBlock));
      if (written.ok()) continue;
      EXPECT_TRUE(fails_with(written, Errc::no_space));
      return at / kBlock;
    }
    return opened->size_bytes() / kBlock;
  }

  SimulatedDisk disk_;
  std::unique_ptr<store::Store> store_;
};

// P10, case 3: what is destroyed keeps its space, and none of this needs any.
TEST_F(SmallStore, IsEmptiedByEradicationAlone) {
  ASSERT_TRUE(store_->create_volume("v", 8 * kMib, store::Provision::thin).ok());
  const uint64_t written = fill("v", 1);
  ASSERT_TRUE(store_->set_eradication_delay(store::kEradicationDelayDefault).ok());
  for (int round = 0; round < 200; ++round) {
    ASSERT_TRUE(store_->destroy_volume("v", false).ok());
    ASSERT_TRUE(store_->recover_volume("v").ok());
  }
  ASSERT_TRUE(store_->destroy_volume("v", false).ok());
  const auto settle = [&] {
    for (bool more = true; more;) {
      more = store_->reclaim_step().value();
      ASSERT_TRUE(store_->checkpoint().ok());
    }
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(store_->checkpoint().ok());
  };
  settle();
  EXPECT_TRUE(fails_with(store_->create_volume("w", kMib, store::Provision::thin), Errc::no_space));
  reopen();
  ASSERT_TRUE(store_->recover_volume("v").ok());
  const auto opened = *store_->open_export("v");
  for (uint64_t at = 0; at < written * kBlock; at += kBlock) {
    std::vector<std::byte> out(kBlock);
    ASSERT_TRUE(opened->read(at, out).ok());
    ASSERT_EQ(out, pattern(1, at, kBlock));
  }
  ASSERT_TRUE(store_->destroy_volume("v", true).ok());
  ASSERT_TRUE(store_->eradicate_volume("v").ok());
  settle();
  ASSERT_TRUE(store_->create_volume("w", 8 * kMib, store::Provision::thin).ok());
  EXPECT_GT(fill("w", 2), written / 10 * 9);
}

TEST_F(SmallStore, AReservedVolumeCanAlwaysBeWritten) {
  ASSERT_TRUE(store_->create_volume("kept", 2 * kMib, store::Provision::reserved).ok());
  ASSERT_TRUE(store_->create_volume("thin", 8 * kMib, store::Provision::thin).ok());
  const uint64_t thin = fill("thin", 1);
  EXPECT_GT(thin, 100u);
  EXPECT_LT(thin, 8 * kMib / kBlock - 2 * kMib / kBlock);
  for (uint64_t tag = 2; tag < 8; ++tag) EXPECT_EQ(fill("kept", tag), 2 * kMib / kBlock);
  reopen();
  for (uint64_t tag = 8; tag < 12; ++tag) EXPECT_EQ(fill("kept", tag), 2 * kMib / kBlock);
  // What would break the promise is refused: whatever lets its head begin anew.
  EXPECT_TRUE(fails_with(store_->create_snapshots({"kept"}, "s"), Errc::no_space));
  EXPECT_TRUE(fails_with(store_->create_snapshots({"thin", "kept"}, "s"), Errc::no_space));
  EXPECT_TRUE(fails_with(store_->clone("kept", "c"), Errc::no_space));
  EXPECT_TRUE(fails_with(store_->copy("thin", "kept", true, false), Errc::no_space));
  EXPECT_TRUE(fails_with(store_->resize_volume("kept", 8 * kMib, false), Errc::no_space));
  EXPECT_TRUE(
      fails_with(store_->create_volume("k2", kMib, store::Provision::reserved), Errc::no_space));
  EXPECT_EQ(fill("kept", 12), 2 * kMib / kBlock);
}

TEST_F(SmallStore, AReservedVolumeHasSnapshotsWhileThePromiseCanBeKept) {
  ASSERT_TRUE(store_->create_volume("kept", kMib, store::Provision::reserved).ok());
  EXPECT_EQ(fill("kept", 1), kMib / kBlock);
  ASSERT_TRUE(store_->create_snapshots({"kept"}, "s").ok());
  ASSERT_TRUE(store_->create_volume("thin", 8 * kMib, store::Provision::thin).ok());
  EXPECT_GT(fill("thin", 2), 100u);
  for (uint64_t tag = 3; tag < 6; ++tag) EXPECT_EQ(fill("kept", tag), kMib / kBlock);
  // Reverting is a promise anew, and there is no room for one.
  EXPECT_TRUE(fails_with(store_->revert("kept", "s", false), Errc::no_space));
}

TEST_F(SmallStore, GrowsWhileItIsServed) {
  ASSERT_TRUE(store_->create_volume("v", 64 * kMib, store::Provision::thin).ok());
  const uint64_t before = fill("v", 1);
  EXPECT_TRUE(fails_with(store_->grow(4 * kMib), Errc::invalid_argument));
  EXPECT_TRUE(fails_with(store_->grow(uint64_t{1} << 60), Errc::invalid_argument));
  const auto grown = store_->grow(16 * kMib + 100);
  ASSERT_TRUE(grown.ok()) << grown.error().message;
  EXPECT_EQ(grown->capacity, 16 * kMib);
  const uint64_t after = fill("v", 2);
  EXPECT_GT(after, before + 1000);
  reopen();
  EXPECT_EQ(store_->info().capacity, 16 * kMib);
  std::vector<std::byte> out(kBlock);
  const auto opened = *store_->open_export("v");
  for (uint64_t at = 0; at < after * kBlock; at += kBlock) {
    ASSERT_TRUE(opened->read(at, out).ok());
    ASSERT_EQ(out, pattern(2, at, kBlock)) << at;
  }
}

TEST(Growth, OfADeviceEndsWhereItEnds) {
  SimulatedDisk disk(8 * kMib, false);
  store::Geometry geometry;
  geometry.eradication_delay = 0;
  geometry.capacity = 6 * kMib;
  geometry.journal_size = 64 << 10;
  geometry.segment_size = 64 << 10;
  store::Options options;
  options.background = false;
  ASSERT_TRUE(store::Store::format(disk, geometry, options).ok());
  const auto store = std::move(store::Store::open(disk, options)).value();
  EXPECT_TRUE(fails_with(store->grow(9 * kMib), Errc::invalid_argument));
  EXPECT_TRUE(store->grow(8 * kMib).ok());
}

}  // namespace
}  // namespace vellum::support

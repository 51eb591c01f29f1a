// SPDX-License-Identifier: BSD-2-Clause
//
// What is destroyed can be recovered, and nothing is eradicated early.
#include "common/store/record.hpp"
#include "common/store/superblock.hpp"
#include "tests/model/store_fixture.hpp"

namespace vellum::support {
namespace {

constexpr int64_t kDelay = 1000000;  // milliseconds

class Destroying : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    ASSERT_TRUE(store_->set_eradication_delay(kDelay).ok());
    create("v");
    write("v", 1, 0, 8192);
    snap("v", "s");
    write("v", 2, 0, 4096);
  }

  void reclaim() { run_to_the_end(*store_, &store::Store::reclaim_step); }

  bool exists(const std::string& name) { return store_->get_volume(name).ok(); }

  int64_t steady_ = 5;

  void open_with_steady_clock() {
    store::Options with_steady = options();
    with_steady.steady_clock = [this] { return steady_; };
    ASSERT_TRUE(store_->close().ok());
    store_.reset();
    store_ = std::move(store::Store::open(disk_, with_steady)).value();
  }
};

TEST_F(Destroying, AVolumeComesBackWithItsSnapshots) {
  const uint64_t uuid = store_->get_volume("v")->id;
  const auto destroyed = store_->destroy_volume("v", false);
  ASSERT_TRUE(destroyed.ok());
  EXPECT_GT(destroyed->time_remaining, kDelay - 100);
  EXPECT_LE(destroyed->time_remaining, kDelay);
  EXPECT_TRUE(fails_with(store_->open_export("v"), Errc::destroyed));
  EXPECT_TRUE(fails_with(store_->open_export("v@s"), Errc::destroyed));
  EXPECT_TRUE(fails_with(store_->create_snapshots({"v"}, "t"), Errc::destroyed));
  EXPECT_TRUE(fails_with(store_->clone("v@s", "c"), Errc::destroyed));
  EXPECT_TRUE(fails_with(store_->create_volume("v", kMib, store::Provision::thin), Errc::exists));
  EXPECT_TRUE(fails_with(store_->recover_snapshot("v@s"), Errc::destroyed));
  reclaim();
  reopen();
  ASSERT_TRUE(store_->recover_volume("v").ok());
  EXPECT_EQ(store_->get_volume("v")->id, uuid);
  EXPECT_EQ(read("v", 0, 4096), pattern(2, 0, 4096));
  EXPECT_EQ(read("v@s", 0, 8192), pattern(1, 0, 8192));
}

TEST_F(Destroying, NothingIsEradicatedEarlyAndAllInTime) {
  ASSERT_TRUE(store_->destroy_snapshot("v@s").ok());
  now_ += kDelay / 2;
  ASSERT_TRUE(store_->destroy_volume("v", false).ok());
  now_ += kDelay / 2 - 100;
  reclaim();
  EXPECT_EQ(store_->list_snapshots("v", true).size(), 1u);
  now_ += 200;
  reclaim();
  EXPECT_EQ(store_->list_snapshots("v", true).size(), 0u);
  EXPECT_TRUE(exists("v"));
  reopen();
  now_ += kDelay / 2;
  reclaim();
  EXPECT_FALSE(exists("v"));
  EXPECT_EQ(store_->info().data, 0u);
}

TEST_F(Destroying, AClockThatJumpsAheadIsNotBelieved) {
  open_with_steady_clock();
  ASSERT_TRUE(store_->destroy_volume("v", false).ok());
  now_ += 100 * kDelay;
  reclaim();
  EXPECT_TRUE(exists("v"));
  EXPECT_GT(*store_->get_volume("v")->time_remaining, kDelay / 2);
  steady_ += kDelay + 1000;
  reclaim();
  EXPECT_FALSE(exists("v"));
}

// Slow when the volume was destroyed, and put right after that.
TEST_F(Destroying, AClockThatIsPutRightIsNotBelieved) {
  open_with_steady_clock();
  now_ -= 100 * kDelay;
  ASSERT_TRUE(store_->destroy_volume("v", false).ok());
  now_ += 100 * kDelay;
  reclaim();
  ASSERT_TRUE(exists("v"));
  EXPECT_EQ(store_->get_volume("v")->time_remaining, kDelay);
  steady_ += kDelay - 1;
  reclaim();
  EXPECT_TRUE(exists("v"));
  steady_ += 1;
  reclaim();
  EXPECT_FALSE(exists("v"));
}

// What was destroyed before waits for the first clock, and others do not wait for it.
TEST_F(Destroying, AClockThatWasWrongAtTheStartHoldsUpOnlyWhatIsOlder) {
  ASSERT_TRUE(store_->destroy_snapshot("v@s").ok());
  now_ -= 100 * kDelay;
  open_with_steady_clock();
  now_ += 100 * kDelay;
  ASSERT_TRUE(store_->destroy_volume("v", false).ok());
  create("w");
  now_ += 2 * kDelay;
  steady_ += 2 * kDelay;
  reclaim();
  EXPECT_FALSE(exists("v"));
  EXPECT_TRUE(exists("w"));
}

TEST_F(Destroying, ASnapshotKeepsItsOwnTimeAndState) {
  create("w");
  write("w", 3, 0, 4096);
  snap("w", "early");
  snap("w", "late");
  ASSERT_TRUE(store_->destroy_snapshot("w@early").ok());
  now_ += kDelay / 2;
  ASSERT_TRUE(store_->destroy_snapshot("w@late").ok());
  now_ += kDelay / 4;
  ASSERT_TRUE(store_->destroy_volume("w", false).ok());
  EXPECT_TRUE(fails_with(store_->recover_snapshot("w@late"), Errc::destroyed));
  now_ += kDelay / 4;
  reclaim();
  EXPECT_TRUE(fails_with(store_->get_snapshot("w@early"), Errc::not_found));
  ASSERT_TRUE(store_->recover_volume("w").ok());
  EXPECT_EQ(store_->get_volume("w")->snapshots, 0u);
  EXPECT_TRUE(fails_with(store_->open_export("w@late"), Errc::destroyed));
  ASSERT_TRUE(store_->recover_snapshot("w@late").ok());
  EXPECT_EQ(read("w@late", 0, 4096), pattern(3, 0, 4096));
}

TEST_F(Destroying, WhoeverHadItOpenStaysCutOff) {
  auto opened = attach("v");
  std::vector<std::byte> out(4096);
  EXPECT_TRUE(fails_with(store_->destroy_volume("v", false), Errc::in_use));
  ASSERT_TRUE(store_->destroy_volume("v", true).ok());
  EXPECT_TRUE(fails_with(opened->read(0, out), Errc::destroyed));
  ASSERT_TRUE(store_->recover_volume("v").ok());
  EXPECT_TRUE(fails_with(opened->read(0, out), Errc::destroyed));
  EXPECT_TRUE(fails_with(opened->write(0, pattern(4, 0, 4096)), Errc::destroyed));
  EXPECT_TRUE(fails_with(opened->map(0, 4096, 10), Errc::destroyed));
  opened.reset();
  EXPECT_EQ(read("v", 0, 4096), pattern(2, 0, 4096));
  write("v", 5, 0, 4096);
}

TEST_F(Destroying, ANameIsTakenUntilItIsFreed) {
  create("other");
  ASSERT_TRUE(store_->destroy_snapshot("v@s").ok());
  EXPECT_TRUE(fails_with(store_->create_snapshots({"v"}, "s"), Errc::exists));
  ASSERT_TRUE(store_->destroy_volume("v", false).ok());
  EXPECT_TRUE(fails_with(store_->rename_volume("other", "v"), Errc::exists));
  EXPECT_TRUE(fails_with(store_->clone("other", "v"), Errc::exists));
  EXPECT_TRUE(fails_with(store_->copy("other", "v", false, false), Errc::exists));
  EXPECT_TRUE(fails_with(store_->copy("other", "v", true, false), Errc::destroyed));
  EXPECT_TRUE(fails_with(store_->rename_volume("v", "w"), Errc::destroyed));
  EXPECT_TRUE(fails_with(store_->resize_volume("v", kMib, false), Errc::destroyed));
  EXPECT_TRUE(fails_with(store_->destroy_volume("v", false), Errc::destroyed));
  ASSERT_TRUE(store_->eradicate_volume("v").ok());
  create("v");
}

TEST_F(Destroying, ADelayLastsAtMostTenYears) {
  store::Geometry geometry = tiny_geometry(64 * kMib);
  SimulatedDisk disk;
  for (const int64_t delay : {int64_t{-1}, store::kEradicationDelayMax + 1}) {
    EXPECT_TRUE(fails_with(store_->set_eradication_delay(delay), Errc::invalid_argument));
    geometry.eradication_delay = delay;
    EXPECT_TRUE(
        fails_with(store::Store::format(disk, geometry, options()), Errc::invalid_argument));
  }
  geometry.eradication_delay = store::kEradicationDelayMax;
  EXPECT_TRUE(store::Store::format(disk, geometry, options()).ok());
}

TEST_F(Destroying, ADelayThatNobodyCanHaveSetIsDamage) {
  ASSERT_TRUE(store_->close().ok());
  store_.reset();
  const auto found = *store::find_superblock(disk_);
  for (const int64_t delay : {int64_t{-1}, store::kEradicationDelayMax + 1, kDelay}) {
    store::Superblock superblock = found.superblock;
    superblock.newer.eradication_delay = superblock.older.eradication_delay = delay;
    ASSERT_TRUE(store::write_superblock(disk_, superblock, found.slot).ok());
    const auto opened = store::Store::open(disk_, options());
    if (delay == kDelay) {
      EXPECT_TRUE(opened.ok());
    } else {
      EXPECT_TRUE(fails_with(opened, Errc::corrupt));
    }
  }
}

TEST(DestroyRecord, HasATimeThatCanBeCountedWith) {
  for (const int64_t at : {int64_t{0}, store::kTimeMax, int64_t{-1}, store::kTimeMax + 1}) {
    std::vector<std::byte> record;
    store::encode(store::DestroyPiece{1, at}, record);
    EXPECT_EQ(store::decode(record).has_value(), at >= 0 && at <= store::kTimeMax) << at;
  }
}

TEST_F(Destroying, ARepeatedRequestIsDoneOnce) {
  const auto once = [](const std::string& id, const std::string& answer) {
    return store::Once<store::Destroyed>{id, [answer](const auto&) { return answer; }};
  };
  ASSERT_TRUE(store_->destroy_volume("v", false, false, once("r", "first")).ok());
  ASSERT_TRUE(store_->recover_volume("v").ok());
  reopen();
  EXPECT_TRUE(
      fails_with(store_->destroy_volume("v", false, false, once("r", "again")), Errc::answered));
  EXPECT_EQ(store_->find_answer("r"), "first");
  EXPECT_EQ(read("v", 0, 4096), pattern(2, 0, 4096));
}

TEST_F(Destroying, ClonesLiveOn) {
  ASSERT_TRUE(store_->clone("v@s", "c").ok());
  ASSERT_TRUE(store_->destroy_volume("v", false, true).ok());
  reclaim();
  EXPECT_EQ(read("c", 0, 8192), pattern(1, 0, 8192));
}

TEST_F(Destroying, WithoutADelayItIsAtOnce) {
  ASSERT_TRUE(store_->set_eradication_delay(0).ok());
  reopen();
  EXPECT_EQ(store_->info().eradication_delay, 0);
  EXPECT_EQ(store_->destroy_volume("v", false)->time_remaining, 0);
  EXPECT_FALSE(exists("v"));
  EXPECT_TRUE(fails_with(store_->recover_volume("v"), Errc::not_found));
}

TEST_F(Destroying, OnlyWhatIsDestroyedIsRecoveredOrEradicated) {
  EXPECT_TRUE(fails_with(store_->recover_volume("v"), Errc::precondition));
  EXPECT_TRUE(fails_with(store_->eradicate_volume("v"), Errc::precondition));
  EXPECT_TRUE(fails_with(store_->recover_snapshot("v@s"), Errc::precondition));
  EXPECT_TRUE(fails_with(store_->eradicate_snapshot("v@s"), Errc::precondition));
  EXPECT_TRUE(fails_with(store_->recover_volume("nobody"), Errc::not_found));
  ASSERT_TRUE(store_->destroy_snapshot("v@s").ok());
  EXPECT_EQ(store_->get_volume("v")->snapshots, 0u);
  EXPECT_EQ(store_->get_volume("v")->parent, std::nullopt);
  EXPECT_TRUE(fails_with(store_->revert("v", "s", false), Errc::destroyed));
  EXPECT_TRUE(fails_with(store_->destroy_snapshot("v@s"), Errc::destroyed));
  ASSERT_TRUE(store_->eradicate_snapshot("v@s").ok());
  EXPECT_TRUE(fails_with(store_->get_snapshot("v@s"), Errc::not_found));
}

TEST_F(Destroying, ThePromiseOfAReservedVolumeStays) {
  ASSERT_TRUE(store_->create_volume("r", 4 * kMib, store::Provision::reserved).ok());
  const uint64_t promised = store_->info().promised;
  ASSERT_TRUE(store_->destroy_volume("r", false).ok());
  EXPECT_EQ(store_->info().promised, promised);
  ASSERT_TRUE(store_->eradicate_volume("r").ok());
  EXPECT_EQ(store_->info().promised, 0u);
}

}  // namespace
}  // namespace vellum::support

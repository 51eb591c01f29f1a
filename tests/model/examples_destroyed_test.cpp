// SPDX-License-Identifier: BSD-2-Clause
//
// What is destroyed can be recovered, and nothing is eradicated early.
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

  void reclaim() {
    for (bool more = true; more;) {
      const auto done = store_->reclaim_step();
      ASSERT_TRUE(done.ok());
      more = *done;
    }
  }

  bool exists(const std::string& name) { return store_->get_volume(name).ok(); }
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
  int64_t steady = 5;
  store::Options with_steady = options();
  with_steady.steady_clock = [&] { return steady; };
  ASSERT_TRUE(store_->close().ok());
  store_.reset();
  store_ = std::move(store::Store::open(disk_, with_steady)).value();
  ASSERT_TRUE(store_->destroy_volume("v", false).ok());
  now_ += 100 * kDelay;
  reclaim();
  EXPECT_TRUE(exists("v"));
  EXPECT_GT(*store_->get_volume("v")->time_remaining, kDelay / 2);
  steady += kDelay + 1000;
  reclaim();
  EXPECT_FALSE(exists("v"));
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
  EXPECT_TRUE(fails_with(store_->set_eradication_delay(-1), Errc::invalid_argument));
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

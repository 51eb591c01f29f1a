// SPDX-License-Identifier: BSD-2-Clause
//
// What volumes and snapshots take, and what comes back when they go.
#include "tests/model/store_fixture.hpp"

namespace vellum::support {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kPath = 5 * kBlock;  // a node a level

class Space : public StoreTest {
 protected:
  store::SpaceInfo space(const std::string& name) {
    auto counted = store_->space({name});
    EXPECT_TRUE(counted.ok()) << name;
    return counted.ok() ? counted->at(0) : store::SpaceInfo{};
  }

  // Of data that no name leads to.
  uint64_t hidden_blocks() {
    EXPECT_TRUE(store_->close().ok());
    store_.reset();
    auto report = store::check(disk_, options(), {.read_data = true});
    EXPECT_TRUE(report.ok() && report->errors.empty());
    open();
    return report.ok() ? report->hidden_data_blocks : ~uint64_t{0};
  }
};

TEST_F(Space, OfAVolumeAloneIsItsOwn) {
  create("v");
  write("v", 1, 0, 8 * kBlock);
  settle(*store_);
  const store::SpaceInfo v = space("v");
  EXPECT_EQ(v.referenced, 8 * kBlock);
  EXPECT_EQ(v.unique, 8 * kBlock + kPath);
  EXPECT_EQ(v.gives_back, v.unique);
  EXPECT_TRUE(v.exact);
}

TEST_F(Space, SharedWithASnapshotIsNobodysAlone) {
  create("v");
  write("v", 1, 0, 8 * kBlock);
  snap("v", "s");
  write("v", 2, 0, 2 * kBlock);
  settle(*store_);
  const store::SpaceInfo v = space("v"), s = space("v@s");
  EXPECT_EQ(v.referenced, 8 * kBlock);
  EXPECT_EQ(s.referenced, 8 * kBlock);
  EXPECT_EQ(v.unique, 2 * kBlock + kPath);
  EXPECT_EQ(s.unique, 2 * kBlock + kPath);  // what the volume has written anew
  EXPECT_EQ(s.gives_back, s.unique);
  EXPECT_EQ(v.gives_back, 10 * kBlock + 2 * kPath);  // with its snapshot
}

TEST_F(Space, ThatASnapshotGivesBackIsWhatIsFreedByDestroyingIt) {
  create("v");
  write("v", 1, 0, 64 * kBlock);
  snap("v", "s");
  write("v", 2, 0, 5 * kBlock);
  snap("v", "t");
  write("v", 3, 3 * kBlock, 9 * kBlock);
  settle(*store_);
  const uint64_t promised = space("v@t").gives_back;
  const store::StoreInfo before = store_->info();
  ASSERT_TRUE(store_->destroy_snapshot("v@t").ok());
  settle(*store_);
  const store::StoreInfo after = store_->info();
  EXPECT_EQ(before.data - after.data, 2 * kBlock);
  EXPECT_EQ(promised, 2 * kBlock + kPath);
}

// A sweep lets alone what a visible version above it has created. When that one goes, it is due.
TEST_F(Space, HeldByAZombieComesBackWhenTheVersionAboveItGoes) {
  create("v");
  write("v", 1, 0, 8 * kBlock);
  snap("v", "above");
  write("v", 1, 100 * kBlock, kBlock);
  snap("v", "zombie");
  ASSERT_TRUE(store_->clone("v@zombie", "c").ok());
  write("v", 2, 0, 8 * kBlock);
  write("c", 3, 0, 8 * kBlock);
  ASSERT_TRUE(store_->destroy_snapshot("v@zombie").ok());
  settle(*store_);
  ASSERT_TRUE(store_->destroy_snapshot("v@above").ok());
  settle(*store_);
  EXPECT_EQ(hidden_blocks(), 0u);
}

}  // namespace
}  // namespace vellum::support

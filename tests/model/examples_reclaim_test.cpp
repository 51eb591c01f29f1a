// SPDX-License-Identifier: BSD-2-Clause
//
// Examples of reclaim (P6): what is changed while a job is at work, and what a job leaves alone.
#include "tests/model/store_fixture.hpp"

namespace vellum::support {
namespace {

constexpr uint64_t kBlock = kContentBlockBytes;
constexpr uint64_t kSubtree = 256 * kMib;  // what a trim moves away as a whole

class Reclaiming : public StoreTest {
 protected:
  void begin_anew() {
    store_.reset();
    format();
    open();
  }

  bool step() {
    const auto worked = store_->reclaim_step();
    EXPECT_TRUE(worked.ok()) << worked.error().message;
    return worked.ok() && *worked;
  }

  // What a crash would leave now is sound.
  void check_between() {
    EXPECT_TRUE(store_->flush().ok());
    Random random(1);
    auto disk = disk_.survivor(Survival::everything, random);
    const auto report = store::check(*disk, options(), {.read_data = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->errors, std::vector<std::string>());
  }

  // To the end of reclaim; what the checker says then. Leaves the store open.
  store::CheckReport settle() {
    while (step()) {
    }
    EXPECT_TRUE(store_->close().ok());
    store_.reset();
    const auto report = store::check(disk_, options(), {.read_data = true});
    EXPECT_TRUE(report.ok());
    open();
    if (!report.ok()) return {};
    EXPECT_EQ(report->errors, std::vector<std::string>());
    return *report;
  }
};

// The head of a volume is trimmed, and written, when its parent has been collapsed so far.
TEST_F(Reclaiming, CollapsesBesideTrimsAndWrites) {
  uint64_t steps = 0;
  for (bool collapsing = true; collapsing; ++steps) {
    begin_anew();
    create("v", 2 * kSubtree);
    for (const uint64_t at : {uint64_t{0}, kMib, kSubtree, kSubtree + kMib})
      write("v", 1, at, 4 * kBlock);
    snap("v", "s");
    for (const uint64_t at : {uint64_t{0}, kSubtree}) write("v", 2, at, kBlock);
    ASSERT_TRUE(store_->destroy_snapshot("v@s").ok());
    for (uint64_t i = 0; i < steps; ++i) step();
    collapsing = store_->info().zombies > 0;
    ASSERT_TRUE(attach("v")->trim(0, kSubtree).ok());
    ASSERT_TRUE(attach("v")->trim(kSubtree + kBlock, kBlock).ok());
    write("v", 3, kSubtree + 2 * kBlock, kBlock);
    for (bool more = true; more; more = step()) check_between();
    const store::CheckReport idle = settle();
    EXPECT_EQ(idle.hidden_data_blocks, 0u) << "after " << steps << " steps";
    EXPECT_EQ(idle.data_blocks, 7u) << "after " << steps << " steps";
    EXPECT_EQ(idle.nodes, 6u) << "after " << steps << " steps";
    EXPECT_EQ(read("v", kSubtree, kBlock), pattern(2, kSubtree, kBlock));
    EXPECT_EQ(read("v", kSubtree + kMib, kBlock), pattern(1, kSubtree + kMib, kBlock));
  }
  EXPECT_GT(steps, 5u);
}

// To forget what is not the zombie's own would take nodes and give nothing back.
TEST_F(Reclaiming, SweepsLeaveAloneWhatAVisibleVersionHas) {
  create("v", 2 * kSubtree);
  write("v", 1, 0, 16 * kBlock);
  snap("v", "above");
  write("v", 1, kSubtree, kBlock);
  snap("v", "zombie");
  ASSERT_TRUE(store_->clone("v@zombie", "c").ok());
  for (const char* name : {"v", "c"}) write(name, 2, 0, 8 * kBlock);
  const store::CheckReport before = settle();
  ASSERT_TRUE(store_->destroy_snapshot("v@zombie").ok());
  const store::CheckReport after = settle();
  EXPECT_EQ(after.nodes, before.nodes);
  EXPECT_EQ(after.data_blocks, before.data_blocks);
}

}  // namespace
}  // namespace vellum::support

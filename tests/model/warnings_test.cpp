// SPDX-License-Identifier: BSD-2-Clause
//
// A store that is getting full says so, in the log, in its figures and in its own state, and what
// could be eradicated.
#include <utility>

#include "tests/model/store_fixture.hpp"

namespace vellum::support {
namespace {

class Warnings : public testing::Test {
 protected:
  void SetUp() override {
    options_.background = false;
    options_.log = [this](int level, const std::string& message) {
      if (message.find("full") != std::string::npos) logged_.emplace_back(level, message);
    };
    ASSERT_TRUE(store::Store::format(disk_, tiny_geometry(64 * kMib), options_).ok());
    auto opened = store::Store::open(disk_, options_);
    ASSERT_TRUE(opened.ok());
    store_ = std::move(opened).value();
    ASSERT_TRUE(store_->create_volume("v", 256 * kMib, store::Provision::thin).ok());
  }

  // Appends to the volume until the store has that level, or takes no more.
  void fill_to(unsigned level) {
    auto volume = *store_->open_export("v");
    while (level_now() < level) {
      if (!volume->write(at_, pattern(1, at_, kStep)).ok()) return;
      at_ += kStep;
    }
  }

  unsigned level_now() {
    const store::StoreInfo info = store_->info();
    return info.warning ? info.warning->level : 0;
  }

  static constexpr uint64_t kStep = 256 << 10;
  SimulatedDisk disk_;
  store::Options options_;
  std::unique_ptr<store::Store> store_;
  uint64_t at_ = 0;
  std::vector<std::pair<int, std::string>> logged_;
};

TEST_F(Warnings, ComeOnceAtEachLevel) {
  EXPECT_EQ(level_now(), 0u);
  EXPECT_FALSE(store_->stats().warning.has_value());
  fill_to(75);
  ASSERT_EQ(level_now(), 75u);
  ASSERT_EQ(logged_.size(), 1u);
  EXPECT_EQ(logged_[0].first, 2);
  EXPECT_NE(logged_[0].second.find("75 % full"), std::string::npos) << logged_[0].second;
  EXPECT_EQ(store_->stats().warning, store_->info().warning->message);
  fill_to(90);
  ASSERT_EQ(level_now(), 90u);
  ASSERT_EQ(logged_.size(), 2u);
  EXPECT_EQ(logged_[1].first, 2);
  fill_to(101);
  ASSERT_EQ(level_now(), 100u);
  EXPECT_EQ(logged_.size(), 3u);
  EXPECT_FALSE((*store_->open_export("v"))->write(at_, pattern(1, at_, kStep)).ok());
  EXPECT_EQ(logged_.size(), 3u);
}

TEST_F(Warnings, NameWhatGivesBackMost) {
  auto volume = *store_->open_export("v");
  const auto rewrite = [&](const std::string& suffix, uint64_t bytes) {
    ASSERT_TRUE(volume->write(0, pattern(2, 0, bytes)).ok());
    ASSERT_TRUE(store_->create_snapshots({"v"}, suffix).ok());
  };
  at_ = 8 * kMib;
  rewrite("large", 4 * kMib);
  rewrite("none", 4 * kMib);
  rewrite("small", kMib);
  ASSERT_TRUE(volume->write(0, pattern(3, 0, kMib)).ok());
  settle(*store_);
  fill_to(75);
  const auto warning = store_->info().warning;
  ASSERT_TRUE(warning.has_value());
  ASSERT_GE(warning->candidates.size(), 2u);
  EXPECT_EQ(warning->candidates[0].name, "v@large");
  EXPECT_GE(warning->candidates[0].gives_back, 4 * kMib);
  EXPECT_NE(warning->message.find("\"v@large\""), std::string::npos) << warning->message;
}

TEST_F(Warnings, EndWhenThereIsRoomAgain) {
  fill_to(90);
  ASSERT_EQ(level_now(), 90u);
  ASSERT_TRUE((*store_->open_export("v"))->trim(0, at_ / 2).ok());
  settle(*store_);
  EXPECT_EQ(level_now(), 0u);
  ASSERT_FALSE(logged_.empty());
  EXPECT_EQ(logged_.back().first, 1);
}

TEST_F(Warnings, EndWhenTheStoreGrows) {
  fill_to(75);
  ASSERT_TRUE(store_->grow(256 * kMib).ok());
  EXPECT_EQ(level_now(), 0u);
}

}  // namespace
}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
//
// Examples of damage to the answers that are kept for requests: what is lost, and when nothing is.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "common/store/superblock.hpp"
#include "common/store/system_tree.hpp"
#include "tests/model/damage_fixture.hpp"

namespace vellum::support {
namespace {

constexpr int64_t kHour = 60 * 60 * 1000;  // for which an answer is kept, in milliseconds

class Answers : public Damaged {
 protected:
  static std::string volume(int i) { return "v" + std::to_string(i); }
  static std::string request(int i) { return "request " + std::to_string(i); }

  store::Options options_with_warnings() {
    store::Options with_log = options();
    with_log.log = [this](int level, const std::string& message) {
      if (level >= 2) log_.push_back(message);
    };
    return with_log;
  }

  // Creates volume i by request i.
  void ask(int i, const std::string& answer) {
    const auto encode = [&](const store::VolumeInfo& /*info*/) { return answer; };
    const auto created =
        store_->create_volume(volume(i), kMib, store::Provision::thin, {request(i), encode});
    ASSERT_TRUE(created.ok()) << created.error().message;
    answers_[i] = answer;
  }

  // Two checkpoints, with answers that they share, and answers of either.
  void fill() {
    for (int i = 0; i < 20; i++) ask(i, std::string(100, 'a') + std::to_string(i));
    ASSERT_TRUE(store_->checkpoint().ok());
    ask(20, std::string(4096, 'b'));
    ASSERT_TRUE(store_->checkpoint().ok());
    ask(21, "c");
    ASSERT_TRUE(store_->flush().ok());
    store_.reset();
  }

  // Opens `disk`; how many answers it has. All volumes and whatever answers there are are right.
  int answers_on(SimulatedDisk& disk) {
    log_.clear();
    auto opened = store::Store::open(disk, options_with_warnings());
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    if (!opened.ok()) return -1;
    store_ = std::move(opened).value();
    int there = 0;
    for (const auto& [i, answer] : answers_) {
      EXPECT_TRUE(store_->get_volume(volume(i)).ok());
      const auto found = store_->find_answer(request(i));
      if (!found) continue;
      EXPECT_EQ(*found, answer);
      there++;
    }
    return there;
  }

  int all() const { return static_cast<int>(answers_.size()); }

  std::set<uint64_t> blocks_of(const store::CheckpointRecord& checkpoint) {
    std::set<uint64_t> blocks;
    store::SystemTree(disk_, store::find_superblock(disk_)->superblock.limits(),
                      checkpoint.system_root)
        .for_each_address([&](uint64_t block) { blocks.insert(block); });
    return blocks;
  }

  std::unique_ptr<SimulatedDisk> copy() {
    Random random(1);
    return disk_.survivor(Survival::everything, random);
  }

  static bool any_has(const std::vector<std::string>& lines, const std::string& part) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  }

  // Where the only block of the newer checkpoint lies that holds this text.
  uint64_t block_with(const std::string& text) {
    std::optional<uint64_t> found;
    store::Page page;
    for (const uint64_t block : blocks_of(store::find_superblock(disk_)->superblock.newer)) {
      const uint64_t at = block * kBlock;
      EXPECT_TRUE(disk_.read(at, page).ok());
      const std::string_view content(reinterpret_cast<const char*>(page.data()), page.size());
      if (content.find(text) == std::string_view::npos) continue;
      EXPECT_FALSE(found.has_value());
      found = at;
    }
    EXPECT_TRUE(found.has_value());
    return found.value_or(0);
  }

  std::map<int, std::string> answers_;
};

// Case 10: else a request that is repeated would be carried out twice.
TEST_F(Answers, NoneIsLostWhenTheDiskFailsToRead) {
  fill();
  for (const uint64_t failures : {1, 2, 8, 100}) {
    for (uint64_t first = 1;; first++) {
      SCOPED_TRACE(std::to_string(failures) + " reads from " + std::to_string(first) + " on");
      const auto disk = copy();
      for (uint64_t i = 0; i < failures; i++) disk->fail(Call::read, first + i, Fault::io_error);
      {
        const auto opened = store::Store::open(*disk, options());
        if (!opened.ok()) {
          EXPECT_EQ(opened.error().code, Errc::io_error) << opened.error().message;
        } else {
          for (const auto& [i, answer] : answers_) {
            EXPECT_EQ((*opened)->find_answer(request(i)), answer);
          }
        }
        if (!disk->has_failed()) break;
      }
      Random random(1);
      const auto healed = disk->survivor(Survival::everything, random);
      EXPECT_EQ(answers_on(*healed), all());
      store_.reset();
      ASSERT_LT(first, 10000U);
    }
  }
}

TEST_F(Answers, OnlyThoseDamagedInBothCheckpointsAreLost) {
  fill();
  const store::Superblock superblock = store::find_superblock(disk_)->superblock;
  const auto newer = blocks_of(superblock.newer), older = blocks_of(superblock.older);
  int alone = 0, several = 0;
  for (const uint64_t block : newer) {
    SCOPED_TRACE("block " + std::to_string(block));
    const auto disk = copy();
    disk->flip_bit(block * kBlock + 17, 5);
    const int there = answers_on(*disk);
    ASSERT_GE(there, 0);
    EXPECT_EQ(log_has("answers kept for requests are lost"), there < all());
    if (!older.contains(block)) {
      EXPECT_EQ(there, all());
    }
    ++(there == all() - 1 ? alone : several);
    store_.reset();
    if (there == all()) continue;
    const auto found = store::check(*disk, options(), {});
    ASSERT_TRUE(found.ok());
    EXPECT_TRUE(any_has(found->errors, "answers kept for requests are lost"));
    const auto report = store::repair(*disk, options(), {.read_data = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(any_has(report->done, "answers kept for requests are lost"));
    EXPECT_EQ(report->after.errors_total, 0U) << report->after.errors[0];
    EXPECT_EQ(answers_on(*disk), there);
    EXPECT_TRUE(log_.empty());
    ask(100, "of one more");  // in the place of one that was lost
    close();
    EXPECT_EQ(answers_on(*disk), there + 1);
    answers_.erase(100);
    store_.reset();
  }
  EXPECT_GT(alone, 10) << "an answer has its own blocks";
  EXPECT_GT(several, 1);
}

// A store goes on with damaged answers, and new ones take their places.
TEST_F(Answers, NewOnesAreKeptBesideDamage) {
  fill();
  const auto disk = copy();
  for (const auto& [i, answer] : answers_) {
    if (i < 20) disk->flip_bit(block_with(answer + '\0'), 5);
  }
  EXPECT_EQ(answers_on(*disk), all() - 20);
  for (int i = 0; i < 20; i++) answers_.erase(i);
  for (int i = 100; i < 130; i++) ask(i, "of " + request(i));
  for (int round = 0; round < 3; round++) {
    ASSERT_TRUE(store_->checkpoint().ok());
    store_.reset();
    EXPECT_EQ(answers_on(*disk), all());
  }
  EXPECT_TRUE(log_.empty()) << log_[0];
}

// The blocks of a place behind its answer are left from a longer one.
TEST_F(Answers, DamageBehindAShorterOneCostsNothing) {
  ask(0, std::string(4093, 'x') + "end");
  ASSERT_TRUE(store_->checkpoint().ok());
  now_ += kHour;
  EXPECT_FALSE(store_->find_answer(request(0)).has_value());
  answers_.clear();
  ask(1, "short");
  close();
  EXPECT_EQ(answers_on(disk_), 1);
  close();
  disk_.flip_bit(block_with("xend"), 5);
  EXPECT_EQ(answers_on(disk_), 1);
}

}  // namespace
}  // namespace vellum::support

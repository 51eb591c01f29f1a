// SPDX-License-Identifier: BSD-2-Clause
//
// A small store of which blocks and nodes are found and damaged.
#pragma once

#include <algorithm>

#include "common/store/block_io.hpp"
#include "tests/model/store_fixture.hpp"

namespace vellum::support {

inline constexpr uint64_t kBlock = kContentBlockBytes;

class Damaged : public StoreTest {
 protected:
  store::Options options_with_log() {
    store::Options with_log = options();
    with_log.log = [this](int level, const std::string& message) {
      if (level >= 3) log_.push_back(message);
    };
    return with_log;
  }

  void open_with_log() {
    store_ = std::move(store::Store::open(disk_, options_with_log())).value();
  }

  void close() {
    ASSERT_TRUE(store_->close().ok());
    store_.reset();
  }

  // Where the block lies that was written with this tag at this offset.
  uint64_t address_of(uint64_t tag, uint64_t offset) {
    const std::vector<std::byte> data = pattern(tag, offset, kBlock);
    std::vector<std::byte> block(kBlock);
    for (uint64_t at = 0; at < disk_.size_bytes(); at += kBlock) {
      if (disk_.read(at, block).ok() && block == data) return at;
    }
    ADD_FAILURE() << "there is no such block";
    return 0;
  }

  // Those of the pages that point to the block with this address, or of all pages.
  std::vector<uint64_t> leaves_over(uint64_t address) {
    std::vector<uint64_t> leaves;
    store::Page page;
    for (uint64_t at = 0; at < disk_.size_bytes(); at += kBlock) {
      if (!disk_.read(at, page).ok()) continue;
      const bool points = [&] {
        for (size_t i = 0; i < store::kFanout; i++) {
          const store::Entry entry = store::load_entry(page.data() + i * sizeof(store::Entry));
          const bool is_data = entry.kind() == store::Kind::data && entry.version() > 0;
          if (is_data && entry.block() * kBlock == address) return true;
        }
        return false;
      }();
      if (points) leaves.push_back(at);
    }
    EXPECT_FALSE(leaves.empty());
    return leaves;
  }

  void damage_leaves_over(uint64_t address) {
    for (const uint64_t leaf : leaves_over(address)) disk_.flip_bit(leaf + 4000, 1);
  }

  bool log_has(const std::string& part) const {
    return std::any_of(log_.begin(), log_.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  }

  // Reclaims to the end, with a crash after each step.
  void reclaim_through_crashes() {
    for (bool more = true; more;) {
      const auto stepped = store_->reclaim_step();
      ASSERT_TRUE(stepped.ok()) << stepped.error().message;
      more = *stepped;
      ASSERT_TRUE(store_->flush().ok());
      store_.reset();
      open_with_log();
    }
  }

  // What the checker says of blocks that nothing leads to; the other errors are figures.
  uint64_t leaked() {
    close();
    const auto report = store::check(disk_, options(), {.read_data = true});
    EXPECT_TRUE(report.ok());
    if (!report.ok()) return 0;
    for (const std::string& error : report->errors) {
      EXPECT_EQ(error.find("twice"), std::string::npos) << error;
      EXPECT_EQ(error.find("not allocated"), std::string::npos) << error;
    }
    open_with_log();
    return report->unreached_blocks;
  }

  std::vector<std::string> log_;
};

}  // namespace vellum::support

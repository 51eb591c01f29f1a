// SPDX-License-Identifier: BSD-2-Clause
//
// The order of changes under threads: snapshots of several volumes are one point of it (P5), and
// writes that overlap keep the order of their tickets however long the disk takes (P13).
#include <chrono>
#include <cstring>
#include <future>

#include <gtest/gtest.h>

#include "tests/concurrency/counted_blocks.hpp"
#include "tests/concurrency/threads.hpp"
#include "tests/support/random.hpp"

namespace vellum::support {
namespace {

using std::chrono::milliseconds;

constexpr size_t kPairs = 4;  // of blocks, one on each volume, with a writer each
constexpr milliseconds kPatience{20000};

class Order : public testing::Test {
 protected:
  void SetUp() override {
    format_small(disk_);
    store_ = open_busy(disk_);
    for (const char* name : {"first", "second"})
      ASSERT_TRUE(
          store_->create_volume(name, 64 * kContentBlockBytes, store::Provision::thin).ok());
    first_ = *store_->open_export("first");
    second_ = *store_->open_export("second");
  }

  void TearDown() override {
    first_.reset();
    second_.reset();
    ASSERT_TRUE(store_->close().ok());
    store_.reset();
    check_at_rest(disk_);
  }

  SimulatedDisk disk_;
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<store::Export> first_, second_;
};

TEST_F(Order, GroupSnapshotsAreOnePoint) {  // P5, case 11
  CountedBlocks on_first(kPairs), on_second(kPairs);
  Threads threads;
  for (size_t pair = 0; pair < kPairs; ++pair)
    threads.start("writer", [&, pair] {
      demand(on_first.write_next(*first_, pair), "a write failed");
      demand(on_second.write_next(*second_, pair), "a write failed");
    });
  threads.start("snapshots", [&] {
    const auto least = on_second.acknowledged();
    const auto taken = demand_ok(store_->create_snapshots({"second", "first"}, std::nullopt), "");
    const auto second = read_values(**store_->open_export(taken[0].name), kPairs, taken[0].name);
    const auto first = read_values(**store_->open_export(taken[1].name), kPairs, taken[1].name);
    for (size_t pair = 0; pair < kPairs; ++pair) {
      demand(second[pair] <= first[pair], "the second write is there without the first");
      demand(first[pair] <= second[pair] + 1, "two moments in one snapshot");
      demand(least[pair] <= second[pair], "an acknowledged write is missing");
    }
    for (const auto& snapshot : taken) demand_ok(store_->destroy_snapshot(snapshot.name), "");
  });
  EXPECT_EQ(threads.run_for(milliseconds(3000)), "");
  EXPECT_GT(threads.turns(), 100u);
}

// Runs `call` and fails, instead of hanging, if it does not return.
template <typename Call>
void demand_returns(const std::string& what, Call call) {
  auto returned = std::async(std::launch::async, std::move(call));
  if (returned.wait_for(kPatience) != std::future_status::ready) {
    ADD_FAILURE() << what << " waits for a write that has nothing to do with it";
    std::abort();  // the thread cannot be stopped
  }
  returned.get();
}

TEST_F(Order, ALaterWriteLandsAfterAStalledOne) {  // P13
  const std::vector<std::byte> old = pattern(1, 0, kContentBlockBytes);
  const std::vector<std::byte> stalled = pattern(2, 0, kContentBlockBytes);
  const std::vector<std::byte> newer = pattern(3, 0, kContentBlockBytes);
  ASSERT_TRUE(first_->write(0, old).ok());
  disk_.stall_writes(
      [&](uint64_t, std::span<const iovec> parts) { return holds_at_block_start(parts, stalled); });
  auto write = [this](store::Ticket ticket, const std::vector<std::byte>& data) {
    std::vector<store::Write> writes(1);
    writes[0].data = data;
    writes[0].ticket = std::move(ticket);
    first_->write(writes);
    EXPECT_TRUE(writes[0].result.ok());
  };
  store::Ticket early = first_->enter(0, kContentBlockBytes);
  store::Ticket late = first_->enter(0, kContentBlockBytes);
  auto one = std::async(std::launch::async, write, std::move(early), std::cref(stalled));
  ASSERT_TRUE(disk_.wait_until_stalled(1, kPatience));
  auto other = std::async(std::launch::async, write, std::move(late), std::cref(newer));

  demand_returns("a write elsewhere", [&] {
    EXPECT_TRUE(first_->write(kContentBlockBytes, old).ok());
    EXPECT_TRUE(second_->write(0, old).ok());
  });
  demand_returns("a flush", [&] { EXPECT_TRUE(store_->flush().ok()); });
  demand_returns("a read", [&] {
    std::vector<std::byte> out(kContentBlockBytes);
    EXPECT_TRUE(first_->read(0, out).ok());
    EXPECT_EQ(out, old);
  });
  demand_returns("a snapshot", [&] {
    EXPECT_TRUE(store_->create_snapshots({"first"}, std::string("meanwhile")).ok());
  });
  EXPECT_EQ(other.wait_for(milliseconds(100)), std::future_status::timeout);
  disk_.release();
  one.get();
  other.get();
  std::vector<std::byte> out(kContentBlockBytes);
  ASSERT_TRUE(first_->read(0, out).ok());
  EXPECT_EQ(out, newer);
  ASSERT_TRUE((*store_->open_export("first@meanwhile"))->read(0, out).ok());
  EXPECT_EQ(out, old);
}

TEST_F(Order, TicketsOfManyThreadsAreServedInTheirOrder) {  // P13
  constexpr int kThreads = 4, kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::future<void>> writers;
    for (int i = 0; i < kThreads; ++i) {
      auto ticket = std::make_shared<store::Ticket>(first_->enter(0, 2 * kContentBlockBytes));
      writers.push_back(std::async(std::launch::async, [this, i, ticket] {
        const auto data = pattern(static_cast<uint64_t>(i) + 1, 0, 2 * kContentBlockBytes);
        std::vector<store::Write> writes(1);
        writes[0].data = data;
        writes[0].ticket = std::move(*ticket);
        first_->write(writes);
        EXPECT_TRUE(writes[0].result.ok());
      }));
    }
    for (auto& writer : writers) writer.get();
    std::vector<std::byte> out(2 * kContentBlockBytes);
    ASSERT_TRUE(first_->read(0, out).ok());
    ASSERT_EQ(out, pattern(kThreads, 0, out.size())) << "round " << round;
  }
}

}  // namespace
}  // namespace vellum::support

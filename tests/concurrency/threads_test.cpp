// SPDX-License-Identifier: BSD-2-Clause
//
// Writers, readers, snapshots, differences, clones, deletes and flushes at once, on a store with
// its background threads.
#include "tests/concurrency/threads.hpp"

#include <chrono>
#include <cstring>
#include <deque>

#include <gtest/gtest.h>

#include "tests/concurrency/counted_blocks.hpp"
#include "tests/support/random.hpp"

namespace vellum::support {
namespace {

using std::chrono::milliseconds;
using Values = std::vector<uint64_t>;

constexpr size_t kBlocks = 510;  // of the volume: two leaves
constexpr size_t kWriters = 3;
constexpr milliseconds kTime{3000};
constexpr milliseconds kRecoverable{100};  // of what is destroyed

// The blocks that differ, as a bit each.
std::vector<bool> differing(store::Store& store, const std::string& target,
                            const std::string& base) {
  std::vector<bool> differs(kBlocks);
  std::optional<uint64_t> next = 0;
  while (next) {
    const auto list = demand_ok(store.diff(target, base, *next, 100), "diff");
    for (const store::Extent& extent : list.extents)
      for (uint64_t at = 0; at < extent.length; at += kContentBlockBytes)
        differs[(extent.offset + at) / kContentBlockBytes] = true;
    next = list.next_offset;
  }
  return differs;
}

void demand_exact(const std::vector<bool>& differs, const Values& target, const Values& base) {
  for (size_t i = 0; i < kBlocks; ++i)
    demand(differs[i] == (target[i] != base[i]), "diff: block " + std::to_string(i) + " holds " +
                                                     std::to_string(base[i]) + " and then " +
                                                     std::to_string(target[i]));
}

class Busy : public testing::Test {
 protected:
  void SetUp() override {
    format_small(disk_);
    store_ = open_busy(disk_);
    ASSERT_TRUE(store_->create_volume("v", blocks_.size_bytes(), store::Provision::thin).ok());
    volume_ = *store_->open_export("v");
    for (size_t i = 0; i < kWriters; ++i)
      threads_.start("writer", [this, random = Random(i + 1), i]() mutable {
        const size_t block = random.below(kBlocks / kWriters) * kWriters + i;
        demand(blocks_.write_next(*volume_, block), "a write failed");
      });
  }

  void finish() {
    const std::string failure = threads_.run_for(kTime);
    EXPECT_EQ(failure, "");
    EXPECT_GT(threads_.turns(), 100u);
    EXPECT_EQ(read_values(*volume_, kBlocks, "v"), blocks_.acknowledged());
    volume_.reset();
    ASSERT_TRUE(store_->close().ok());
    store_.reset();
    check_at_rest(disk_);
    auto again = open_busy(disk_);
    EXPECT_EQ(read_values(**again->open_export("v"), kBlocks, "v"), blocks_.acknowledged());
  }

  SimulatedDisk disk_;
  CountedBlocks blocks_{kBlocks};
  std::unique_ptr<store::Store> store_;
  std::shared_ptr<store::Export> volume_;
  Threads threads_;
};

TEST_F(Busy, ReadsSeeWholeAndCurrentBlocks) {
  for (uint64_t seed : {11, 12})
    threads_.start("reader", [this, random = Random(seed)]() mutable {
      const size_t block = random.below(kBlocks);
      const uint64_t offset = block * kContentBlockBytes;
      std::vector<std::byte> data(kContentBlockBytes);
      const Values least = blocks_.acknowledged();
      Result<void> read = volume_->read(offset, data, disk::Wait::never);
      if (!read.ok() && read.error().code == Errc::would_block) read = volume_->read(offset, data);
      demand_ok(std::move(read), "read");
      const uint64_t value = value_of(data, offset, "v");
      demand(least[block] <= value && value <= blocks_.sent()[block], "a read of the past");
    });
  threads_.start("flusher", [this] { demand_ok(store_->flush(), "flush"); });
  threads_.start("mapper", [this] {
    const Values least = blocks_.acknowledged();
    const auto extents = demand_ok(volume_->map(0, blocks_.size_bytes(), 100000), "map");
    for (const store::Extent& extent : extents)
      if (extent.kind == store::ExtentKind::zero)
        for (uint64_t at = 0; at < extent.length; at += kContentBlockBytes)
          demand(least[(extent.offset + at) / kContentBlockBytes] == 0,
                 "acknowledged data is a hole");
  });
  finish();
}

// Case 12, case 13, case 14: also of several at once, and across snapshots that are gone.
TEST_F(Busy, SnapshotsAreOfOneMomentAndDifferencesExact) {
  struct Taken {
    std::string name;
    Values values;
  };
  for (const uint64_t seed : {21, 22, 23}) {
    auto taken = std::make_shared<std::deque<Taken>>();
    threads_.start("snapshots", [this, taken, random = Random(seed)]() mutable {
      const Values least = blocks_.acknowledged();
      const auto info = demand_ok(store_->create_snapshots({"v"}, std::nullopt), "snapshot");
      const Values most = blocks_.sent();
      Taken now{info[0].name, {}};
      now.values = read_values(**store_->open_export(now.name), kBlocks, now.name);
      demand_between(now.values, least, most, now.name);
      if (!taken->empty()) {
        const Taken& before = random.pick(*taken);
        demand_exact(differing(*store_, now.name, before.name), now.values, before.values);
        const auto opened = demand_ok(store_->open_export(before.name), "open");
        demand(read_values(*opened, kBlocks, before.name) == before.values, "a snapshot changed");
      }
      taken->push_back(std::move(now));
      if (taken->size() > 8) {
        const size_t which = random.below(taken->size());
        demand_ok(store_->destroy_snapshot((*taken)[which].name), "destroy");
        taken->erase(taken->begin() + static_cast<ptrdiff_t>(which));
      }
    });
  }
  threads_.start("lists", [this] {
    for (const auto& info : store_->list_snapshots("v"))
      demand(info.volume == "v", "list_snapshots");
    demand(store_->info().volumes >= 1, "info");
  });
  finish();
}

// Case 18: whoever asks right behind a write is told of data, whatever way he asks.
TEST_F(Busy, WhatIsAcknowledgedIsInEveryMap) {
  for (const uint64_t seed : {51, 52})
    threads_.start("asker", [this, random = Random(seed), round = 0, seed]() mutable {
      const std::string name = "w" + std::to_string(seed) + "-" + std::to_string(round++);
      demand_ok(store_->create_volume(name, blocks_.size_bytes(), store::Provision::thin), "new");
      demand_ok(store_->create_snapshots({name}, "empty"), "snapshot");
      auto opened = demand_ok(store_->open_export(name), "open");
      for (int i = 0; i < 20; ++i) {
        const uint64_t at = random.below(kBlocks) * kContentBlockBytes;
        demand_ok(opened->write(at, pattern(1 + seed, at, kContentBlockBytes)), "write");
        const auto has_all = [&](const std::vector<store::Extent>& extents) {
          return extents.size() == 1 && extents[0].offset == at &&
                 extents[0].length == kContentBlockBytes &&
                 extents[0].kind == store::ExtentKind::data;
        };
        demand(has_all(demand_ok(opened->map(at, kContentBlockBytes, 1), "map")), "map: a hole");
        const uint64_t block = kContentBlockBytes;
        const auto map = demand_ok(store_->allocated(name, at, block, block, false), "bitmap");
        demand(map.allocated_chunks == 1, "bitmap: a hole");
        const auto unshared =
            demand_ok(store_->unshared(name, name + "@empty", at, block, block, false), "bitmap");
        demand(unshared.allocated_chunks == 1, "unshared: a hole");
        const auto extents = demand_ok(store_->extents(name, at, 1), "extents").extents;
        demand(!extents.empty() && extents[0].offset == at, "extents: a hole");
        const auto diff = demand_ok(store_->diff(name, name + "@empty", at, 1), "diff").extents;
        demand(!diff.empty() && diff[0].offset == at, "diff: a hole");
      }
      opened.reset();
      demand_ok(store_->destroy_volume(name, false, true), "destroy");
    });
  threads_.start("flusher", [this] { demand_ok(store_->flush(), "flush"); });
  threads_.start("checkpoints", [this] { demand_ok(store_->checkpoint(), "checkpoint"); });
  finish();
}

// Everything that a scrub reads is what its checksum says, also while it is being freed and written
// anew.
TEST_F(Busy, ScrubsFindNothingWrong) {
  threads_.start("scrubs", [this, scrubs = 0]() mutable {
    const auto info = store_->scrub_info();
    demand(info.errors == 0, info.errors == 0 ? "" : info.damages[0].message);
    if (info.state == store::ScrubState::running) {
      std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    demand(info.state == (scrubs == 0 ? store::ScrubState::never : store::ScrubState::finished),
           "the scrub has another state");
    scrubs++;
    store_->start_scrub();
  });
  threads_.start("snapshots", [this] {
    const auto info = demand_ok(store_->create_snapshots({"v"}, std::nullopt), "snapshot");
    demand_ok(store_->clone(info[0].name, "c"), "clone");
    demand_ok(store_->destroy_snapshot(info[0].name, true), "destroy");
    demand_ok(store_->open_export("c").value()->write_zeroes(0, 5 * kContentBlockBytes), "zeroes");
    demand_ok(store_->destroy_volume("c", false, true), "destroy");
  });
  finish();
}

// Recovering and eradication in the background meet: what comes back is whole, and nothing goes
// early.
TEST_F(Busy, WhatIsDestroyedComesBackWholeOrIsGone) {
  ASSERT_TRUE(store_->set_eradication_delay(kRecoverable.count()).ok());
  auto recovered = std::make_shared<std::atomic<int>>(0),
       gone = std::make_shared<std::atomic<int>>(0);
  for (uint64_t seed : {41, 42})
    threads_.start(
        "destroyer", [this, random = Random(seed), round = 0, seed, recovered, gone]() mutable {
          const std::string name = "d" + std::to_string(seed) + "-" + std::to_string(round++);
          demand_ok(store_->clone("v", name), "clone");
          demand_ok(store_->create_snapshots({name}, "s"), "snapshot");
          const Values values = read_values(**store_->open_export(name), kBlocks, name);
          const auto began = std::chrono::steady_clock::now();
          demand_ok(store_->destroy_volume(name, false), "destroy");
          if (random.chance(60)) {
            std::this_thread::sleep_for(milliseconds(random.below(3 * kRecoverable.count())));
          }
          const auto back = store_->recover_volume(name);
          if (!back.ok()) {
            demand(back.error().code == Errc::not_found, "recover: " + back.error().message);
            const auto least = kRecoverable - milliseconds(1);  // which the store counts in
            demand(std::chrono::steady_clock::now() - began >= least, name + " went early");
            ++*gone;
            return;
          }
          ++*recovered;
          for (const std::string& each : {name, name + "@s"}) {
            const auto opened = demand_ok(store_->open_export(each), "open");
            demand(read_values(*opened, kBlocks, each) == values, each + " is not what it was");
          }
          demand_ok(store_->destroy_volume(name, false, random.chance(50)), "destroy again");
        });
  finish();
  EXPECT_GT(recovered->load(), 0);
  EXPECT_GT(gone->load(), 0);
}

TEST_F(Busy, ClonesLeadTheirOwnLives) {
  for (uint64_t seed : {31, 32})
    threads_.start("cloner", [this, random = Random(seed), round = 0, seed]() mutable {
      const std::string name = "c" + std::to_string(seed) + "-" + std::to_string(round++);
      const Values least = blocks_.acknowledged();
      demand_ok(store_->clone("v", name), "clone");
      const Values most = blocks_.sent();
      auto opened = demand_ok(store_->open_export(name), "open");
      Values values = read_values(*opened, kBlocks, name);
      demand_between(values, least, most, name);
      for (int i = 0; i < 20; ++i) {
        const size_t block = random.below(kBlocks);
        const uint64_t offset = block * kContentBlockBytes;
        values[block] = random.chance(80) ? 100000 + random.below(100000) : 0;
        const auto data = pattern(values[block], offset, kContentBlockBytes);
        demand_ok(
            values[block] ? opened->write(offset, data) : opened->trim(offset, kContentBlockBytes),
            "change of a clone");
      }
      demand(read_values(*opened, kBlocks, name) == values, "a clone differs");
      opened.reset();
      demand_ok(store_->destroy_volume(name, false), "destroy");
    });
  threads_.start("flusher", [this] {
    std::atomic<bool> done{false};
    store_->flush_async([&](const Result<void>& flushed) {
      EXPECT_TRUE(flushed.ok());
      done.store(true);
    });
    while (!done.load()) std::this_thread::yield();
  });
  finish();
}

}  // namespace
}  // namespace vellum::support

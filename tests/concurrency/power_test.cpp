// SPDX-License-Identifier: BSD-2-Clause
//
// The power goes off while threads write, flush and take snapshots of a store with its background
// threads: what was flushed is there (P1), and of what was not, nothing without what came before it
// (P2).
#include <chrono>
#include <cstring>

#include <gtest/gtest.h>

#include "tests/concurrency/counted_blocks.hpp"
#include "tests/concurrency/threads.hpp"
#include "tests/support/random.hpp"

namespace vellum::support {
namespace {

using Values = std::vector<uint64_t>;

constexpr size_t kWriters = 3;
constexpr size_t kBlocksEach = 4;
constexpr size_t kBlocks = kWriters * kBlocksEach;
constexpr int kRounds = 12;

// Each writer goes round its blocks, so a later block never holds more than an earlier one, nor
// less by more than one.
void demand_prefix(const Values& values) {
  for (size_t writer = 0; writer < kWriters; ++writer)
    for (size_t i = 1; i < kBlocksEach; ++i) {
      const uint64_t first = values[writer * kBlocksEach], other = values[writer * kBlocksEach + i];
      demand(values[writer * kBlocksEach + i] <= values[writer * kBlocksEach + i - 1] &&
                 first <= other + 1,
             "a write is there without the one before it");
    }
}

void run_until_power_off(SimulatedDisk& disk, CountedBlocks& blocks, Values& flushed,
                         uint64_t calls) {
  auto store = open_busy(disk);
  demand_ok(store->create_volume("v", blocks.size_bytes(), store::Provision::thin), "create");
  auto volume = demand_ok(store->open_export("v"), "open");
  disk.power_off_at(calls);
  Threads threads;
  for (size_t writer = 0; writer < kWriters; ++writer)
    threads.start("writer", [&, writer] {
      for (size_t i = 0; i < kBlocksEach && !threads.stopping(); ++i)
        if (!blocks.write_next(*volume, writer * kBlocksEach + i)) return threads.stop();
    });
  threads.start("flusher", [&] {
    const Values before = blocks.acknowledged();
    if (store->flush().ok()) flushed = before;
  });
  threads.start("snapshots", [&] {
    const Values before = blocks.acknowledged();
    const auto taken = store->create_snapshots({"v"}, std::nullopt);
    if (!taken.ok()) return threads.stop();
    const auto opened = store->open_export((*taken)[0].name);
    if (!opened.ok()) return threads.stop();
    std::vector<std::byte> data(kContentBlockBytes);
    if (!(*opened)->read(0, data).ok()) return threads.stop();
    demand(value_of(data, 0, "snapshot") >= before[0], "a snapshot lacks what was acknowledged");
  });
  const std::string failure = threads.run_for(std::chrono::milliseconds(10000));
  demand(failure.empty(), failure);
  demand(disk.power_is_off(), "the power did not go off");
  volume.reset();
}

void demand_sound(SimulatedDisk& disk, const Values& least, const Values& most) {
  check_at_rest(disk);
  auto store = open_busy(disk);
  const Values values = read_values(**store->open_export("v"), kBlocks, "v");
  demand_between(values, least, most, "v");
  demand_prefix(values);
  for (const auto& info : store->list_snapshots("v"))
    demand_prefix(read_values(**store->open_export(info.name), kBlocks, info.name));
  demand_ok(store->close(), "close");
}

TEST(Power, GoesOffUnderThreads) {
  for (int round = 0; round < kRounds; ++round) {
    Random random(static_cast<uint64_t>(round) + 1);
    SimulatedDisk disk;
    format_small(disk);
    CountedBlocks blocks(kBlocks);
    Values flushed(kBlocks);
    try {
      run_until_power_off(disk, blocks, flushed, random.between(10, 3000));
      for (Survival how : {Survival::nothing, Survival::everything, Survival::all_but_one,
                           Survival::whole_units, Survival::torn_units})
        demand_sound(*disk.survivor(how, random), flushed, blocks.sent());
    } catch (const Failure& failure) {
      FAIL() << "round " << round << ": " << failure.what();
    }
  }
}

}  // namespace
}  // namespace vellum::support

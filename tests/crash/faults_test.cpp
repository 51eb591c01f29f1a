// SPDX-License-Identifier: BSD-2-Clause
//
// A disk that fails, lies or rots: a sync that fails (P9), writes that fail, are lost or go
// elsewhere, bits that flip (P3).
#include <gtest/gtest.h>

#include "tests/crash/life.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/failure.hpp"

namespace vellum::support {
namespace {

constexpr uint64_t kBlock = kContentBlockBytes;
constexpr uint64_t kCapacityBytes = 64 << 20;
constexpr uint64_t kDefaultSeeds = 4;
constexpr uint64_t kOperations = 30;

DriverOptions driver_options(uint64_t seed) {
  DriverOptions options;
  options.seed = seed;
  options.verbose = arguments().verbose;
  return options;
}

Profile profile_without_reopen() {
  Profile profile = crash_profile();
  profile.weights[static_cast<int>(Action::reopen)] = 0;
  return profile;
}

void format(SimulatedDisk& disk, uint64_t seed) {
  store::Options options;
  options.background = false;
  options.random_seed = seed + 1;
  demand_ok(store::Store::format(disk, tiny_geometry(kCapacityBytes), options), "format");
}

// Runs a history, on which the disk plays its trick at call `nth` of a kind. Null: it never came.
std::unique_ptr<Life> run_with_fault(SimulatedDisk& disk, uint64_t seed, Call kind, uint64_t nth,
                                     Fault fault) {
  Random random(seed);
  format(disk, seed);
  disk.fail(kind, nth, fault);
  auto life = std::make_unique<Life>(disk, driver_options(seed), Candidates{Model()});
  if (life->begin()) life->run_random(profile_without_reopen(), random, kOperations, 1);
  return disk.has_failed() ? std::move(life) : nullptr;
}

// The store is still open, and nothing can be changed or promised any more.
void demand_read_only(Life& life) {
  store::Store& store = life.driver().store();
  const auto refused = [](const Result<void>& result) {
    return !result.ok() && result.error().code == Errc::read_only;
  };
  demand(refused(store.flush()), "a flush after a failed sync");
  demand(refused(store.flush()), "the second flush after a failed sync");
  const auto created = store.create_volume("late", kBlock, store::Provision::thin);
  demand(!created.ok() && created.error().code == Errc::read_only, "create after a failed sync");
  demand(store.info().read_only.has_value(), "info() does not say why");
  for (const auto& info : store.list_volumes()) {
    auto opened = demand_ok(store.open_export(info.name), info.name);
    std::vector<std::byte> block(std::min(kBlock, info.size));
    demand(refused(opened->write(0, block)), "a write after a failed sync");
    demand(refused(opened->trim(0, block.size())), "a trim after a failed sync");
    demand_ok(opened->read(0, block), "a read after a failed sync");
  }
}

void demand_good_survivors(const SimulatedDisk& disk, const Life& life, Random& random) {
  for (Survival how : {Survival::nothing, Survival::everything, Survival::torn_units}) {
    auto left = disk.survivor(how, random);
    check_disk(*left, "after the crash");
    Life next(*left, driver_options(random.next()), life.candidates());
    demand(next.begin(), "open after the crash");
    next.end_in_order();
  }
}

// Calls body(seed), and names the seed if it fails.
template <typename Body>
void for_seeds(Body body) {
  const uint64_t first = arguments().seed.value_or(1);
  const uint64_t seeds = arguments().seed ? 1 : kDefaultSeeds;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    try {
      body(seed);
    } catch (const Failure& failure) {
      FAIL() << "--seed " << seed << ": " << failure.what();
    }
  }
}

template <typename Body>
void for_each_nth(const std::string& what, uint64_t step, Body body) {
  for (uint64_t nth = 1;; nth += step) {
    try {
      if (!body(nth)) return;
    } catch (const Failure& failure) {
      throw Failure(what + " " + std::to_string(nth) + ": " + failure.what());
    }
  }
}

TEST(Faults, NothingIsDurableAfterAFailedSync) {  // P9
  for_seeds([](uint64_t seed) {
    for_each_nth("sync", 1, [&](uint64_t nth) {
      SimulatedDisk disk;
      Random random(seed * 1000 + nth);
      auto life = run_with_fault(disk, seed, Call::sync, nth, Fault::io_error);
      if (!life) return false;
      if (life->driver().is_open()) demand_read_only(*life);
      life->end_in_crash();
      demand_good_survivors(disk, *life, random);
      return true;
    });
  });
}

TEST(Faults, WritesThatFailLeaveAPrefix) {  // P2
  for (Fault fault : {Fault::io_error, Fault::no_space}) {
    for_seeds([&](uint64_t seed) {
      for_each_nth("write", 5, [&](uint64_t nth) {
        SimulatedDisk disk;
        Random random(seed * 1000 + nth);
        auto life = run_with_fault(disk, seed, Call::write, nth, fault);
        if (!life) return false;
        life->end_in_crash();
        demand_good_survivors(disk, *life, random);
        return true;
      });
    });
  }
}

// Every block of every version is right or refused.
void demand_right_or_refused(store::Store& store, const Model& model, uint64_t& refused) {
  for (const std::string& name : model.all_names()) {
    auto opened = store.open_export(name);
    if (!opened.ok()) {
      ++refused;
      continue;
    }
    const Content& content = *model.content(name);
    for (const auto& [index, unused] : content.blocks()) {
      std::vector<std::byte> block(std::min(kBlock, content.size_bytes() - index * kBlock));
      const Result<void> read = (*opened)->read(index * kBlock, block);
      if (read.ok()) {
        const std::string wrong = content.difference(index * kBlock, block);
        demand(wrong.empty(), name + " " + wrong);
        continue;
      }
      demand(read.error().code == Errc::corrupt || read.error().code == Errc::io_error,
             name + ": " + read.error().message);
      ++refused;
    }
  }
}

void demand_right_or_refused(SimulatedDisk& disk, const Model& model, uint64_t& refused) {
  store::Options options;
  options.background = false;
  auto store = store::Store::open(disk, options);
  if (store.ok())
    demand_right_or_refused(**store, model, refused);
  else
    ++refused;
}

TEST(Faults, FlippedBitsAreNeverRead) {  // P3
  uint64_t refused = 0;
  for_seeds([&](uint64_t seed) {
    Random random(seed);
    SimulatedDisk disk;
    format(disk, seed);
    disk.log_calls(true);
    Life life(disk, driver_options(seed), {Model()});
    demand(life.begin() && life.run_random(profile_without_reopen(), random, kOperations, 1),
           "run");
    life.end_in_order();
    std::vector<uint64_t> offsets;
    for (const CallEntry& call : disk.log())
      if (call.kind == Call::write)
        for (uint64_t at = 0; at < call.length_bytes; at += kBlock)
          offsets.push_back(call.offset + at);
    for (int i = 0; i < 100; ++i) {
      auto rotten = disk.survivor(Survival::everything, random);
      // One block at a time: a superblock, a table and a record stand in for each other.
      const uint64_t block = random.pick(offsets);
      for (uint64_t flips = random.between(1, 8); flips > 0; --flips)
        rotten->flip_bit(block + random.below(kBlock), static_cast<unsigned>(random.below(8)));
      demand_right_or_refused(*rotten, life.driver().model(), refused);
    }
  });
  EXPECT_GT(refused, 0u);
}

TEST(Faults, LostAndMisdirectedWritesAreNeverRead) {  // P3
  uint64_t refused = 0;
  for (Fault fault : {Fault::lost, Fault::misdirected}) {
    for_seeds([&](uint64_t seed) {
      for_each_nth("write", 3, [&](uint64_t nth) {
        SimulatedDisk disk;
        auto life = run_with_fault(disk, seed, Call::write, nth, fault);
        if (!life) return false;
        // An operation that failed may have been done in part: then nothing can be compared.
        if (life->failed()) {
          ++refused;
          return true;
        }
        demand_right_or_refused(life->driver().store(), life->driver().model(), refused);
        const Model model = life->driver().model();
        const bool closed = life->driver().close().ok();
        life->end_in_crash();
        if (closed) demand_right_or_refused(disk, model, refused);
        return true;
      });
    });
  }
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace vellum::support

int main(int argc, char** argv) { return vellum::support::seeded_main(argc, argv); }

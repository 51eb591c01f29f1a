// SPDX-License-Identifier: BSD-2-Clause
//
// Every short sequence of operations on two volumes of three blocks, from two beginnings; the power
// goes off at every write to the disk and after the last; everything that this may leave is tried
// (exploration.hpp).
//
//   exhaustive_test [--length N] [--few] [--shard I --shards N] [--seed N]
//
// --length: of the sequences, 2 if it is not given. --few: of fewer steps to choose from, so that
// they can be longer (alphabet.hpp). --shard: this one of so many parts, from 0. --seed: the number
// of one sequence, as a failure prints it.
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/crash/alphabet.hpp"
#include "tests/crash/exploration.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/failure.hpp"

namespace vellum::support {
namespace {

constexpr uint64_t kBlock = kContentBlockBytes;
constexpr uint64_t kDiskBytes = 4 << 20;
constexpr uint64_t kDelay = 86400000;  // of eradication, in milliseconds
constexpr uint64_t kDefaultLength = 2;

std::string describe(const std::vector<Operations>& sequence) {
  std::string text;
  for (const Operations& operations : sequence)
    for (const Operation& operation : operations)
      text += (text.empty() ? "" : ", ") + describe(operation);
  return text;
}

class Beginning {
 public:
  explicit Beginning(const Operations& history) : exploration_(kDiskBytes) {
    store::Geometry geometry = tiny_geometry(kDiskBytes);
    store::Options format_options;
    format_options.background = false;
    format_options.random_seed = 1;
    SimulatedDisk disk(kDiskBytes, false);
    demand_ok(store::Store::format(disk, geometry, format_options), "format");
    Life life(disk, options_, {Model()});
    demand(life.begin(), "open");
    run(life, numbered(history, 0));
    past_ = life.candidates();
    life.end_in_crash();
    disk_ = disk.survivor(Survival::everything, random_);
  }

  // Every sequence of up to so many steps.
  void run_all(uint64_t length) { extend({}, length, 0); }

  uint64_t sequences() const { return sequences_; }
  const Exploration::Totals& totals() const { return exploration_.totals(); }

 private:
  // Gives each its number, and each write a tag of its own.
  static Operations numbered(Operations operations, uint64_t position) {
    uint64_t number = position * 100;
    for (Operation& operation : operations) {
      operation.number = ++number;
      for (Range& range : operation.ranges) range.tag = number;
    }
    return operations;
  }

  static bool run(Life& life, const Operations& operations) {
    for (const Operation& operation : operations)
      if (!life.run(operation)) return false;
    return true;
  }

  void extend(const std::vector<Operations>& sequence, uint64_t length, uint64_t number) {
    const Model model = run_one(sequence, number);
    if (sequence.size() == length) return;
    uint64_t choice = 0;
    std::vector<Operations> steps = arguments().few ? few_steps(model) : every_step(model);
    demand(steps.size() < kStepsPerPlace, "more steps than have a number");
    for (Operations& operations : steps) {
      std::vector<Operations> longer = sequence;
      longer.push_back(numbered(std::move(operations), sequence.size() + 1));
      extend(longer, length, number * kStepsPerPlace + ++choice);
    }
  }

  bool is_mine(size_t length, uint64_t number) const {
    if (arguments().seed) return number == *arguments().seed;
    const uint64_t first_two = length > 2 ? number / kStepsPerPlace : number;
    return first_two % arguments().shards == arguments().shard;
  }

  Model run_one(const std::vector<Operations>& sequence, uint64_t number) {
    auto disk = fresh();
    Life life(*disk, options_, past_);
    demand(life.begin(), "open");
    uint64_t before = disk->call_number();
    disk->log_calls(true);
    for (const Operations& operations : sequence) {
      before = disk->call_number();
      disk->log_calls(true);  // of the last step alone
      demand(run(life, operations), "it failed without a fault");
    }
    Model model = life.driver().model();
    if (!is_mine(sequence.size(), number)) return model;
    ++sequences_;
    const std::vector<CallEntry> calls = disk->log();
    const Candidates candidates = life.candidates();
    life.end_in_crash();
    uint64_t point = calls.size() + 1;
    try {
      exploration_.explore(left_by_crash(*disk), candidates);
      for (point = calls.size(); point > 0; --point)
        if (calls[point - 1].kind != Call::read && calls[point - 1].kind != Call::sync)
          crash_at(before + point, sequence);
    } catch (const Failure& failure) {
      throw Failure("--seed " + std::to_string(number) + ": " + describe(sequence) +
                    "; power off at call " + std::to_string(point) + " of " +
                    std::to_string(calls.size()) + " of the last step: " + failure.what());
    }
    return model;
  }

  void crash_at(uint64_t call, const std::vector<Operations>& sequence) {
    auto disk = fresh();
    disk->power_off_at(call);
    Life life(*disk, options_, past_);
    bool running = life.begin();
    for (size_t i = 0; running && i < sequence.size(); ++i) running = run(life, sequence[i]);
    demand(disk->power_is_off(), "the same sequence made fewer calls");
    const Candidates candidates = life.candidates();
    life.end_in_crash();
    exploration_.explore(left_by_crash(*disk), candidates);
  }

  std::unique_ptr<SimulatedDisk> fresh() { return disk_->survivor(Survival::everything, random_); }

  const DriverOptions options_{.seed = 1, .cache_bytes = 256 << 10, .verbose = false};
  Random random_{1};
  Candidates past_;
  std::unique_ptr<SimulatedDisk> disk_;
  Exploration exploration_;
  uint64_t sequences_ = 0;
};

void run_from(const char* name, const Operations& history) {
  const uint64_t length = arguments().length.value_or(kDefaultLength);
  std::unique_ptr<Beginning> beginning;
  ASSERT_NO_THROW(beginning = std::make_unique<Beginning>(history));
  ASSERT_NO_THROW(beginning->run_all(length));
  const Exploration::Totals& totals = beginning->totals();
  std::printf(
      "%s: %lu sequences of up to %lu steps; %lu crashes and %lu in a recovery, which may leave "
      "%.3g different disks; %lu cases, %lu of them new\n",
      name, beginning->sequences(), length, totals.crashes, totals.crashes_in_recovery,
      totals.subsets, totals.cases, totals.runs);
  EXPECT_GT(totals.cases, 0u);
}

TEST(Exhaustive, FromTwoEmptyVolumes) {
  run_from("two empty volumes",
           {set_delay(kDelay), create_small("a"), create_small("b"), named(Action::flush, {})});
}

// With a snapshot, a clone, a destroyed snapshot, one that is being reclaimed, and a journal that
// is to be replayed.
TEST(Exhaustive, FromAHistory) {
  run_from("a history",
           {set_delay(kDelay), create_small("a"), content(Action::write, "a", 0, 3 * kBlock),
            named(Action::take_snapshots, {"a"}), content(Action::write, "a", 0, kBlock),
            named(Action::clone, {"a@1", "b"}), content(Action::write, "b", kBlock, kBlock),
            named(Action::take_snapshots, {"a"}), named(Action::destroy_snapshot, {"a@2"}),
            named(Action::take_snapshots, {"a"}), content(Action::write, "a", kBlock, kBlock),
            named(Action::destroy_snapshot, {"a@3"}), named(Action::eradicate, {"a@3"}),
            named(Action::flush, {})});
}

}  // namespace
}  // namespace vellum::support

int main(int argc, char** argv) { return vellum::support::seeded_main(argc, argv); }

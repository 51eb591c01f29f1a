// SPDX-License-Identifier: BSD-2-Clause
//
// Short random histories; the power goes off at every call to the disk; of what was not synced a
// crash leaves nothing, everything, or any part, torn; and the store must come back as P1 to P4 and
// P11 say, sound by the checker, and go on. Arguments: tests/support/arguments.hpp.
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/crash/life.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/failure.hpp"

namespace vellum::support {
namespace {

constexpr double kDefaultSeconds = 15;
constexpr uint64_t kCapacityBytes = 64 << 20;
constexpr uint64_t kPointsMax = 60;  // of crash in a history, a sample if there are more

struct {
  uint64_t points = 0, states = 0, recoveries = 0;
} totals;

class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {
    options_.seed = random_.next();
    if (random_.chance(30)) {
      profile_ = reclaim_profile();
      operations_max_ = 100;
    }
    options_.cache_bytes = random_.chance(50) ? 256 << 10 : 2 << 20;
    options_.verbose = arguments().verbose;
    store::Options format_options;
    format_options.background = false;
    format_options.random_seed = seed + 1;
    SimulatedDisk disk;
    demand_ok(store::Store::format(disk, tiny_geometry(kCapacityBytes), format_options), "format");
    formatted_ = disk.survivor(Survival::nothing, random_);
  }

  void run() {
    record();
    const std::vector<uint64_t> points = choose_points();
    const uint64_t thorough = points.empty() ? 0 : random_.pick(points);
    for (uint64_t point : points) crash_at(point, point == thorough);
  }

 private:
  std::unique_ptr<SimulatedDisk> fresh() {
    return formatted_->survivor(Survival::everything, random_);
  }

  // Once without a crash, to learn the operations and the calls.
  void record() {
    auto disk = fresh();
    disk->log_calls(true);
    Life life(*disk, options_, {Model()});
    demand(life.begin(), "open");
    const uint64_t operations =
        arguments().operations.value_or(random_.between(10, operations_max_));
    demand(life.run_random(profile_, random_, operations, 1), "it failed without a fault");
    operations_ = life.done();
    calls_ = disk->log();
    life.end_in_order();
  }

  // A crash at a read leaves what a crash at the change after it leaves.
  std::vector<uint64_t> choose_points() {
    std::vector<uint64_t> points;
    for (size_t i = 0; i < calls_.size(); ++i)
      if (calls_[i].kind != Call::read || random_.chance(3)) points.push_back(i + 1);
    const uint64_t keep = kPointsMax;
    while (points.size() > keep)
      points.erase(points.begin() + static_cast<ptrdiff_t>(random_.below(points.size())));
    return points;
  }

  void crash_at(uint64_t point, bool thorough) {
    auto disk = fresh();
    disk->power_off_at(point);
    Life life(*disk, options_, {Model()});
    bool running = life.begin();
    for (size_t i = 0; running && i < operations_.size(); ++i) running = life.run(operations_[i]);
    life.end_in_crash();
    ++totals.points;
    for (Survival how : kSurvivals) {
      try {
        come_back(*disk, how, life.candidates(), thorough);
      } catch (const Failure& failure) {
        throw Failure(
            "power off at call " + std::to_string(point) + " of " + std::to_string(calls_.size()) +
            ", survival " + std::to_string(static_cast<int>(how)) + ", last operation " +
            (life.done().empty() ? "open" : describe(life.done().back())) + ": " + failure.what());
      }
    }
  }

  void come_back(const SimulatedDisk& crashed, Survival how, const Candidates& candidates,
                 bool thorough) {
    auto disk = crashed.survivor(how, random_);
    ++totals.states;
    if (thorough || random_.chance(30)) check_disk(*disk, "after the crash");
    if (thorough) crash_in_recovery(*disk, candidates);
    live_on(*disk, candidates, 3);
  }

  // P11: the power goes off at each call of the open.
  void crash_in_recovery(const SimulatedDisk& crashed, const Candidates& candidates) {
    for (uint64_t point = 1;; ++point) {
      auto disk = crashed.survivor(Survival::everything, random_);
      disk->power_off_at(point);
      Life life(*disk, options_, candidates);
      const bool opened = life.begin();
      life.end_in_crash();
      if (!disk->power_is_off()) return;
      if (opened) continue;
      ++totals.recoveries;
      auto left = disk->survivor(random_.pick(kSurvivals), random_);
      live_on(*left, candidates, 0);
    }
  }

  // A few operations more, that end well or in another crash.
  void live_on(SimulatedDisk& disk, const Candidates& candidates, int lives) {
    const bool crash = lives > 0 && random_.chance(40);
    if (crash) disk.power_off_at(random_.between(1, 60));
    Life life(disk, options_, candidates);
    Random random(random_.next());
    bool running = life.begin();
    if (running)
      running = life.run_random(profile_, random, random.between(0, 8), 1000 * (9 - lives));
    if (!crash) {
      demand(running, "it failed without a fault");
      life.end_in_order();
      Life last(disk, options_, {life.driver().model()});
      demand(last.begin(), "open");
      if (random.chance(10)) return last.driver().check_reclaim();
      last.end_in_crash();
      return;
    }
    life.end_in_crash();
    auto left = disk.survivor(random.pick(kSurvivals), random);
    ++totals.states;
    live_on(*left, life.candidates(), lives - 1);
  }

  Random random_;
  Profile profile_ = crash_profile();
  uint64_t operations_max_ = 40;
  DriverOptions options_;
  std::unique_ptr<SimulatedDisk> formatted_;
  std::vector<Operation> operations_;
  std::vector<CallEntry> calls_;
};

TEST(Crash, EveryPointOfRandomHistories) {
  uint64_t histories = 0;
  ASSERT_NO_THROW(histories =
                      run_seeds(kDefaultSeconds, [](uint64_t seed) { History(seed).run(); }));
  std::printf(
      "%lu histories from seed %lu: %lu points of crash, %lu states after a crash, "
      "%lu crashes in a recovery\n",
      histories, arguments().seed.value_or(1), totals.points, totals.states, totals.recoveries);
  EXPECT_GT(totals.states, 0u);
}

}  // namespace
}  // namespace vellum::support

int main(int argc, char** argv) { return vellum::support::seeded_main(argc, argv); }

// SPDX-License-Identifier: BSD-2-Clause
//
// One store that grows old: so many operations, in lives that end in order, in a crash, or with a
// disk that fails; each life begins with what the last one left. Arguments: arguments.hpp;
// --operations: of them all, 100,000 if it is not given.
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/crash/life.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/failure.hpp"

namespace vellum::support {
namespace {

constexpr uint64_t kDefaultOperations = 100000;
constexpr uint64_t kCapacityBytes = 512 << 20;
constexpr uint64_t kLifeMax = 1000;  // operations

class LongRun {
 public:
  explicit LongRun(uint64_t seed) : random_(seed), disk_(std::make_unique<SimulatedDisk>()) {
    store::Options options;
    options.background = false;
    options.random_seed = seed + 1;
    demand_ok(store::Store::format(*disk_, tiny_geometry(kCapacityBytes), options), "format");
  }

  void run(uint64_t operations) {
    while (done_ < operations) {
      try {
        live(random_.between(1, std::min(kLifeMax, operations - done_)));
      } catch (const Failure& failure) {
        throw Failure("in the life from operation " + std::to_string(done_ + 1) +
                      " on: " + failure.what());
      }
    }
    Life last(*disk_, options(), candidates_);
    demand(last.begin(), "open");
    last.driver().check_all();
    last.driver().check_reclaim();
  }

  uint64_t done() const { return done_; }
  uint64_t lives() const { return lives_; }
  uint64_t crashes() const { return crashes_; }
  uint64_t failures() const { return failures_; }

 private:
  DriverOptions options() {
    DriverOptions options;
    options.seed = random_.next();
    options.cache_bytes = random_.chance(50) ? 256 << 10 : 2 << 20;
    options.verbose = arguments().verbose;
    return options;
  }

  Profile profile() {
    Profile profile = random_.chance(30) ? reclaim_profile() : crash_profile();
    profile.request_id_percent = 1;  // each of the answers is looked for after each open
    profile.huge_percent = 0;        // a trim of many TiB has too many states in between
    return profile;
  }

  // One of the ways in which a disk fails, some calls from now.
  void plan_a_fault() {
    struct Kind {
      Call call;
      Fault fault;
      uint64_t calls_max;
    };
    static constexpr Kind kKinds[] = {
        {Call::read, Fault::io_error, 200},   {Call::write, Fault::io_error, 400},
        {Call::write, Fault::no_space, 400},  {Call::sync, Fault::io_error, 60},
        {Call::prepare, Fault::no_space, 20},
    };
    const Kind kind = random_.pick(kKinds);
    disk_->fail(kind.call, random_.between(1, kind.calls_max), kind.fault);
  }

  void live(uint64_t operations) {
    ++lives_;
    const uint64_t end = random_.below(10);
    if (end < 4) disk_->power_off_at(random_.between(1, 2000));
    if (end >= 4 && end < 7) plan_a_fault();
    Life life(*disk_, options(), candidates_);
    bool running = life.begin();
    if (running) running = life.run_random(profile(), random_, operations, done_ + 1);
    demand(running || disk_->has_failed(), "it failed without a fault");
    done_ += life.done().size();
    if (running && end == 9) {
      // The random steps of reclaim are fewer than what is destroyed makes necessary.
      life.driver().reclaim_all();
      life.driver().check_all();
      life.end_in_order();
      candidates_ = {life.driver().model()};
      return;
    }
    ++(disk_->has_failed() && !disk_->power_is_off() ? failures_ : crashes_);
    life.end_in_crash();
    candidates_ = life.candidates();
    disk_ = disk_->survivor(random_.pick(kSurvivals), random_);
    if (random_.chance(10)) check_disk(*disk_, "after the crash");
  }

  Random random_;
  std::unique_ptr<SimulatedDisk> disk_;
  Candidates candidates_{Model()};
  uint64_t done_ = 0, lives_ = 0, crashes_ = 0, failures_ = 0;
};

TEST(Long, AStoreGrowsOld) {  // P1, P2, P4, P6, P9, P11
  const uint64_t seed = arguments().seed.value_or(1);
  std::printf("seed %lu\n", seed);
  LongRun run(seed);
  ASSERT_NO_THROW(run.run(arguments().operations.value_or(kDefaultOperations)));
  std::printf("%lu operations in %lu lives, of which %lu ended in a crash and %lu in a failure\n",
              run.done(), run.lives(), run.crashes(), run.failures());
  EXPECT_GT(run.crashes(), 0u);
}

}  // namespace
}  // namespace vellum::support

int main(int argc, char** argv) { return vellum::support::seeded_main(argc, argv); }

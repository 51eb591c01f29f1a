// SPDX-License-Identifier: BSD-2-Clause
//
// The whole store against arrays in memory: random histories through the facade, every answer
// compared. A seed replays its history; arguments: tests/support/arguments.hpp.
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/support/arguments.hpp"
#include "tests/support/driver.hpp"
#include "tests/support/failure.hpp"

namespace vellum::support {
namespace {

constexpr double kDefaultSeconds = 4;
constexpr uint64_t kDefaultOperations = 400;
constexpr uint64_t kCapacityBytes = 256 << 20;  // room for every history; a full store: full_test

void run_history(uint64_t seed, uint64_t operations, const Profile& profile) {
  Random random(seed);
  SimulatedDisk disk;
  DriverOptions options;
  options.seed = random.next();
  options.cache_bytes = random.chance(50) ? 256 << 10 : 4 << 20;
  options.verbose = arguments().verbose;
  store::Options format_options;
  format_options.background = false;
  format_options.random_seed = seed + 1;
  demand_ok(store::Store::format(disk, tiny_geometry(kCapacityBytes), format_options), "format");
  Driver driver(disk, options, Model());
  demand_ok(driver.open(), "open");
  for (uint64_t number = 1; number <= operations; ++number)
    driver.run(generate(driver.model(), profile, random, number));
  Profile writes = profile;
  for (unsigned& weight : writes.weights) weight = 0;
  writes.weights[static_cast<int>(Action::write)] = 1;
  for (uint64_t number = 1; number <= profile.last_writes; ++number)
    driver.run(generate(driver.model(), writes, random, operations + number));
  driver.check_all();
  if (profile.last_writes == 0) {  // else an open would have all zombies looked at again
    driver.close_and_check();
    demand_ok(driver.open(), "open");
  }
  driver.check_reclaim();
}

void run_histories(const Profile& profile) {
  const uint64_t operations = arguments().operations.value_or(kDefaultOperations);
  uint64_t histories = 0;
  ASSERT_NO_THROW(histories = run_seeds(kDefaultSeconds, [&](uint64_t seed) {
                    run_history(seed, operations, profile);
                  }));
  std::printf("%lu histories from seed %lu, %lu operations each\n", histories,
              arguments().seed.value_or(1), operations);
}

TEST(Model, RandomHistoriesAgree) { run_histories(model_profile()); }

TEST(Model, HistoriesFullOfReclaimAgree) { run_histories(reclaim_profile()); }  // P6

}  // namespace
}  // namespace vellum::support

int main(int argc, char** argv) { return vellum::support::seeded_main(argc, argv); }

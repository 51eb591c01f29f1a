// SPDX-License-Identifier: BSD-2-Clause
//
// The whole store against arrays in memory: random histories through the facade, every answer
// compared. A seed replays its history; arguments: tests/support/arguments.hpp.
#include <chrono>
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

Arguments arguments;

struct Totals {
  uint64_t seeds = 0;
  uint64_t operations = 0;
};

void run_history(uint64_t seed, uint64_t operations) {
  Random random(seed);
  SimulatedDisk disk;
  DriverOptions options;
  options.seed = random.next();
  options.cache_bytes = random.chance(50) ? 256 << 10 : 4 << 20;
  options.verbose = arguments.verbose;
  store::Options format_options;
  format_options.background = false;
  format_options.random_seed = seed + 1;
  demand_ok(store::Store::format(disk, tiny_geometry(kCapacityBytes), format_options), "format");
  Driver driver(disk, options, Model());
  demand_ok(driver.open(), "open");
  const Profile profile = model_profile();
  for (uint64_t number = 1; number <= operations; ++number)
    driver.run(generate(driver.model(), profile, random, number));
  driver.check_all();
  driver.close_and_check();
}

TEST(Model, RandomHistoriesAgree) {
  const uint64_t operations = arguments.operations.value_or(kDefaultOperations);
  const bool one_seed = arguments.seed && !arguments.seconds;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration<double>(arguments.seconds.value_or(kDefaultSeconds));
  Totals totals;
  uint64_t seed = arguments.seed.value_or(1);
  do {
    try {
      run_history(seed, operations);
    } catch (const Failure& failure) {
      FAIL() << "--seed " << seed << " --operations " << operations << ": " << failure.what();
    }
    ++totals.seeds;
    totals.operations += operations;
    ++seed;
  } while (!one_seed && std::chrono::steady_clock::now() < end);
  std::printf("%lu histories from seed %lu, %lu operations\n", totals.seeds,
              arguments.seed.value_or(1), totals.operations);
}

}  // namespace
}  // namespace vellum::support

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  vellum::support::arguments = vellum::support::parse_arguments(argc, argv);
  return RUN_ALL_TESTS();
}

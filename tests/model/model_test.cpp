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

void run_history(uint64_t seed, uint64_t operations) {
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
  const Profile profile = model_profile();
  for (uint64_t number = 1; number <= operations; ++number)
    driver.run(generate(driver.model(), profile, random, number));
  driver.check_all();
  driver.close_and_check();
}

TEST(Model, RandomHistoriesAgree) {
  const uint64_t operations = arguments().operations.value_or(kDefaultOperations);
  uint64_t histories = 0;
  ASSERT_NO_THROW(histories = run_seeds(kDefaultSeconds,
                                        [&](uint64_t seed) { run_history(seed, operations); }));
  std::printf("%lu histories from seed %lu, %lu operations each\n", histories,
              arguments().seed.value_or(1), operations);
}

}  // namespace
}  // namespace vellum::support

int main(int argc, char** argv) { return vellum::support::seeded_main(argc, argv); }

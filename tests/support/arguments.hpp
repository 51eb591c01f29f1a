// SPDX-License-Identifier: BSD-2-Clause
//
// What a seeded test is told by its command line, or else by its environment:
//
//   --seed N        VELLUM_SEED         where to begin, and with --seed alone the only seed
//   --operations N  VELLUM_OPERATIONS   of each history
//   --seconds N     VELLUM_SECONDS      go on with further seeds for so long
//   --length N      VELLUM_LENGTH       of each sequence, where all of a length are tried
//   --few           VELLUM_FEW          of fewer steps to choose from, likewise
//   --shard I       VELLUM_SHARD        do this part of all, from 0
//   --shards N      VELLUM_SHARDS       of so many
//   --verbose       VELLUM_VERBOSE      print every operation
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace vellum::support {

struct Arguments {
  std::optional<uint64_t> seed;
  std::optional<uint64_t> operations;
  std::optional<double> seconds;
  std::optional<uint64_t> length;
  uint64_t shard = 0, shards = 1;
  bool few = false;
  bool verbose = false;
};

// Of this process, once seeded_main() has read them.
const Arguments& arguments();

// main() of a seeded GoogleTest. Ends the process with a message and 2 for anything it does not
// know.
int seeded_main(int argc, char** argv);

// Runs the histories of one seed after another until the time is over, but one at least; with a
// seed and no time, only that one. Returns how many. A Failure is thrown on with its seed named.
uint64_t run_seeds(double default_seconds, const std::function<void(uint64_t seed)>& history);

}  // namespace vellum::support

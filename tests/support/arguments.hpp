// SPDX-License-Identifier: BSD-2-Clause
//
// What a seeded test is told by its command line, or else by its environment:
//
//   --seed N        VELLUM_SEED         where to begin, and with --seed alone the only seed
//   --operations N  VELLUM_OPERATIONS   of each history
//   --seconds N     VELLUM_SECONDS      go on with further seeds for so long
//   --verbose       VELLUM_VERBOSE      print every operation
#pragma once

#include <cstdint>
#include <optional>

namespace vellum::support {

struct Arguments {
  std::optional<uint64_t> seed;
  std::optional<uint64_t> operations;
  std::optional<double> seconds;
  bool verbose = false;
};

// Ends the process with a message and 2 for anything it does not know.
Arguments parse_arguments(int argc, char** argv);

}  // namespace vellum::support

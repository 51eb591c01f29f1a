// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/arguments.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/failure.hpp"

namespace vellum::support {

namespace {

Arguments of_process;

double number_or_exit(const std::string& name, const char* text) {
  char* end = nullptr;
  const double value = text ? std::strtod(text, &end) : 0;
  if (!text || end == text || *end != '\0' || value < 0) {
    std::fprintf(stderr, "%s needs a number\n", name.c_str());
    std::exit(2);
  }
  return value;
}

void set(Arguments& arguments, const std::string& name, const char* text) {
  const double value = number_or_exit(name, text);
  if (name == "--seed" || name == "VELLUM_SEED") arguments.seed = static_cast<uint64_t>(value);
  if (name == "--operations" || name == "VELLUM_OPERATIONS")
    arguments.operations = static_cast<uint64_t>(value);
  if (name == "--seconds" || name == "VELLUM_SECONDS") arguments.seconds = value;
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (const char* name : {"VELLUM_SEED", "VELLUM_OPERATIONS", "VELLUM_SECONDS"})
    if (const char* text = std::getenv(name)) set(arguments, name, text);
  arguments.verbose = std::getenv("VELLUM_VERBOSE") != nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose") {
      arguments.verbose = true;
    } else if (name == "--seed" || name == "--operations" || name == "--seconds") {
      set(arguments, name, i + 1 < argc ? argv[++i] : nullptr);
    } else {
      std::fprintf(stderr,
                   "unknown argument %s; known: --seed, --operations, --seconds, --verbose\n",
                   name.c_str());
      std::exit(2);
    }
  }
  return arguments;
}

}  // namespace

const Arguments& arguments() { return of_process; }

int seeded_main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  of_process = parse_arguments(argc, argv);
  return RUN_ALL_TESTS();
}

uint64_t run_seeds(double default_seconds, const std::function<void(uint64_t seed)>& history) {
  using Clock = std::chrono::steady_clock;
  const double seconds = of_process.seconds.value_or(default_seconds);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const bool one_seed = of_process.seed && !of_process.seconds;
  uint64_t histories = 0;
  do {
    const uint64_t seed = of_process.seed.value_or(1) + histories;
    try {
      history(seed);
    } catch (const Failure& failure) {
      throw Failure("--seed " + std::to_string(seed) + ": " + failure.what());
    }
    ++histories;
  } while (!one_seed && Clock::now() < end);
  return histories;
}

}  // namespace vellum::support

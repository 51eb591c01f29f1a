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

// What has a number, and where it goes; `name` as it is on a command line.
bool set(Arguments& arguments, const std::string& name, const char* text) {
  const auto is = [&](const char* known, auto& value) {
    if (name != known) return false;
    value = static_cast<uint64_t>(number_or_exit(name, text));
    return true;
  };
  if (name == "--seconds") {
    arguments.seconds = number_or_exit(name, text);
    return true;
  }
  return is("--seed", arguments.seed) || is("--operations", arguments.operations) ||
         is("--length", arguments.length) || is("--shard", arguments.shard) ||
         is("--shards", arguments.shards);
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (const char* name : {"SEED", "OPERATIONS", "SECONDS", "LENGTH", "SHARD", "SHARDS"}) {
    std::string option = "--";
    for (const char* at = name; *at != '\0'; ++at) option += static_cast<char>(*at - 'A' + 'a');
    if (const char* text = std::getenv((std::string("VELLUM_") + name).c_str()))
      set(arguments, option, text);
  }
  arguments.few = std::getenv("VELLUM_FEW") != nullptr;
  arguments.verbose = std::getenv("VELLUM_VERBOSE") != nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose") {
      arguments.verbose = true;
    } else if (name == "--few") {
      arguments.few = true;
    } else if (set(arguments, name, i + 1 < argc ? argv[i + 1] : nullptr)) {
      ++i;
    } else {
      std::fprintf(stderr,
                   "unknown argument %s; known: --seed, --operations, --seconds, --length, "
                   "--few, --shard, --shards, --verbose\n",
                   name.c_str());
      std::exit(2);
    }
  }
  if (arguments.shard >= arguments.shards) {
    std::fprintf(stderr, "--shard %lu of --shards %lu: they count from 0\n", arguments.shard,
                 arguments.shards);
    std::exit(2);
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

// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/arguments.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace vellum::support {

namespace {

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

}  // namespace

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

}  // namespace vellum::support

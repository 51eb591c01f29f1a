// SPDX-License-Identifier: BSD-2-Clause
#include "common/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace vellum {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, expression);
  std::abort();
}

}  // namespace vellum

// SPDX-License-Identifier: BSD-2-Clause
//
// CHECK: a mistake of ours ends the process, in release builds too. Nothing that a client, an
// operator or a damaged disk can do reaches one.
#pragma once

namespace vellum {

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace vellum

#define CHECK(expression)                                      \
  do {                                                         \
    if (!(expression)) [[unlikely]]                            \
      ::vellum::check_failed(#expression, __FILE__, __LINE__); \
  } while (false)

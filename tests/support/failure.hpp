// SPDX-License-Identifier: BSD-2-Clause
//
// How a check inside a random history gives up: the test that runs the history catches it and
// prints the seed. Thrown in tests only.
#pragma once

#include <stdexcept>
#include <string>

#include "common/base/result.hpp"

namespace vellum::support {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A call that had to succeed and did not: forgiven if the disk had been told to fail.
class Refused : public Failure {
 public:
  using Failure::Failure;
};

inline void demand(bool condition, const std::string& what) {
  if (!condition) throw Failure(what);
}

template <typename T>
T demand_ok(Result<T> result, const std::string& what) {
  if (!result.ok()) throw Refused(what + ": " + result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(result).value();
}

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
//
// Reads one JSON text from a client, more strictly than JSON itself:
// 1. A member that stands twice in one object is a flaw: which of the two counts is anybody's
// guess.
// 2. So is nesting deeper than kDepthMax. What lies deeper is not kept, so that reading, keeping
// and
//    printing a value take bounded stack.
// 3. A text with a flaw is read to its end, so that the answer can carry its id.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace vellum::control {

inline constexpr size_t kDepthMax = 8;

struct Flaw {
  enum class Kind { duplicate, too_deep } kind = Kind::duplicate;
  // For each open object or array, from the outside in, the member being read; "" in an array.
  std::vector<std::string> path;
};

struct Reading {
  nlohmann::json value;
  std::optional<size_t> error_position;  // in bytes: from there on it is not JSON in UTF-8
  std::optional<Flaw> flaw;              // the first
};

Reading read_json(std::string_view text);

}  // namespace vellum::control

// SPDX-License-Identifier: BSD-2-Clause
//
// What a client is told when it does not get what it asked for: the codes of PROTOCOL.md, and the
// one place where the store's errors become them.
#pragma once

#include <optional>
#include <string>

#include "common/base/result.hpp"

namespace vellum::control {

enum class Code : int {
  parse_error = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal_error = -32603,
  not_found = -32001,
  exists = -32002,
  in_use = -32003,
  incompatible = -32004,
  no_space = -32005,
  limit = -32006,
  busy = -32007,
  out_of_range = -32008,
  destroyed = -32009,
  precondition = -32010,
  io_error = -32011,
  timeout = -32012,
  corrupt = -32013,
  read_only = -32014,
  unsupported = -32015,
  shut_down = -32016,
};

// The word for a code that stands in `data.reason`.
const char* reason(Code code);

Code code_of(Errc errc);

struct Refusal {
  Code code = Code::internal_error;
  std::string message;
  std::optional<std::string> parameter = {};  // the one at fault, if it was one
};

inline Refusal refusal_of(const Error& error) { return {code_of(error.code), error.message}; }

}  // namespace vellum::control

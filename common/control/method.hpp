// SPDX-License-Identifier: BSD-2-Clause
//
// The table of methods. A method is its name, what it takes, and what carries it out. Each
// methods_*.cpp adds its own; dispatcher.cpp looks them up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/control/dispatcher.hpp"
#include "common/control/parameters.hpp"
#include "common/store/store.hpp"

namespace vellum::control {

struct Call {
  store::Store& store;
  const ServerFacts& facts;
  int64_t started = 0;  // when the server did, in milliseconds since 1970
  std::string_view method;
  const Arguments& arguments;
};

// Returns JSON text.
using Handler = Result<std::string> (*)(const Call& call);

struct Method {
  std::string_view name;
  Handler handler = nullptr;
  std::vector<Parameter> parameters;
  bool changes = false;  // then it takes a request_id too
};

// All of them, by name.
const std::vector<Method>& methods();

// The parts.
std::vector<Method> volume_methods();
std::vector<Method> snapshot_methods();
std::vector<Method> query_methods();
std::vector<Method> store_methods();

}  // namespace vellum::control

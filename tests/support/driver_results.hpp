// SPDX-License-Identifier: BSD-2-Clause
//
// What the parts of the driver share.
#pragma once

#include <optional>

#include "common/store/types.hpp"
#include "tests/support/operation.hpp"

namespace vellum::support {

template <typename T>
std::optional<Error> error_of(const Result<T>& result) {
  if (result.ok()) return std::nullopt;
  return result.error();
}

template <typename T>
store::Once<T> once(const Operation& operation) {
  if (operation.request_id.empty()) return {};
  return {operation.request_id, [id = operation.request_id](const T&) { return answer_to(id); }};
}

}  // namespace vellum::support

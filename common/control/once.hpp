// SPDX-License-Identifier: BSD-2-Clause
//
// Changes that are carried out once however often they are asked for. The store keeps the answer
// by request_id, in one record with the change. What it keeps is
//     FINGERPRINT RESULT
// where FINGERPRINT (16 hexadecimal digits) stands for the method and its parameters, and RESULT is
// the JSON text of the first answer.
//
// 1. The same request_id with the same method and parameters gets the first answer, word for word.
// 2. With others it is refused: a client that reuses ids has a mistake which must not look like
//    success.
// 3. Refusals are not kept: what failed may be tried again under its id.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/control/encode.hpp"
#include "common/control/method.hpp"

namespace vellum::control {

std::string fingerprint(const Call& call);

// The answer that the store keeps for this call, a refusal if it is another call's, or nothing.
std::optional<Result<std::string>> first_answer(const Call& call);

// Runs change(once), which returns Result<T>, unless it has been run; T is encoded by encode(T).
template <typename T, typename Change>
Result<std::string> carry_out_once(const Call& call, Change change) {
  if (auto answer = first_answer(call)) return std::move(*answer);
  store::Once<T> once;
  if (auto request_id = call.arguments.maybe_text("request_id")) {
    once.request_id = std::move(*request_id);
    once.encode = [mark = fingerprint(call)](const T& value) { return mark + " " + encode(value); };
  }
  auto result = change(once);
  if (result.ok()) return encode(*result);
  if (result.error().code == Errc::answered) {  // another call with this id came in between
    if (auto answer = first_answer(call)) return std::move(*answer);
  }
  return std::move(result).error();
}

}  // namespace vellum::control

// SPDX-License-Identifier: BSD-2-Clause
//
// The envelope of JSON-RPC 2.0: a line becomes a Request or a Refusal, and results and refusals
// become lines. What is here knows nothing of methods.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/control/refusal.hpp"

namespace vellum::control {

inline constexpr size_t kIdLengthMax = 256;  // of a request's `id`, in bytes

struct Request {
  nlohmann::json id;          // null as long as it is not known
  bool notification = false;  // no id was given: it is carried out and not answered
  std::string method;
  nlohmann::json params = nlohmann::json::object();
  std::optional<Refusal> refusal;  // then only `id` and `notification` count
};

Request parse_request(std::string_view line);

// `result` is JSON text.
std::string result_line(const nlohmann::json& id, std::string_view result);
std::string refusal_line(const nlohmann::json& id, const Refusal& refusal);

// What a client sent, for a message: quoted, printable, not too long.
std::string in_quotes(std::string_view text);

// JSON text on one line, whatever the strings hold: bytes that are no UTF-8 are replaced.
std::string to_text(const nlohmann::json& value);
std::string to_text(const nlohmann::ordered_json& value);

}  // namespace vellum::control

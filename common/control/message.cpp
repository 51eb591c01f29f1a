// SPDX-License-Identifier: BSD-2-Clause
#include "common/control/message.hpp"

#include <utility>

#include "common/control/json_reader.hpp"

namespace vellum::control {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kQuotedLengthMax = 80;

Refusal invalid_request(std::string message) { return {Code::invalid_request, std::move(message)}; }

Refusal syntax_error(size_t position) {
  return {Code::parse_error, "the line is not JSON in UTF-8: see byte " + std::to_string(position) +
                                 "; a request is one JSON object on one line"};
}

Refusal refusal_of(const Flaw& flaw) {
  const bool in_params = flaw.path.size() >= 2 && flaw.path.front() == "params";
  std::string message = in_quotes(
      flaw.kind == Flaw::Kind::duplicate ? flaw.path.back() : flaw.path[in_params ? 1 : 0]);
  if (flaw.kind == Flaw::Kind::duplicate) {
    message += " stands twice in one object: give it once";
  } else {
    message +=
        " is nested more than " + std::to_string(kDepthMax) + " levels deep: nothing needs that";
  }
  if (in_params) return {Code::invalid_params, "parameter " + message, flaw.path[1]};
  return invalid_request("member " + message);
}

std::optional<Refusal> take_id(const json& id, Request& request) {
  if (id.is_string() && id.get_ref<const std::string&>().size() > kIdLengthMax) {
    return invalid_request("id must have at most " + std::to_string(kIdLengthMax) + " bytes");
  }
  if (!id.is_string() && !id.is_number_integer() && !id.is_null()) {
    return invalid_request("id must be a string, an integer or null");
  }
  request.id = id;
  return std::nullopt;
}

std::optional<Refusal> take_member(const std::string& name, const json& value, Request& request) {
  if (name == "jsonrpc") {
    if (value != "2.0") return invalid_request(R"(jsonrpc must be "2.0")");
  } else if (name == "method") {
    if (!value.is_string()) return invalid_request("method must be a string");
    request.method = value.get<std::string>();
  } else if (name == "params") {
    if (!value.is_object()) {
      return Refusal{Code::invalid_params,
                     "params must be an object: parameters are given by name"};
    }
    request.params = value;
  } else if (name != "id") {
    return invalid_request("unknown member " + in_quotes(name) +
                           ": a request has jsonrpc, id, method and params");
  }
  return std::nullopt;
}

std::optional<Refusal> take_members(const json& object, Request& request) {
  for (const auto& [name, value] : object.items()) {
    if (auto refusal = take_member(name, value, request)) return refusal;
  }
  for (const char* name : {"jsonrpc", "method"}) {
    if (!object.contains(name)) return invalid_request(std::string(name) + " is missing");
  }
  return std::nullopt;
}

std::optional<Refusal> take_envelope(const Reading& reading, Request& request) {
  if (reading.error_position) return syntax_error(*reading.error_position);
  if (reading.value.is_array()) {
    return invalid_request("batches are not served: send the requests one a line");
  }
  if (!reading.value.is_object()) return invalid_request("a request is a JSON object");
  const auto id = reading.value.find("id");
  request.notification = id == reading.value.end();
  if (!request.notification) {
    if (auto refusal = take_id(*id, request)) return refusal;
  }
  if (reading.flaw) return refusal_of(*reading.flaw);
  return take_members(reading.value, request);
}

}  // namespace

Request parse_request(std::string_view line) {
  Request request;
  request.refusal = take_envelope(read_json(line), request);
  return request;
}

std::string result_line(const json& id, std::string_view result) {
  std::string line = R"({"jsonrpc":"2.0","id":)";
  line += to_text(id);
  line += R"(,"result":)";
  line += result;
  line += '}';
  return line;
}

std::string refusal_line(const json& id, const Refusal& refusal) {
  ordered_json data{{"reason", reason(refusal.code)}};
  if (refusal.parameter) data["parameter"] = *refusal.parameter;
  const ordered_json error{{"code", static_cast<int>(refusal.code)},
                           {"message", refusal.message},
                           {"data", std::move(data)}};
  return R"({"jsonrpc":"2.0","id":)" + to_text(id) + R"(,"error":)" + to_text(error) + "}";
}

std::string in_quotes(std::string_view text) {
  const bool cut = text.size() > kQuotedLengthMax;
  const json value = std::string(text.substr(0, kQuotedLengthMax));
  // Cut inside a character, the rest of it goes rather than becoming a replacement.
  std::string result = value.dump(-1, ' ', true, json::error_handler_t::ignore);
  if (cut) result += "...";
  return result;
}

std::string to_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string to_text(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace vellum::control

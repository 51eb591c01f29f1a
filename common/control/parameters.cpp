// SPDX-License-Identifier: BSD-2-Clause
#include "common/control/parameters.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/check.hpp"
#include "common/control/message.hpp"
#include "common/control/names.hpp"
#include "common/store/types.hpp"

namespace vellum::control {
namespace {

using nlohmann::json;

constexpr size_t kShownMax = 80;  // bytes of what was given, in a message

std::string integer_rule(const Parameter& parameter) {
  std::string rule = "an integer from " + std::to_string(parameter.least) + " to " +
                     std::to_string(parameter.most);
  if (parameter.power_of_two) rule += ", a power of two";
  if (parameter.multiple_of > 1) {
    rule += ", a multiple of " + std::to_string(parameter.multiple_of);
  }
  return rule;
}

std::string choice_rule(const Parameter& parameter) {
  std::string rule;
  for (const std::string_view choice : parameter.choices) {
    rule += (rule.empty() ? "" : " or ") + in_quotes(choice);
  }
  return rule;
}

std::string rule_of(const Parameter& parameter) {
  const std::string name_rule = kNameRule;
  switch (parameter.kind) {
    case Kind::volume:
      return "the name of a volume: " + name_rule;
    case Kind::volumes:
      return "an array of 1 to " + std::to_string(store::kGroupMax) +
             " names of volumes, each once: " + name_rule;
    case Kind::suffix:
      return "a snapshot's suffix: " + name_rule;
    case Kind::snapshot:
      return "a snapshot, VOLUME@SUFFIX, both of them " + name_rule;
    case Kind::reference:
      return "a snapshot, VOLUME@SUFFIX or the SUFFIX alone, both of them " + name_rule;
    case Kind::target:
      return "a volume or a snapshot, VOLUME or VOLUME@SUFFIX, both of them " + name_rule;
    case Kind::targets:
      return "an array of 1 to " + std::to_string(store::kGroupMax) +
             " volumes and snapshots, each once, VOLUME or VOLUME@SUFFIX, both of them " +
             name_rule;
    case Kind::integer:
      return integer_rule(parameter);
    case Kind::boolean:
      return "true or false";
    case Kind::choice:
      return choice_rule(parameter);
    case Kind::request_id:
      return "a string of 1 to " + std::to_string(store::kRequestIdLengthMax) + " bytes";
  }
  return {};
}

bool is_integer(const json& value, const Parameter& parameter) {
  if (!value.is_number_integer()) return false;
  if (!value.is_number_unsigned() && value.get<int64_t>() < 0) return false;
  const auto number = value.get<uint64_t>();
  return number >= parameter.least && number <= parameter.most &&
         number % parameter.multiple_of == 0 &&
         (!parameter.power_of_two || (number & (number - 1)) == 0);
}

bool is_group(const json& value, bool (*is_member)(const std::string&)) {
  if (!value.is_array() || value.empty() || value.size() > store::kGroupMax) return false;
  std::set<std::string> seen;
  return std::all_of(value.begin(), value.end(), [&](const json& element) {
    return element.is_string() && is_member(element.get_ref<const std::string&>()) &&
           seen.insert(element.get<std::string>()).second;
  });
}

bool is_target(const std::string& text) { return is_name(text) || is_snapshot_name(text); }

bool is_text(const std::string& text, const Parameter& parameter) {
  switch (parameter.kind) {
    case Kind::volume:
    case Kind::suffix:
      return is_name(text);
    case Kind::snapshot:
      return is_snapshot_name(text);
    case Kind::reference:
    case Kind::target:
      return is_target(text);
    case Kind::choice:
      return std::count(parameter.choices.begin(), parameter.choices.end(), text) > 0;
    case Kind::request_id:
      return !text.empty() && text.size() <= store::kRequestIdLengthMax;
    default:
      return false;
  }
}

bool is_allowed(const json& value, const Parameter& parameter) {
  switch (parameter.kind) {
    case Kind::volumes:
      return is_group(value, [](const std::string& name) { return is_name(name); });
    case Kind::targets:
      return is_group(value, is_target);
    case Kind::integer:
      return is_integer(value, parameter);
    case Kind::boolean:
      return value.is_boolean();
    default:
      return value.is_string() && is_text(value.get_ref<const std::string&>(), parameter);
  }
}

std::string shown(const json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= kShownMax ? text : text.substr(0, kShownMax) + "...";
}

Refusal refusal(const Parameter& parameter, const std::string& what) {
  return {Code::invalid_params, "parameter " + in_quotes(parameter.name) + what,
          std::string(parameter.name)};
}

Refusal unknown(const std::string& method, const std::vector<Parameter>& parameters,
                const std::string& name) {
  std::string known;
  for (const Parameter& parameter : parameters) {
    known += (known.empty() ? "" : ", ") + std::string(parameter.name);
  }
  return {Code::invalid_params,
          "unknown parameter " + in_quotes(name) + ": " + method + " takes " +
              (known.empty() ? "none" : known),
          name.substr(0, kShownMax)};
}

}  // namespace

Parameter required(std::string_view name, Kind kind) { return {name, kind, true}; }

Parameter optional(std::string_view name, Kind kind) { return {name, kind}; }

Parameter flag(std::string_view name, bool otherwise) {
  return {name, Kind::boolean, false, otherwise ? "true" : "false"};
}

Parameter volume_size(std::string_view name) {
  return {name,
          Kind::integer,
          true,
          nullptr,
          store::kVolumeSizeUnit,
          store::kVolumeSizeMax,
          store::kVolumeSizeUnit};
}

std::optional<Refusal> check_parameters(const std::string& method,
                                        const std::vector<Parameter>& parameters, json& params) {
  for (const auto& [name, value] : params.items()) {
    const auto same_name = [&name = name](const Parameter& p) { return p.name == name; };
    const auto parameter = std::find_if(parameters.begin(), parameters.end(), same_name);
    if (parameter == parameters.end()) return unknown(method, parameters, name);
    if (!is_allowed(value, *parameter)) {
      return refusal(*parameter, " must be " + rule_of(*parameter) + "; given: " + shown(value));
    }
  }
  for (const Parameter& parameter : parameters) {
    const std::string name(parameter.name);
    if (params.contains(name)) continue;
    if (parameter.required) return refusal(parameter, " is missing: " + rule_of(parameter));
    if (parameter.otherwise != nullptr) params[name] = json::parse(parameter.otherwise);
  }
  return std::nullopt;
}

const json& Arguments::at(const char* name) const {
  const auto value = values_.find(name);
  CHECK(value != values_.end());
  return *value;
}

const std::string& Arguments::text(const char* name) const {
  return at(name).get_ref<const std::string&>();
}

std::optional<std::string> Arguments::maybe_text(const char* name) const {
  if (!has(name)) return std::nullopt;
  return text(name);
}

uint64_t Arguments::number(const char* name) const { return at(name).get<uint64_t>(); }

bool Arguments::flag(const char* name) const { return at(name).get<bool>(); }

std::vector<std::string> Arguments::texts(const char* name) const {
  return at(name).get<std::vector<std::string>>();
}

std::string Arguments::canonical() const {
  json values = values_;
  values.erase("request_id");
  return to_text(values);
}

}  // namespace vellum::control

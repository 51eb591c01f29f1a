// SPDX-License-Identifier: BSD-2-Clause
//
// What a method takes, as data, and the one check of it at the edge:
// 1. Every value that a handler sees has the kind and lies in the range that its Parameter says;
//    names keep the rules of names. Whether what they name exists is the store's business.
// 2. Nothing that is not declared gets through, and nothing required is missing.
// 3. A refusal names the parameter, says what is allowed, and shows what was given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/control/refusal.hpp"

namespace vellum::control {

enum class Kind {
  volume,     // the name of a volume
  volumes,    // 1 to store::kGroupMax of them, each once
  suffix,     // of a snapshot
  snapshot,   // VOLUME@SUFFIX
  reference,  // a suffix, or VOLUME@SUFFIX
  target,     // a volume, or VOLUME@SUFFIX
  targets,    // 1 to store::kGroupMax of them, each once
  integer,
  boolean,
  choice,
  request_id,
};

struct Parameter {
  std::string_view name;
  Kind kind = Kind::boolean;
  bool required = false;
  const char* otherwise = nullptr;  // JSON text of the value that an absent one has; null: none
  // Of an integer:
  uint64_t least = 0;
  uint64_t most = 0;
  uint64_t multiple_of = 1;
  bool power_of_two = false;
  // Of a choice:
  std::vector<std::string_view> choices = {};
};

Parameter required(std::string_view name, Kind kind);
Parameter optional(std::string_view name, Kind kind);
Parameter flag(std::string_view name, bool otherwise);
Parameter volume_size(std::string_view name);

// The checked parameters of one call. A handler asks only for what its method declares (CHECK).
class Arguments {
 public:
  explicit Arguments(nlohmann::json values) : values_(std::move(values)) {}

  bool has(const char* name) const { return values_.contains(name); }
  const std::string& text(const char* name) const;
  std::optional<std::string> maybe_text(const char* name) const;
  uint64_t number(const char* name) const;
  bool flag(const char* name) const;
  std::vector<std::string> texts(const char* name) const;

  // Equal for calls that ask for the same: all values with defaults filled in, request_id apart.
  std::string canonical() const;

 private:
  const nlohmann::json& at(const char* name) const;
  nlohmann::json values_;
};

// Checks `params` against what `method` takes, and fills in what is absent and has a default.
std::optional<Refusal> check_parameters(const std::string& method,
                                        const std::vector<Parameter>& parameters,
                                        nlohmann::json& params);

}  // namespace vellum::control

// SPDX-License-Identifier: BSD-2-Clause
#include "common/control/once.hpp"

#include <string_view>

#include "common/control/message.hpp"

namespace vellum::control {
namespace {

constexpr size_t kFingerprintLength = 16;

// FNV-1a. It has to tell mistakes apart, not attacks: a client can only deceive itself.
uint64_t hash(std::string_view text) {
  uint64_t value = 0xcbf29ce484222325;
  for (const char c : text) {
    value ^= static_cast<unsigned char>(c);
    value *= 0x100000001b3;
  }
  return value;
}

}  // namespace

std::string fingerprint(const Call& call) {
  uint64_t value = hash(std::string(call.method) + "\n" + call.arguments.canonical());
  std::string text(kFingerprintLength, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value >>= 4) {
    *digit = "0123456789abcdef"[value & 15];
  }
  return text;
}

std::optional<Result<std::string>> first_answer(const Call& call) {
  const auto request_id = call.arguments.maybe_text("request_id");
  if (!request_id) return std::nullopt;
  const auto kept = call.store.find_answer(*request_id);
  if (!kept) return std::nullopt;
  if (kept->compare(0, kFingerprintLength, fingerprint(call)) != 0) {
    return Error{Errc::invalid_argument,
                 "parameter \"request_id\" must be a new one: " + in_quotes(*request_id) +
                     " has been used with another method or other parameters within the last hour"};
  }
  return kept->substr(kFingerprintLength + 1);
}

}  // namespace vellum::control

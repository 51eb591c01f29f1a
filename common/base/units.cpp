// SPDX-License-Identifier: BSD-2-Clause
#include "common/base/units.hpp"

#include <charconv>
#include <cstdio>
#include <optional>

namespace vellum {
namespace {

constexpr std::string_view kPrefixes = "KMGTP";  // the power of 1024 is the index + 1

// The number of bits to shift by for what follows the digits; nothing if that is no unit.
std::optional<unsigned> unit_shift(std::string_view unit) {
  if (unit.empty() || unit == "B") return 0;
  const char letter =
      unit[0] >= 'a' && unit[0] <= 'z' ? static_cast<char>(unit[0] - 'a' + 'A') : unit[0];
  const size_t power = kPrefixes.find(letter);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = unit.substr(1);
  if (!rest.empty() && rest != "B" && rest != "iB") return std::nullopt;
  return static_cast<unsigned>(10 * (power + 1));
}

Error bad_size(std::string_view text, std::string_view why) {
  return {Errc::invalid_argument, "'" + std::string(text) + "' " + std::string(why)};
}

}  // namespace

Result<uint64_t> parse_size(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::result_out_of_range) return bad_size(text, "is too large for a size");
  const std::optional<unsigned> shift =
      error == std::errc() ? unit_shift({rest, static_cast<size_t>(end - rest)}) : std::nullopt;
  if (!shift) {
    return bad_size(text, "is not a size; write whole bytes, or a number with K, M, G, T or P");
  }
  if (number > UINT64_MAX >> *shift) return bad_size(text, "is too large for a size");
  return number << *shift;
}

std::string format_size(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t power = 0;
  // From 999.5 on three digits would round up to a fourth.
  while (value >= 999.5 && power + 1 < kPrefixes.size()) {
    value /= 1024;
    ++power;
  }
  char text[32];
  std::snprintf(text, sizeof text, value >= 999.5 ? "%.0f %ciB" : "%.3g %ciB", value,
                kPrefixes[power]);
  return text;
}

std::string format_size_exact(uint64_t bytes) {
  size_t power = 0;
  while (power < kPrefixes.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++power;
  }
  std::string text = std::to_string(bytes);
  if (power > 0) text += kPrefixes[power - 1];
  return text;
}

}  // namespace vellum

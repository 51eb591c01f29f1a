// SPDX-License-Identifier: BSD-2-Clause
#include "common/base/units.hpp"

#include <algorithm>
#include <array>
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

namespace {

struct TimeUnit {
  char suffix;
  const char* name;
  int64_t milliseconds;
};
constexpr std::array<TimeUnit, 4> kTimeUnits{{{'d', "d", int64_t{24} * 3600 * 1000},
                                              {'h', "h", int64_t{3600} * 1000},
                                              {'m', "min", int64_t{60} * 1000},
                                              {'s', "s", 1000}}};

}  // namespace

Result<int64_t> parse_duration(std::string_view text) {
  const Error error{
      Errc::invalid_argument,
      "\"" + std::string(text) + "\" is no duration: write one like 90s, 30m, 24h or 7d"};
  if (text == "0") return 0;
  const auto unit = std::find_if(kTimeUnits.begin(), kTimeUnits.end(), [&](const TimeUnit& each) {
    return !text.empty() && text.back() == each.suffix;
  });
  if (unit == kTimeUnits.end()) return error;
  uint32_t count = 0;
  const char* end = text.data() + text.size() - 1;
  const auto [stopped, fault] = std::from_chars(text.data(), end, count);
  if (fault != std::errc() || stopped != end) return error;
  return int64_t{count} * unit->milliseconds;
}

std::string format_duration(int64_t milliseconds) {
  std::string text;
  int units = 0;
  for (const TimeUnit& unit : kTimeUnits) {
    const int64_t count = milliseconds / unit.milliseconds;
    if (count == 0 && (units > 0 || unit.suffix != 's')) {
      if (units > 0) break;
      continue;
    }
    text += (units > 0 ? " " : "") + std::to_string(count) + " " + unit.name;
    milliseconds -= count * unit.milliseconds;
    if (++units == 2) break;
  }
  return text;
}

}  // namespace vellum

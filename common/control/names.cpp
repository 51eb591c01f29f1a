// SPDX-License-Identifier: BSD-2-Clause
#include "common/control/names.hpp"

#include <algorithm>

#include "common/store/types.hpp"

namespace vellum::control {
namespace {

// Not isalnum(), which asks the locale.
bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name_character(char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; }

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= store::kNameLengthMax &&
         is_letter_or_digit(text.front()) &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

bool is_snapshot_name(std::string_view text) {
  const size_t at = text.find('@');
  return at != std::string_view::npos && is_name(text.substr(0, at)) &&
         is_name(text.substr(at + 1));
}

}  // namespace vellum::control

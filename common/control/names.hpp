// SPDX-License-Identifier: BSD-2-Clause
//
// The rules of names, as far as they can be told without a store.
#pragma once

#include <string_view>

namespace vellum::control {

// Of a volume, and of a snapshot's suffix.
inline constexpr const char* kNameRule =
    "1 to 63 of the characters A-Z a-z 0-9 . _ - beginning with a letter or a digit";

bool is_name(std::string_view text);
bool is_snapshot_name(std::string_view text);  // VOLUME@SUFFIX

}  // namespace vellum::control

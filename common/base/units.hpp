// SPDX-License-Identifier: BSD-2-Clause
//
// Sizes as people write them: "512", "64K", "10G", "40TiB". Suffixes K, M, G, T, P are powers of
// 1024, in either case, and may be followed by "iB" or "B". Durations likewise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.hpp"

namespace vellum {

// Errors: Errc::invalid_argument, with a message that names `text`; also when the size is 2^64 or
// more.
Result<uint64_t> parse_size(std::string_view text);

// The shortest form that says it to three digits: "512 B", "1.5 GiB", "40 TiB".
std::string format_size(uint64_t bytes);

// A form that parse_size() turns back into exactly `bytes`: "512", "1536M", "40T".
std::string format_size_exact(uint64_t bytes);

// "0", "90s", "30m", "24h", "7d" as milliseconds. Errors: Errc::invalid_argument, naming `text`.
Result<int64_t> parse_duration(std::string_view text);

// In two units at most: "0 s", "59 s", "23 h 59 min", "7 d".
std::string format_duration(int64_t milliseconds);

}  // namespace vellum

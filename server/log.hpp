// SPDX-License-Identifier: BSD-2-Clause
//
// The daemon's log, on stderr. Lines are for operators: a client that comes and goes is no news.
#pragma once

#include <string>

namespace vellum::server {

enum class LogLevel { debug, info, warning, error };

// Once, before any thread. Lines below `level` are dropped.
void start_log(LogLevel level);

void log(LogLevel level, const std::string& message);
inline void log_debug(const std::string& message) { log(LogLevel::debug, message); }
inline void log_info(const std::string& message) { log(LogLevel::info, message); }
inline void log_warning(const std::string& message) { log(LogLevel::warning, message); }
inline void log_error(const std::string& message) { log(LogLevel::error, message); }

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
#include "server/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace vellum::server {

namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void start_log(LogLevel level) {
  auto logger = spdlog::stderr_logger_mt("vellumd");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %n %l: %v");
  logger->set_level(spdlog_level(level));
  spdlog::set_default_logger(std::move(logger));
}

void log(LogLevel level, const std::string& message) {
  spdlog::default_logger_raw()->log(spdlog_level(level), message);
}

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
//
// The command line of vellumd. Everything is checked here, apart from what only the system can
// tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.hpp"
#include "server/listening_socket.hpp"
#include "server/log.hpp"

namespace vellum::server {

struct Options {
  std::string store_path;
  bool create = false;
  bool force = false;
  std::optional<int64_t> eradication_delay;  // milliseconds; none: the default
  std::optional<uint64_t> capacity_bytes;    // none: the device's size, or the store's default
  std::vector<std::string> unix_paths;
  std::vector<TcpAddress> tcp_addresses;
  std::string control_path;
  uint64_t cache_bytes = 256 << 20;
  size_t threads = 1;
  std::string pid_file;  // empty: none
  LogLevel log_level = LogLevel::info;
  SocketAccess access;
  // The folder of the default sockets, to be made if it is missing; empty: no default is used.
  std::string runtime_directory;
};

// What the command line asks for: to serve, or just to print `text` (--help, --version).
struct CommandLine {
  std::optional<Options> options;
  std::string text;
};

// Errors name the option, its value, and what would help.
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

}  // namespace vellum::server

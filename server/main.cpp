// SPDX-License-Identifier: BSD-2-Clause
//
// vellumd: builds everything, serves until it is told to stop, and takes it down again.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <iostream>
#include <memory>
#include <utility>

#include "common/disk/file_disk.hpp"
#include "common/store/store.hpp"
#include "server/log.hpp"
#include "server/options.hpp"
#include "server/pid_file.hpp"
#include "server/server.hpp"

namespace vellum::server {
namespace {

void log_from_store(int level, const std::string& message) {
  constexpr LogLevel kLevels[] = {LogLevel::debug, LogLevel::info, LogLevel::warning,
                                  LogLevel::error};
  log(kLevels[std::min(std::max(level, 0), 3)], message);
}

// As many descriptors as the system allows: there may be thousands of connections.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

disk::OpenMode open_mode(const Options& options) {
  if (options.force) return disk::OpenMode::create_forced;
  return options.create ? disk::OpenMode::create : disk::OpenMode::existing;
}

Result<std::unique_ptr<disk::FileDisk>> open_disk(const Options& options) {
  auto disk = disk::FileDisk::open(options.store_path, open_mode(options));
  if (!disk.ok() && disk.error().code == Errc::not_found && !options.create) {
    return Error{Errc::not_found, disk.error().message + ". To make a new store, give --create"};
  }
  return disk;
}

Result<void> format(disk::FileDisk& disk, const Options& options,
                    const store::Options& store_options) {
  store::Geometry geometry;
  geometry.eradication_delay = options.eradication_delay.value_or(geometry.eradication_delay);
  if (!disk.can_grow()) geometry.capacity = disk.size_bytes();
  if (options.capacity_bytes) geometry.capacity = *options.capacity_bytes;
  if (!disk.can_grow() && geometry.capacity > disk.size_bytes()) {
    return Error{Errc::invalid_argument,
                 "--capacity is more than the " + std::to_string(disk.size_bytes()) +
                     " bytes of '" + disk.name() + "': leave it out to use all of the device"};
  }
  return store::Store::format(disk, geometry, store_options);
}

Result<void> serve(const Options& options) {
  TRY_ASSIGN(ServerSockets sockets, open_sockets(options));
  const bool is_new = options.create && access(options.store_path.c_str(), F_OK) != 0;
  TRY_ASSIGN(const auto disk, open_disk(options));
  store::Options store_options;
  store_options.cache_bytes = options.cache_bytes;
  store_options.log = log_from_store;
  if (options.create) {
    Result<void> formatted = format(*disk, options, store_options);
    if (!formatted.ok() && is_new) unlink(options.store_path.c_str());
    TRY(std::move(formatted));
  }
  TRY_ASSIGN(const auto store, store::Store::open(*disk, store_options));
  TRY_ASSIGN(const PidFile pid_file, PidFile::write(options.pid_file));
  {
    Server server(*store, options, std::move(sockets));
    log_info("ready: store '" + options.store_path + "', control socket '" + options.control_path +
             "'");
    server.run();
  }
  TRY(store->close());
  log_info("stopped");
  return {};
}

int main_checked(int argc, char** argv) {
  Result<CommandLine> command_line = parse_command_line(argc, argv);
  if (!command_line.ok()) {
    std::cerr << "vellumd: " << command_line.error().message << "\n";
    return 2;
  }
  if (!command_line->options) {
    std::cout << command_line->text;
    return 0;
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of writing (EFBIG)
  raise_descriptor_limit();
  start_log(command_line->options->log_level);
  const Result<void> served = serve(*command_line->options);
  if (served.ok()) return 0;
  std::cerr << "vellumd: " << served.error().message << "\n";
  return 1;
}

}  // namespace
}  // namespace vellum::server

int main(int argc, char** argv) {
  try {
    return vellum::server::main_checked(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "vellumd: " << error.what() << "\n";
    return 1;
  }
}

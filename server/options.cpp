// SPDX-License-Identifier: BSD-2-Clause
#include "server/options.hpp"

#include <grp.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>

#include "common/base/units.hpp"

namespace vellum::server {

namespace {

constexpr uint64_t kCacheBytesMin = 16 << 20;
constexpr size_t kThreadsMax = 256;
constexpr uint16_t kDefaultPort = 10809;

// The options as they were written.
struct Texts {
  std::string store, control, cache, capacity, delay, threads, pid_file, log_level, mode, group;
  std::vector<std::string> unix_paths, listen;
  bool create = false, force = false, version = false;
};

void declare(CLI::App& app, Texts& texts) {
  app.add_option("--store", texts.store, "the store: a file or a block device")->type_name("PATH");
  app.add_flag("--create", texts.create, "make a new store if PATH is empty or does not exist");
  app.add_flag("--force", texts.force, "with --create: give up whatever PATH holds");
  app.add_option("--capacity", texts.capacity, "with --create: the largest size of a file (1P)")
      ->type_name("SIZE");
  app.add_option("--eradication-delay", texts.delay,
                 "with --create: how long what is destroyed can be recovered (24h)")
      ->type_name("TIME");
  app.add_option("--unix", texts.unix_paths, "serve NBD at this Unix socket; may be repeated")
      ->type_name("SOCK")
      ->allow_extra_args(false);
  app.add_option("--listen", texts.listen,
                 "serve NBD at this TCP port, on loopback or ADDR; may be repeated")
      ->type_name("[ADDR:]PORT")
      ->allow_extra_args(false);
  app.add_option("--control", texts.control, "the Unix socket of the control protocol")
      ->type_name("SOCK");
  app.add_option("--cache", texts.cache, "memory for metadata (256M)")->type_name("SIZE");
  app.add_option("--threads", texts.threads, "threads that serve connections (one a core)")
      ->type_name("N");
  app.add_option("--pid-file", texts.pid_file, "holds the process id while the server runs")
      ->type_name("FILE");
  app.add_option("--log-level", texts.log_level, "debug, info, warning or error (info)")
      ->type_name("LEVEL");
  app.add_option("--socket-mode", texts.mode,
                 "mode of the Unix sockets (0600, or 0660 with a group)")
      ->type_name("MODE");
  app.add_option("--socket-group", texts.group, "group of the Unix sockets")->type_name("GROUP");
  app.add_flag("--version", texts.version, "print the version and exit");
  app.footer(
      "Without --unix and --listen, NBD is served at nbd.sock beside the control socket's "
      "default,\n"
      "and on loopback at port 10809. The defaults are in /run/vellum for root, and in\n"
      "$XDG_RUNTIME_DIR/vellum for others. Sizes like 64M, 10G and 40T are binary.");
}

Error bad(std::string_view option, const std::string& value, const std::string& remedy) {
  return {Errc::invalid_argument, std::string(option) + " '" + value + "': " + remedy};
}

Result<uint64_t> size_option(std::string_view option, const std::string& text) {
  Result<uint64_t> size = parse_size(text);
  if (!size.ok()) return bad(option, text, "give a size like 64M, 10G or 40T");
  return size;
}

Result<size_t> parse_threads(const std::string& text) {
  if (text.empty()) return std::max<size_t>(1, std::thread::hardware_concurrency());
  size_t threads = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (failure != std::errc() || end != text.data() + text.size() || threads == 0 ||
      threads > kThreadsMax) {
    return bad("--threads", text, "give a number from 1 to " + std::to_string(kThreadsMax));
  }
  return threads;
}

Result<LogLevel> parse_log_level(const std::string& text) {
  constexpr std::array<std::pair<std::string_view, LogLevel>, 4> kLevels = {
      {{"debug", LogLevel::debug},
       {"info", LogLevel::info},
       {"warning", LogLevel::warning},
       {"error", LogLevel::error}}};
  if (text.empty()) return LogLevel::info;
  for (const auto& [name, level] : kLevels) {
    if (text == name) return level;
  }
  return bad("--log-level", text, "give debug, info, warning or error");
}

Result<SocketAccess> parse_access(const Texts& texts) {
  SocketAccess access;
  if (!texts.group.empty()) {
    gid_t id = 0;
    const char* end = texts.group.data() + texts.group.size();
    const auto [stop, failure] = std::from_chars(texts.group.data(), end, id);
    if (failure == std::errc() && stop == end) {
      access.group = id;
    } else if (const group* entry = getgrnam(texts.group.c_str())) {
      access.group = entry->gr_gid;
    } else {
      return bad("--socket-group", texts.group, "there is no such group; see getent group");
    }
    access.mode = 0660;
  }
  if (!texts.mode.empty()) {
    const char* end = texts.mode.data() + texts.mode.size();
    const auto [stop, failure] = std::from_chars(texts.mode.data(), end, access.mode, 8);
    if (failure != std::errc() || stop != end || access.mode > 0777) {
      return bad("--socket-mode", texts.mode, "give an octal mode like 0660");
    }
  }
  return access;
}

// Empty when there is no such place.
std::string default_directory() {
  if (geteuid() == 0) return "/run/vellum";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime == nullptr || *runtime == '\0' ? "" : std::string(runtime) + "/vellum";
}

Result<void> set_sockets(const Texts& texts, Options& options) {
  options.unix_paths = texts.unix_paths;
  for (const std::string& text : texts.listen) {
    Result<TcpAddress> address = parse_tcp_address(text);
    if (!address.ok()) return Error{Errc::invalid_argument, "--listen: " + address.error().message};
    options.tcp_addresses.push_back(*std::move(address));
  }
  options.control_path = texts.control;
  const bool default_nbd = texts.unix_paths.empty() && texts.listen.empty();
  if (!default_nbd && !texts.control.empty()) return {};
  const std::string directory = default_directory();
  if (directory.empty()) {
    return Error{Errc::invalid_argument,
                 "$XDG_RUNTIME_DIR is not set, so there is no default place for sockets: give "
                 "--control, and --unix or --listen"};
  }
  options.runtime_directory = directory;
  if (texts.control.empty()) options.control_path = directory + "/control.sock";
  if (default_nbd) {
    options.unix_paths.push_back(directory + "/nbd.sock");
    options.tcp_addresses.push_back({"127.0.0.1", kDefaultPort});
  }
  return {};
}

Result<Options> check(const Texts& texts) {
  Options options;
  if (texts.store.empty()) {
    return Error{Errc::invalid_argument,
                 "--store PATH is missing: name the file or block device "
                 "to serve; see --help"};
  }
  options.store_path = texts.store;
  options.create = texts.create;
  options.force = texts.force;
  if (texts.force && !texts.create) {
    return Error{Errc::invalid_argument, "--force means something only with --create"};
  }
  if (!texts.capacity.empty()) {
    if (!texts.create) {
      return bad("--capacity", texts.capacity, "a store's capacity is chosen with --create");
    }
    TRY_ASSIGN(options.capacity_bytes, size_option("--capacity", texts.capacity));
  }
  if (!texts.delay.empty()) {
    if (!texts.create) {
      return bad(
          "--eradication-delay", texts.delay,
          "it is chosen with --create; of a store that is there, vellum store set changes it");
    }
    TRY_ASSIGN(options.eradication_delay, parse_duration(texts.delay));
  }
  if (!texts.cache.empty()) {
    TRY_ASSIGN(options.cache_bytes, size_option("--cache", texts.cache));
    if (options.cache_bytes < kCacheBytesMin) {
      return bad("--cache", texts.cache, "give at least " + format_size(kCacheBytesMin));
    }
  }
  TRY_ASSIGN(options.threads, parse_threads(texts.threads));
  TRY_ASSIGN(options.log_level, parse_log_level(texts.log_level));
  TRY_ASSIGN(options.access, parse_access(texts));
  options.pid_file = texts.pid_file;
  TRY(set_sockets(texts, options));
  return options;
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, const char* const* argv) {
  CLI::App app("vellumd: serves volumes with snapshots over NBD", "vellumd");
  app.set_help_flag("--help", "print this help and exit");
  Texts texts;
  declare(app, texts);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return CommandLine{std::nullopt, app.help()};
  } catch (const CLI::ParseError& error) {
    return Error{Errc::invalid_argument, std::string(error.what()) + "; see vellumd --help"};
  }
  if (texts.version) return CommandLine{std::nullopt, "vellumd " VELLUM_VERSION "\n"};
  TRY_ASSIGN(Options options, check(texts));
  return CommandLine{std::move(options), ""};
}

}  // namespace vellum::server

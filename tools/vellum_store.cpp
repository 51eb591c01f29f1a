// SPDX-License-Identifier: BSD-2-Clause
//
// vellum store, space, stats, call: the store of a running server, what takes its space, its
// counters, and any method by name.
#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "common/base/units.hpp"
#include "tools/vellum_command.hpp"
#include "tools/vellum_print.hpp"

namespace vellum::tools {
namespace {

struct Options {
  std::vector<std::string> names;
  std::optional<std::string> size;
  std::string delay;
  bool stop = false, status = false, wait = false;
  std::optional<std::string> volume;
  std::string method;
  std::string params = "{}";
};

std::string share(const json& info, const char* part, const char* whole) {
  return size_of(info, part) + " of " + size_of(info, whole) + " (" +
         percent(number_of(info, part), number_of(info, whole)) + ")";
}

void print_warning(const std::string& message) { print_line("WARNING: " + message); }

void print_store(const json& info) {
  print({{"store", text_of(info, "name")},
         {"uuid", text_of(info, "uuid")},
         {"format", text_of(info, "format")},
         {"used", share(info, "used", "capacity")},
         {"data, metadata", size_of(info, "data") + ", " + size_of(info, "metadata")},
         {"free", size_of(info, "free")},
         {"promised to reserved", size_of(info, "promised")},
         {"kept for freeing", size_of(info, "reserve")},
         {"waiting for reclaim", size_of(info, "waiting_for_reclaim")},
         {"waiting for reuse", size_of(info, "waiting_for_reuse")},
         {"volumes", text_of(info, "volumes")},
         {"snapshots", text_of(info, "snapshots")},
         {"versions", text_of(info, "versions") + ", " + text_of(info, "zombies") + " zombies"},
         {"destroyed", text_of(info, "destroyed")},
         {"eradication delay", duration_of(info, "eradication_delay_ms")},
         {"journal", share(info, "journal_used", "journal_size")},
         {"cache",
          share(info, "cache_used", "cache_size") + ", " + size_of(info, "cache_dirty") + " dirty"},
         {"checkpoint", text_of(info, "checkpoint")},
         {"mount generation", text_of(info, "mount_generation")},
         {"read-only", text_of(info, "read_only")}});
  for (const json& job : info.value("reclaim", json::array())) {
    print_line("reclaim: " + text_of(job, "job") + " of version " + text_of(job, "version") + ", " +
               size_of(job, "owned_bytes") + " to give back");
  }
  const json warning = info.value("warning", json());
  if (!warning.is_null()) print_warning(text_of(warning, "message"));
}

Result<void> store(const Program& program, const Options& /*options*/) {
  return program.show("store.get", json::object(), print_store);
}

Result<void> set(const Program& program, const Options& options) {
  TRY_ASSIGN(const int64_t delay, parse_duration(options.delay));
  return program.show("store.set", json{{"eradication_delay_ms", delay}}, [](const json& info) {
    print_line("what is destroyed from now on can be recovered for " +
               duration_of(info, "eradication_delay_ms"));
  });
}

Result<void> grow(const Program& program, const Options& options) {
  json params = json::object();
  if (options.size) {
    TRY_ASSIGN(params["capacity"], size_argument("SIZE", *options.size));
  }
  return program.show("store.grow", params, [](const json& info) {
    print_line("the store has a capacity of " + size_of(info, "capacity") + ", of which " +
               size_of(info, "free") + " are free");
  });
}

void print_scrub(const json& scrub) {
  print({{"state", text_of(scrub, "state")},
         {"started", text_of(scrub, "started")},
         {"finished", text_of(scrub, "finished")},
         {"read", share(scrub, "checked_bytes", "total_bytes")},
         {"damaged blocks", text_of(scrub, "errors")}});
  for (const json& damage : scrub.value("damages", json::array())) {
    std::string names;
    for (const json& name : damage.value("names", json::array())) {
      names += (names.empty() ? "" : ", ") + name.get<std::string>();
    }
    print_line(text_of(damage, "message") + (names.empty() ? "" : " (read by " + names + ")"));
  }
}

Result<void> scrub(const Program& program, const Options& options) {
  constexpr auto kPollInterval = std::chrono::milliseconds(500);
  const char* action = options.stop ? "stop" : options.status ? "status" : "start";
  if (!options.wait) return program.show("store.scrub", json{{"action", action}}, print_scrub);
  TRY_ASSIGN(json now, program.call("store.scrub", json{{"action", action}}));
  while (text_of(now, "state") == "running") {
    std::this_thread::sleep_for(kPollInterval);
    TRY_ASSIGN(now, program.call("store.scrub", json{{"action", "status"}}));
  }
  if (program.json) {
    print_json(now);
  } else {
    print_scrub(now);
  }
  const uint64_t errors = number_of(now, "errors");
  if (errors == 0) return {};
  return Error{Errc::corrupt, std::to_string(errors) +
                                  (errors == 1 ? " damaged block" : " damaged blocks") +
                                  ": what reads them has to be restored from a "
                                  "backup, or destroyed"};
}

void print_space(const json& list) {
  using Align = Table::Align;
  Table table({{"NAME", Align::left},
               {"SIZE", Align::right},
               {"REFERENCED", Align::right},
               {"UNIQUE", Align::right},
               {"GIVES BACK", Align::right},
               {"PROMISED", Align::right}});
  bool any_inexact = false;
  for (const json& space : list) {
    const bool exact = space.value("exact", false);
    any_inexact = any_inexact || !exact;
    table.add({text_of(space, "name"), size_of(space, "size"), size_of(space, "referenced"),
               size_of(space, "unique"), size_of(space, "gives_back") + (exact ? "" : "~"),
               size_of(space, "promised")});
  }
  table.print();
  if (any_inexact) print_line("~ still being counted");
}

Result<void> space(const Program& program, const Options& options) {
  json params = json::object();
  if (!options.names.empty()) params["names"] = options.names;
  return program.show("space.get", params, print_space);
}

void print_stats(const json& stats) {
  using Align = Table::Align;
  constexpr std::array<std::array<const char*, 3>, 8> kRows{
      {{"reads", "reads", "read_bytes"},
       {"writes", "writes", "write_bytes"},
       {"flushes", "flushes", nullptr},
       {"trims, nothing moved", "trims", "trim_bytes"},
       {"zeroes, nothing moved", "zeroes", "zero_bytes"},
       {"copies, nothing moved", "copies", "copy_bytes"},
       {"snapshots", "snapshots", nullptr},
       {"checksum errors", "checksum_errors", nullptr}}};
  Table table({{"", Align::left}, {"COUNT", Align::right}, {"BYTES", Align::right}});
  for (const auto& [title, count, bytes] : kRows) {
    table.add({title, text_of(stats, count), bytes == nullptr ? "" : size_of(stats, bytes)});
  }
  table.print();
  if (stats.contains("warning") && !stats["warning"].is_null()) {
    print_warning(text_of(stats, "warning"));
  }
}

Result<void> stats(const Program& program, const Options& options) {
  json params = json::object();
  if (options.volume) params["volume"] = *options.volume;
  return program.show("stats.get", params, print_stats);
}

// The parameters go to the server as they are, which is who judges them.
Result<void> call(const Program& program, const Options& options) {
  if (!json::accept(options.params)) {
    return Error{Errc::invalid_argument,
                 "the parameters are not JSON: give an object, like '{\"name\": \"db\"}'"};
  }
  TRY_ASSIGN(const std::string path, control_path(program.control));
  TRY_ASSIGN(Client client, Client::connect(path));
  TRY_ASSIGN(const json result, client.call(options.method, options.params));
  if (program.json) {
    print_json(result);
  } else {
    print_line(result.dump(2, ' ', false, json::error_handler_t::replace));
  }
  return {};
}

}  // namespace

void add_store_commands(CLI::App& app, Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App& info = *app.add_subcommand("store", "The store of the server: space, journal, reclaim");
  info.preparse_callback([&program, options](size_t /*arguments*/) {
    program.action = [&program, options] { return store(program, *options); };
  });

  options = std::make_shared<Options>();
  CLI::App& settings = *info.add_subcommand("set", "Change a setting of the store");
  settings
      .add_option("--eradication-delay", options->delay,
                  "How long what is destroyed can be recovered, like 24h or 0")
      ->required();
  on_parsed(settings, program, options, set);

  options = std::make_shared<Options>();
  CLI::App& growth = *info.add_subcommand("grow", "Let the store become larger, while it is used");
  growth.add_option("SIZE", options->size, "The new capacity (of a device: its size)");
  on_parsed(growth, program, options, grow);

  options = std::make_shared<Options>();
  CLI::App& scrubbing =
      *info.add_subcommand("scrub", "Read all that is in use, and compare it with its checksums");
  CLI::Option* stop = scrubbing.add_flag("--stop", options->stop, "Stop it");
  CLI::Option* status =
      scrubbing.add_flag("--status", options->status, "Say how far the last one got; start none");
  scrubbing
      .add_flag("--wait", options->wait, "Wait for its end; exit code 1 if anything is damaged")
      ->excludes(stop);
  status->excludes(stop);
  on_parsed(scrubbing, program, options, scrub);

  options = std::make_shared<Options>();
  CLI::App& taken = *app.add_subcommand("space", "What volumes and snapshots take and give back");
  taken.add_option("NAME", options->names, "Only these: VOLUME or VOLUME@SNAPSHOT");
  on_parsed(taken, program, options, space);

  options = std::make_shared<Options>();
  CLI::App& counters =
      *app.add_subcommand("stats", "What was read, written, and saved, since start");
  counters.add_option("VOLUME", options->volume, "Only this volume");
  on_parsed(counters, program, options, stats);

  options = std::make_shared<Options>();
  CLI::App& any = *app.add_subcommand("call", "Call a method of the control protocol");
  any.add_option("METHOD", options->method, "Like volume.list")->required();
  any.add_option("JSON", options->params, "Its parameters, an object");
  on_parsed(any, program, options, call);
}

}  // namespace vellum::tools

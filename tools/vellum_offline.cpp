// SPDX-License-Identifier: BSD-2-Clause
//
// vellum check, vellum init: work on a store that nobody serves.
#include <unistd.h>

#include <iostream>
#include <memory>
#include <set>

#include "common/base/units.hpp"
#include "common/control/names.hpp"
#include "common/disk/file_disk.hpp"
#include "common/store/store.hpp"
#include "tools/vellum_command.hpp"
#include "tools/vellum_print.hpp"

namespace vellum::tools {
namespace {

constexpr uint64_t kBlockSize = 4096;

struct CheckOptions {
  std::string path;
  bool data = false;
  bool repair = false;
};

struct InitOptions {
  std::string path;
  std::optional<std::string> capacity, delay;
  bool force = false;
  std::vector<std::string> volumes;  // NAME=SIZE
};

struct NewVolume {
  std::string name;
  uint64_t size = 0;
};

store::Options store_options() {
  store::Options options;
  options.background = false;
  options.log = [](int level, const std::string& message) {
    constexpr int kWarning = 2;
    if (level >= kWarning) std::cerr << "vellum: " << message << '\n';
  };
  return options;
}

json json_of(const std::string& path, const store::CheckReport& report) {
  return {{"store", path},
          {"sound", report.errors_total == 0},
          {"errors_total", report.errors_total},
          {"errors", report.errors},
          {"notes", report.notes},
          {"volumes", report.volumes},
          {"snapshots", report.snapshots},
          {"versions", report.versions},
          {"nodes", report.nodes},
          {"data_blocks", report.data_blocks},
          {"system_blocks", report.system_blocks},
          {"allocated_blocks", report.allocated_blocks},
          {"unreadable_nodes", report.unreadable_nodes},
          {"damaged_data_blocks", report.damaged_data_blocks},
          {"unreached_blocks", report.unreached_blocks},
          {"unallocated_blocks", report.unallocated_blocks},
          {"doubly_reached_blocks", report.doubly_reached_blocks}};
}

void print_report(const std::string& path, const store::CheckReport& report) {
  for (const std::string& error : report.errors) print_line("error: " + error);
  if (report.errors_total > report.errors.size()) {
    print_line("and " + counted(report.errors_total - report.errors.size(), "error") + " more");
  }
  for (const std::string& note : report.notes) print_line("note: " + note);
  const auto blocks = [](uint64_t count) {
    return std::to_string(count) + " (" + format_size(count * kBlockSize) + ")";
  };
  print({{"store", path},
         {"volumes", std::to_string(report.volumes)},
         {"snapshots", std::to_string(report.snapshots)},
         {"versions", std::to_string(report.versions)},
         {"data blocks", blocks(report.data_blocks)},
         {"map nodes", blocks(report.nodes)},
         {"system blocks", blocks(report.system_blocks)},
         {"allocated", blocks(report.allocated_blocks)}});
}

// What the administrator of a damaged store can do next.
std::string way_out(const store::CheckReport& report, bool was_repaired) {
  if (!was_repaired) return "; vellum check --repair puts right what can be";
  const bool is_lost = report.unreadable_nodes + report.damaged_data_blocks > 0;
  return is_lost ? "; what is named above is lost: copy off the rest of those volumes and "
                   "snapshots, eradicate them, and repair again"
                 : "; copy off what can still be read";
}

Result<void> print_check(const Program& program, const CheckOptions& options,
                         const store::CheckReport& report, const std::vector<std::string>& done) {
  if (program.json) {
    json result = json_of(options.path, report);
    if (options.repair) result["repaired"] = done;
    print_json(result);
  } else {
    for (const std::string& step : done) print_line("repaired: " + step);
    print_report(options.path, report);
  }
  if (report.errors_total > 0) {
    return Error{Errc::corrupt, options.path +
                                    " is damaged: " + counted(report.errors_total, "error") +
                                    way_out(report, options.repair)};
  }
  if (program.json) return {};
  const std::string sound = options.repair && done.empty() ? "sound; nothing to repair" : "sound";
  print_line(options.data ? sound : sound + "; --data would read every block of data as well");
  return {};
}

Result<void> check(const Program& program, const CheckOptions& options) {
  const auto mode = options.repair ? disk::OpenMode::existing : disk::OpenMode::inspect;
  TRY_ASSIGN(const auto disk, disk::FileDisk::open(options.path, mode));
  const store::CheckOptions what{.read_data = options.data};
  store::Options quiet = store_options();  // the report has it all
  quiet.log = nullptr;
  if (options.repair) {
    TRY_ASSIGN(const auto repaired, store::repair(*disk, quiet, what));
    return print_check(program, options, repaired.after, repaired.done);
  }
  TRY_ASSIGN(const auto report, store::check(*disk, quiet, what));
  return print_check(program, options, report, {});
}

Result<NewVolume> new_volume(const std::string& text) {
  const std::string what = "--volume " + text;
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return Error{Errc::invalid_argument, what + ": must be NAME=SIZE, like db=10G"};
  }
  const std::string name = text.substr(0, equals);
  if (!control::is_name(name)) {
    return Error{Errc::invalid_argument, what + ": the name must have " + control::kNameRule};
  }
  TRY_ASSIGN(const uint64_t size, size_argument(what, text.substr(equals + 1)));
  if (size == 0 || size > store::kVolumeSizeMax || size % store::kVolumeSizeUnit != 0) {
    return Error{Errc::invalid_argument, what + ": the size must be a multiple of 512 up to 4P"};
  }
  return NewVolume{name, size};
}

// All that can be said without touching the disk is said before it is touched.
Result<std::vector<NewVolume>> new_volumes(const std::vector<std::string>& given) {
  std::vector<NewVolume> volumes;
  std::set<std::string> names;
  for (const std::string& text : given) {
    TRY_ASSIGN(NewVolume volume, new_volume(text));
    if (!names.insert(volume.name).second) {
      return Error{Errc::invalid_argument, "--volume " + text + ": the name is given twice"};
    }
    volumes.push_back(std::move(volume));
  }
  return volumes;
}

Result<store::Geometry> geometry_for(const disk::Disk& disk, const InitOptions& options) {
  store::Geometry geometry;
  if (options.delay) {
    TRY_ASSIGN(geometry.eradication_delay, parse_duration(*options.delay));
  }
  const std::optional<std::string>& capacity = options.capacity;
  const uint64_t device_size = disk.size_bytes() / kBlockSize * kBlockSize;
  if (!disk.can_grow()) geometry.capacity = device_size;
  if (!capacity) return geometry;
  TRY_ASSIGN(geometry.capacity, size_argument("--capacity", *capacity));
  if (geometry.capacity % kBlockSize != 0) {
    return Error{Errc::invalid_argument, "--capacity " + *capacity + ": must be a multiple of 4K"};
  }
  if (!disk.can_grow() && geometry.capacity > device_size) {
    return Error{Errc::invalid_argument, "--capacity " + *capacity + ": " + disk.name() +
                                             " has only " + format_size(device_size)};
  }
  return geometry;
}

Result<store::StoreInfo> make_store(disk::Disk& disk, const InitOptions& options,
                                    const std::vector<NewVolume>& volumes) {
  TRY_ASSIGN(const store::Geometry geometry, geometry_for(disk, options));
  TRY(store::Store::format(disk, geometry, store_options()));
  TRY_ASSIGN(const auto made, store::Store::open(disk, store_options()));
  for (const NewVolume& volume : volumes) {
    TRY(made->create_volume(volume.name, volume.size, store::Provision::thin));
  }
  store::StoreInfo info = made->info();
  TRY(made->close());
  return info;
}

Result<void> init(const Program& program, const InitOptions& options) {
  TRY_ASSIGN(const auto volumes, new_volumes(options.volumes));
  if (options.capacity) TRY(size_argument("--capacity", *options.capacity));
  if (options.delay) TRY(parse_duration(*options.delay));
  const bool existed = ::access(options.path.c_str(), F_OK) == 0;
  const auto mode = options.force ? disk::OpenMode::create_forced : disk::OpenMode::create;
  TRY_ASSIGN(const auto disk, disk::FileDisk::open(options.path, mode));
  const auto made = make_store(*disk, options, volumes);
  if (!made.ok()) {
    if (!existed) ::unlink(options.path.c_str());  // half a store helps nobody
    return made.error();
  }
  const json result{{"store", options.path},
                    {"uuid", store::to_string(made->uuid)},
                    {"capacity", made->capacity},
                    {"volumes", made->volumes}};
  if (program.json) {
    print_json(result);
  } else {
    print_line("made a store of " + format_size(made->capacity) + " in " + options.path + " with " +
               counted(made->volumes, "volume") + "; vellumd --store " + options.path +
               " serves it");
  }
  return {};
}

}  // namespace

void add_offline_commands(CLI::App& app, Program& program) {
  auto checked = std::make_shared<CheckOptions>();
  CLI::App& sound = *app.add_subcommand("check", "Check a store that nobody serves");
  sound.add_option("STORE", checked->path, "A file or block device")->required();
  sound.add_flag("--data", checked->data, "Read all data and compare its checksums");
  sound.add_flag("--repair", checked->repair,
                 "Make bitmaps, counts and superblocks anew from what is in use; says what it did");
  on_parsed(sound, program, checked, check);

  auto made = std::make_shared<InitOptions>();
  CLI::App& make = *app.add_subcommand("init", "Make an empty store");
  make.add_option("STORE", made->path, "A new or empty file, or a block device")->required();
  make.add_option("--capacity", made->capacity, "Like 40T; a file's limit, 1P unless given");
  make.add_option("--eradication-delay", made->delay,
                  "How long what is destroyed can be recovered, like 0 or 7d; 24h unless given");
  make.add_flag("--force", made->force, "Replace what the file or device holds");
  make.add_option("--volume", made->volumes, "NAME=SIZE: make this volume too; may be repeated")
      ->allow_extra_args(false);
  on_parsed(make, program, made, init);
}

}  // namespace vellum::tools

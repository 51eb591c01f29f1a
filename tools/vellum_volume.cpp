// SPDX-License-Identifier: BSD-2-Clause
//
// vellum volume ...
#include <memory>

#include "common/base/units.hpp"
#include "tools/vellum_command.hpp"
#include "tools/vellum_print.hpp"

namespace vellum::tools {
namespace {

struct Options {
  std::string name;
  std::string other;  // the second name
  std::string size;
  bool eradicate = false, destroyed = false;
  bool reserved = false, truncate = false, force = false, overwrite = false, no_undo = false;
};

std::string described(const json& volume) {
  return text_of(volume, "name") + ", " + size_of(volume, "size");
}

void show_copied(const json& copied, const std::string& what) {
  const std::string undo = text_of(copied, "undo_snapshot");
  print_line(what + described(copied.value("volume", json())) +
             (undo == "-" ? "" : "; the content before is " + undo));
}

Result<void> create(const Program& program, const Options& options) {
  TRY_ASSIGN(const uint64_t size, size_argument("SIZE", options.size));
  const json params{{"name", options.name},
                    {"size", size},
                    {"provision", options.reserved ? "reserved" : "thin"}};
  return program.show("volume.create", params,
                      [](const json& volume) { print_line("created " + described(volume)); });
}

Result<void> list(const Program& program, const Options& options) {
  const json params{{"destroyed", options.destroyed}};
  return program.show("volume.list", params, [&](const json& volumes) {
    if (options.destroyed) return print_destroyed(volumes);
    using Align = Table::Align;
    Table table({{"NAME", Align::left},
                 {"SIZE", Align::right},
                 {"SNAPSHOTS", Align::right},
                 {"ATTACHED", Align::left},
                 {"CREATED", Align::left},
                 {"PARENT", Align::left}});
    for (const json& volume : volumes) {
      table.add({text_of(volume, "name"), size_of(volume, "size"), text_of(volume, "snapshots"),
                 text_of(volume, "attached"), text_of(volume, "created"),
                 text_of(volume, "parent")});
    }
    table.print();
  });
}

Result<void> show(const Program& program, const Options& options) {
  return program.show("volume.get", {{"name", options.name}}, [](const json& volume) {
    print({{"name", text_of(volume, "name")},
           {"size", size_of(volume, "size") + " (" + text_of(volume, "size") + " bytes)"},
           {"provision", text_of(volume, "provision")},
           {"snapshots", text_of(volume, "snapshots")},
           {"attached", text_of(volume, "attached")},
           {"created", text_of(volume, "created")},
           {"parent", text_of(volume, "parent")},
           {"destroyed", destruction_of(volume)},
           {"uuid", text_of(volume, "uuid")}});
  });
}

Result<void> rename(const Program& program, const Options& options) {
  return program.show("volume.rename", {{"name", options.name}, {"new_name", options.other}},
                      [&](const json& volume) {
                        print_line("renamed " + options.name + " to " + text_of(volume, "name"));
                      });
}

Result<void> resize(const Program& program, const Options& options) {
  TRY_ASSIGN(const uint64_t size, size_argument("SIZE", options.size));
  const json params{{"name", options.name}, {"size", size}, {"truncate", options.truncate}};
  return program.show("volume.resize", params,
                      [](const json& volume) { print_line("resized " + described(volume)); });
}

Result<void> destroy(const Program& program, const Options& options) {
  const json params{
      {"name", options.name}, {"force", options.force}, {"eradicate", options.eradicate}};
  return program.show("volume.destroy", params, [&](const json& destroyed) {
    print_destruction(destroyed, "volume", options.name);
  });
}

Result<void> recover(const Program& program, const Options& options) {
  return program.show("volume.recover", {{"name", options.name}}, [](const json& volume) {
    print_line("recovered " + described(volume) + ", with " +
               counted(number_of(volume, "snapshots"), "snapshot"));
  });
}

Result<void> eradicate(const Program& program, const Options& options) {
  return program.show("volume.eradicate", {{"name", options.name}},
                      [&](const json& /*gone*/) { print_line("eradicated " + options.name); });
}

Result<void> clone(const Program& program, const Options& options) {
  return program.show("volume.clone", {{"source", options.other}, {"name", options.name}},
                      [&](const json& volume) {
                        print_line("cloned " + options.other + " to " + described(volume));
                      });
}

Result<void> copy(const Program& program, const Options& options) {
  const json params{{"source", options.other},
                    {"target", options.name},
                    {"overwrite", options.overwrite},
                    {"undo", !options.no_undo}};
  return program.show("volume.copy", params, [&](const json& copied) {
    show_copied(copied, "copied " + options.other + " onto ");
  });
}

Result<void> revert(const Program& program, const Options& options) {
  const json params{
      {"name", options.name}, {"snapshot", options.other}, {"undo", !options.no_undo}};
  return program.show("volume.revert", params, [&](const json& reverted) {
    show_copied(reverted, "reverted to " + options.other + ": ");
  });
}

// What the commands have in common, so that each is a few words.
class Builder {
 public:
  Builder(CLI::App& group, Program& program) : group_(group), program_(program) {}

  CLI::App& add(const char* name, const char* what,
                Result<void> (*run)(const Program&, const Options&)) {
    options_ = std::make_shared<Options>();
    CLI::App& command = *group_.add_subcommand(name, what);
    on_parsed(command, program_, options_, run);
    return command;
  }
  Options& options() { return *options_; }

 private:
  CLI::App& group_;
  Program& program_;
  std::shared_ptr<Options> options_;
};

void add_changes(Builder& builder) {
  CLI::App& make = builder.add("create", "Make an empty volume", create);
  make.add_option("NAME", builder.options().name)->required();
  make.add_option("SIZE", builder.options().size, "Like 10G or 40T")->required();
  make.add_flag("--reserved", builder.options().reserved, "Keep space for all of it");

  CLI::App& name = builder.add("rename", "Give a volume another name", rename);
  name.add_option("OLD", builder.options().name)->required();
  name.add_option("NEW", builder.options().other)->required();

  CLI::App& size = builder.add("resize", "Grow or shrink a volume", resize);
  size.add_option("NAME", builder.options().name)->required();
  size.add_option("SIZE", builder.options().size, "Like 10G or 40T")->required();
  size.add_flag("--truncate", builder.options().truncate, "Cut data off when shrinking");

  CLI::App& remove = builder.add("destroy", "Destroy a volume and its snapshots", destroy);
  remove.add_option("NAME", builder.options().name)->required();
  remove.add_flag("--force", builder.options().force, "Even if clients use it");
  remove.add_flag("--eradicate", builder.options().eradicate, "For good, at once");

  CLI::App& back = builder.add("recover", "Bring back what was destroyed", recover);
  back.add_option("NAME", builder.options().name)->required();

  CLI::App& end = builder.add("eradicate", "End a destroyed volume for good, now", eradicate);
  end.add_option("NAME", builder.options().name)->required();
}

void add_copies(Builder& builder) {
  CLI::App& branch = builder.add("clone", "Make a volume with the content of another", clone);
  branch.add_option("SOURCE", builder.options().other, "VOLUME or VOLUME@SNAPSHOT")->required();
  branch.add_option("NAME", builder.options().name)->required();

  CLI::App& onto = builder.add("copy", "Give a volume the content of another", copy);
  onto.add_option("SOURCE", builder.options().other, "VOLUME or VOLUME@SNAPSHOT")->required();
  onto.add_option("TARGET", builder.options().name, "Made if it does not exist")->required();
  onto.add_flag("--overwrite", builder.options().overwrite, "Allow an existing target");
  onto.add_flag("--no-undo", builder.options().no_undo, "Keep no snapshot of the old content");

  CLI::App& back = builder.add("revert", "Go back to a snapshot", revert);
  back.add_option("NAME", builder.options().name)->required();
  back.add_option("SNAPSHOT", builder.options().other, "SUFFIX or VOLUME@SUFFIX")->required();
  back.add_flag("--no-undo", builder.options().no_undo, "Keep no snapshot of the old content");
}

}  // namespace

Result<uint64_t> size_argument(const std::string& what, const std::string& text) {
  auto size = parse_size(text);
  if (size.ok()) return size;
  return Error{Errc::invalid_argument, what + ": " + size.error().message};
}

void add_volume_commands(CLI::App& app, Program& program) {
  CLI::App& group = *app.add_subcommand("volume", "Make, show, change and destroy volumes");
  group.require_subcommand(1);
  Builder builder(group, program);
  CLI::App& all = builder.add("list", "All volumes", list);
  all.add_flag("--destroyed", builder.options().destroyed, "Those that can be recovered instead");
  CLI::App& one = builder.add("show", "One volume", show);
  one.add_option("NAME", builder.options().name)->required();
  add_changes(builder);
  add_copies(builder);
}

}  // namespace vellum::tools

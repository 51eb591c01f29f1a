// SPDX-License-Identifier: BSD-2-Clause
//
// vellum snapshot ...
#include <memory>

#include "tools/vellum_command.hpp"
#include "tools/vellum_print.hpp"

namespace vellum::tools {
namespace {

struct Options {
  bool eradicate = false, destroyed = false;
  std::string name;
  std::vector<std::string> volumes;
  std::optional<std::string> volume;
  std::optional<std::string> suffix;
};

Result<void> create(const Program& program, const Options& options) {
  json params{{"sources", options.volumes}};
  if (options.suffix) params["suffix"] = *options.suffix;
  return program.show("snapshot.create", params, [](const json& created) {
    for (const json& snapshot : created) print_line("created " + text_of(snapshot, "name"));
  });
}

Result<void> list(const Program& program, const Options& options) {
  json params{{"destroyed", options.destroyed}};
  if (options.volume) params["volume"] = *options.volume;
  return program.show("snapshot.list", params, [&](const json& snapshots) {
    if (options.destroyed) return print_destroyed(snapshots);
    using Align = Table::Align;
    Table table({{"NAME", Align::left},
                 {"SIZE", Align::right},
                 {"CREATED", Align::left},
                 {"PARENT", Align::left},
                 {"CHILDREN", Align::left}});
    for (const json& snapshot : snapshots) {
      table.add({text_of(snapshot, "name"), size_of(snapshot, "size"), text_of(snapshot, "created"),
                 text_of(snapshot, "parent"), text_of(snapshot, "children")});
    }
    table.print();
  });
}

Result<void> show(const Program& program, const Options& options) {
  return program.show("snapshot.get", {{"name", options.name}}, [](const json& snapshot) {
    print({{"name", text_of(snapshot, "name")},
           {"volume", text_of(snapshot, "volume")},
           {"size", size_of(snapshot, "size") + " (" + text_of(snapshot, "size") + " bytes)"},
           {"created", text_of(snapshot, "created")},
           {"parent", text_of(snapshot, "parent")},
           {"children", text_of(snapshot, "children")},
           {"destroyed", destruction_of(snapshot)},
           {"uuid", text_of(snapshot, "uuid")}});
  });
}

Result<void> destroy(const Program& program, const Options& options) {
  const json params{{"name", options.name}, {"eradicate", options.eradicate}};
  return program.show("snapshot.destroy", params, [&](const json& destroyed) {
    print_destruction(destroyed, "snapshot", options.name);
  });
}

Result<void> recover(const Program& program, const Options& options) {
  return program.show("snapshot.recover", {{"name", options.name}},
                      [&](const json& /*back*/) { print_line("recovered " + options.name); });
}

Result<void> eradicate(const Program& program, const Options& options) {
  return program.show("snapshot.eradicate", {{"name", options.name}},
                      [&](const json& /*gone*/) { print_line("eradicated " + options.name); });
}

}  // namespace

void add_snapshot_commands(CLI::App& app, Program& program) {
  CLI::App& group = *app.add_subcommand("snapshot", "Make, show and destroy snapshots");
  group.require_subcommand(1);
  const auto add = [&](const char* name, const char* what, auto run) {
    auto options = std::make_shared<Options>();
    CLI::App& command = *group.add_subcommand(name, what);
    on_parsed(command, program, options, run);
    return std::pair<CLI::App&, Options&>(command, *options);
  };
  auto [make, made] = add("create", "Snapshots of volumes, all at one point in time", create);
  make.add_option("VOLUME", made.volumes)->required();
  make.add_option("--suffix", made.suffix,
                  "Their name after the @ (else each volume's next number)");
  auto [all, listed] = add("list", "Snapshots, oldest first", list);
  all.add_option("VOLUME", listed.volume, "Only those of this volume");
  all.add_flag("--destroyed", listed.destroyed, "Those that can be recovered instead");
  auto [one, shown] = add("show", "One snapshot", show);
  one.add_option("SNAPSHOT", shown.name, "VOLUME@SUFFIX")->required();
  auto [remove, removed] = add("destroy", "Destroy a snapshot", destroy);
  remove.add_option("SNAPSHOT", removed.name, "VOLUME@SUFFIX")->required();
  remove.add_flag("--eradicate", removed.eradicate, "For good, at once");
  auto [back, recovered] = add("recover", "Bring back what was destroyed", recover);
  back.add_option("SNAPSHOT", recovered.name, "VOLUME@SUFFIX")->required();
  auto [end, ended] = add("eradicate", "End a destroyed snapshot for good, now", eradicate);
  end.add_option("SNAPSHOT", ended.name, "VOLUME@SUFFIX")->required();
}

}  // namespace vellum::tools

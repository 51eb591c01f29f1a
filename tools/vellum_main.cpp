// SPDX-License-Identifier: BSD-2-Clause
//
// vellum: the client of the control socket, and the tool for stores at rest. Exit status: 0 if all
// is well, 1 if not; then standard error says what would help, and standard output holds no
// document.
#include <iostream>

#include "tools/vellum_command.hpp"
#include "tools/vellum_print.hpp"

namespace vellum::tools {
namespace {

int fail(const std::string& message) {
  std::cout.flush();
  std::cerr << "vellum: " << message << '\n';
  return 1;
}

int finish(const Result<void>& result) {
  if (!result.ok()) return fail(result.error().message);
  std::cout.flush();
  return std::cout ? 0 : fail("cannot write to standard output");
}

int run(int argc, char** argv) {
  Program program;
  CLI::App app("Volumes and snapshots of a running vellumd; checks and makes stores at rest.");
  app.name("vellum");
  app.fallthrough();
  app.require_subcommand(1);
  app.set_version_flag("--version", "vellum " VELLUM_VERSION);
  app.add_option("--control", program.control,
                 "The server's control socket (else $VELLUM_CONTROL, else the default)")
      ->type_name("SOCKET");
  app.add_flag("--json", program.json, "One JSON document instead of tables");
  add_volume_commands(app, program);
  add_snapshot_commands(app, program);
  add_map_commands(app, program);
  add_store_commands(app, program);
  add_offline_commands(app, program);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining(true);
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !unknown.empty()) {
      return fail("there is no command \"" + unknown[0] + "\"; see vellum --help");
    }
    return fail(std::string(error.what()) + "; see vellum --help");
  }
  return finish(program.action());
}

}  // namespace

Result<json> Program::call(const std::string& method, const tools::json& params) const {
  TRY_ASSIGN(const std::string path, control_path(control));
  TRY_ASSIGN(Client client, Client::connect(path));
  return client.call(method, params);
}

Result<void> Program::show(const std::string& method, const tools::json& params,
                           const std::function<void(const tools::json&)>& print) const {
  TRY_ASSIGN(const tools::json result, call(method, params));
  if (json) {
    print_json(result);
  } else {
    print(result);
  }
  return {};
}

}  // namespace vellum::tools

int main(int argc, char** argv) {
  try {
    return vellum::tools::run(argc, argv);
  } catch (const std::exception& error) {
    return vellum::tools::fail(error.what());
  }
}

// SPDX-License-Identifier: BSD-2-Clause
//
// How the commands of `vellum` are put together: each vellum_*.cpp adds its own to the command
// line. Parsing a command sets Program::action; main() runs it. An action prints what it found, or
// returns an Error, which main() prints on standard error.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/base/result.hpp"
#include "tools/vellum_client.hpp"

namespace vellum::tools {

struct Program {
  std::string control;  // --control
  bool json = false;    // --json
  std::function<Result<void>()> action;

  // One call to the server.
  Result<tools::json> call(const std::string& method, const tools::json& params) const;
  // One call, and what it returned: as JSON, or by `print` for people.
  Result<void> show(const std::string& method, const tools::json& params,
                    const std::function<void(const tools::json&)>& print) const;
};

// `options` live as long as the command line and receive what was given.
template <typename Options>
void on_parsed(CLI::App& command, Program& program, std::shared_ptr<Options> options,
               Result<void> (*run)(const Program&, const Options&)) {
  command.callback([&program, options = std::move(options), run] {
    program.action = [&program, options, run] { return run(program, *options); };
  });
}

// A size like 10G in the argument called `what`.
Result<uint64_t> size_argument(const std::string& what, const std::string& text);

void add_volume_commands(CLI::App& app, Program& program);
void add_snapshot_commands(CLI::App& app, Program& program);
void add_map_commands(CLI::App& app, Program& program);      // bitmap, extents
void add_store_commands(CLI::App& app, Program& program);    // store, stats, call
void add_offline_commands(CLI::App& app, Program& program);  // check, init

}  // namespace vellum::tools

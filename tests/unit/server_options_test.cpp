// SPDX-License-Identifier: BSD-2-Clause
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/options.hpp"

namespace vellum::server {
namespace {

Result<CommandLine> parse(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv = {"vellumd"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

// The smallest command line that does not depend on who runs it, and `more`.
Result<CommandLine> parse_with(std::vector<std::string> more) {
  std::vector<std::string> all = {"--store", "s", "--unix", "u", "--control", "c"};
  all.insert(all.end(), more.begin(), more.end());
  return parse(all);
}

Options options_of(std::vector<std::string> more) {
  const Result<CommandLine> parsed = parse_with(std::move(more));
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? *parsed->options : Options{};
}

std::string error_of(std::vector<std::string> more) {
  const Result<CommandLine> parsed = parse_with(std::move(more));
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(ServerOptions, DefaultsAreTheDocumentedOnes) {
  const Options options = options_of({});
  EXPECT_EQ(options.store_path, "s");
  EXPECT_FALSE(options.create);
  EXPECT_FALSE(options.capacity_bytes);
  EXPECT_EQ(options.unix_paths, std::vector<std::string>{"u"});
  EXPECT_TRUE(options.tcp_addresses.empty());
  EXPECT_EQ(options.control_path, "c");
  EXPECT_EQ(options.cache_bytes, uint64_t{256} << 20);
  EXPECT_GE(options.threads, 1u);
  EXPECT_EQ(options.access.mode, 0600u);
}

TEST(ServerOptions, SizesAreBinary) {
  const Options options = options_of({"--create", "--capacity", "40T", "--cache", "64M"});
  EXPECT_EQ(options.capacity_bytes, uint64_t{40} << 40);
  EXPECT_EQ(options.cache_bytes, uint64_t{64} << 20);
}

TEST(ServerOptions, SocketsMayBeRepeated) {
  const Options options = options_of(
      {"--unix", "v", "--listen", "10809", "--listen", "[::1]:11", "--listen", "0.0.0.0:12"});
  EXPECT_EQ(options.unix_paths, (std::vector<std::string>{"u", "v"}));
  ASSERT_EQ(options.tcp_addresses.size(), 3u);
  EXPECT_EQ(to_string(options.tcp_addresses[0]), "127.0.0.1:10809");
  EXPECT_EQ(to_string(options.tcp_addresses[1]), "[::1]:11");
  EXPECT_EQ(to_string(options.tcp_addresses[2]), "0.0.0.0:12");
}

TEST(ServerOptions, AGroupMayConnectOnceItIsNamed) {
  const Options options = options_of({"--socket-group", "0"});
  EXPECT_EQ(options.access.group, gid_t{0});
  EXPECT_EQ(options.access.mode, 0660u);
  EXPECT_EQ(options_of({"--socket-mode", "0666"}).access.mode, 0666u);
}

TEST(ServerOptions, BadValuesAreNamedWithTheirOption) {
  const std::vector<std::vector<std::string>> cases = {{"--cache", "lots"},
                                                       {"--cache", "1K"},
                                                       {"--threads", "0"},
                                                       {"--threads", "-1"},
                                                       {"--threads", "999999"},
                                                       {"--threads", "two"},
                                                       {"--log-level", "loud"},
                                                       {"--socket-mode", "0999"},
                                                       {"--socket-mode", "1777"},
                                                       {"--listen", "0"},
                                                       {"--listen", "65536"},
                                                       {"--listen", "host:1"},
                                                       {"--listen", "::1:10809"},
                                                       {"--listen", "[::1]:x"},
                                                       {"--listen", "127.0.0.1:"},
                                                       {"--listen", ""},
                                                       {"--socket-group", "no such group"},
                                                       {"--capacity", "10G"}};  // without --create
  for (const auto& arguments : cases) {
    const std::string message = error_of(arguments);
    EXPECT_NE(message.find(arguments[0]), std::string::npos) << arguments[0] << ": " << message;
    EXPECT_NE(message.find(arguments[1]), std::string::npos) << arguments[1] << ": " << message;
  }
}

TEST(ServerOptions, WhatIsUnknownMissingOrTwiceIsRefused) {
  EXPECT_NE(error_of({"--frobnicate"}).find("--frobnicate"), std::string::npos);
  EXPECT_NE(error_of({"--store"}), "");
  EXPECT_NE(error_of({"--store", "other"}), "");
  EXPECT_NE(error_of({"--force"}).find("--create"), std::string::npos);
  EXPECT_NE(error_of({"stray"}).find("stray"), std::string::npos);
  EXPECT_NE(parse({"--unix", "u", "--control", "c"}).error().message.find("--store"),
            std::string::npos);
}

TEST(ServerOptions, HelpAndVersionServeNothing) {
  for (const char* flag : {"--help", "--version"}) {
    const Result<CommandLine> parsed = parse({flag});
    ASSERT_TRUE(parsed.ok());
    EXPECT_FALSE(parsed->options);
    EXPECT_NE(parsed->text.find("vellumd"), std::string::npos);
  }
}

}  // namespace
}  // namespace vellum::server

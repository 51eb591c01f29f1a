// SPDX-License-Identifier: BSD-2-Clause
//
// A dispatcher on a real store in a fresh file, for the tests of the control protocol.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/control/dispatcher.hpp"
#include "common/disk/file_disk.hpp"
#include "common/store/store.hpp"

namespace vellum::control {

// Whether `text` has the form of `pattern`, where 0 stands for a digit, x for a hexadecimal digit
// in lower case, and all else for itself.
inline bool is_like(const std::string& text, std::string_view pattern) {
  const auto fits = [](char c, char p) {
    const bool digit = c >= '0' && c <= '9';
    return p == '0' ? digit : p == 'x' ? digit || (c >= 'a' && c <= 'f') : c == p;
  };
  return std::equal(text.begin(), text.end(), pattern.begin(), pattern.end(), fits);
}

inline constexpr std::string_view kUuidForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
inline constexpr std::string_view kTimeForm = "0000-00-00T00:00:00.000Z";

class ControlTest : public ::testing::Test {
 protected:
  using json = nlohmann::json;

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "vellum-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    auto disk = disk::FileDisk::open(folder_ + "/store", disk::OpenMode::create);
    ASSERT_TRUE(disk.ok()) << disk.error().message;
    disk_ = std::move(*disk);
    store::Geometry geometry;
    geometry.eradication_delay = store::kEradicationDelayDefault;
    geometry.capacity = uint64_t{1} << 30;
    geometry.journal_size = 4 << 20;
    const auto formatted = store::Store::format(*disk_, geometry, options());
    ASSERT_TRUE(formatted.ok()) << formatted.error().message;
    open_store();
  }

  void TearDown() override {
    dispatcher_.reset();
    if (store_) {
      const auto closed = store_->close();
      EXPECT_TRUE(closed.ok()) << closed.error().message;
    }
    store_.reset();
    disk_.reset();
    std::filesystem::remove_all(folder_);
  }

  static store::Options options() {
    store::Options options;
    options.cache_bytes = 16 << 20;
    return options;
  }

  void open_store() {
    auto store = store::Store::open(*disk_, options());
    ASSERT_TRUE(store.ok()) << store.error().message;
    store_ = std::move(*store);
    dispatcher_ = std::make_unique<Dispatcher>(
        *store_, ServerFacts{"1.2.3", "test", {"nbd+unix:///?socket=/tmp/nbd.sock"}});
  }

  json answer(const std::string& line) {
    const std::string text = dispatcher_->handle(line);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return json::parse(text);
  }

  json call(const std::string& method, const json& params = json::object()) {
    const json request{{"jsonrpc", "2.0"}, {"id", 7}, {"method", method}, {"params", params}};
    json received = answer(request.dump());
    EXPECT_EQ(received["jsonrpc"], "2.0");
    EXPECT_EQ(received["id"], 7);
    return received;
  }

  json result(const std::string& method, const json& params = json::object()) {
    const json received = call(method, params);
    EXPECT_TRUE(received.contains("result")) << method << params << " -> " << received;
    EXPECT_FALSE(received.contains("error"));
    return received.value("result", json());
  }

  json error(const std::string& method, const json& params = json::object()) {
    const json received = call(method, params);
    EXPECT_TRUE(received.contains("error")) << method << params << " -> " << received;
    EXPECT_FALSE(received.contains("result"));
    return received.value("error", json::object());
  }

  // All that a refused request must leave alone.
  json state() { return {result("volume.list"), result("snapshot.list")}; }

  void write(const std::string& volume, uint64_t offset, const std::string& data) {
    auto opened = store_->open_export(volume);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const auto bytes = std::as_bytes(std::span(data.data(), data.size()));
    const auto written = (*opened)->write(offset, bytes);
    ASSERT_TRUE(written.ok()) << written.error().message;
  }

  std::string read(const std::string& name, uint64_t offset, size_t length) {
    auto opened = store_->open_export(name);
    EXPECT_TRUE(opened.ok());
    std::string data(length, '?');
    if (!opened.ok()) return data;
    const auto got = (*opened)->read(offset, std::as_writable_bytes(std::span(data)));
    EXPECT_TRUE(got.ok());
    return data;
  }

  std::string folder_;
  std::unique_ptr<disk::FileDisk> disk_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace vellum::control

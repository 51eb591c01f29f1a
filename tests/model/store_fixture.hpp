// SPDX-License-Identifier: BSD-2-Clause
//
// A small store on a simulated disk, for examples of single calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/store/store.hpp"
#include "tests/support/content.hpp"
#include "tests/support/driver.hpp"
#include "tests/support/simulated_disk.hpp"

namespace vellum::support {

inline constexpr uint64_t kMib = 1 << 20;

// One after the other, until there is nothing left to do.
template <typename... Steps>
void run_to_the_end(store::Store& store, Steps... steps) {
  const auto run = [&](auto step) {
    for (bool more = true; more;) {
      const auto done = (store.*step)();
      ASSERT_TRUE(done.ok()) << done.error().message;
      more = *done;
    }
  };
  (run(steps), ...);
}

// Until nothing is left to be reclaimed, counted or reused.
inline void settle(store::Store& store) {
  for (int round = 0; round < 4; round++) {
    run_to_the_end(store, &store::Store::reclaim_step, &store::Store::figures_step);
    ASSERT_TRUE(store.checkpoint().ok());
  }
}

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    format();
    open();
  }

  void format() {
    ASSERT_TRUE(store::Store::format(disk_, tiny_geometry(64 * kMib), options()).ok());
  }

  store::Options options() {
    store::Options options;
    options.background = false;
    options.cache_bytes = kMib;
    options.random_seed = 7;
    options.reclaim_places = 1;
    options.clock = [this] { return ++now_; };
    return options;
  }

  void open() {
    auto opened = store::Store::open(disk_, options());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(opened).value();
  }

  void reopen() {
    ASSERT_TRUE(store_->close().ok());
    store_.reset();
    open();
  }

  store::VolumeInfo create(const std::string& name, uint64_t size = kMib) {
    auto created = store_->create_volume(name, size, store::Provision::thin);
    EXPECT_TRUE(created.ok()) << name;
    return created.ok() ? *created : store::VolumeInfo{};
  }

  // The full name of the snapshot.
  std::string snap(const std::string& volume, const std::string& suffix) {
    auto taken = store_->create_snapshots({volume}, suffix);
    EXPECT_TRUE(taken.ok()) << volume << "@" << suffix;
    return volume + "@" + suffix;
  }

  std::shared_ptr<store::Export> attach(const std::string& name) {
    auto opened = store_->open_export(name);
    EXPECT_TRUE(opened.ok()) << name;
    return opened.ok() ? *opened : nullptr;
  }

  void write(const std::string& name, uint64_t tag, uint64_t offset, uint64_t length) {
    const Result<void> written = attach(name)->write(offset, pattern(tag, offset, length));
    EXPECT_TRUE(written.ok()) << name << " at " << offset;
  }

  std::vector<std::byte> read(const std::string& name, uint64_t offset, uint64_t length) {
    std::vector<std::byte> out(length, std::byte{0xcd});
    EXPECT_TRUE(attach(name)->read(offset, out).ok()) << name << " at " << offset;
    return out;
  }

  SimulatedDisk disk_;
  int64_t now_ = 1700000000000;
  std::unique_ptr<store::Store> store_;
};

template <typename T>
testing::AssertionResult fails_with(const Result<T>& result, Errc code) {
  if (result.ok()) return testing::AssertionFailure() << "it succeeded";
  if (result.error().code != code)
    return testing::AssertionFailure()
           << "code " << static_cast<int>(result.error().code) << ": " << result.error().message;
  if (result.error().message.empty()) return testing::AssertionFailure() << "no message";
  return testing::AssertionSuccess();
}

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
//
// Stores that earlier versions of the code have made: each is what its description says, sound, and
// goes on. tests/golden/regenerate makes the image of the present format.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "tests/fuzz/small_store.hpp"
#include "tests/golden/description.hpp"
#include "tests/support/content.hpp"
#include "tests/support/driver.hpp"
#include "tests/support/failure.hpp"

namespace vellum::golden {
namespace {

using support::demand;
using support::demand_ok;

// Without suffix, by format.
std::vector<std::filesystem::path> images() {
  const char* root = std::getenv("VELLUM_SOURCE_ROOT");
  demand(root != nullptr, "VELLUM_SOURCE_ROOT is not set");
  std::vector<std::filesystem::path> found;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(root) / "tests" / "golden"))
    if (entry.path().extension() == ".json") found.push_back(entry.path());
  for (auto& path : found) path.replace_extension();
  return found;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::unique_ptr<support::SimulatedDisk> unpack(const std::filesystem::path& packed) {
  const std::string command = "gzip -dc '" + packed.string() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  demand(pipe != nullptr, command);
  auto disk = std::make_unique<support::SimulatedDisk>();
  store::Page page;
  uint64_t offset = 0;
  while (std::fread(page.data(), page.size(), 1, pipe.get()) == 1) {
    demand_ok(disk->write(offset, std::span<const std::byte>(page)), "write");
    offset += page.size();
  }
  demand(offset > 0, packed.string() + " is empty");
  demand_ok(disk->sync(), "sync");
  return disk;
}

std::unique_ptr<store::Store> open(support::SimulatedDisk& disk) {
  return demand_ok(store::Store::open(disk, fuzz::small_options()), "open");
}

// Whatever the store does from here on.
void live_on(support::SimulatedDisk& disk) {
  auto store = open(disk);
  for (const auto& info : store->list_volumes()) {
    const auto opened = demand_ok(store->open_export(info.name), info.name);
    std::vector<std::byte> before(4096), after(4096);
    demand_ok(opened->read(4096, before), "read");
    demand_ok(store->create_snapshots({info.name}, "golden"), "snapshot");
    const auto written = support::pattern(1 << 20, 4096, 4096);
    demand_ok(opened->write(4096, written), "write");
    demand_ok(opened->read(4096, after), "read");
    demand(after == written, "what is read is not what was written");
    demand_ok(demand_ok(store->open_export(info.name + "@golden"), "open")->read(4096, after), "");
    demand(after == before, "a snapshot is not what the volume was");
  }
  while (demand_ok(store->reclaim_step(), "reclaim")) {
  }
  const std::string last = describe(*store);
  demand_ok(store->close(), "close");
  store.reset();
  const auto report = support::check_disk(disk, "after it went on");
  demand(report.hidden_data_blocks == 0, "reclaim has left something");
  demand(describe(*open(disk)) == last, "it is not the same after it was closed");
}

TEST(Golden, ImagesAreWhatTheyWere) {
  const auto found = images();
  EXPECT_FALSE(found.empty());
  for (const auto& image : found) {
    SCOPED_TRACE(image.filename().string());
    const auto disk = unpack(image.string() + ".img.gz");
    ASSERT_NO_THROW(support::check_disk(*disk, "as it was made"));
    std::string description;
    ASSERT_NO_THROW(description = describe(*open(*disk)));
    EXPECT_EQ(description, text_of(image.string() + ".json"));
    ASSERT_NO_THROW(live_on(*disk));
  }
}

// So that what is made anew differs only where the format or its users do.
TEST(Golden, IsMadeAlikeEachTime) {
  support::Random random(1);
  const auto& once = *fuzz::small_store().disk;
  const auto again = fuzz::make_small_store();
  ASSERT_EQ(once.size_bytes(), again.disk->size_bytes());
  std::vector<std::byte> one(once.size_bytes()), other(one.size());
  ASSERT_TRUE(once.survivor(support::Survival::everything, random)->read(0, std::span(one)).ok());
  ASSERT_TRUE(again.disk->read(0, std::span(other)).ok());
  EXPECT_EQ(one, other);
}

TEST(Golden, HoldsVersionsThatAreBeingReclaimed) {
  support::Random random(1);
  const auto disk = fuzz::small_store().disk->survivor(support::Survival::everything, random);
  const auto store = open(*disk);
  EXPECT_EQ(store->info().zombies, 3u);  // to be swept, collapsed, and dropped
  const auto progress = store->info().reclaim;
  ASSERT_FALSE(progress.empty());
  EXPECT_EQ(progress[0].job, "collapse");
  EXPECT_GT(progress[0].fraction, 0.0);
}

}  // namespace
}  // namespace vellum::golden

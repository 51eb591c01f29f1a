// SPDX-License-Identifier: BSD-2-Clause
//
// Random histories in stores that are all but full (P10): whatever is asked, the answer is success
// or "no space", the store never stops taking changes, reserved volumes are never short, and what
// is destroyed comes back.
#include <cstdio>

#include "tests/model/store_fixture.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/failure.hpp"

namespace vellum::support {
namespace {

constexpr uint64_t kBlock = kContentBlockBytes;

class Brink {
 public:
  Brink(uint64_t seed, bool host_fills) : random_(seed), host_fills_(host_fills) {
    geometry_ = tiny_geometry((4 + random_.below(8)) * kMib);
    geometry_.region_size = uint64_t{64 << 10} << random_.below(6);
    geometry_.journal_size = (64 << 10) << random_.below(3);
    options_.background = false;
    options_.cache_bytes = kMib;
    options_.random_seed = seed;
    options_.reclaim_places = 1 + random_.below(8);
    options_.clock = [this] { return ++now_; };
    options_.log = [this](int level, const std::string& message) {
      const bool is_full = message.find("writes that need space are refused") != message.npos;
      if (level >= 3 && !is_full) errors_.push_back(message);
    };
    EXPECT_TRUE(store::Store::format(disk_, geometry_, options_).ok());
    open();
  }

  void run(int operations) {
    for (int i = 0; i < operations && !testing::Test::HasFailure(); i++) {
      if (host_fills_ && random_.chance(2)) limit_host();
      step(i);
    }
    disk_.limit_host(std::nullopt);
    is_limited_ = false;
    if (testing::Test::HasFailure()) return;
    // Whatever has happened: what is destroyed makes room.
    destroy_all();
    settle();
    ASSERT_TRUE(accepted(store_->create_volume("last", 4 * kMib, store::Provision::thin)));
    {
      auto last = *store_->open_export("last");
      ASSERT_TRUE(last->write(0, pattern(1, 0, kMib)).ok());
    }
    close();
  }

  uint64_t refused() const { return refused_; }
  uint64_t reserved_writes() const { return reserved_writes_; }
  uint64_t postponed() const { return postponed_; }  // checkpoints

 private:
  void open() {
    auto opened = store::Store::open(disk_, options_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(opened).value();
  }

  // The file system below has room for so much, or for all.
  void limit_host() {
    is_limited_ = random_.chance(60);
    disk_.limit_host(is_limited_ ? std::optional(random_.below(300)) : std::nullopt);
  }

  template <typename T>
  bool done(const Result<T>& result) {
    if (result.ok() || (is_limited_ && result.error().code == Errc::no_space)) return true;
    ADD_FAILURE() << result.error().message;
    return false;
  }

  void close() {
    done(store_->close());
    store_.reset();
    const auto report = store::check(disk_, options_, {.read_data = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_EQ(report->errors, std::vector<std::string>());
    ASSERT_EQ(errors_, std::vector<std::string>());
  }

  template <typename T>
  bool accepted(const Result<T>& result) {
    if (result.ok()) return true;
    refused_++;
    EXPECT_EQ(result.error().code, Errc::no_space) << result.error().message;
    EXPECT_EQ(store_->info().read_only, std::nullopt);
    return false;
  }

  std::string any(const std::vector<std::string>& names) {
    return names[random_.below(names.size())];
  }

  void step(int number) {
    const auto volumes = store_->list_volumes();
    const auto snapshots = store_->list_snapshots(std::nullopt);
    std::vector<std::string> names, snapshot_names;
    for (const auto& volume : volumes) names.push_back(volume.name);
    for (const auto& snapshot : snapshots) snapshot_names.push_back(snapshot.name);
    const uint64_t choice = random_.below(100);
    if (names.empty() || (choice < 2 && names.size() < 4)) {
      const bool reserved = random_.chance(40);
      const uint64_t size = (1 + random_.below(512)) * kBlock;
      accepted(
          store_->create_volume("v" + std::to_string(number), size,
                                reserved ? store::Provision::reserved : store::Provision::thin));
    } else if (choice < 70) {
      write(volumes[random_.below(volumes.size())]);
    } else if (choice < 76) {
      auto opened = *store_->open_export(any(names));
      const uint64_t offset = random_.below(opened->size_bytes());
      const uint64_t length = 1 + random_.below(opened->size_bytes() - offset);
      done(opened->trim(offset, length));
      accepted(opened->write_zeroes(offset, length));
    } else if (choice < 82) {
      if (snapshots.size() < 12) accepted(store_->create_snapshots({any(names)}, std::nullopt));
    } else if (choice < 84) {
      if (names.size() < 4) accepted(store_->clone(any(names), "c" + std::to_string(number)));
    } else if (choice < 86) {
      const std::string from = any(names), onto = any(names);
      if (from != onto) accepted(store_->copy(from, onto, true, random_.chance(30)));
    } else if (choice < 90) {
      if (snapshots.empty()) return;
      done(store_->destroy_snapshot(any(snapshot_names)));
    } else if (choice < 92) {
      done(store_->destroy_volume(any(names), false));
    } else if (choice < 96) {
      for (uint64_t i = random_.below(40); i > 0; i--) done(store_->reclaim_step());
    } else if (choice < 98) {
      const auto stepped = store_->checkpoint_step();
      done(stepped);
      postponed_ += stepped.ok() ? 0 : 1;
    } else if (choice < 99) {
      done(store_->flush());
    } else {
      close();
      if (!testing::Test::HasFailure()) open();
    }
  }

  void write(const store::VolumeInfo& volume) {
    auto opened = *store_->open_export(volume.name);
    const uint64_t offset = random_.below(volume.size);
    const uint64_t length =
        1 + random_.below(std::min<uint64_t>(volume.size - offset, 64 * kBlock));
    const auto written = opened->write(offset, pattern(random_.below(1000), offset, length));
    if (volume.provision == store::Provision::reserved) {
      reserved_writes_++;
      done(written);
    } else {
      accepted(written);
    }
  }

  void destroy_all() {
    for (const auto& volume : store_->list_volumes()) {
      const auto destroyed = store_->destroy_volume(volume.name, false);
      ASSERT_TRUE(destroyed.ok()) << destroyed.error().message;
    }
  }

  void settle() {
    for (;;) {
      const auto more = store_->reclaim_step();
      ASSERT_TRUE(more.ok()) << more.error().message;
      if (!*more) break;
    }
    for (int i = 0; i < 3; i++) ASSERT_TRUE(store_->checkpoint().ok());
  }

  SimulatedDisk disk_;
  Random random_;
  const bool host_fills_;
  bool is_limited_ = false;
  store::Geometry geometry_;
  store::Options options_;
  int64_t now_ = 1700000000000;
  std::vector<std::string> errors_;
  uint64_t refused_ = 0, reserved_writes_ = 0, postponed_ = 0;
  std::unique_ptr<store::Store> store_;
};

void run_histories(bool host_fills) {
  uint64_t refused = 0, reserved_writes = 0, postponed = 0;
  const auto operations = static_cast<int>(arguments().operations.value_or(2000));
  uint64_t histories = 0;
  ASSERT_NO_THROW(histories = run_seeds(4, [&](uint64_t seed) {
                    Brink brink(seed, host_fills);
                    brink.run(operations);
                    refused += brink.refused();
                    reserved_writes += brink.reserved_writes();
                    postponed += brink.postponed();
                    if (testing::Test::HasFailure()) throw Failure("the history fails");
                  }));
  std::printf("%lu histories from seed %lu, %d operations each; %lu refused\n", histories,
              arguments().seed.value_or(1), operations, refused);
  EXPECT_GT(refused, histories);
  EXPECT_GT(reserved_writes, histories);
  EXPECT_EQ(postponed > 0, host_fills);
}

TEST(Brink, HistoriesInFullStoresNeverStopThem) { run_histories(false); }

// No promise holds then, but all else does.
TEST(Brink, HistoriesOverAFullFileSystemNeverStopThem) { run_histories(true); }

}  // namespace
}  // namespace vellum::support

int main(int argc, char** argv) { return vellum::support::seeded_main(argc, argv); }

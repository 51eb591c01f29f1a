// SPDX-License-Identifier: BSD-2-Clause
//
// A store of a gibibyte on a simulated disk whose I/Os are counted.
#pragma once

#include <functional>
#include <memory>

#include "tests/model/store_fixture.hpp"

namespace vellum::support {

inline constexpr uint64_t kTib = uint64_t{1} << 40;
inline constexpr uint64_t kBlock = kContentBlockBytes;

inline testing::AssertionResult same(const CallCount& one, const CallCount& other) {
  if (one.calls == other.calls && one.bytes == other.bytes) return testing::AssertionSuccess();
  return testing::AssertionFailure() << one.calls << " calls of " << one.bytes << " bytes, not "
                                     << other.calls << " of " << other.bytes;
}

class CostTest : public StoreTest {
 protected:
  ~CostTest() override { store_.reset(); }  // its threads use the disk

  void SetUp() override { begin(64 << 20); }

  void begin(uint64_t cache_bytes) {
    store_.reset();
    disk_ = std::make_unique<SimulatedDisk>();
    store::Geometry geometry;
    geometry.eradication_delay = 0;
    geometry.capacity = 1024 * kMib;
    geometry.segment_size = 256 << 10;
    geometry.region_size = kMib;
    geometry.journal_size = 4 * kMib;
    store::Options small = options();
    small.cache_bytes = cache_bytes;
    ASSERT_TRUE(store::Store::format(*disk_, geometry, small).ok());
    auto opened = store::Store::open(*disk_, small);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(opened).value();
  }

  // How many calls of a kind, of how many bytes.
  CallCount cost_of(Call kind, const std::function<void()>& calls) {
    const CallCount before = disk_->counts()[static_cast<size_t>(kind)];
    calls();
    const CallCount after = disk_->counts()[static_cast<size_t>(kind)];
    return {after.calls - before.calls, after.bytes - before.bytes};
  }

  std::unique_ptr<SimulatedDisk> disk_;
};

}  // namespace vellum::support

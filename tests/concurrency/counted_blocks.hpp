// SPDX-License-Identifier: BSD-2-Clause
//
// Blocks that carry counters, for tests with threads: each block has one writer, which writes 1, 2,
// 3 ... and notes each value before it sends it and after it was acknowledged. Whatever reads the
// block must find one whole value between the two, from before and after its own call.
#pragma once

#include <atomic>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/store/store.hpp"
#include "tests/support/content.hpp"
#include "tests/support/failure.hpp"
#include "tests/support/simulated_disk.hpp"

namespace vellum::support {

class CountedBlocks {
 public:
  explicit CountedBlocks(size_t blocks) : sent_(blocks), acknowledged_(blocks) {}

  size_t size() const { return sent_.size(); }
  uint64_t size_bytes() const { return size() * kContentBlockBytes; }

  // Writes the next value of a block. False: the store refused it.
  bool write_next(store::Export& opened, size_t block) {
    const uint64_t value = sent_[block].load() + 1;
    const uint64_t offset = block * kContentBlockBytes;
    const std::vector<std::byte> data = pattern(value, offset, kContentBlockBytes);
    sent_[block].store(value);
    const Result<void> written = opened.write(offset, data);
    if (!written.ok()) {
      std::cerr << "write: " << written.error().message << "\n";
      return false;
    }
    acknowledged_[block].store(value);
    return true;
  }

  std::vector<uint64_t> sent() const { return copy(sent_); }
  std::vector<uint64_t> acknowledged() const { return copy(acknowledged_); }

 private:
  static std::vector<uint64_t> copy(const std::vector<std::atomic<uint64_t>>& from) {
    std::vector<uint64_t> values(from.size());
    for (size_t i = 0; i < from.size(); ++i) values[i] = from[i].load();
    return values;
  }

  std::vector<std::atomic<uint64_t>> sent_;
  std::vector<std::atomic<uint64_t>> acknowledged_;
};

// The value that a block holds; Failure if it holds anything but one whole value.
inline uint64_t value_of(std::span<const std::byte> data, uint64_t offset,
                         const std::string& what) {
  uint64_t word = 0;
  std::memcpy(&word, data.data(), sizeof word);
  if (word == 0) {
    demand(is_zero(data), what + ": a torn block at " + std::to_string(offset));
    return 0;
  }
  const uint64_t value = word >> 40;
  const std::vector<std::byte> whole = pattern(value, offset, data.size());
  demand(std::equal(data.begin(), data.end(), whole.begin()),
         what + ": a torn block at " + std::to_string(offset));
  return value;
}

inline std::vector<uint64_t> read_values(store::Export& opened, size_t blocks,
                                         const std::string& what) {
  std::vector<std::byte> data(blocks * kContentBlockBytes);
  demand_ok(opened.read(0, data), "reading " + what);
  std::vector<uint64_t> values;
  for (size_t i = 0; i < blocks; ++i)
    values.push_back(value_of(
        std::span<const std::byte>(data).subspan(i * kContentBlockBytes, kContentBlockBytes),
        i * kContentBlockBytes, what));
  return values;
}

inline void demand_between(const std::vector<uint64_t>& values, const std::vector<uint64_t>& least,
                           const std::vector<uint64_t>& most, const std::string& what) {
  for (size_t i = 0; i < values.size(); ++i)
    demand(least[i] <= values[i] && values[i] <= most[i],
           what + ": block " + std::to_string(i) + " holds " + std::to_string(values[i]) +
               ", not " + std::to_string(least[i]) + " to " + std::to_string(most[i]));
}

// A store with its threads, small enough that checkpoints and reclaim always have work.
inline void format_small(SimulatedDisk& disk) {
  store::Geometry geometry;
  geometry.eradication_delay = 0;
  // Snapshots that are destroyed between others keep their space for now.
  geometry.capacity = uint64_t{8} << 30;
  geometry.segment_size = 256 << 10;
  geometry.region_size = 1 << 20;
  geometry.journal_size = 256 << 10;
  store::Options options;
  options.background = false;
  demand_ok(store::Store::format(disk, geometry, options), "format");
}

inline std::unique_ptr<store::Store> open_busy(SimulatedDisk& disk) {
  store::Options options;
  options.cache_bytes = 2 << 20;
  return demand_ok(store::Store::open(disk, options), "open");
}

// No errors, else Failure.
inline void check_at_rest(SimulatedDisk& disk) {
  store::Options options;
  options.background = false;
  const auto report = demand_ok(store::check(disk, options, {.read_data = true}), "check");
  demand(report.errors.empty(), "check: " + (report.errors.empty() ? "" : report.errors[0]));
}

}  // namespace vellum::support

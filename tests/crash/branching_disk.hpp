// SPDX-License-Identifier: BSD-2-Clause
//
// A disk after a crash, of which it is still open what the crash has left in each block. The first
// reading of a block decides it, and is written down: what a program did on this disk depends on
// these readings and on nothing else. So whoever tries each answer to each reading has tried all
// that the crash may have left, without trying what was never looked at.
#pragma once

#include <map>
#include <vector>

#include "common/disk/disk.hpp"
#include "tests/support/simulated_disk.hpp"

namespace vellum::support {

struct Unit {
  BlockPointer data;
  uint64_t hash = 0;  // of its bytes
};

// What may be in each block, by its index: different contents, one or more. Others are zeros.
using Left = std::map<uint64_t, std::vector<Unit>>;
Left left_by_crash(const SimulatedDisk& disk);
const std::vector<Unit>& units_at(const Left& left, uint64_t index);

// What was done to a disk since the crash, in order.
struct Change {
  bool is_sync = false;
  uint64_t index = 0;
  Unit unit;
};
// What a second crash may leave, after `done` of the changes.
Left left_by_crash(const Left& before, std::span<const Change> done);

// A first reading of a block that was not written since the crash.
struct Reading {
  uint64_t index = 0;
  uint64_t hash = 0;
};

class BranchingDisk final : public disk::Disk {
 public:
  using Decisions = std::map<uint64_t, Unit>;  // by index of the block

  // Blocks without a decision are the first of what they may be. Both outlive the disk.
  BranchingDisk(const Left& left, const Decisions& decisions, uint64_t size_bytes)
      : left_(left), decisions_(decisions), size_bytes_(size_bytes) {}

  const std::vector<Reading>& readings() const { return readings_; }
  const std::vector<Change>& changes() const { return changes_; }

  Result<void> read(uint64_t offset, std::span<std::byte> out, disk::Wait wait) override;
  Result<void> read(uint64_t offset, std::span<const iovec> parts, disk::Wait wait) override;
  Result<void> write(uint64_t offset, std::span<const iovec> parts) override;
  Result<void> sync() override;
  void start_writeback(uint64_t, uint64_t) override {}
  Result<void> prepare(uint64_t offset, uint64_t length) override;
  Result<void> discard(uint64_t offset, uint64_t length) override;
  uint64_t size_bytes() const override { return size_bytes_; }
  bool can_grow() const override { return false; }
  Result<void> claim(uint64_t) override { return {}; }
  std::string name() const override { return "disk after a crash"; }

 private:
  BlockPointer visible(uint64_t index);
  void change(uint64_t index, BlockPointer data);

  const Left& left_;
  const Decisions& decisions_;
  const uint64_t size_bytes_;
  std::map<uint64_t, BlockPointer> known_;  // read or written
  std::vector<Reading> readings_;
  std::vector<Change> changes_;
};

}  // namespace vellum::support

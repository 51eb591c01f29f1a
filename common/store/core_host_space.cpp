// SPDX-License-Identifier: BSD-2-Clause
//
// When the host, the file system that holds the store's file, has no room.
//
// 1. Changes that need space are refused as if the store were full. All else goes on: reads,
//    flushes (the journal has been written before its use), destroying, reclaim.
// 2. The reserve (core_space.cpp) has been written: that many blocks, the spare, are held back for
//    checkpoints, and are of use only when the host is full or nothing else is left. They count as
//    available.
// 3. A checkpoint that finds no room all the same keeps what it has done, and goes on when there is
//    some. Until then nothing that needs a checkpoint first is waited for.
#include <algorithm>
#include <utility>

#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr uint64_t kRoomToGoOn = 16 << 20;  // bytes
constexpr uint64_t kSpareStep = 256;        // blocks
// A quota may say no where there seems to be room.
constexpr auto kFullAtLeast = std::chrono::seconds(5);

}  // namespace

Error Core::host_full_error() const {
  return {Errc::no_space, "the file system that holds " + disk_.name() +
                              " is full: make room there, or eradicate volumes or snapshots"};
}

void Core::note_host_full() {
  host_full_since_ = std::chrono::steady_clock::now();
  if (std::exchange(host_is_full_, true)) return;
  warn(kWarningFull, warning_ ? warning_->percent_full : 0);
}

uint64_t Core::available() const { return allocator_->available() + spare_blocks_; }

// Brings the spare up to the reserve.
void Core::keep_spare() {
  if (!disk_.can_grow()) return;
  Lock lock(mutex_);
  while (!stopping_ && !failure_ && !host_is_full_) {
    const uint64_t wanted = reserve_blocks(has_promises());
    if (spare_blocks_ >= wanted || allocator_->available() < kSpareStep) return;
    std::vector<Run> runs;
    allocator_->reserve(kSpareStep, runs);  // of what is open: nobody waits for this
    Result<void> result;
    lock.unlock();
    for (const Run& run : runs) {
      if (result.ok()) result = disk_.prepare(run.block * kBlockSize, run.count * kBlockSize);
    }
    lock.lock();
    if (!result.ok()) {
      for (const Run& run : runs) allocator_->unreserve(run);
      return note_write_error(result.error());
    }
    for (const Run& run : runs) {
      spare_.push_back(run);
      spare_blocks_ += run.count;
    }
    if (runs.empty()) return;
  }
}

void Core::take_spare(uint64_t count, std::vector<Run>& runs) {
  CHECK(count <= spare_blocks_);
  spare_blocks_ -= count;
  while (count > 0) {
    Run& last = spare_.back();
    const uint64_t now = std::min(count, last.count);
    last.count -= now;
    append_run(runs, last.end(), now);
    count -= now;
    if (last.count == 0) spare_.pop_back();
  }
}

// Gives the spare back to the host.
void Core::release_spare() {
  for (const Run& run : spare_) {
    (void)disk_.discard(run.block * kBlockSize, run.count * kBlockSize);  // no harm if it fails
  }
  const Lock lock(mutex_);
  for (const Run& run : std::exchange(spare_, {})) allocator_->unreserve(run);
  spare_blocks_ = 0;
}

// Blocks that a step of a checkpoint has found no room for are changed for spare ones, if there are
// enough.
bool Core::exchange_for_spare(std::vector<Run>& runs) {
  if (!host_is_full_ || spare_blocks_ < blocks_in(runs)) return false;
  for (const Run& run : runs) {
    for (uint64_t i = 0; i < run.count; i++) allocator_->free_by_checkpoint(run.block + i);
  }
  runs.clear();
  return true;
}

// Blocks for a checkpoint, which counts them as its own.
Result<void> Core::take_for_checkpoint(Lock& lock, uint64_t count, std::vector<Run>& runs) {
  std::vector<Run> taken;
  if (host_is_full_ && spare_blocks_ >= count) {
    take_spare(count, taken);
  } else {
    TRY(take_blocks(lock, count, taken, nullptr));
  }
  for (const Run& run : taken) {
    allocator_->record_for_checkpoint(run);
    append_run(runs, run.block, run.count);
  }
  return {};
}

// An error of writing to the disk is looked at here, where it may be that.
void Core::note_write_error(const Error& error) {
  if (error.code == Errc::no_space) note_host_full();
}

void Core::look_at_host() {
  if (!host_is_full_) return;
  const auto now = std::chrono::steady_clock::now();
  if (options_.background && now - host_full_since_ < kFullAtLeast) return;
  const auto room = disk_.room_bytes();
  if (room && *room < kRoomToGoOn) return;
  host_is_full_ = false;
  log(1, "there is room again for " + disk_.name());
  if (checkpoint_is_stuck_) {
    checkpoint_requested_ = true;
    checkpoint_wanted_.notify_one();
  }
  looked_at_space_ = {};
  look_at_space();
}

// Of a checkpoint: what it has not written will be written by its next step.
Result<bool> Core::postpone_checkpoint(const Error& error) {
  checkpoint_is_stuck_ = true;
  note_write_error(error);
  progress_.notify_all();
  return host_full_error();
}

}  // namespace vellum::store

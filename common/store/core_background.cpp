// SPDX-License-Identifier: BSD-2-Clause
//
// The threads of a store that works in the background, and closing it. Each repeats a step that a
// test calls by hand.
#include <chrono>

#include "common/store/core.hpp"

namespace vellum::store {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kSyncInterval = 1s;  // what a crash can take from clients that never flush
constexpr auto kIdleBeforeCheckpoint = 3s;
constexpr auto kCountInterval = 10s;       // of space figures, beside clients
constexpr uint64_t kWaitingMax = 256;      // blocks
constexpr auto kRetryPause = 5s;           // after an error
constexpr uint64_t kPrepareBlocks = 1024;  // written ahead at once
constexpr uint64_t kPrepareAhead = 4096;   // how far ahead of what is handed out

}  // namespace

void Core::start_threads() {
  if (!options_.background) return;
  threads_.emplace_back([this] { committer(); });
  threads_.emplace_back([this] { checkpointer(); });
  threads_.emplace_back([this] { reclaimer(); });
  threads_.emplace_back([this] { writer_back(); });
  threads_.emplace_back([this] { scrubber(); });
}

void Core::stop_threads() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  for (auto* condition : {&commit_wanted_, &checkpoint_wanted_, &reclaim_wanted_,
                          &writeback_wanted_, &scrub_wanted_, &progress_}) {
    condition->notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Core::committer() {
  auto last_sync = Clock::now();
  for (;;) {
    bool flush = false;
    {
      Lock lock(mutex_);
      const auto wanted = [&] { return stopping_ || !waiters_.empty() || sectors_to_write(); };
      commit_wanted_.wait_for(lock, kSyncInterval, wanted);
      if (stopping_) break;
      const auto since = Clock::now() - last_sync;
      flush = !waiters_.empty() || (unsynced_ && since >= kSyncInterval);
      if (!flush) {
        if (failure_) {
          journal_->take_sealed();  // they will never be needed
        } else if (const auto result = write_out(lock); !result.ok()) {
          continue;
        }
        progress_.notify_all();
        continue;
      }
    }
    flush_round();
    last_sync = Clock::now();
  }
  Lock lock(mutex_);
  const auto waiters = std::exchange(waiters_, {});
  lock.unlock();
  for (const auto& waiter : waiters) waiter(stopped());
}

Error Core::stopped() const {
  return {Errc::shut_down, "the store " + disk_.name() + " is being closed"};
}

void Core::checkpointer() {
  for (;;) {
    {
      Lock lock(mutex_);
      checkpoint_wanted_.wait(lock, [&] { return stopping_ || (!failure_ && checkpoint_due()); });
      if (stopping_) return;
    }
    for (;;) {
      const auto more = checkpoint_step();
      if (more.ok() && !*more) break;
      Lock lock(mutex_);
      if (!more.ok()) checkpoint_wanted_.wait_for(lock, kSyncInterval);
      if (stopping_) return;
      if (!more.ok()) break;
    }
  }
}

bool Core::is_stopping() {
  const Lock lock(mutex_);
  return stopping_;
}

uint64_t Core::requests_now() {
  const Lock lock(mutex_);
  return requests();
}

uint64_t Core::requests() const {
  return stats_.reads + stats_.writes + stats_.trims + stats_.zeroes;
}

// While others are busy, a bounded number of steps.
void Core::count_figures(bool is_idle) {
  constexpr int kSteps = 100;
  for (int step = 0; is_idle || step < kSteps; step++) {
    const uint64_t requests_before = requests_now();
    const auto more = figures_step();
    if (!more.ok() || !*more || is_stopping()) return;
    is_idle = is_idle && requests_now() == requests_before;
  }
}

// While requests come, reclaim gets a tenth of the time, and more as space gets short.
void Core::reclaimer() {
  uint64_t requests_before = 0;
  auto last_request = Clock::now(), last_count = last_request;
  for (;;) {
    const auto began = Clock::now();
    const auto more = reclaim_step();
    const auto end = Clock::now();
    Lock lock(mutex_);
    if (stopping_) return;
    if (requests() != requests_before) last_request = end;
    requests_before = requests();
    look_at_space();
    if (!more.ok()) {
      reclaim_wanted_.wait_for(lock, kRetryPause);
    } else if (!*more) {
      // What is free but waits for checkpoints comes back when nobody minds.
      const bool is_idle = end - last_request >= kIdleBeforeCheckpoint;
      // What the last one has freed itself is no reason for another one.
      if (is_idle && allocator_->waiting() >= kWaitingMax + tables_freed_) {
        checkpoint_requested_ = true;
        checkpoint_wanted_.notify_one();
      }
      const auto since_count = end - last_count;
      if (is_idle || since_count >= kCountInterval) {
        lock.unlock();
        count_figures(is_idle);
        lock.lock();
        last_count = Clock::now();
      }
      if (stopping_) return;
      reclaim_wanted_.wait_for(lock, kSyncInterval);
    } else if (last_request == end) {
      const uint64_t free_percent = allocator_->available() * 100 / allocator_->capacity();
      const auto pause = (end - began) * std::min<uint64_t>(free_percent, 9);
      reclaim_wanted_.wait_for(lock, pause, [&] { return stopping_; });
    }
    if (stopping_) return;
  }
}

// Early writeback, so that a sync finds little to do, and space written ahead of its use, so that
// it does not have to commit the file system's metadata.
void Core::writer_back() {
  for (;;) {
    std::vector<Run> runs;
    {
      Lock lock(mutex_);
      writeback_wanted_.wait_for(lock, kSyncInterval, [&] {
        constexpr uint64_t kWritebackBlocks = 256;
        return stopping_ || writeback_blocks_ >= kWritebackBlocks;
      });
      if (stopping_) return;
      look_at_host();
      runs = std::exchange(writeback_, {});
      writeback_blocks_ = 0;
    }
    for (const Run& run : runs) {
      disk_.start_writeback(run.block * kBlockSize, run.count * kBlockSize);
    }
    prepare_ahead();
    keep_spare();
  }
}

void Core::prepare_ahead() {
  Lock lock(mutex_);
  for (;;) {
    if (allocator_->available() < reserve_blocks() + 4 * kPrepareBlocks) return;
    const auto run = allocator_->reserve_ahead(kPrepareBlocks, kPrepareAhead);
    if (!run) return;
    lock.unlock();
    const auto result = disk_.prepare(run->block * kBlockSize, run->count * kBlockSize);
    lock.lock();
    allocator_->unreserve(*run);
    if (!result.ok()) note_write_error(result.error());
    if (!result.ok() || stopping_) return;
  }
}

Result<void> Core::close() {
  {
    const Lock lock(mutex_);
    CHECK(exports_ == 0);
    closing_ = true;
  }
  Result<void> result = flush();
  if (result.ok()) result = checkpoint();
  stop_threads();
  release_spare();
  return result;
}

}  // namespace vellum::store

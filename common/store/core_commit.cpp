// SPDX-License-Identifier: BSD-2-Clause
//
// Group commit, and the brakes: a change is admitted when journal, dirty nodes and free space allow
// for it, and slowed down before one of them is exhausted.
#include <algorithm>
#include <chrono>
#include <future>

#include "common/base/endian.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr uint64_t kChangesMax = 65536;    // blocks allocated and freed between checkpoints
constexpr size_t kSealedSectorsMax = 256;  // waiting to be written
constexpr auto kSlowDownMax = std::chrono::milliseconds(8);

}  // namespace

// -- Flush ---------------------------------------------------------------------------------------

Result<void> Core::write_out(Lock& lock) {
  lock.unlock();
  const std::lock_guard writing(write_mutex_);
  lock.lock();
  const auto sectors = journal_->take_sealed();
  if (sectors.empty()) return {};
  lock.unlock();
  const auto result = write_sectors(disk_, journal_->sectors(), sectors);
  lock.lock();
  if (!result.ok()) {
    fail(lock, "the journal cannot be written: " + result.error().message);
    return failure_error();
  }
  written_sequence_ = sectors.back().sequence;
  return {};
}

Result<void> Core::sync_all(Lock& lock) {
  lock.unlock();
  const std::lock_guard syncing(sync_mutex_);
  lock.lock();
  if (failure_) return failure_error();
  const uint64_t written = written_sequence_;
  lock.unlock();
  const auto result = disk_.sync();
  lock.lock();
  if (!result.ok()) fail(lock, "a sync failed: " + result.error().message);
  if (failure_) return failure_error();
  journal_->set_durable(written);
  return {};
}

void Core::flush_round() {
  Lock lock(mutex_);
  auto waiters = std::exchange(waiters_, {});
  journal_->seal();
  const bool needed = journal_->durable() + 1 < journal_->position().sequence;
  unsynced_ = false;
  Result<void> result;
  if (failure_) {
    result = failure_error();
  } else if (needed) {
    result = write_out(lock);
    if (result.ok()) result = sync_all(lock);
  }
  lock.unlock();
  progress_.notify_all();
  for (auto& waiter : waiters) waiter(result);
}

void Core::flush_async(std::function<void(Result<void>)> done) {
  {
    Lock lock(mutex_);
    if (stopping_) {
      lock.unlock();
      done(stopped());
      return;
    }
    stats_.flushes++;
    waiters_.push_back(std::move(done));
  }
  if (options_.background) {
    commit_wanted_.notify_one();
  } else {
    flush_round();
  }
}

Result<void> Core::flush() {
  std::promise<Result<void>> promise;
  auto future = promise.get_future();
  flush_async([&promise](Result<void> result) { promise.set_value(std::move(result)); });
  return future.get();
}

void Core::note_appended(uint64_t offset, uint64_t length) {
  if (!options_.background) return;
  append_run(writeback_, offset / kBlockSize, length / kBlockSize);
  writeback_blocks_ += length / kBlockSize;
  constexpr uint64_t kWritebackBlocks = 256;  // about a MiB
  if (writeback_blocks_ >= kWritebackBlocks) writeback_wanted_.notify_one();
}

// -- Admission -----------------------------------------------------------------------------------

uint64_t Core::pressure_percent() const {
  const uint64_t since = journal_->position().sequence - superblock_.newer.position.sequence;
  const uint64_t journal = since * 100 / journal_->sectors();
  const uint64_t dirty = nodes_.dirty_count() * 100 / nodes_.nodes_max();
  return std::max(journal, dirty);
}

bool Core::checkpoint_due() const {
  const uint64_t capacity = allocator_->capacity();
  const uint64_t changes_max = std::min(kChangesMax, std::max<uint64_t>(capacity / 8, 64));
  return checkpoint_requested_ || pressure_percent() >= 25 || allocator_->changes() >= changes_max;
}

bool Core::must_wait(size_t record_bytes, size_t records) const {
  if (!journal_->room_for(record_bytes + admitted_bytes_, records + admitted_records_)) return true;
  if (nodes_.dirty_count() >= nodes_.nodes_max() / 4 * 3) return true;
  if (allocator_->changes() >= 4 * kChangesMax) return true;
  return options_.background && journal_->sealed_count() >= kSealedSectorsMax;
}

Result<void> Core::wait_for_checkpoint(Lock& lock, Wait wait) {
  if (wait == Wait::never) return Error{Errc::would_block, "a checkpoint has to be waited for"};
  if (!options_.background) {
    lock.unlock();
    auto result = checkpoint();
    lock.lock();
    return result;
  }
  checkpoint_requested_ = checkpoint_requested_ || journal_->sealed_count() < kSealedSectorsMax;
  checkpoint_wanted_.notify_one();
  commit_wanted_.notify_one();
  progress_.wait_for(lock, std::chrono::milliseconds(100));
  return {};
}

// Enough for one write to be worth it.
bool Core::sectors_to_write() const {
  constexpr size_t kSealedSectorsToWrite = 16;
  return journal_->sealed_count() >= kSealedSectorsToWrite;
}

void Core::note_record() {
  unsynced_ = true;
  if (allocator_->is_contradicted()) {
    set_failure("its maps contradict each other; `vellum check` says more");
  }
  nodes_.shrink();
  if (options_.background && sectors_to_write()) commit_wanted_.notify_one();
}

Result<void> Core::admit(Lock& lock, const Cost& cost, Wait wait, Admission& admission) {
  CHECK(admission.cost.record_bytes == 0);
  if (cost.record_bytes > journal_->record_max()) {
    return Error{Errc::limit, "the change needs a record of " + std::to_string(cost.record_bytes) +
                                  " bytes, and the journal takes " +
                                  std::to_string(journal_->record_max())};
  }
  const uint64_t commits_at_start = commits_;
  bool slowed = false;
  for (;;) {
    if (failure_) return failure_error();
    if (closing_) return stopped();
    if (!options_.background) look_at_host();
    if (host_is_full_ && cost.takes_space()) return host_full_error();
    if (must_wait(cost.record_bytes, cost.records) || answers_must_wait(cost)) {
      if (checkpoint_is_stuck_ && host_is_full_) return host_full_error();
      TRY(wait_for_checkpoint(lock, wait));
      continue;
    }
    if (cost.takes_space() && !has_room(cost)) {
      if (!space_comes_back(lock, commits_at_start)) {
        note_full();
        return full_error();
      }
      TRY(wait_for_checkpoint(lock, wait));
      continue;
    }
    if (checkpoint_due()) checkpoint_wanted_.notify_one();
    const uint64_t pressure = pressure_percent();
    if (pressure < 50 || slowed || !options_.background) {
      admission.admit(cost);
      return {};
    }
    if (wait == Wait::never) return Error{Errc::would_block, "the store is catching up"};
    slowed = true;
    progress_.wait_for(lock, kSlowDownMax * (pressure - 45) / 50);
  }
}

// Its bitmap cannot be read, so nobody knows what is free there.
void Core::give_up_region(uint64_t region, const Error& why) {
  allocator_->give_up(region);
  log(3, "no space is taken any more from " + std::to_string(region * superblock_.region_size) +
             " on, for " + std::to_string(superblock_.region_size) +
             " bytes of the store: its bitmap is damaged (" + why.message +
             "). `vellum check --repair` makes it anew");
}

// Makes a region ready to be taken from; or gives it up.
Result<void> Core::open_region(Lock& lock, uint64_t region) {
  for (;;) {
    const uint64_t commits = allocator_->commits();
    const SystemTree newer = *system_tree_;
    const SystemTree older = older_system_tree_ ? *older_system_tree_ : newer;
    lock.unlock();
    const auto place = system_block(Area::bitmaps, region);
    Allocator::Bitmap busy(kBlockSize / 8);
    Result<void> result;
    for (const SystemTree* tree : {&newer, &older}) {
      if (tree == &older && same_target(older.root(), newer.root())) break;
      const auto page = tree->read(place);
      if (!page.ok()) {
        result = page.error();
        break;
      }
      for (size_t i = 0; i < busy.size(); i++) busy[i] |= load_le64(page->data() + i * 8);
    }
    lock.lock();
    if (commits != allocator_->commits()) continue;
    if (!result.ok()) {
      give_up_region(region, result.error());
      return {};
    }
    if (allocator_->open(region, busy, commits)) return {};
  }
}

Result<void> Core::take_blocks(Lock& lock, uint64_t count, std::vector<Run>& runs,
                               Admission* admission) {
  uint64_t taken = 0;
  for (;;) {
    uint64_t now = allocator_->reserve(count - taken, runs);
    const uint64_t left = count - taken - now;
    const auto region = left > 0 ? allocator_->region_to_open() : std::nullopt;
    if (left > 0 && !region && left <= spare_blocks_) {
      take_spare(left, runs);
      now += left;
    }
    if (admission != nullptr) {
      CHECK(admission->cost.blocks >= now);
      admission->cost.blocks -= now;
      admitted_blocks_ -= now;
    }
    taken += now;
    if (taken == count) return {};
    Result<void> result = Error{Errc::no_space, "the store " + disk_.name() + " is full"};
    if (region) result = open_region(lock, *region);
    if (!result.ok()) {
      for (const Run& run : runs) allocator_->unreserve(run);
      runs.clear();
      return result;
    }
  }
}

}  // namespace vellum::store

// SPDX-License-Identifier: BSD-2-Clause
//
// Reclaim: what no name leads to any more is given back in bounded steps. A step is a record that
// says how far the job got; recovery does the same work again.
#include <array>

#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr size_t kStepRecordBytes = 64;
constexpr uint64_t kBusyRequests = 100;  // since the step before
constexpr unsigned kTries = 12;          // before a disk that fails to read counts as damaged
constexpr uint64_t kPunchBlocks = 1024;  // looked at, and out of reach for writers, at once

}  // namespace

Result<bool> Core::reclaim_step() {
  const std::lock_guard one(reclaim_mutex_);
  Admission admission(*this);
  Cost cost;
  cost.record_bytes = kStepRecordBytes;
  cost.records = 2;
  Lock lock(mutex_);
  TRY(admit(lock, cost, Wait::allowed, admission));
  TRY_ASSIGN(const bool eradicated, eradicate_due(lock));
  if (eradicated) return true;
  const Forest::Work work = forest_.next_work(!options_.background);
  Version* version = work.version;
  // A sweep copies before it frees. Where that takes the space that others need, it ends.
  Cost copies;
  copies.nodes = options_.reclaim_places * (kLevels + 1);
  const bool is_short = host_is_full_ || !has_room(copies);
  if (is_short && work.job == Job::sweep && version->job == Job::sweep) {
    append(std::array<Piece, 1>{ReclaimStepPiece{version->id, {}, false, true}});
    return true;
  }
  if (version == nullptr || (is_short && work.job == Job::sweep)) {
    lock.unlock();
    return punch_step();
  }
  // A record of its own: a checkpoint may freeze the job before its first step is recorded.
  if (version->job == Job::none) {
    append(std::array<Piece, 1>{BeginReclaimPiece{version->id, work.job}});
  }
  // A step ends where a node is missing, since the mutex is free while it is read: what others do
  // then comes after the step's record.
  size_t places = 0;
  std::optional<Missing> unreadable;
  const auto stepped = with_nodes(
      lock, Wait::allowed, {{}, version},
      [&](MissingNodes& missing) {
        while (places < options_.reclaim_places && version->cursor != kCursorEnd) {
          if (!reclaim_->step(*version, missing)) return places > 0;
          places++;
        }
        return true;
      },
      &unreadable);
  if (unreadable && (stepped.error().code == Errc::corrupt || ++unreadable_steps_ == kTries)) {
    unreadable_steps_ = 0;
    pass_over(*version, *unreadable);
    return true;
  }
  TRY(stepped);
  unreadable_steps_ = 0;
  const bool finished = version->cursor == kCursorEnd;
  append(std::array<Piece, 1>{
      ReclaimStepPiece{version->id, finished ? Cursor() : version->cursor, finished, false}});
  return true;
}

// The subtree stays allocated, since nobody knows what it holds.
void Core::pass_over(Version& version, const Missing& unreadable) {
  const Cursor place = place_of(unreadable.block, unreadable.level);
  CHECK(place > version.cursor);
  reclaim_skipped_++;
  log(3, "reclaim of " + name_of(version) + " passes over the unreadable map node at byte " +
             std::to_string(unreadable.pointer.block() * kBlockSize) +
             ": what it leads to takes space until the store is repaired at rest (vellum check "
             "--repair)");
  append(std::array<Piece, 1>{ReclaimSkipPiece{version.id, place}});
}

// All that has become free in one region. Blocks that are being punched are reserved meanwhile.
Result<bool> Core::punch_step() {
  Lock lock(mutex_);
  // While others write, only where much is free: what is free in small pieces is written again.
  const bool is_busy = options_.background && requests() - requests_when_punched_ > kBusyRequests;
  requests_when_punched_ = requests();
  const auto region = allocator_->region_to_punch(is_busy ? allocator_->region_blocks() / 4 : 1);
  if (!region) return false;
  for (uint64_t at = 0; at < allocator_->region_blocks();) {
    if (stopping_ || allocator_->available() < reserve_blocks() + 4 * kPunchBlocks) return false;
    if (!allocator_->is_open(*region)) TRY(open_region(lock, *region));
    if (!allocator_->is_open(*region)) return true;
    const std::vector<Run> runs = allocator_->reserve_to_punch(*region, at, kPunchBlocks);
    lock.unlock();
    Result<void> result;
    for (const Run& run : runs) {
      if (result.ok()) result = disk_.discard(run.block * kBlockSize, run.count * kBlockSize);
    }
    lock.lock();
    for (const Run& run : runs) allocator_->unreserve(run);
    TRY(std::move(result));
  }
  return true;
}

}  // namespace vellum::store

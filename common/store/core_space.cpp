// SPDX-License-Identifier: BSD-2-Clause
//
// How much room there is. All counts are blocks.
//
// 1. Free space falls to the reserve for admitted changes only: they keep their worst case from
//    admission on (Admission), and a node that has become dirty counts until a checkpoint has
//    written it.
// 2. The reserve is for checkpoints, and for what destroys, eradicates and reclaims: a block that
//    is freed now comes back when two more checkpoints have been committed, and one may be at work,
//    so three of them have to be written before anything does.
// 3. A reserved volume is promised what it does not own yet of its full size and map. What is
//    promised is not there for others. When it rewrites what it owns, old blocks wait for reuse
//    while new ones are taken: for that, some working space is kept as well.
#include <algorithm>

#include "common/base/units.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr uint64_t kRegionsAhead = 8;  // that changes admitted at one time may begin to use
constexpr uint64_t kChangedRegionsMax = 1 << 18;  // between two checkpoints
constexpr uint64_t kPathNodes = 24;               // upper levels of the system tree, in all areas
constexpr uint64_t kAnswersInReserve = 32;
constexpr uint64_t kWorkingMin = 512, kWorkingMax = 16384;

uint64_t blocks_for(uint64_t records, uint64_t next_id, uint64_t per_block) {
  return std::min(records, next_id / per_block + 1);
}

}  // namespace

// What the system tree of one checkpoint takes at most, answers aside. With `all_regions` when all
// of the store is in use, as the promise to a reserved volume has it.
uint64_t Core::tables_max(bool all_regions) const {
  const uint64_t in_use = allocator_->regions_used() + kRegionsAhead;
  const uint64_t regions = std::min(
      {allocator_->regions(), all_regions ? kChangedRegionsMax : in_use, kChangedRegionsMax});
  const uint64_t count_blocks = std::max<uint64_t>(
      regions / kCountsPerBlock + 1, std::min(kTablesRewrittenMax, in_use / kCountsPerBlock + 1));
  uint64_t blocks = 0;
  for (const uint64_t tables :
       {blocks_for(forest_.versions().size() + 1, forest_.next_version(), kVersionsPerBlock),
        blocks_for(forest_.object_count() + 1, forest_.next_object(), kObjectsPerBlock), regions,
        count_blocks}) {
    blocks += tables + tables / kFanout + 1;
  }
  return blocks + kPathNodes;
}

uint64_t Core::reserve_blocks(bool all_regions) const {
  return nodes_.dirty_count() + 3 * tables_max(all_regions) + running_tables_ +
         answers_.changed_blocks() + kAnswersInReserve;
}

// Requests that take no space may still have their answers kept: so many, until a checkpoint has
// written them.
bool Core::answers_must_wait(const Cost& cost) const {
  return !cost.takes_space() && answers_.changed_blocks() >= kAnswersInReserve && !has_room({});
}

// Data and map of a volume that is written everywhere.
uint64_t Core::full_blocks(uint64_t size) {
  uint64_t count = (size + kBlockSize - 1) / kBlockSize, full = count;
  for (unsigned level = 1; level <= kLevels; level++) {
    count = (count + kFanout - 1) / kFanout;
    full += count;
  }
  return full;
}

uint64_t Core::promised_to(const Volume& volume) {
  if (volume.provision != Provision::reserved) return 0;
  const uint64_t full = full_blocks(volume.size);
  return full - std::min(full, volume.head->owned);
}

uint64_t Core::working_space() const {
  return std::clamp(allocator_->capacity() / 64, kWorkingMin, kWorkingMax);
}

uint64_t Core::promised() const {
  uint64_t sum = 0;
  for (const Volume* volume : forest_.reserved_volumes()) sum += promised_to(*volume);
  return sum;
}

uint64_t Core::kept_blocks() const {
  return has_promises() ? reserve_blocks(true) + working_space() : reserve_blocks(false);
}

uint64_t Core::free_blocks() const {
  const uint64_t there = available();
  return there - std::min(there, kept_blocks() + promised());
}

bool Core::has_room(const Cost& cost) const {
  uint64_t needed = cost.blocks + cost.nodes + admitted_blocks_ + admitted_nodes_;
  if (has_promises()) {
    const bool is_reserved =
        cost.volume != nullptr && cost.volume->provision == Provision::reserved;
    needed += promised();
    if (is_reserved) {
      needed -= std::min(promised_to(*cost.volume), cost.blocks + cost.nodes);
    } else {
      needed += working_space();
    }
  }
  return available() >= needed + reserve_blocks(has_promises());
}

bool Core::space_comes_back(Lock& lock, uint64_t commits_at_start) {
  CHECK(lock.owns_lock());
  // What is freed comes back after two more checkpoints have been committed.
  constexpr uint64_t kCommitsThatHelp = 3;
  const uint64_t freed = allocator_->freed_total();
  if (freed != freed_when_full_ && commits_ - commits_at_start < kCommitsThatHelp) return true;
  freed_when_full_ = freed;
  // Readers keep what they may be reading, and reclaim has not come to the end.
  if (!options_.background) return false;
  if (allocator_->has_readers() && allocator_->waiting() > 0) return true;
  const Forest::Work work = forest_.next_work(false);
  const bool gives_back = work.job == Job::drop || work.job == Job::collapse;
  if (gives_back) reclaim_wanted_.notify_one();
  return gives_back;
}

Error Core::full_error() const {
  std::string message = "the store " + disk_.name() + " is full";
  const uint64_t promised_blocks = promised();
  if (promised_blocks > 0) {
    message +=
        " (" + format_size(promised_blocks * kBlockSize) + " are promised to reserved volumes)";
  }
  return {Errc::no_space, message + ": eradicate volumes or snapshots, or let the store grow"};
}

Result<StoreInfo> Core::grow(std::optional<uint64_t> wanted) {
  TRY(disk_.refresh_size());
  if (!wanted && disk_.can_grow()) {
    return Error{Errc::invalid_argument,
                 disk_.name() +
                     " is a file, which has no size of its own: say how large the store "
                     "may become"};
  }
  const uint64_t capacity = wanted.value_or(disk_.size_bytes());
  {
    const std::lock_guard one(checkpoint_mutex_);  // it writes superblocks, too
    Lock lock(mutex_);
    if (failure_) return failure_error();
    Superblock next = superblock_;
    next.capacity = capacity / kBlockSize * kBlockSize;
    if (next.capacity < superblock_.capacity) {
      return Error{Errc::invalid_argument, "the store " + disk_.name() + " has a capacity of " +
                                               format_size(superblock_.capacity) +
                                               ", and it cannot shrink to " +
                                               format_size(capacity)};
    }
    const std::string fault = geometry_fault(next);
    if (!fault.empty()) return Error{Errc::invalid_argument, "the store cannot grow so: " + fault};
    if (!disk_.can_grow() && next.capacity > disk_.size_bytes()) {
      return Error{
          Errc::invalid_argument,
          disk_.name() + " has " + format_size(disk_.size_bytes()) + ": make it larger first"};
    }
    if (next.capacity > superblock_.capacity) {
      TRY(write_next_superblock(lock, next));
      allocator_->grow(next.capacity / kBlockSize);
      looked_at_space_ = {};
      log(1, "the store has grown to " + format_size(next.capacity));
    }
  }
  progress_.notify_all();
  return info();
}

// Before a reserved volume (null: one to be made) begins to be promised `promise`.
Result<void> Core::check_promise(const Volume* volume, uint64_t promise,
                                 const std::string& name) const {
  return check_promises({{volume, promise}}, "\"" + name + "\"");
}

// Before the heads of these volumes begin anew, owning nothing.
Result<void> Core::check_new_heads(const NewHeads& heads) const {
  std::map<const Volume*, uint64_t> promises;
  std::string names;
  for (const auto& [volume, size] : heads) {
    if (volume->provision != Provision::reserved) continue;
    promises.emplace(volume, full_blocks(size));
    names += (names.empty() ? "\"" : ", \"") + volume->name + "\"";
  }
  return promises.empty() ? Result<void>() : check_promises(promises, names);
}

Result<void> Core::check_promises(const std::map<const Volume*, uint64_t>& promises,
                                  const std::string& names) const {
  uint64_t kept = admitted_blocks_ + admitted_nodes_ + working_space() + reserve_blocks(true);
  for (const Volume* volume : forest_.reserved_volumes()) {
    if (!promises.contains(volume)) kept += promised_to(*volume);
  }
  uint64_t promise = 0;
  for (const auto& [volume, blocks] : promises) promise += blocks;
  const uint64_t there = available();
  if (there >= kept && there - kept >= promise) return {};
  return Error{Errc::no_space,
               names + " would have to be promised " + format_size(promise * kBlockSize) +
                   ", and the store " + disk_.name() + " has " +
                   format_size((there - std::min(there, kept)) * kBlockSize) +
                   " left for that: eradicate volumes or snapshots, or let the store grow"};
}

}  // namespace vellum::store

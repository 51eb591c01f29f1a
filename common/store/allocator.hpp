// SPDX-License-Identifier: BSD-2-Clause
//
// Which blocks may be handed out. Guarded by the store's mutex; does no I/O.
//
// The bitmaps on disk are those of the newest checkpoint. What has changed since is kept here as
// lists of runs, one Interval for the time between two freezes:
//
// 1. reserve() hands out a block; record() makes it allocated, at the journal position of the
//    record that names it; unreserve() takes it back. A reserved block is in no checkpoint's map.
// 2. free() makes an allocated block wait. It waits until two more checkpoints have been committed,
//    so that neither live map nor the kept journal knows it, and until every reader that began
//    before the freeze is gone.
// 3. Blocks are handed out from open regions, whose availability is a bitmap here. Opening one
//    needs its bitmap from disk; a region that has nothing allocated needs none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/store/format.hpp"

namespace vellum::store {

struct Run {
  uint64_t block = 0;
  uint64_t count = 0;
  uint64_t end() const { return block + count; }
  bool operator==(const Run&) const = default;
};

// Appends a run, or prolongs the last one.
void append_run(std::vector<Run>& runs, uint64_t block, uint64_t count);
uint64_t blocks_in(const std::vector<Run>& runs);

class Allocator {
 public:
  struct Interval {
    uint64_t number = 0;
    std::vector<Run> allocated, freed;
  };
  using Bitmap = std::vector<uint64_t>;  // a bit a block of one region

  // Blocks before `first` and from `end` on do not exist. Counts: what is allocated in each region.
  Allocator(uint64_t first, uint64_t end, uint64_t region_blocks, std::vector<uint32_t> counts);

  // Up to `count` blocks, in few long runs. Returns how many: fewer when a region has to be opened
  // first (region_to_open()) or nothing is left.
  uint64_t reserve(uint64_t count, std::vector<Run>& runs);
  void unreserve(const Run& run);
  // Reserves the next `count` blocks of fresh space that are still to be prepared, if what has been
  // handed out has come within `distance` of them. Each block is returned once at most.
  std::optional<Run> reserve_ahead(uint64_t count, uint64_t distance);
  void record(const Run& run);             // reserved -> allocated
  void record_unreserved(const Run& run);  // recovery: named by a record, never reserved
  void free(uint64_t block);               // allocated -> waiting

  // -- Opening regions ---------------------------------------------------------------------------
  // A region worth opening, whose bitmaps have to be read first.
  std::optional<uint64_t> region_to_open() const;
  // `busy` is the union of the live checkpoints' bitmaps that matter, as they were at `commits`.
  // False if a checkpoint has been committed since: read again.
  bool open(uint64_t number, const Bitmap& busy, uint64_t commits);
  uint64_t commits() const { return commits_; }

  // -- Checkpoints -------------------------------------------------------------------------------
  // Ends the current interval; it is the checkpoint's until commit() or for good.
  void freeze();
  const Interval& frozen() const { return frozen_; }
  // What the checkpoint itself takes and gives up: part of its own map.
  void record_for_checkpoint(const Run& run) { allocate(run, true, frozen_); }
  void free_by_checkpoint(uint64_t block) { retire(block, frozen_); }
  void commit();

  // -- Readers -----------------------------------------------------------------------------------
  // While a reader exists, nothing that it can have seen is handed out again.
  uint64_t enter_reader();
  void leave_reader(uint64_t interval);
  bool has_readers() const { return !readers_.empty(); }

  // -- Punching: giving the file system back what has become free --------------------------------
  // A region in which at least `least` blocks have become free since it was punched last.
  std::optional<uint64_t> region_to_punch(uint64_t least) const;
  bool is_open(uint64_t region) const { return open_.contains(region); }
  // Reserves free blocks of an open region, up to `count` within the next `count` from block `at`
  // of it on, but not what is about to be handed out. Moves `at`; at the region's end it counts as
  // punched. Each run is to be unreserved.
  std::vector<Run> reserve_to_punch(uint64_t number, uint64_t& at, uint64_t count);

  // -- After a mount: what must stay untouched until the first commit ----------------------------
  // What the older map alone has allocated is kept out by open(), what the journal names by these.
  void hold_until_commit(const Run& run) { append_run(held_, run.block, run.count); }
  const std::vector<Run>& held() const { return held_; }
  // So many blocks of a region are held, or are allocated in the older map alone.
  void count_held(uint64_t number, uint32_t count);

  // Nothing of this region is handed out any more: its bitmap cannot be read.
  void give_up(uint64_t number);
  bool is_given_up(uint64_t number) const {
    return number < regions_.size() && regions_[number].given_up;
  }
  uint64_t regions_given_up() const { return regions_given_up_; }

  // What is freed is not allocated, or not counted: the maps are wrong, and must not be relied upon
  // any more.
  void contradict() { is_contradicted_ = true; }
  bool is_contradicted() const { return is_contradicted_; }

  // The store ends at `end` now, which is not before the old end.
  void grow(uint64_t end);

  uint64_t freed_total() const { return freed_total_; }  // by free(), ever
  uint64_t capacity() const { return end_ - first_; }
  uint64_t allocated() const { return allocated_; }
  uint64_t waiting() const { return waiting_; }
  uint64_t reserved() const { return reserved_; }
  uint64_t available() const { return capacity() - allocated_ - waiting_ - reserved_; }
  uint64_t region_blocks() const { return region_blocks_; }
  uint64_t first() const { return first_; }
  uint64_t end() const { return end_; }
  uint64_t regions() const { return (end_ + region_blocks_ - 1) / region_blocks_; }
  uint64_t regions_used() const { return regions_.size(); }  // up to the highest
  uint32_t allocated_in(uint64_t number) const;
  // What has changed since the last freeze. For the checker.
  const Interval& current_interval() const { return current_interval_; }
  // Blocks freed and allocated since the last freeze: what makes a checkpoint large.
  uint64_t changes() const { return changes_; }

 private:
  struct Region {
    uint32_t allocated = 0, waiting = 0, reserved = 0;
    uint32_t freed = 0;  // since it was punched
    uint32_t held = 0;   // of those that wait: until the first commit
    bool given_up = false;
  };
  struct OpenRegion {
    Bitmap free;  // a bit set: may be handed out
    uint64_t available = 0;
    uint64_t cursor = 0;  // block within the region
  };

  Region& region(uint64_t number);
  uint64_t size_of(uint64_t number) const;  // blocks that exist in it
  uint64_t available_in(uint64_t number) const;
  uint64_t take(uint64_t number, OpenRegion& open, uint64_t count, std::vector<Run>& runs);
  struct Choice {
    std::optional<uint64_t> number;
    bool must_read = false;  // its bitmaps, before it can be opened
  };
  Choice choose() const;
  void give_back(uint64_t number, uint64_t block, uint64_t count);
  void clear(uint64_t region_first, OpenRegion& open, const std::vector<Run>& runs) const;
  void release_held();
  void release_ready();
  template <typename Change>
  void for_each_part(const Run& run, Change change);
  void allocate(const Run& run, bool was_reserved, Interval& in);
  void retire(uint64_t block, Interval& in);  // allocated -> waiting

  const uint64_t first_;
  uint64_t end_;
  const uint64_t region_blocks_;
  std::vector<Region> regions_;  // up to the highest that was ever used
  std::map<uint64_t, OpenRegion> open_;
  std::optional<uint64_t> current_;
  uint64_t allocated_ = 0, waiting_ = 0, reserved_ = 0;
  uint64_t changes_ = 0, freed_total_ = 0;
  uint64_t commits_ = 0;
  uint64_t prepared_ = 0;             // reserve_ahead() has been here
  std::set<uint64_t> freed_regions_;  // with `freed` above 0
  std::vector<Run> held_;
  uint64_t held_total_ = 0;
  uint64_t regions_given_up_ = 0;
  bool is_contradicted_ = false;

  Interval current_interval_, frozen_;
  struct Waiting {
    uint64_t interval;
    std::vector<Run> runs;
    bool released_by_commit = false;
  };
  std::deque<Waiting> waiting_lists_;
  std::map<uint64_t, uint64_t> readers_;  // interval in which they began -> how many
};

}  // namespace vellum::store

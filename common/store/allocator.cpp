// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/allocator.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/check.hpp"

namespace vellum::store {

namespace {

// A region is worth reusing when this part of it is free; below that, fresh space comes first.
constexpr uint64_t kReuseFraction = 4;

void set_bits(std::vector<uint64_t>& bits, uint64_t from, uint64_t count, bool value) {
  for (uint64_t at = from, end = from + count; at < end;) {
    const uint64_t bit = at % 64, n = std::min<uint64_t>(64 - bit, end - at);
    const uint64_t mask = (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) << bit;
    if (value) {
      bits[at / 64] |= mask;
    } else {
      bits[at / 64] &= ~mask;
    }
    at += n;
  }
}

uint64_t count_bits(const std::vector<uint64_t>& bits) {
  uint64_t count = 0;
  for (const uint64_t word : bits) count += static_cast<uint64_t>(std::popcount(word));
  return count;
}

// The first position in [from, end) whose bit is `value`, or `end`.
uint64_t find_bit(const std::vector<uint64_t>& bits, uint64_t from, uint64_t end, bool value) {
  while (from < end) {
    const uint64_t word = (value ? bits[from / 64] : ~bits[from / 64]) >> (from % 64);
    if (word != 0) return std::min(end, from + static_cast<uint64_t>(std::countr_zero(word)));
    from = (from / 64 + 1) * 64;
  }
  return end;
}

}  // namespace

void append_run(std::vector<Run>& runs, uint64_t block, uint64_t count) {
  if (!runs.empty() && runs.back().end() == block) {
    runs.back().count += count;
  } else {
    runs.push_back({block, count});
  }
}

uint64_t blocks_in(const std::vector<Run>& runs) {
  uint64_t count = 0;
  for (const Run& run : runs) count += run.count;
  return count;
}

Allocator::Allocator(uint64_t first, uint64_t end, uint64_t region_blocks,
                     std::vector<uint32_t> counts)
    : first_(first), end_(end), region_blocks_(region_blocks) {
  regions_.resize(counts.size());
  for (size_t i = 0; i < counts.size(); i++) {
    regions_[i].allocated = counts[i];
    allocated_ += counts[i];
  }
}

Allocator::Region& Allocator::region(uint64_t number) {
  if (number >= regions_.size()) regions_.resize(number + 1);
  return regions_[number];
}

uint32_t Allocator::allocated_in(uint64_t number) const {
  return number < regions_.size() ? regions_[number].allocated : 0;
}

uint64_t Allocator::size_of(uint64_t number) const {
  const uint64_t from = std::max(number * region_blocks_, first_);
  const uint64_t to = std::min((number + 1) * region_blocks_, end_);
  return to > from ? to - from : 0;
}

uint64_t Allocator::available_in(uint64_t number) const {
  if (number >= regions_.size()) return size_of(number);
  const Region& region = regions_[number];
  if (region.given_up) return 0;
  const uint64_t taken = uint64_t{region.allocated} + region.waiting + region.reserved;
  const uint64_t size = size_of(number);
  return size > taken ? size - taken : 0;
}

// A run may cross the border of two regions.
template <typename Change>
void Allocator::for_each_part(const Run& run, Change change) {
  for (uint64_t at = run.block; at < run.end();) {
    const uint64_t number = at / region_blocks_;
    const uint64_t end = std::min(run.end(), (number + 1) * region_blocks_);
    change(number, at, end - at);
    at = end;
  }
}

uint64_t Allocator::take(uint64_t number, OpenRegion& open, uint64_t count,
                         std::vector<Run>& runs) {
  const uint64_t base = number * region_blocks_;
  uint64_t taken = 0;
  bool wrapped = false;
  while (taken < count && open.available > 0) {
    const uint64_t from = find_bit(open.free, open.cursor, region_blocks_, true);
    if (from == region_blocks_) {
      CHECK(!wrapped);
      wrapped = true;
      open.cursor = 0;
      continue;
    }
    const uint64_t limit = std::min(region_blocks_, from + count - taken);
    const uint64_t to = find_bit(open.free, from, limit, false);
    set_bits(open.free, from, to - from, false);
    append_run(runs, base + from, to - from);
    open.available -= to - from;
    open.cursor = to;
    taken += to - from;
  }
  region(number).reserved += static_cast<uint32_t>(taken);
  reserved_ += taken;
  return taken;
}

Allocator::Choice Allocator::choose() const {
  uint64_t best = 0;
  std::optional<uint64_t> number, fresh;
  for (uint64_t i = first_ / region_blocks_; i < regions_.size(); i++) {
    const auto open = open_.find(i);
    const uint64_t available = open != open_.end() ? open->second.available : available_in(i);
    if (available == 0 || is_given_up(i)) continue;
    if (open == open_.end() && available == size_of(i) && commits_ > 0) {
      if (!fresh) fresh = i;
    } else if (available > best) {
      best = available;
      number = i;
    }
  }
  if (!fresh && regions() > regions_.size()) {
    fresh = std::max<uint64_t>(regions_.size(), first_ / region_blocks_);
  }
  if (fresh && best * kReuseFraction < region_blocks_) return {fresh, false};
  if (!number) return {};
  return {number, !open_.contains(*number)};
}

uint64_t Allocator::reserve(uint64_t count, std::vector<Run>& runs) {
  uint64_t taken = 0;
  for (;;) {
    if (current_) taken += take(*current_, open_.at(*current_), count - taken, runs);
    if (taken == count) return taken;
    current_.reset();
    const Choice choice = choose();
    if (!choice.number || choice.must_read) return taken;
    region(*choice.number);
    if (!open_.contains(*choice.number)) open(*choice.number, Bitmap(), commits_);
    current_ = choice.number;
  }
}

std::optional<uint64_t> Allocator::region_to_open() const {
  const Choice choice = choose();
  if (!choice.must_read) return std::nullopt;
  return choice.number;
}

void Allocator::clear(uint64_t region_first, OpenRegion& open, const std::vector<Run>& runs) const {
  const uint64_t region_end = region_first + region_blocks_;
  for (const Run& run : runs) {
    const uint64_t from = std::max(run.block, region_first);
    const uint64_t to = std::min(run.end(), region_end);
    if (from < to) set_bits(open.free, from - region_first, to - from, false);
  }
}

bool Allocator::open(uint64_t number, const Bitmap& busy, uint64_t commits) {
  if (commits != commits_) return false;
  if (open_.contains(number)) return true;
  // Nothing of it is reserved: a region with reservations stays open.
  const uint64_t base = number * region_blocks_;
  OpenRegion open;
  open.free.assign((region_blocks_ + 63) / 64, 0);
  const uint64_t from = std::max(base, first_), to = std::min(base + region_blocks_, end_);
  if (from < to) set_bits(open.free, from - base, to - from, true);
  for (size_t i = 0; i < busy.size() && i < open.free.size(); i++) open.free[i] &= ~busy[i];
  for (const Interval* interval : {&current_interval_, &frozen_}) {
    clear(base, open, interval->allocated);
    clear(base, open, interval->freed);
  }
  for (const Waiting& waiting : waiting_lists_) clear(base, open, waiting.runs);
  clear(base, open, held_);
  open.available = count_bits(open.free);
  open_.emplace(number, std::move(open));
  return true;
}

void Allocator::give_back(uint64_t number, uint64_t block, uint64_t count) {
  const auto open = open_.find(number);
  if (open == open_.end()) return;
  set_bits(open->second.free, block - number * region_blocks_, count, true);
  open->second.available += count;
}

std::optional<Run> Allocator::reserve_ahead(uint64_t count, uint64_t distance) {
  if (!current_) return std::nullopt;
  OpenRegion& open = open_.at(*current_);
  const uint64_t base = *current_ * region_blocks_;
  const uint64_t at = base + open.cursor;
  prepared_ = std::max(prepared_, at);
  // Not what is just being handed out, nor what lies in a region that is not open yet.
  const uint64_t from = std::max(prepared_ - base, open.cursor + count);
  if (from >= open.cursor + distance || from + count > region_blocks_) return std::nullopt;
  if (find_bit(open.free, from, from + count, false) != from + count) return std::nullopt;
  set_bits(open.free, from, count, false);
  open.available -= count;
  region(*current_).reserved += static_cast<uint32_t>(count);
  reserved_ += count;
  prepared_ = base + from + count;
  return Run{base + from, count};
}

std::optional<uint64_t> Allocator::region_to_punch(uint64_t least) const {
  for (const uint64_t number : freed_regions_) {
    if (regions_[number].freed >= least) return number;
  }
  return std::nullopt;
}

std::vector<Run> Allocator::reserve_to_punch(uint64_t number, uint64_t& at, uint64_t count) {
  std::vector<Run> runs;
  OpenRegion& open = open_.at(number);
  const uint64_t base = number * region_blocks_, end = std::min(at + count, region_blocks_);
  // What is about to be handed out is kept written.
  const bool is_current = current_ == number;
  const uint64_t kept_from = is_current ? open.cursor : region_blocks_;
  const uint64_t kept_to =
      is_current ? std::max(prepared_ - std::min(prepared_, base), open.cursor) : region_blocks_;
  while (at < end) {
    const uint64_t from = find_bit(open.free, at, end, true);
    uint64_t to = find_bit(open.free, from, end, false);
    at = to;
    if (from >= kept_from && from < kept_to) {
      at = std::min(kept_to, end);
      continue;
    }
    if (from < kept_from) to = std::min(to, kept_from);
    if (from == to) continue;
    at = to;
    set_bits(open.free, from, to - from, false);
    open.available -= to - from;
    region(number).reserved += static_cast<uint32_t>(to - from);
    reserved_ += to - from;
    runs.push_back({base + from, to - from});
  }
  if (at >= region_blocks_) {
    region(number).freed = 0;
    freed_regions_.erase(number);
  }
  return runs;
}

void Allocator::unreserve(const Run& run) {
  for_each_part(run, [&](uint64_t number, uint64_t block, uint64_t count) {
    CHECK(region(number).reserved >= count);
    region(number).reserved -= static_cast<uint32_t>(count);
    if (is_given_up(number)) {
      region(number).waiting += static_cast<uint32_t>(count);
      waiting_ += count;
    }
    give_back(number, block, count);
  });
  reserved_ -= run.count;
}

void Allocator::allocate(const Run& run, bool was_reserved, Interval& in) {
  for_each_part(run, [&](uint64_t number, uint64_t, uint64_t count) {
    Region& part = region(number);
    CHECK(!was_reserved || part.reserved >= count);
    if (was_reserved) part.reserved -= static_cast<uint32_t>(count);
    part.allocated += static_cast<uint32_t>(count);
  });
  if (was_reserved) reserved_ -= run.count;
  allocated_ += run.count;
  append_run(in.allocated, run.block, run.count);
}

void Allocator::retire(uint64_t block, Interval& in) {
  Region& from = region(block / region_blocks_);
  if (from.allocated == 0) return contradict();
  from.allocated--;
  from.waiting++;
  allocated_--;
  waiting_++;
  append_run(in.freed, block, 1);
}

void Allocator::record(const Run& run) {
  allocate(run, true, current_interval_);
  changes_ += run.count;
}

void Allocator::record_unreserved(const Run& run) {
  allocate(run, false, current_interval_);
  changes_ += run.count;
}

void Allocator::free(uint64_t block) {
  retire(block, current_interval_);
  changes_++;
  freed_total_++;
}

void Allocator::count_held(uint64_t number, uint32_t count) {
  Region& of = region(number);
  of.held += count;
  held_total_ += count;
  of.waiting += count;
  waiting_ += count;
}

// What is free there waits for good.
void Allocator::give_up(uint64_t number) {
  Region& of = region(number);
  if (of.given_up) return;
  const auto lost = static_cast<uint32_t>(available_in(number));
  of.given_up = true;
  of.waiting += lost;
  waiting_ += lost;
  regions_given_up_++;
  freed_regions_.erase(number);
  open_.erase(number);
  if (current_ == number) current_.reset();
}

void Allocator::grow(uint64_t end) {
  CHECK(end >= end_);
  const uint64_t old_end = std::exchange(end_, end);
  const uint64_t number = old_end / region_blocks_, base = number * region_blocks_;
  const uint64_t to = std::min(end, base + region_blocks_);
  if (is_given_up(number) && to > old_end) {
    regions_[number].waiting += static_cast<uint32_t>(to - old_end);
    waiting_ += to - old_end;
  } else if (open_.contains(number) && to > old_end) {
    give_back(number, old_end, to - old_end);
  }
}

void Allocator::freeze() {
  const uint64_t number = current_interval_.number;
  frozen_ = std::move(current_interval_);
  current_interval_ = Interval{number + 1, {}, {}};
  changes_ = 0;
}

void Allocator::commit() {
  for (Waiting& waiting : waiting_lists_) waiting.released_by_commit = true;
  waiting_lists_.push_back({frozen_.number, std::move(frozen_.freed)});
  frozen_ = {};
  if (held_total_ > 0) release_held();
  held_.clear();
  commits_++;
  release_ready();
  std::erase_if(open_, [&](const auto& entry) {
    return entry.second.available == 0 && region(entry.first).reserved == 0 &&
           current_ != entry.first;
  });
}

// Regions that are open know nothing of what was held back: they are read again, as soon as nothing
// in them is reserved.
void Allocator::release_held() {
  std::erase_if(open_, [&](const auto& entry) {
    const Region& region = regions_[entry.first];
    return region.held > 0 && region.reserved == 0;
  });
  if (current_ && !open_.contains(*current_)) current_.reset();
  for (uint64_t number = 0; number < regions_.size(); number++) {
    Region& region = regions_[number];
    if (region.held == 0 || open_.contains(number)) continue;
    held_total_ -= region.held;
    if (!region.given_up) {
      region.waiting -= region.held;
      waiting_ -= region.held;
    }
    region.held = 0;
  }
}

void Allocator::release_ready() {
  while (!waiting_lists_.empty()) {
    Waiting& oldest = waiting_lists_.front();
    if (!oldest.released_by_commit) return;
    if (!readers_.empty() && readers_.begin()->first <= oldest.interval) return;
    for (const Run& run : oldest.runs) {
      for_each_part(run, [&](uint64_t number, uint64_t block, uint64_t count) {
        CHECK(region(number).waiting >= count);
        if (is_given_up(number)) return;
        region(number).waiting -= static_cast<uint32_t>(count);
        region(number).freed += static_cast<uint32_t>(count);
        freed_regions_.insert(number);
        waiting_ -= count;
        give_back(number, block, count);
      });
    }
    waiting_lists_.pop_front();
  }
}

uint64_t Allocator::enter_reader() {
  readers_[current_interval_.number]++;
  return current_interval_.number;
}

void Allocator::leave_reader(uint64_t interval) {
  const auto found = readers_.find(interval);
  CHECK(found != readers_.end());
  if (--found->second > 0) return;
  readers_.erase(found);
  release_ready();
}

}  // namespace vellum::store

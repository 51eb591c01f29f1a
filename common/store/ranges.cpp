// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/ranges.hpp"

#include "common/base/check.hpp"
#include "common/store/store.hpp"

namespace vellum::store {

TicketRange* RangeQueue::enter(uint64_t first, uint64_t end) {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) spare_.emplace_back();
  ranges_.splice(ranges_.end(), spare_, spare_.begin());
  TicketRange& range = ranges_.back();
  range.queue = this;
  range.first = first;
  range.end = end;
  range.blockers = 0;
  range.self = std::prev(ranges_.end());
  for (auto earlier = ranges_.begin(); earlier != range.self; ++earlier) {
    if (earlier->first < end && first < earlier->end) {
      earlier->blocked.push_back(&range);
      range.blockers++;
    }
  }
  return &range;
}

void RangeQueue::leave(TicketRange* range) {
  std::vector<std::function<void()>> ready;
  {
    const std::lock_guard lock(mutex_);
    for (TicketRange* blocked : range->blocked) {
      CHECK(blocked->blockers > 0);
      if (--blocked->blockers == 0 && blocked->then) {
        ready.push_back(std::exchange(blocked->then, nullptr));
      }
    }
    const bool wake = !range->blocked.empty();
    // A range that leaves before its turn is taken off the lists of those that it waited for.
    if (range->blockers > 0) {
      for (TicketRange& other : ranges_) std::erase(other.blocked, range);
    }
    range->blocked.clear();
    range->then = nullptr;
    spare_.splice(spare_.begin(), ranges_, range->self);
    if (wake) changed_.notify_all();
  }
  for (auto& then : ready) then();
}

bool RangeQueue::ready(const TicketRange* range) {
  const std::lock_guard lock(mutex_);
  return range->blockers == 0;
}

void RangeQueue::wait(TicketRange* range) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return range->blockers == 0; });
}

void RangeQueue::when_ready(TicketRange* range, std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (range->blockers > 0) {
      range->then = std::move(then);
      return;
    }
  }
  then();
}

Ticket::Ticket(Ticket&& other) noexcept : range_(std::exchange(other.range_, nullptr)) {}

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    give_up();
    range_ = std::exchange(other.range_, nullptr);
  }
  return *this;
}

Ticket::~Ticket() { give_up(); }

void Ticket::give_up() {
  if (auto* range = std::exchange(range_, nullptr)) range->queue->leave(range);
}

bool Ticket::ready() const { return range_ == nullptr || range_->queue->ready(range_); }

void Ticket::when_ready(std::function<void()> then) {
  if (range_ == nullptr) return then();
  range_->queue->when_ready(range_, std::move(then));
}

}  // namespace vellum::store

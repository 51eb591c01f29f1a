// SPDX-License-Identifier: BSD-2-Clause
//
// The order of changes to one volume (P13): ranges of blocks that are being changed, in the order
// in which they entered. A range is ready once no earlier one overlaps it. Thread-safe, with a
// mutex of its own that is never held while anything is called.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <vector>

namespace vellum::store {

class RangeQueue;

struct TicketRange {
  RangeQueue* queue = nullptr;
  uint64_t first = 0, end = 0;        // blocks
  uint32_t blockers = 0;              // earlier ranges that overlap
  std::vector<TicketRange*> blocked;  // later ranges that wait for this one
  std::function<void()> then;
  std::list<TicketRange>::iterator self;
};

class RangeQueue {
 public:
  TicketRange* enter(uint64_t first, uint64_t end);
  void leave(TicketRange* range);
  bool ready(const TicketRange* range);
  void wait(TicketRange* range);
  // At once if it is ready, else from the leave() that makes it so.
  void when_ready(TicketRange* range, std::function<void()> then);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<TicketRange> ranges_, spare_;
};

}  // namespace vellum::store

// SPDX-License-Identifier: BSD-2-Clause
//
// How one change of volumes and snapshots is made: shared by core_changes.cpp and
// core_snapshots.cpp.
#pragma once

#include <algorithm>

#include "common/store/core.hpp"

namespace vellum::store {

// Said of a name that is taken.
inline constexpr char kDestroyedButThere[] =
    ", destroyed: recover it, or eradicate it to free the name";

// Of a volume, or the suffix of a snapshot; `what` names it in the error.
Result<void> check_name(const std::string& what, const std::string& name);

// Makes one change: `make` looks at the state and fills in the pieces, and how to describe the
// result once they have been executed. `record_bytes` bounds what the pieces take in the journal,
// `nodes` what they add to maps and tables: 0 for what must work in a full store (P10).
template <typename T, typename Make>
Result<T> Core::change(const Once<T>& once, size_t record_bytes, const Make& make, uint64_t nodes) {
  const bool remember = !once.request_id.empty();
  if (once.request_id.size() > kRequestIdLengthMax) {
    return Error{Errc::invalid_argument, "a request_id has at most 128 bytes"};
  }
  T result;
  {
    Admission admission(*this);
    Lock lock(mutex_);
    const size_t text_max =
        remember ? std::clamp<size_t>(4 * record_bytes, 4096, kAnswerTextMax) : 0;
    const size_t answer_bytes = remember ? text_max + once.request_id.size() + 32 : 0;
    Cost cost;
    cost.record_bytes = record_bytes + answer_bytes;
    cost.nodes = nodes > 0 ? nodes + answer_bytes / kBlockSize : 0;
    TRY(admit(lock, cost, Wait::allowed, admission));
    if (remember && answers_.find(once.request_id, now())) {
      return Error{Errc::answered, "the request \"" + once.request_id + "\" has been answered"};
    }
    std::vector<Piece> pieces;
    std::function<T()> describe_result;
    TRY(make(lock, pieces, describe_result));
    // Again, since `make` may have let go of the mutex.
    if (remember && answers_.find(once.request_id, now())) {
      return Error{Errc::answered, "the request \"" + once.request_id + "\" has been answered"};
    }
    const auto slot = answers_.slot_for_new(text_max, now());
    if (remember && !slot) {
      return Error{Errc::limit, "too many requests with a request_id within the last hour"};
    }
    execute_new(pieces);
    result = describe_result();
    if (remember) {
      AnswerPiece answer{*slot, now() + Answers::kKeptMs, once.request_id, once.encode(result)};
      if (answer.text.size() <= text_max) {
        pieces.emplace_back(std::move(answer));
        execute_new(std::span(pieces).last(1));
      } else {
        log(2, "the answer to request \"" + once.request_id + "\" is too long to be kept");
      }
    }
    append_executed(pieces);
  }
  TRY(flush_quietly());
  reclaim_wanted_.notify_one();
  return result;
}

}  // namespace vellum::store

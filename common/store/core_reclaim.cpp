// SPDX-License-Identifier: BSD-2-Clause
//
// Reclaim: what no name leads to any more is given back in bounded steps. A step is a record that
// says how far the job got; recovery does the same work again.
#include <array>

#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr size_t kPlacesPerStep = 16;  // leaves and nodes
constexpr size_t kStepRecordBytes = 64;

}  // namespace

Result<bool> Core::reclaim_step() {
  const std::lock_guard one(reclaim_mutex_);
  Admission admission(*this);
  admission.records = 2;
  Lock lock(mutex_);
  TRY(admit(lock, 0, kStepRecordBytes, Wait::allowed, admission));
  Version* version = forest_.next_to_drop();
  if (version == nullptr) return false;
  // A record of its own: a checkpoint may freeze the job before its first step is recorded.
  if (version->job == Job::none) {
    append(std::array<Piece, 1>{BeginReclaimPiece{version->id, Job::drop}});
  }
  // Between misses the mutex is free; the job is ours alone, and its version has no children.
  size_t places = 0;
  const auto result = with_nodes(lock, Wait::allowed, [&](MissingNodes& missing) {
    while (places < kPlacesPerStep && version->cursor != kCursorEnd) {
      if (!tree_->drop_step(*version, missing)) return false;
      places++;
    }
    return true;
  });
  if (!result.ok() && places == 0) return result.error();
  // What was done has to be recorded, even if a damaged node stops the rest.
  const bool finished = version->cursor == kCursorEnd;
  append(std::array<Piece, 1>{
      ReclaimStepPiece{version->id, finished ? Cursor() : version->cursor, finished}});
  TRY(result);
  return true;
}

}  // namespace vellum::store

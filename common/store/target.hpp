// SPDX-License-Identifier: BSD-2-Clause
//
// What names and exports lead to. Guarded by the store's mutex.
#pragma once

#include <memory>
#include <string>

#include "common/store/forest.hpp"
#include "common/store/store.hpp"

namespace vellum::store {

struct Export::State {
  std::shared_ptr<Volume> volume;
  std::shared_ptr<Snapshot> snapshot;  // null: the volume itself
  uint32_t times_destroyed = 0;        // of the volume, when it was opened
  Version* pinned = nullptr;           // the snapshot's version
  bool by_client = true;               // counts as attached
};

// What a name leads to now.
struct Target {
  std::shared_ptr<Volume> volume;
  std::shared_ptr<Snapshot> snapshot;
  uint64_t size() const { return snapshot ? snapshot->size : volume->size; }
  bool is_destroyed() const {
    return snapshot ? store::is_destroyed(*snapshot) : store::is_destroyed(*volume);
  }
  std::string name() const {
    return snapshot ? volume->name + "@" + snapshot->suffix : volume->name;
  }
};

}  // namespace vellum::store

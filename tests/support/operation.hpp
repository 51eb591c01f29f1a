// SPDX-License-Identifier: BSD-2-Clause
//
// One operation of a random history: what is called, with which arguments. Made by a generator from
// a model and a seed, applied to the model and to the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/random.hpp"

namespace vellum::support {

class Model;

enum class Action {
  write,
  zeroes,
  trim,
  read,
  flush,
  create,
  destroy,
  rename,
  resize,
  take_snapshots,
  destroy_snapshot,
  clone,
  copy,
  recover,    // a volume or snapshot
  eradicate,  // likewise
  revert,
  attach,
  detach,
  query,  // maps, extents, diffs, lists
  checkpoint,
  checkpoint_step,
  reclaim_step,
  set_delay,  // of eradication
  wait,       // until all that is destroyed by now is due
  repeat_request,
  reopen,
};
inline constexpr int kActions = static_cast<int>(Action::reopen) + 1;

struct Range {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t tag = 0;  // of what is written there (content.hpp)
};

struct Operation {
  Action action = Action::flush;
  uint64_t number = 0;             // in its history
  std::vector<std::string> names;  // what it is about; two of them: source and target
  std::vector<Range> ranges;       // of content, in order
  std::optional<std::string> suffix;
  uint64_t size_bytes = 0;  // of set_delay: milliseconds
  bool eradicate = false;
  bool force = false;  // force, truncate, overwrite
  bool undo = false;
  std::string request_id;  // empty: none
};

std::string describe(const Operation& operation);
// What a repeated request_id must get.
std::string answer_to(const std::string& request_id);

// How often which action comes, by Action, and how large things are.
struct Profile {
  unsigned weights[kActions];
  size_t volumes_max = 5;
  size_t snapshots_max = 12;  // of all volumes together
  uint64_t size_small_bytes = 48 * 4096;
  uint64_t size_large_bytes = 3 << 20;
  unsigned huge_percent = 10;                     // of volumes, up to the largest size there is
  unsigned request_id_percent = 15;               // of changes that may have one
  unsigned wrong_percent = 4;                     // of operations that must fail
  uint64_t range_bytes = 2 << 20;                 // of a read or a write
  uint64_t zero_range_bytes = uint64_t{1} << 52;  // of a trim or zeroes
  uint64_t last_writes = 0;                       // after all else, without reclaim between them
  uint64_t places = 0;           // about where ranges begin, spread evenly; 0: anywhere
  unsigned subtree_percent = 0;  // of trims, those of an aligned 256 MiB
};
Profile model_profile();
// Few places in volumes of several hundred MiB, and many versions that come, go, and are reclaimed
// step by step while their descendants are written.
Profile reclaim_profile();
Profile crash_profile();

Operation generate(const Model& model, const Profile& profile, Random& random, uint64_t number);

// The changes that a request consists of (P2): ranges cut where they cross a border of 1 MiB. One
// operation with one range each; an operation that is one change gives itself.
std::vector<Operation> changes_of(const Operation& operation);

}  // namespace vellum::support

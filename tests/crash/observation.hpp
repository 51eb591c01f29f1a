// SPDX-License-Identifier: BSD-2-Clause
//
// What an open store shows, to be compared with what it may hold.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/store/store.hpp"
#include "tests/support/model.hpp"

namespace vellum::support {

// What the store shows of one volume or snapshot.
struct Seen {
  uint64_t size_bytes = 0;
  std::map<uint64_t, std::vector<std::byte>> blocks;
  std::optional<std::string> parent;

  auto fields() const { return std::tie(size_bytes, blocks, parent); }
  bool operator<(const Seen& other) const { return fields() < other.fields(); }
};

struct Observation {
  std::set<std::string> volumes;
  std::vector<std::string> destroyed;    // sorted
  std::map<std::string, Seen> versions;  // volumes and snapshots
  std::map<std::string, std::optional<std::string>> answers;
  int64_t eradication_delay = 0;

  auto fields() const { return std::tie(volumes, destroyed, versions, answers, eradication_delay); }
  bool operator<(const Observation& other) const { return fields() < other.fields(); }
};

// All blocks of small volumes; of large ones what the store calls data, and what any candidate
// does. The request_ids are those of the candidates. Failure if the store refuses something.
Observation observe(store::Store& store, const std::vector<Model>& candidates);

// Empty if they are the same, else what differs first.
std::string difference(const Observation& observation, const Model& model);

}  // namespace vellum::support

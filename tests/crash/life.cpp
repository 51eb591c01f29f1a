// SPDX-License-Identifier: BSD-2-Clause
#include "tests/crash/life.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/failure.hpp"

namespace vellum::support {

namespace {

constexpr uint64_t kBlock = kContentBlockBytes;

// What the store shows of one volume or snapshot.
struct Seen {
  uint64_t size_bytes = 0;
  std::map<uint64_t, std::vector<std::byte>> blocks;
  std::optional<std::string> parent;
};

struct Observation {
  std::set<std::string> volumes;
  std::vector<std::string> destroyed;    // sorted
  std::map<std::string, Seen> versions;  // volumes and snapshots
  std::map<std::string, std::optional<std::string>> answers;
  int64_t eradication_delay = 0;
};

// Blocks that are worth a look: what the store calls data, and what any candidate calls so.
std::set<uint64_t> places(store::Store& store, const std::string& name, uint64_t size_bytes,
                          const Candidates& candidates) {
  std::set<uint64_t> indexes;
  const auto list = demand_ok(store.extents(name, 0, 65536), "extents of " + name);
  for (const store::Extent& extent : list.extents)
    for (uint64_t at = extent.offset; at < extent.offset + extent.length; at += kBlock)
      indexes.insert(at / kBlock);
  for (const Model& candidate : candidates)
    if (const Content* content = candidate.content(name))
      for (const auto& [index, block] : content->blocks())
        if (index * kBlock < size_bytes) indexes.insert(index);
  return indexes;
}

Seen look(store::Store& store, const std::string& name, const Candidates& candidates) {
  const auto opened = demand_ok(store.open_export(name), "open " + name);
  Seen seen;
  seen.size_bytes = opened->size_bytes();
  for (uint64_t index : places(store, name, seen.size_bytes, candidates)) {
    std::vector<std::byte> block(std::min(kBlock, seen.size_bytes - index * kBlock));
    demand_ok(opened->read(index * kBlock, block), "reading " + name);
    seen.blocks[index] = std::move(block);
  }
  return seen;
}

Observation observe(store::Store& store, const Candidates& candidates) {
  Observation observation;
  for (const auto& info : store.list_volumes()) {
    observation.volumes.insert(info.name);
    observation.versions[info.name] = look(store, info.name, candidates);
    observation.versions[info.name].parent = info.parent;
  }
  for (const auto& info : store.list_snapshots(std::nullopt)) {
    observation.versions[info.name] = look(store, info.name, candidates);
    observation.versions[info.name].parent = info.parent;
  }
  observation.destroyed = destroyed_in(store);
  observation.eradication_delay = store.info().eradication_delay;
  for (const Model& candidate : candidates)
    for (const auto& [request_id, answer] : candidate.answers())
      observation.answers[request_id] = store.find_answer(request_id);
  return observation;
}

// Empty if they are the same, else what differs first.
std::string difference(const Observation& observation, const Model& model) {
  const std::vector<std::string> names = model.all_names();
  for (const std::string& name : names)
    if (!observation.versions.count(name)) return name + " is missing";
  for (const auto& [name, seen] : observation.versions) {
    const Content* content = model.content(name);
    if (!content) return name + " should not be there";
    if (content->size_bytes() != seen.size_bytes)
      return name + " is of " + std::to_string(seen.size_bytes) + " bytes, not " +
             std::to_string(content->size_bytes());
    if (!model.may_be_parent(name, seen.parent))
      return name + " has the parent " + seen.parent.value_or("none");
    for (const auto& [index, bytes] : seen.blocks)
      if (const std::string wrong = content->difference(index * kBlock, bytes); !wrong.empty())
        return name + " " + wrong;
  }
  if (observation.destroyed != model.destroyed_names())
    return "other volumes or snapshots are destroyed";
  if (observation.eradication_delay != static_cast<int64_t>(model.eradication_delay()))
    return "the eradication delay is " + std::to_string(observation.eradication_delay);
  for (const auto& [request_id, answer] : observation.answers) {
    auto found = model.answers().find(request_id);
    if (answer.has_value() != (found != model.answers().end()))
      return request_id + (answer ? " has" : " lacks") + " its answer";
  }
  return {};
}

}  // namespace

size_t match(store::Store& store, const Candidates& candidates) {
  const Observation observation = observe(store, candidates);
  for (size_t i = candidates.size(); i-- > 0;)
    if (difference(observation, candidates[i]).empty()) return i;
  throw Failure("the state after the crash is none of the " + std::to_string(candidates.size()) +
                " that may be; the newest: " + difference(observation, candidates.back()) +
                "; the promised one: " + difference(observation, candidates.front()));
}

Life::Life(SimulatedDisk& disk, const DriverOptions& options, Candidates past)
    : disk_(disk), driver_(disk, options, past.back()), candidates_(std::move(past)) {}

bool Life::begin() {
  const Result<void> opened = driver_.open();
  if (!opened.ok()) {
    demand(disk_.has_failed(), "open: " + opened.error().message);
    failed_ = true;
    return false;
  }
  Model found;
  try {
    found = candidates_[match(driver_.store(), candidates_)];
    found.detach_all();
    driver_.model() = found;
    driver_.check_lists();
  } catch (const Refused&) {
    failed_ = disk_.has_failed();  // while we looked
    if (failed_) return false;
    throw;
  }
  // Recovery ended with a sync: from here on this state is promised.
  candidates_ = {std::move(found)};
  return true;
}

namespace {

bool changes_content(const Operation& operation) {
  return operation.action == Action::write || operation.action == Action::zeroes ||
         operation.action == Action::trim;
}

// Returning from it promises everything before it.
bool promises(const Operation& operation) {
  return operation.action == Action::flush || operation.action == Action::reopen ||
         operation.action == Action::set_delay ||
         (operation.action >= Action::create && operation.action <= Action::revert);
}

// The volume that loses its end, if the operation is of that kind.
const ModelVolume* cut_off_by(const Operation& operation, const Model& model) {
  if (operation.action != Action::resize || !operation.force) return nullptr;
  const ModelVolume* target = model.volume(operation.names[0]);
  return target && operation.size_bytes < target->content.size_bytes() ? target : nullptr;
}

}  // namespace

void Life::note(const Operation& operation, const Model& before, int64_t began, bool done) {
  Model state = before;
  if (done && !changes_content(operation)) {
    const bool succeeded = state.apply(operation).empty();
    if (succeeded && promises(operation)) candidates_ = {driver_.model()};
    // It may have eradicated something; that is durable later.
    if (operation.action == Action::reclaim_step) candidates_.push_back(driver_.model());
    return;
  }
  state = before;
  if (const ModelVolume* target = cut_off_by(operation, before)) {
    // What a volume loses by shrinking becomes zeros before its size changes.
    Operation cut{Action::trim, operation.number, operation.names, {}, {}, 0, false, false, {}};
    const uint64_t size_bytes = target->content.size_bytes();
    cut.ranges = {{operation.size_bytes, size_bytes - operation.size_bytes, 0}};
    state.apply(cut);
    candidates_.push_back(state);
  }
  for (const Operation& change : changes_of(operation)) {
    if (!state.apply(change).empty()) return;
    const bool destroys =
        change.action == Action::destroy || change.action == Action::destroy_snapshot;
    if (int64_t* time = destroys ? state.not_before(change.names[0]) : nullptr)
      *time = began + static_cast<int64_t>(before.eradication_delay());
    candidates_.push_back(state);
  }
}

bool Life::run(const Operation& operation) {
  const Model before = driver_.model();
  const int64_t began = driver_.clock();
  done_.push_back(operation);
  const bool done = driver_.run(operation);
  note(driver_.last(), before, began, done);
  failed_ = !done;
  return done;
}

bool Life::run_random(const Profile& profile, Random& random, uint64_t operations,
                      uint64_t first_number) {
  for (uint64_t i = 0; i < operations; ++i)
    if (!run(generate(driver_.model(), profile, random, first_number + i))) return false;
  return true;
}

}  // namespace vellum::support

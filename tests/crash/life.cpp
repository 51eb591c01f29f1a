// SPDX-License-Identifier: BSD-2-Clause
#include "tests/crash/life.hpp"

#include "tests/crash/observation.hpp"
#include "tests/support/failure.hpp"

namespace vellum::support {

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

// SPDX-License-Identifier: BSD-2-Clause
#include "tests/crash/exploration.hpp"

#include <utility>

#include "tests/support/failure.hpp"

namespace vellum::support {

namespace {

constexpr uint64_t kNothingRead = 0;
// Beyond these all that is remembered is forgotten, and tried anew where it comes again.
constexpr size_t kStepsMax = 10000000;
constexpr size_t kBlocksKeptMax = 250000;  // of recoveries that were not crashed yet

uint64_t after_reading(uint64_t trace, const Reading& reading) {
  Random mixed(trace ^ Random(reading.index ^ Random(reading.hash).next()).next());
  return mixed.next();
}

store::Options store_options(int64_t& clock) {
  store::Options options;
  options.background = false;
  options.cache_bytes = 1 << 20;
  options.random_seed = 1;
  options.clock = [&clock] { return ++clock; };
  return options;
}

double subsets_of(const Left& left) {
  double subsets = 1;
  for (const auto& [index, units] : left) subsets *= static_cast<double>(units.size());
  return subsets;
}

}  // namespace

void Exploration::explore(const Left& left, const Candidates& candidates) {
  if (steps_.size() > kStepsMax || blocks_kept_ > kBlocksKeptMax) {
    steps_.clear();
    observations_.clear();
    blocks_kept_ = 0;
  }
  explore_once(left, candidates, false);
}

void Exploration::explore_once(const Left& left, const Candidates& candidates, bool in_recovery) {
  ++(in_recovery ? totals_.crashes_in_recovery : totals_.crashes);
  totals_.subsets += subsets_of(left);
  BranchingDisk::Decisions before = std::exchange(decisions_, {});
  visit(kNothingRead, left, candidates, in_recovery);
  decisions_ = std::move(before);
}

void Exploration::visit(uint64_t trace, const Left& left, const Candidates& candidates,
                        bool in_recovery) {
  for (;;) {
    const auto step = steps_.find(trace);
    if (step == steps_.end()) {
      run(left);
      continue;
    }
    if (step->second.outcome) {
      const std::shared_ptr<Outcome> outcome = step->second.outcome;
      return judge(*outcome, left, candidates, in_recovery);
    }
    const uint64_t index = step->second.index;
    const std::vector<Unit>& units = units_at(left, index);
    if (units.size() > 1) {
      for (const Unit& unit : units) {
        decisions_[index] = unit;
        visit(after_reading(trace, {index, unit.hash}), left, candidates, in_recovery);
      }
      decisions_.erase(index);
      return;
    }
    trace = after_reading(trace, {index, units.front().hash});
  }
}

void Exploration::run(const Left& left) {
  ++totals_.runs;
  BranchingDisk disk(left, decisions_, disk_bytes_);
  auto outcome = std::make_shared<Outcome>(evaluate(disk));
  blocks_kept_ += outcome->recovery.size();
  uint64_t trace = kNothingRead;
  for (const Reading& reading : disk.readings()) {
    const auto [step, fresh] = steps_.try_emplace(trace, Step{reading.index, nullptr});
    demand(!step->second.outcome && step->second.index == reading.index,
           "after the same readings block " + std::to_string(reading.index) +
               " was read, and another one before");
    trace = after_reading(trace, reading);
  }
  const auto [step, fresh] = steps_.try_emplace(trace, Step{0, std::move(outcome)});
  demand(fresh, "after the same readings no more was read, and something before");
}

Exploration::Outcome Exploration::evaluate(BranchingDisk& disk) {
  Outcome outcome;
  try {
    int64_t clock = 1700000000000 + 1000000;
    const store::Options options = store_options(clock);
    const auto report =
        demand_ok(store::check(disk, options, {.read_data = true, .count_space = true}), "check");
    std::string errors;
    for (size_t i = 0; i < report.errors.size() && i < 5; ++i) errors += "; " + report.errors[i];
    demand(report.errors_total == 0, "check" + errors);
    demand(disk.changes().empty(), "the check has written something");
    const auto store = demand_ok(store::Store::open(disk, options), "open");
    outcome.recovery = disk.changes();
    outcome.observation = &*observations_.insert(observe(*store, {})).first;
    demand(disk.changes().size() == outcome.recovery.size(), "reading has written something");
  } catch (const Failure& failure) {
    outcome.failure = failure.what();
  }
  return outcome;
}

void Exploration::judge(Outcome& outcome, const Left& left, const Candidates& candidates,
                        bool in_recovery) {
  ++totals_.cases;
  demand(outcome.failure.empty(), decided(left) + outcome.failure);
  const Model* found = nullptr;
  for (size_t i = candidates.size(); i-- > 0 && found == nullptr;)
    if (difference(*outcome.observation, candidates[i]).empty()) found = &candidates[i];
  if (found == nullptr) {
    throw Failure(
        decided(left) + "it is none of the " + std::to_string(candidates.size()) +
        " states that may be; the newest: " + difference(*outcome.observation, candidates.back()) +
        "; the promised one: " + difference(*outcome.observation, candidates.front()));
  }
  if (in_recovery || std::exchange(outcome.crashed_again, true)) return;
  const std::vector<Change> recovery = std::exchange(outcome.recovery, {});
  blocks_kept_ -= recovery.size();
  crash_again(recovery, left, candidates, *found);
}

// What may be left grows with each write until a sync, so the moments before syncs are enough.
void Exploration::crash_again(std::span<const Change> changes, const Left& left,
                              const Candidates& candidates, const Model& found) {
  Left first = left;
  for (const auto& [index, unit] : decisions_) first[index] = {unit};
  for (size_t done = 0; done <= changes.size(); ++done) {
    const bool is_end = done == changes.size();
    if (!is_end && (!changes[done].is_sync || done == 0)) continue;
    try {
      // Once the open has returned, what it found is promised.
      explore_once(left_by_crash(first, changes.first(done)),
                   is_end ? Candidates{found} : candidates, true);
    } catch (const Failure& failure) {
      throw Failure(decided(left) + "the recovery crashed after " + std::to_string(done) + " of " +
                    std::to_string(changes.size()) + " writes and syncs: " + failure.what());
    }
  }
}

std::string Exploration::decided(const Left& left) const {
  std::string text;
  for (const auto& [index, unit] : decisions_) {
    const std::vector<Unit>& units = units_at(left, index);
    size_t which = 0;
    while (which < units.size() && units[which].hash != unit.hash) ++which;
    text += "block " + std::to_string(index) + " is as after " + std::to_string(which) + " of " +
            std::to_string(units.size() - 1) + " writes, ";
  }
  return text;
}

}  // namespace vellum::support

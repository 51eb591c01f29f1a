// SPDX-License-Identifier: BSD-2-Clause
//
// Tries everything that a crash may have left, to the last subset of what was not synced: each must
// be sound by the checker (which sums `owned`), open, and show one of the candidates (P1 to P4); a
// crash in that recovery, whatever it leaves, must change nothing (P11).
//
// How it can: checking and opening are functions of what they read. What they read, and what comes
// of it, is remembered, as a tree of readings; so subsets that differ in what nobody reads are one
// case, whichever crash they come from. A second crash is tried once for each such case.
#pragma once

#include <memory>
#include <set>
#include <unordered_map>

#include "tests/crash/branching_disk.hpp"
#include "tests/crash/life.hpp"
#include "tests/crash/observation.hpp"

namespace vellum::support {

class Exploration {
 public:
  explicit Exploration(uint64_t disk_bytes) : disk_bytes_(disk_bytes) {}

  // Failure with what was left, and what is wrong.
  void explore(const Left& left, const Candidates& candidates);

  struct Totals {
    uint64_t crashes = 0;              // each with all that it may leave
    uint64_t crashes_in_recovery = 0;  // likewise
    double subsets = 0;                // of whole units, of all these crashes together
    uint64_t cases = 0;                // that could be told apart; each compared
    uint64_t runs = 0;                 // of the checker and of an open, for cases that were new
  };
  const Totals& totals() const { return totals_; }

 private:
  struct Outcome {
    std::string failure;                       // empty: sound and open
    const Observation* observation = nullptr;  // one of observations_
    std::vector<Change> recovery;              // what the open wrote, until that is crashed
    bool crashed_again = false;                // its recovery has been crashed
  };
  struct Step {  // after certain readings: the next one, or what came of them
    uint64_t index = 0;
    std::shared_ptr<Outcome> outcome;
  };

  void explore_once(const Left& left, const Candidates& candidates, bool in_recovery);
  void visit(uint64_t trace, const Left& left, const Candidates& candidates, bool in_recovery);
  void run(const Left& left);
  Outcome evaluate(BranchingDisk& disk);
  void judge(Outcome& outcome, const Left& left, const Candidates& candidates, bool in_recovery);
  void crash_again(std::span<const Change> changes, const Left& left, const Candidates& candidates,
                   const Model& found);
  std::string decided(const Left& left) const;

  const uint64_t disk_bytes_;
  std::unordered_map<uint64_t, Step> steps_;  // by a hash of the readings before it
  std::set<Observation> observations_;        // far fewer than outcomes
  size_t blocks_kept_ = 0;
  BranchingDisk::Decisions decisions_;
  Totals totals_;
};

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
//
// A life of a store: from an open on some disk to a close or to a crash, and what a crash at its
// end may leave (P1, P2, P4).
//
// The states of the model are kept since the newest point that is promised: a flush that succeeded,
// or a change of volumes and snapshots that returned. What a crash leaves must equal one of them,
// volumes, snapshots, sizes, contents and answers together.
#pragma once

#include <memory>
#include <vector>

#include "tests/support/driver.hpp"

namespace vellum::support {

// Ascending in time; the first is the promised one. Never empty.
using Candidates = std::vector<Model>;

class Life {
 public:
  // `past`: what the disk may hold; a fresh store: one empty model.
  Life(SimulatedDisk& disk, const DriverOptions& options, Candidates past);

  // Opens, and finds out which of the candidates it is. False: the disk failed.
  bool begin();
  // False: the disk failed it, and the life is over.
  bool run(const Operation& operation);
  // Chooses operations by itself.
  bool run_random(const Profile& profile, Random& random, uint64_t operations,
                  uint64_t first_number);
  void end_in_crash() { driver_.abandon(); }
  void end_in_order() { driver_.close_and_check(); }

  const Candidates& candidates() const { return candidates_; }
  const std::vector<Operation>& done() const { return done_; }  // the failed one is the last
  bool failed() const { return failed_; }
  Driver& driver() { return driver_; }

 private:
  void note(const Operation& operation, const Model& before, int64_t began, bool done);

  SimulatedDisk& disk_;
  Driver driver_;
  Candidates candidates_;
  std::vector<Operation> done_;
  bool failed_ = false;
};

// Which candidate the open store equals, the newest of several; Failure if none.
size_t match(store::Store& store, const Candidates& candidates);

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
//
// Runs operations on a store and on its model, and compares every answer. One thread; the store has
// no background threads. Whatever is wrong throws Failure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/store/store.hpp"
#include "tests/support/model.hpp"
#include "tests/support/simulated_disk.hpp"

namespace vellum::support {

// Tiny, so that short histories reach every border there is.
store::Geometry tiny_geometry(uint64_t capacity_bytes);

struct DriverOptions {
  uint64_t seed = 0;
  uint64_t cache_bytes = 1 << 20;
  bool verbose = false;  // prints each operation and what the store logs
};

class Driver {
 public:
  // Opens the store on `disk` without comparing anything; see match().
  Driver(SimulatedDisk& disk, const DriverOptions& options, Model model);

  // An open that the disk failed: `store` stays null until reopen() succeeds.
  Result<void> open();
  // True: done, by store and model. False: the disk failed it; the model is as before.
  bool run(const Operation& operation);

  // The last operation, its ranges in the order in which they were written: of several that do not
  // overlap, those whose map was not in memory came last.
  const Operation& last() const { return last_; }

  const Model& model() const { return model_; }
  Model& model() { return model_; }
  store::Store& store() { return *store_; }
  bool is_open() const { return store_ != nullptr; }
  int64_t clock() const { return clock_; }

  // Everything that can be asked, against the model.
  void check_all();
  void check_lists();
  void check_answers() const;
  // Stops without further I/O, as in a crash.
  void abandon();
  Result<void> close();
  // Closes and runs the checker.
  void close_and_check();
  // Until reclaim is idle.
  void reclaim_all();
  // P6: once reclaim is idle nothing is left that only zombies hold, and nothing at all is left
  // once all volumes are gone. Ends with an empty store that is closed.
  void check_reclaim();

 private:
  std::optional<Error> execute(const Operation& operation, Model& after);
  bool is_trimmed(const Operation& trim, const Model& after);
  std::optional<Error> change_content(const Operation& operation);
  std::optional<Error> write(store::Export& opened, const Operation& operation);
  std::optional<Error> zero(store::Export& opened, const Operation& operation);
  std::optional<Error> read(const Operation& operation);
  std::optional<Error> change_volumes(const Operation& operation, Model& after);
  std::optional<Error> take_snapshots(const Operation& operation, Model& after);
  std::optional<Error> copy_or_revert(const Operation& operation, Model& after);
  std::optional<Error> destroy(const Operation& operation, Model& after);
  std::optional<Error> recover_or_eradicate(const Operation& operation, Model& after);
  Result<bool> reclaim_step(Model& after);  // false: there is nothing left to do
  std::optional<Error> repeat_request(const Operation& operation);
  std::optional<Error> reopen();
  store::CheckReport settle();
  void query(const Operation& operation);
  void learn(const store::VolumeInfo& info, Model& after);
  void check_volume(const store::VolumeInfo& info, const ModelVolume& volume,
                    const std::string& name);
  void check_parent(const std::string& name, const Ancestors& ancestors,
                    const std::optional<std::string>& parent);
  void check_snapshots();
  void check_destroyed();
  Result<std::shared_ptr<store::Export>> open_export(const std::string& name);
  store::Options store_options();

  SimulatedDisk& disk_;
  DriverOptions options_;
  Random random_;  // for choices that the model does not see
  Model model_;
  Operation last_;
  int64_t clock_ = 1700000000000, tick_ = 1;
  std::unique_ptr<store::Store> store_;
  std::map<std::string, std::shared_ptr<store::Export>> attached_;
};

// Volumes and snapshots that can be recovered, as the store lists them; sorted.
std::vector<std::string> destroyed_in(store::Store& store);

// No errors, else Failure with the first few.
store::CheckReport check_disk(SimulatedDisk& disk, const std::string& when);

}  // namespace vellum::support

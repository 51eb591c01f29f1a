// SPDX-License-Identifier: BSD-2-Clause
//
// Checking a store at rest, and repairing it.
#include <utility>

#include "common/store/checker.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

Result<Checker> Core::survey(bool read_data) {
  const Lock lock(mutex_);
  Checker checker(disk_, superblock_, read_data);
  for (const std::string& finding : findings_) checker.error(finding);
  TRY(checker.load_bitmaps(*system_tree_, *allocator_));
  checker.apply(allocator_->current_interval());
  for (const auto& [id, version] : forest_.versions()) {
    if (version->state != State::zombie) checker.reach(*version);
  }
  for (const auto& [id, version] : forest_.versions()) {
    if (id != 0) checker.visit_version(*version);
  }
  checker.compare(forest_, allocator_->allocated());
  return checker;
}

Result<CheckReport> Core::check(const CheckOptions& what) {
  TRY_ASSIGN(Checker checker, survey(what.read_data));
  for (const size_t slot : damaged_slots_) {
    checker.report.notes.push_back("superblock " + std::to_string(slot) +
                                   " is damaged, or was being written");
  }
  if (what.count_space) {
    const Lock lock(mutex_);
    TRY_ASSIGN(checker.report.space, count_space());
  }
  return std::move(checker.report);
}

namespace {

Options for_work_at_rest(const Options& options) {
  Options quiet = options;
  quiet.background = false;
  return quiet;
}

}  // namespace

Result<CheckReport> check(disk::Disk& disk, const Options& options, const CheckOptions& what) {
  TRY_ASSIGN(const auto core, Core::open(disk, for_work_at_rest(options), true));
  return core->check(what);
}

Result<RepairReport> repair(disk::Disk& disk, const Options& options, const CheckOptions& what) {
  RepairReport report;
  TRY_ASSIGN(report.after, check(disk, options, what));
  if (report.after.errors_total == 0 && report.after.notes.empty()) return report;
  {
    TRY_ASSIGN(const auto core, Core::open(disk, for_work_at_rest(options), false));
    TRY_ASSIGN(report.done, core->repair());
  }
  {  // and the second checkpoint
    TRY_ASSIGN(const auto core, Core::open(disk, for_work_at_rest(options), false));
    TRY(core->close());
  }
  TRY_ASSIGN(report.after, check(disk, options, what));
  return report;
}

}  // namespace vellum::store

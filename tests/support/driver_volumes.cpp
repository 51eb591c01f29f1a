// SPDX-License-Identifier: BSD-2-Clause
//
// The driver's calls that change volumes and snapshots (driver.hpp).
#include <algorithm>

#include "tests/support/driver.hpp"
#include "tests/support/driver_results.hpp"
#include "tests/support/failure.hpp"

namespace vellum::support {

using store::VolumeInfo;

void Driver::learn(const VolumeInfo& info, Model& after) {
  ModelVolume* volume = after.volume(info.name);
  demand(volume != nullptr, "an answer about another volume: " + info.name);
  if (volume->store_id == 0) volume->store_id = info.id;
  check_volume(info, *volume, info.name);
}

std::optional<Error> Driver::change_volumes(const Operation& operation, Model& after) {
  const auto& names = operation.names;
  auto change = [&]() -> Result<VolumeInfo> {
    switch (operation.action) {
      case Action::create:
        return store_->create_volume(names[0], operation.size_bytes, store::Provision::thin,
                                     once<VolumeInfo>(operation));
      case Action::rename:
        return store_->rename_volume(names[0], names[1], once<VolumeInfo>(operation));
      case Action::resize:
        return store_->resize_volume(names[0], operation.size_bytes, operation.force,
                                     once<VolumeInfo>(operation));
      default:
        return store_->clone(names[0], names[1], once<VolumeInfo>(operation));
    }
  };
  const Result<VolumeInfo> changed = change();
  if (!changed.ok()) return changed.error();
  if (operation.action == Action::rename) {
    auto node = attached_.extract(names[0]);
    if (!node.empty()) {
      node.key() = names[1];
      attached_.insert(std::move(node));
    }
  }
  demand(changed->name == names[operation.action == Action::resize ? 0 : names.size() - 1],
         describe(operation) + ": an answer about " + changed->name);
  learn(*changed, after);
  return std::nullopt;
}

std::optional<Error> Driver::take_snapshots(const Operation& operation, Model& after) {
  const auto taken = store_->create_snapshots(operation.names, operation.suffix,
                                              once<std::vector<store::SnapshotInfo>>(operation));
  if (!taken.ok()) return taken.error();
  demand(taken->size() == operation.names.size(), describe(operation) + ": how many");
  for (size_t i = 0; i < taken->size(); ++i) {
    const store::SnapshotInfo& info = (*taken)[i];
    demand(info.volume == operation.names[i], describe(operation) + ": the order of the answer");
    ModelSnapshot* snapshot = after.snapshot(info.name);
    demand(snapshot != nullptr, describe(operation) + ": an unexpected name, " + info.name);
    demand(info.size == snapshot->content.size_bytes(), info.name + ": size");
    snapshot->store_id = info.id;
  }
  return std::nullopt;
}

std::optional<Error> Driver::copy_or_revert(const Operation& operation, Model& after) {
  const auto& names = operation.names;
  std::string snapshot = names[1];
  if (snapshot.starts_with(names[0] + "@") && random_.chance(50))
    snapshot = snapshot.substr(names[0].size() + 1);
  const bool revert = operation.action == Action::revert;
  const auto changed =
      revert ? store_->revert(names[0], snapshot, operation.undo, once<store::CopyInfo>(operation))
             : store_->copy(names[0], names[1], operation.force, operation.undo,
                            once<store::CopyInfo>(operation));
  if (!changed.ok()) return changed.error();
  learn(changed->volume, after);
  const bool existed = model_.volume(changed->volume.name) != nullptr;
  demand(changed->undo_snapshot.has_value() == (operation.undo && existed),
         describe(operation) + ": undo_snapshot");
  if (changed->undo_snapshot)
    demand(after.snapshot(*changed->undo_snapshot) != nullptr,
           describe(operation) + ": an unexpected name, " + *changed->undo_snapshot);
  return std::nullopt;
}

std::optional<Error> Driver::destroy(const Operation& operation, Model& after) {
  const std::string& name = operation.names[0];
  const int64_t began = clock_;
  const bool is_volume = operation.action == Action::destroy;
  const auto remembered = once<store::Destroyed>(operation);
  const auto gone =
      is_volume ? store_->destroy_volume(name, operation.force, operation.eradicate, remembered)
                : store_->destroy_snapshot(name, operation.eradicate, remembered);
  if (!gone.ok()) return gone.error();
  const auto delay = static_cast<int64_t>(model_.eradication_delay());
  if (int64_t* not_before = after.not_before(name)) *not_before = began + delay;
  demand(gone->time_remaining <= delay &&
             (gone->time_remaining > 0) == (after.not_before(name) != nullptr),
         describe(operation) + ": time_remaining " + std::to_string(gone->time_remaining));
  auto node = attached_.extract(is_volume ? name : std::string());
  if (node.empty()) return std::nullopt;
  std::vector<std::byte> byte(1);
  const Result<void> read = node.mapped()->read(0, byte);
  const Result<void> write = node.mapped()->write(0, byte);
  demand(!read.ok() && read.error().code == Errc::destroyed, "a read of a destroyed volume");
  demand(!write.ok() && write.error().code == Errc::destroyed, "a write to a destroyed volume");
  return std::nullopt;
}

std::optional<Error> Driver::recover_or_eradicate(const Operation& operation, Model& after) {
  const std::string& name = operation.names[0];
  const bool is_volume = name.find('@') == std::string::npos;
  if (operation.action == Action::eradicate) {
    const auto remembered = once<store::Destroyed>(operation);
    return error_of(is_volume ? store_->eradicate_volume(name, remembered)
                              : store_->eradicate_snapshot(name, remembered));
  }
  if (!is_volume) {
    return error_of(store_->recover_snapshot(name, once<store::SnapshotInfo>(operation)));
  }
  const auto back = store_->recover_volume(name, once<VolumeInfo>(operation));
  if (!back.ok()) return back.error();
  learn(*back, after);
  return std::nullopt;
}

// Nothing is eradicated early; what has been is gone from the model, too.
Result<bool> Driver::reclaim_step(Model& after) {
  auto stepped = store_->reclaim_step();
  if (!stepped.ok()) return stepped;
  const std::vector<std::string> there = destroyed_in(*store_);
  constexpr int64_t kTicks = 1000;  // of the clock, that one call takes at most
  for (const std::string& name : after.destroyed_names()) {
    const int64_t due = model_.due(name);
    if (std::binary_search(there.begin(), there.end(), name)) {
      demand(*stepped || due + kTicks >= clock_, name + " is due, and was not eradicated");
      continue;
    }
    demand(due <= clock_, name + " was eradicated early");
    after.forget(name);
  }
  return stepped;
}

void Driver::reclaim_all() {
  for (bool more = true; more;) {
    Model after = model_;
    more = demand_ok(reclaim_step(after), "reclaim");
    model_ = after;
  }
}

std::optional<Error> Driver::repeat_request(const Operation& operation) {
  const auto repeated = store_->create_volume(operation.names[0], operation.size_bytes,
                                              store::Provision::thin, once<VolumeInfo>(operation));
  demand(!repeated.ok(), describe(operation) + ": it was done again");
  if (repeated.error().code != Errc::answered) return repeated.error();
  check_answers();
  demand(!model_.volume(operation.names[0]) && !store_->get_volume(operation.names[0]).ok(),
         describe(operation) + ": it was done again");
  return repeated.error();
}

}  // namespace vellum::support

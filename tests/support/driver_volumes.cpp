// SPDX-License-Identifier: BSD-2-Clause
//
// The driver's calls that change volumes and snapshots (driver.hpp).
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

std::optional<Error> Driver::destroy(const Operation& operation) {
  const std::string& name = operation.names[0];
  auto gone = store_->destroy_volume(name, operation.force, once<std::monostate>(operation));
  if (!gone.ok()) return gone.error();
  auto node = attached_.extract(name);
  if (node.empty()) return std::nullopt;
  std::vector<std::byte> byte(1);
  const Result<void> read = node.mapped()->read(0, byte);
  const Result<void> write = node.mapped()->write(0, byte);
  demand(!read.ok() && read.error().code == Errc::destroyed, "a read of a destroyed volume");
  demand(!write.ok() && write.error().code == Errc::destroyed, "a write to a destroyed volume");
  return std::nullopt;
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

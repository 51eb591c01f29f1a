// SPDX-License-Identifier: BSD-2-Clause
//
// What the driver compares between operations (driver.hpp).
#include <algorithm>

#include "tests/support/driver.hpp"
#include "tests/support/failure.hpp"
#include "tests/support/map_checks.hpp"

namespace vellum::support {

store::CheckReport check_disk(SimulatedDisk& disk, const std::string& when) {
  store::Options options;
  options.background = false;
  options.cache_bytes = 1 << 20;
  auto report = demand_ok(store::check(disk, options, {.read_data = true, .count_space = true}),
                          "check " + when);
  std::string errors;
  for (size_t i = 0; i < report.errors.size() && i < 5; ++i) errors += "\n    " + report.errors[i];
  if (report.errors_total > 0 && disk.has_failed())
    throw Refused("check " + when + ": the disk failed it");
  demand(report.errors.empty() && report.errors_total == 0,
         "check " + when + ": " + std::to_string(report.errors_total) + " errors" + errors);
  return report;
}

void Driver::check_volume(const store::VolumeInfo& info, const ModelVolume& volume,
                          const std::string& name) {
  demand(info.name == name, name + ": name");
  demand(info.size == volume.content.size_bytes(), name + ": size " + std::to_string(info.size));
  demand(volume.store_id == 0 || info.id == volume.store_id, name + ": id");
}

void Driver::check_parent(const std::string& name, const Ancestors& ancestors,
                          const std::optional<std::string>& parent) {
  demand(model_.may_be_parent(name, parent), name + ": parent is " + parent.value_or("none") +
                                                 " and should be " +
                                                 model_.nearest(ancestors).value_or("none"));
  if (!parent) return;
  const auto children = demand_ok(store_->get_snapshot(*parent), *parent).children;
  demand(std::find(children.begin(), children.end(), name) != children.end(),
         *parent + ": " + name + " is missing from its children");
}

void Driver::check_lists() {
  const auto volumes = store_->list_volumes();
  demand(volumes.size() == model_.volumes().size(),
         "list_volumes: " + std::to_string(volumes.size()) + " instead of " +
             std::to_string(model_.volumes().size()));
  auto listed = volumes.begin();
  for (const auto& [name, volume] : model_.volumes()) {
    const store::VolumeInfo& info = *listed++;
    check_volume(info, volume, name);
    demand(info.snapshots == volume.snapshots.size(), name + ": number of snapshots");
    demand(info.attached == volume.attached, name + ": attached");
    check_parent(name, volume.ancestors, info.parent);
    const auto got = demand_ok(store_->get_volume(name), name);
    demand(got.id == info.id && got.uuid == info.uuid, name + ": get differs from list");
  }
  check_snapshots();
  check_destroyed();
}

std::vector<std::string> destroyed_in(store::Store& store) {
  std::vector<std::string> names;
  for (const auto& info : store.list_volumes(true)) names.push_back(info.name);
  for (const auto& info : store.list_snapshots(std::nullopt, true)) names.push_back(info.name);
  std::sort(names.begin(), names.end());
  return names;
}

void Driver::check_destroyed() {
  const std::vector<std::string> names = destroyed_in(*store_);
  demand(names == model_.destroyed_names(), "the lists of what is destroyed");
  for (const std::string& name : names) {
    const auto opened = store_->open_export(name);
    demand(!opened.ok() && opened.error().code == Errc::destroyed, name + ": open, destroyed");
    const bool is_volume = name.find('@') == std::string::npos;
    const auto left = is_volume ? demand_ok(store_->get_volume(name), name).time_remaining
                                : demand_ok(store_->get_snapshot(name), name).time_remaining;
    demand(left.has_value(), name + ": time_remaining");
    demand(clock_ + *left >= model_.due(name), name + ": it has been given less time");
  }
}

void Driver::check_snapshots() {
  demand(store_->list_snapshots(std::nullopt).size() == model_.snapshot_names().size(),
         "list_snapshots: their number");
  for (const auto& [name, volume] : model_.volumes()) {
    const auto infos = store_->list_snapshots(name);
    demand(infos.size() == volume.snapshots.size(), name + ": list_snapshots");
    for (size_t i = 0; i < infos.size(); ++i) {
      const ModelSnapshot& snapshot = volume.snapshots[i];
      const std::string full = name + "@" + snapshot.suffix;
      const store::SnapshotInfo& info = infos[i];
      demand(info.name == full && info.volume == name, full + ": name, or order of creation");
      demand(info.size == snapshot.content.size_bytes(), full + ": size");
      demand(snapshot.store_id == 0 || info.id == snapshot.store_id, full + ": id");
      check_parent(full, snapshot.ancestors, info.parent);
      for (const std::string& child : info.children) {
        demand(model_.content(child) != nullptr, full + ": a child that is gone, " + child);
        demand(model_.may_be_parent(child, full), full + ": " + child + " is no child of it");
      }
      demand(demand_ok(store_->get_snapshot(full), full).id == info.id, full + ": get");
    }
  }
}

void Driver::check_answers() const {
  for (const auto& [request_id, answer] : model_.answers()) {
    const auto found = store_->find_answer(request_id);
    // A store that cannot sync any more acknowledges nothing.
    if (!found && store_->info().read_only) continue;
    demand(found == answer, request_id + ": the answer is " + found.value_or("missing"));
  }
}

void Driver::check_all() {
  check_lists();
  check_answers();
  for (const std::string& name : model_.all_names()) {
    const auto opened = demand_ok(open_export(name), "open " + name);
    demand(opened->read_only() == (name.find('@') != std::string::npos), name + ": read_only");
    check_content(*opened, *model_.content(name), random_);
  }
}

void Driver::query(const Operation& operation) {
  const std::string& name = operation.names[0];
  const std::string& other = operation.names[1];
  const Content& content = *model_.content(name);
  switch (random_.below(7)) {
    case 0:
      return check_lists();
    case 1:
      return check_extents(*store_, name, content, random_);
    case 2:
      return check_map(*demand_ok(open_export(name), name), content, random_);
    case 3:
      return check_diff(*store_, name, content, other, *model_.content(other), random_);
    case 4:
      return check_content(*demand_ok(open_export(name), name), content, random_);
    case 5:
      return check_unshared(*store_, name, other, content.size_bytes(), random_);
    default:
      return check_allocated(*store_, name, content, random_);
  }
}

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
#include "server/store_catalog.hpp"

namespace vellum::server {

namespace {

constexpr size_t kExportNameMax = 2 * store::kNameLengthMax + 1;

Error no_export(const std::string& name) {
  if (name.empty()) return {Errc::not_found, "name a volume, or VOLUME@SNAPSHOT, to be served"};
  return {Errc::not_found, "there is no volume or snapshot of this name"};
}

Error is_destroyed(const std::string& name) {
  return {Errc::destroyed, "\"" + name + "\" is destroyed: recover it first"};
}

}  // namespace

std::vector<std::string> StoreCatalog::names(size_t names_max) {
  std::vector<std::string> names;
  for (auto& volume : store_.list_volumes()) {
    if (names.size() < names_max) names.push_back(std::move(volume.name));
  }
  for (auto& snapshot : store_.list_snapshots(std::nullopt)) {
    if (names.size() < names_max) names.push_back(std::move(snapshot.name));
  }
  return names;
}

Result<ExportInfo> StoreCatalog::describe(const std::string& name) {
  if (name.empty() || name.size() > kExportNameMax) return no_export(name);
  if (name.find('@') == std::string::npos) {
    TRY_ASSIGN(const store::VolumeInfo volume, store_.get_volume(name));
    if (volume.time_remaining) return is_destroyed(name);
    return ExportInfo{volume.size, false, "volume"};
  }
  TRY_ASSIGN(const store::SnapshotInfo snapshot, store_.get_snapshot(name));
  if (snapshot.time_remaining) return is_destroyed(name);
  return ExportInfo{snapshot.size, true, "snapshot of " + snapshot.volume};
}

Result<ExportInfo> StoreCatalog::open(const std::string& name) {
  TRY_ASSIGN(ExportInfo info, describe(name));
  TRY_ASSIGN(opened_, store_.open_export(name));
  // From what was opened: the name may have come to mean something else in between.
  info.size_bytes = opened_->size_bytes();
  info.read_only = opened_->read_only();
  return info;
}

}  // namespace vellum::server

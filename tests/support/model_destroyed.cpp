// SPDX-License-Identifier: BSD-2-Clause
//
// The oracle's part about destroying, recovering and eradicating (model.hpp).
#include <algorithm>

#include "tests/support/model.hpp"

namespace vellum::support {

namespace {

const Model::Errors kSuccess;

struct SplitName {
  std::string volume, suffix;  // no suffix: a volume
};

SplitName split(const std::string& name) {
  const size_t at = name.find('@');
  return at == std::string::npos ? SplitName{name, {}}
                                 : SplitName{name.substr(0, at), name.substr(at + 1)};
}

auto find(std::vector<ModelSnapshot>& all, const std::string& suffix) {
  return std::find_if(all.begin(), all.end(),
                      [&](const ModelSnapshot& each) { return each.suffix == suffix; });
}

void insert_by_id(std::vector<ModelSnapshot>& all, ModelSnapshot snapshot) {
  const auto later = std::find_if(all.begin(), all.end(),
                                  [&](const ModelSnapshot& each) { return each.id > snapshot.id; });
  all.insert(later, std::move(snapshot));
}

}  // namespace

bool Model::is_taken(const std::string& name) const {
  const std::vector<std::string> destroyed = destroyed_names();
  return content(name) || std::binary_search(destroyed.begin(), destroyed.end(), name);
}

Errc Model::missing(const std::string& name) const {
  return is_taken(name) ? Errc::destroyed : Errc::not_found;
}

std::vector<std::string> Model::destroyed_names() const {
  std::vector<std::string> names;
  for (const auto& [name, volume] : volumes_) {
    for (const auto& snapshot : volume.destroyed_snapshots)
      names.push_back(name + "@" + snapshot.suffix);
  }
  for (const auto& [name, volume] : destroyed_) {
    names.push_back(name);
    for (const auto& snapshot : volume.snapshots) names.push_back(name + "@" + snapshot.suffix);
    for (const auto& snapshot : volume.destroyed_snapshots)
      names.push_back(name + "@" + snapshot.suffix);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> Model::recoverable_names() const {
  std::vector<std::string> names = destroyed_names();
  std::erase_if(names, [&](const std::string& name) {
    const SplitName parts = split(name);
    return !parts.suffix.empty() && destroyed_.contains(parts.volume);
  });
  return names;
}

int64_t* Model::not_before(const std::string& destroyed) {
  const auto [name, suffix] = split(destroyed);
  const auto gone = destroyed_.find(name);
  if (suffix.empty()) return gone == destroyed_.end() ? nullptr : &gone->second.not_before;
  ModelVolume* owner = gone == destroyed_.end() ? volume(name) : &gone->second;
  if (owner == nullptr) return nullptr;
  const auto snapshot = find(owner->destroyed_snapshots, suffix);
  if (snapshot != owner->destroyed_snapshots.end()) return &snapshot->not_before;
  return gone == destroyed_.end() ? nullptr : &gone->second.not_before;  // it goes with its volume
}

int64_t Model::due(const std::string& destroyed) {
  const int64_t* own = not_before(destroyed);
  const int64_t* with_volume = not_before(split(destroyed).volume);
  CHECK(own != nullptr);
  return with_volume != nullptr ? std::min(*own, *with_volume) : *own;
}

void Model::forget(const std::string& destroyed) {
  const auto [name, suffix] = split(destroyed);
  const auto gone = destroyed_.find(name);
  if (suffix.empty()) {
    if (gone != destroyed_.end()) destroyed_.erase(gone);
    return;
  }
  ModelVolume* owner = gone == destroyed_.end() ? volume(name) : &gone->second;
  if (owner == nullptr) return;  // it has gone with its volume
  const std::string wanted = suffix;
  const auto is_it = [&](const ModelSnapshot& each) { return each.suffix == wanted; };
  std::erase_if(owner->destroyed_snapshots, is_it);
  if (gone != destroyed_.end()) std::erase_if(owner->snapshots, is_it);
}

Model::Errors Model::destroy(const Operation& operation) {
  const std::string& name = operation.names[0];
  const ModelVolume* target = volume(name);
  if (!target) return {missing(name)};
  if (target->attached && !operation.force) return {Errc::in_use};
  auto node = volumes_.extract(name);
  if (delay_ == 0 || operation.eradicate) return kSuccess;
  node.mapped().attached = false;
  destroyed_.insert(std::move(node));
  return kSuccess;
}

Model::Errors Model::destroy_snapshot(const Operation& operation) {
  if (!snapshot(operation.names[0])) return {missing(operation.names[0])};
  const SplitName parts = split(operation.names[0]);
  ModelVolume& owner = *volume(parts.volume);
  const auto found = find(owner.snapshots, parts.suffix);
  if (delay_ > 0 && !operation.eradicate)
    insert_by_id(owner.destroyed_snapshots, std::move(*found));
  owner.snapshots.erase(found);
  return kSuccess;
}

Model::Errors Model::recover(const Operation& operation) {
  const SplitName parts = split(operation.names[0]);
  const auto gone = destroyed_.find(parts.volume);
  if (gone != destroyed_.end()) {
    if (!parts.suffix.empty()) return {Errc::destroyed};
    volumes_.insert(destroyed_.extract(gone));
    return kSuccess;
  }
  ModelVolume* owner = volume(parts.volume);
  if (!owner) return {Errc::not_found};
  if (parts.suffix.empty()) return {Errc::precondition};
  const auto found = find(owner->destroyed_snapshots, parts.suffix);
  if (found == owner->destroyed_snapshots.end())
    return {snapshot(operation.names[0]) ? Errc::precondition : Errc::not_found};
  insert_by_id(owner->snapshots, std::move(*found));
  owner->destroyed_snapshots.erase(found);
  return kSuccess;
}

Model::Errors Model::eradicate(const Operation& operation) {
  const std::string& name = operation.names[0];
  if (not_before(name) == nullptr) return {content(name) ? Errc::precondition : Errc::not_found};
  forget(name);
  return kSuccess;
}

}  // namespace vellum::support

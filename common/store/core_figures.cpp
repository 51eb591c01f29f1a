// SPDX-License-Identifier: BSD-2-Clause
//
// Space figures of volumes and snapshots. Most are at hand; what is shared with clones, or between
// a snapshot and what has changed since, is counted in the background, and again when it may have
// changed.
#include <algorithm>

#include "common/store/core.hpp"
#include "common/store/figures.hpp"

namespace vellum::store {

struct Core::Counting {
  VersionId version = 0;  // whose part that nothing else has is counted, or else
  ObjectId volume = 0;    // what comes back with this volume
  std::vector<Share> shares;
  size_t at = 0;      // share
  uint64_t from = 0;  // block
  uint64_t sum = 0;
  uint64_t removals = 0;  // of versions, when it began
};

namespace {

bool needs_no_walk(const Share& share) { return share.keepers.empty() && share.givers.empty(); }

uint64_t owned_by_all(const std::vector<Share>& shares) {
  uint64_t sum = 0;
  for (const Share& share : shares) sum += needs_no_walk(share) ? share.version->owned : 0;
  return sum;
}

bool all_need_no_walk(const std::vector<Share>& shares) {
  return std::all_of(shares.begin(), shares.end(), needs_no_walk);
}

std::vector<Share> shares_of_version(const Version& version) {
  return shares_of({&version}, [&](const Version& other) { return &other == &version; });
}

// The versions that only this volume and its snapshots name.
std::vector<const Version*> versions_of(const Volume& volume) {
  std::set<const Version*> own{volume.head};
  for (const auto& [suffix, snapshot] : volume.snapshots) {
    const auto& names = snapshot->version->names;
    if (std::all_of(names.begin(), names.end(),
                    [&](const Snapshot* name) { return name->volume == &volume; })) {
      own.insert(snapshot->version);
    }
  }
  own.erase(nullptr);
  return {own.begin(), own.end()};
}

std::vector<Share> shares_of_volume(const Volume& volume) {
  const auto versions = versions_of(volume);
  const std::set<const Version*> going(versions.begin(), versions.end());
  return shares_of(versions, [&](const Version& other) { return going.contains(&other); });
}

}  // namespace

bool Core::begin_counting() {
  auto counting = std::make_shared<Counting>();
  counting->removals = forest_.removals();
  if (!forest_.stale().empty()) {
    Version& version = *forest_.version(*forest_.stale().begin());
    forest_.clear_stale(version);
    if (version.volume != nullptr) stale_volumes_.insert(version.volume->id);
    for (const Snapshot* name : version.names) stale_volumes_.insert(name->volume->id);
    counting->version = version.id;
    counting->shares = shares_of_version(version);
  } else {
    const auto first = stale_volumes_.begin();
    if (first == stale_volumes_.end()) return false;
    const auto volume = forest_.volume(*first);
    stale_volumes_.erase(first);
    if (!volume) return true;
    counting->volume = volume->id;
    counting->shares = shares_of_volume(*volume);
  }
  std::erase_if(counting->shares, needs_no_walk);
  counting_ = std::move(counting);
  return true;
}

void Core::finish_counting() {
  if (Version* version = forest_.version(counting_->version)) version->not_shared = counting_->sum;
  const auto volume = forest_.volume(counting_->volume);
  if (volume) volume->gives_back = counting_->sum;
  counting_.reset();
}

// There is damage: it stays unknown.
void Core::give_up_counting() {
  const auto volume = forest_.volume(counting_->volume);
  Version* version = volume ? volume->head : forest_.version(counting_->version);
  if (version != nullptr) version->referenced = version->counted_to = 0;
  counting_.reset();
}

// Data blocks in the tree of a version that has not been counted to its end.
Result<bool> Core::count_referenced(Lock& lock, Version& version) {
  const VersionId id = version.id;
  return with_nodes(lock, Wait::allowed, {{}, &version},
                    [&](MissingNodes& missing) {
                      Version* now = forest_.version(id);
                      if (now == nullptr || now->counted_to == kTreeBlocks) return true;
                      uint64_t from = now->counted_to;
                      const uint64_t count = count_data(nodes_, missing, now->root, from);
                      if (!missing.empty()) return false;
                      now->referenced += count;
                      now->counted_to = from;
                      forest_.touch(*now);
                      return true;
                    })
      .ok();
}

Result<bool> Core::figures_step() {
  const std::lock_guard one(reclaim_mutex_);  // no version is removed meanwhile
  Lock lock(mutex_);
  if (counting_ && counting_->removals != forest_.removals()) {
    if (Version* version = forest_.version(counting_->version)) forest_.mark_stale(*version);
    if (counting_->volume != 0) stale_volumes_.insert(counting_->volume);
    counting_.reset();
  }
  if (!counting_ && !forest_.stale().empty()) {
    Version& version = *forest_.version(*forest_.stale().begin());
    if (version.counted_to != kTreeBlocks) {
      TRY_ASSIGN(const bool counted, count_referenced(lock, version));
      if (!counted) forest_.clear_stale(version);  // damage: it stays unknown
      return true;
    }
  }
  if (!counting_ && !begin_counting()) return false;
  if (!counting_) return true;
  if (counting_->at == counting_->shares.size()) {
    finish_counting();
    return true;
  }
  const Share& share = counting_->shares[counting_->at];
  const auto counted =
      with_nodes(lock, Wait::allowed, {{}, share.version}, [&](MissingNodes& missing) {
        uint64_t from = counting_->from;
        const uint64_t count = ShareCount(nodes_, missing).step(share, from);
        if (!missing.empty()) return false;
        counting_->sum += count;
        counting_->from = from;
        return true;
      });
  if (!counted.ok()) {
    give_up_counting();
    return true;
  }
  if (counting_->from == kTreeBlocks) {
    counting_->at++;
    counting_->from = 0;
  }
  return true;
}

bool Core::figures_are_final() const {
  return !counting_ && forest_.next_work(!options_.background).version == nullptr;
}

SpaceInfo Core::space_of(const Volume& volume) const {
  const Version& head = *volume.head;
  const auto own = shares_of_version(head), all = shares_of_volume(volume);
  SpaceInfo info;
  info.name = volume.name;
  info.size = volume.size;
  info.destroyed = is_destroyed(volume);
  info.referenced = head.referenced * kBlockSize;
  info.unique = (owned_by_all(own) + (all_need_no_walk(own) ? 0 : head.not_shared)) * kBlockSize;
  info.gives_back =
      (owned_by_all(all) + (all_need_no_walk(all) ? 0 : volume.gives_back)) * kBlockSize;
  info.promised = promised_to(volume) * kBlockSize;
  const bool any_stale =
      std::any_of(all.begin(), all.end(), [](const Share& share) { return share.version->stale; });
  info.exact = figures_are_final() && !any_stale && !stale_volumes_.contains(volume.id) &&
               head.counted_to == kTreeBlocks;
  return info;
}

SpaceInfo Core::space_of(const Snapshot& snapshot) const {
  const Version& version = *snapshot.version;
  const auto own = shares_of_version(version);
  SpaceInfo info;
  info.name = snapshot.volume->name + "@" + snapshot.suffix;
  info.size = snapshot.size;
  info.destroyed = is_destroyed(snapshot);
  info.referenced = version.referenced * kBlockSize;
  if (version.names.size() == 1 && version.id != 0) {
    info.unique =
        (owned_by_all(own) + (all_need_no_walk(own) ? 0 : version.not_shared)) * kBlockSize;
  }
  info.gives_back = info.unique;
  info.exact = figures_are_final() && !version.stale && version.counted_to == kTreeBlocks;
  return info;
}

Result<std::vector<SpaceInfo>> Core::space(const std::vector<std::string>& names) {
  const Lock lock(mutex_);
  std::vector<SpaceInfo> list;
  for (const std::string& name : names) {
    TRY_ASSIGN(const Target target, find_even_destroyed(name));
    list.push_back(target.snapshot ? space_of(*target.snapshot) : space_of(*target.volume));
  }
  if (!names.empty()) return list;
  for (const auto& [name, volume] : forest_.volumes()) {
    list.push_back(space_of(*volume));
    for (const auto& [suffix, snapshot] : volume->snapshots) list.push_back(space_of(*snapshot));
  }
  return list;
}

}  // namespace vellum::store

// SPDX-License-Identifier: BSD-2-Clause
//
// Volumes and snapshots: create, rename, resize, destroy, snapshot, clone, copy, revert. Each is
// one record, with the answer to its request_id in the same one, and durable when it returns.
#include <algorithm>

#include "common/base/units.hpp"
#include "common/store/core_change.hpp"

namespace vellum::store {

namespace {

Result<void> check_size(uint64_t size) {
  if (size > 0 && size <= kVolumeSizeMax && size % kVolumeSizeUnit == 0) return {};
  return Error{Errc::invalid_argument,
               "the size of a volume must be a multiple of 512, up to 4 "
               "PiB; " +
                   std::to_string(size) + " is not"};
}

// The nearest named version from `version` upwards.
std::optional<std::string> nearest_name(const Version* version) {
  for (; version != nullptr; version = version->parent) {
    for (auto name = version->names.rbegin(); name != version->names.rend(); ++name) {
      const Snapshot& snapshot = **name;
      if (!is_destroyed(snapshot)) return snapshot.volume->name + "@" + snapshot.suffix;
    }
  }
  return std::nullopt;
}

// Snapshots and volumes directly beneath, looking through versions that have no name.
std::vector<std::string> children_of(const Version& version) {
  std::vector<std::string> names;
  std::vector<const Version*> left(version.children.begin(), version.children.end());
  while (!left.empty()) {
    const Version* child = left.back();
    left.pop_back();
    const size_t before = names.size();
    for (const Snapshot* snapshot : child->names) {
      if (is_destroyed(*snapshot)) continue;
      names.push_back(snapshot->volume->name + "@" + snapshot->suffix);
    }
    if (child->volume != nullptr) {
      if (!is_destroyed(*child->volume)) names.push_back(child->volume->name);
    } else if (names.size() == before) {
      left.insert(left.end(), child->children.begin(), child->children.end());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

static bool valid_name(const std::string& name) {
  if (name.empty() || name.size() > kNameLengthMax) return false;
  const auto plain = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  return plain(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
           return plain(c) || c == '.' || c == '_' || c == '-';
         });
}

Result<void> check_name(const std::string& what, const std::string& name) {
  if (valid_name(name)) return {};
  return Error{Errc::invalid_argument,
               what + " must be 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or a digit"};
}

VolumeInfo Core::describe(const Volume& volume) const {
  VolumeInfo info;
  info.name = volume.name;
  info.id = volume.id;
  info.uuid = volume.uuid;
  info.size = volume.size;
  info.created = volume.created;
  info.provision = volume.provision;
  info.snapshots = static_cast<uint64_t>(
      std::count_if(volume.snapshots.begin(), volume.snapshots.end(),
                    [](const auto& each) { return !each.second->eradicate_at; }));
  info.attached = volume.attached > 0;
  info.time_remaining = time_remaining(volume);
  if (volume.head != nullptr) info.parent = nearest_name(volume.head->parent);
  return info;
}

SnapshotInfo Core::describe(const Snapshot& snapshot) const {
  SnapshotInfo info;
  info.volume = snapshot.volume->name;
  info.name = info.volume + "@" + snapshot.suffix;
  info.id = snapshot.id;
  info.uuid = snapshot.uuid;
  info.size = snapshot.size;
  info.created = snapshot.created;
  info.time_remaining = time_remaining(snapshot);
  info.parent = nearest_name(snapshot.version->parent);
  info.children = children_of(*snapshot.version);
  return info;
}

Result<void> Core::flush_quietly() {
  auto result = flush();
  const Lock lock(mutex_);
  stats_.flushes--;  // not a client's
  return result;
}

Result<void> Core::check_new_name(const std::string& name) const {
  TRY(check_name("the name of a volume", name));
  const auto other = forest_.volume(name);
  if (!other) return {};
  const std::string message = "there is a volume \"" + name + "\" already";
  return Error{Errc::exists, is_destroyed(*other) ? message + kDestroyedButThere : message};
}

NewVolume Core::new_volume(const std::string& name, uint64_t size, Provision provision,
                           VersionId version) {
  return {forest_.next_object(), version, new_uuid(), size, now(), provision, name};
}

Result<VolumeInfo> Core::create_volume(const std::string& name, uint64_t size, Provision provision,
                                       const Once<VolumeInfo>& once) {
  return change<VolumeInfo>(once, 256, [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY(check_new_name(name));
    TRY(check_size(size));
    if (forest_.versions_exhausted(1)) return versions_exhausted();
    if (provision == Provision::reserved) {
      TRY(check_promise(nullptr, full_blocks(size), name));
    }
    pieces.push_back(CreateVolumePiece{new_volume(name, size, provision, forest_.next_version())});
    info = [this, &name] { return describe(*forest_.volume(name)); };
    return {};
  });
}

Error Core::versions_exhausted() {
  return {Errc::limit,
          "the store has used up its 2^32 version numbers: copy what is needed to a "
          "new store"};
}

std::vector<VolumeInfo> Core::list_volumes(bool destroyed) {
  const Lock lock(mutex_);
  std::vector<VolumeInfo> list;
  for (const auto& [name, volume] : forest_.volumes()) {
    if (is_destroyed(*volume) == destroyed) list.push_back(describe(*volume));
  }
  return list;
}

Result<void> Core::check_names_volume(const std::string& name) {
  if (name.find('@') == std::string::npos) return {};
  return Error{Errc::invalid_argument, "\"" + name + "\" names a snapshot, and a volume is needed"};
}

Result<Target> Core::find_volume(const std::string& name) {
  TRY(check_names_volume(name));
  return find_target(name);
}

Result<Target> Core::find_even_destroyed_volume(const std::string& name) {
  TRY(check_names_volume(name));
  return find_even_destroyed(name);
}

Result<VolumeInfo> Core::get_volume(const std::string& name) {
  const Lock lock(mutex_);
  TRY_ASSIGN(const Target target, find_even_destroyed_volume(name));
  return describe(*target.volume);
}

Result<VolumeInfo> Core::rename_volume(const std::string& name, const std::string& new_name,
                                       const Once<VolumeInfo>& once) {
  return change<VolumeInfo>(once, 256, [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY_ASSIGN(const Target target, find_volume(name));
    info = [this, volume = target.volume] { return describe(*volume); };
    if (name == new_name) return {};
    TRY(check_new_name(new_name));
    pieces.push_back(RenamePiece{target.volume->id, new_name});
    return {};
  });
}

// The first allocated block of a volume from `block` on, rounded to nothing.
Result<std::optional<uint64_t>> Core::first_allocated(Lock& lock, const Export& of,
                                                      uint64_t block) {
  const Volume& volume = *of.state_->volume;
  Asker whom = asker(of);
  whom.goes_without = true;
  std::optional<uint64_t> next;
  TRY(with_nodes(lock, Wait::allowed, whom, [&](MissingNodes& missing) {
    if (is_destroyed(volume)) return true;
    next = next_allocated(nodes_, missing, volume.head->root, block);
    return missing.empty();
  }));
  return next;
}

// Before a volume shrinks: what lies beyond `size` becomes a hole, in records of bounded work.
Result<void> Core::cut_off(Export& all, uint64_t size, bool truncate) {
  const Volume& volume = *all.state_->volume;
  for (uint64_t at = size;;) {
    uint64_t end = 0;
    {
      Lock lock(mutex_);
      TRY_ASSIGN(const auto next, first_allocated(lock, all, at / kBlockSize));
      end = volume.size;
      if (is_destroyed(volume) || !next || *next * kBlockSize >= end || at >= end) return {};
    }
    if (!truncate) {
      return Error{Errc::precondition, "the volume \"" + all.name() + "\" holds data beyond " +
                                           format_size(size) +
                                           "; to cut that off, say so with truncate (--truncate)"};
    }
    TRY(zero_all(all, at, end, Wait::allowed));
    // Again: somebody may have written there meanwhile.
    at = (size + kBlockSize - 1) / kBlockSize * kBlockSize;
  }
}

Result<VolumeInfo> Core::resize_volume(const std::string& name, uint64_t size, bool truncate,
                                       const Once<VolumeInfo>& once) {
  TRY(check_size(size));
  std::shared_ptr<Export> all;
  {
    {
      const Lock lock(mutex_);
      TRY(find_volume(name));
    }
    TRY_ASSIGN(all, open_export(name, false));
  }
  // Nobody writes to what is cut off meanwhile.
  const uint64_t old_size = size_of(*all);
  Ticket ticket;
  if (size < old_size) {
    ticket = enter(*all, size, old_size - size);
    ticket.range_->queue->wait(ticket.range_);
    TRY(cut_off(*all, size, truncate));
  }
  return change<VolumeInfo>(once, 64, [&](Lock& lock, auto& pieces, auto& info) -> Result<void> {
    const auto volume = all->state_->volume;
    TRY_ASSIGN(const auto beyond,
               first_allocated(lock, *all, (size + kBlockSize - 1) / kBlockSize));
    TRY_ASSIGN(const Target target, find_volume(name));
    if (target.volume != volume || (beyond && size < volume->size)) {
      return Error{Errc::busy, "the content of \"" + name + "\" was replaced meanwhile: try again"};
    }
    info = [this, volume] { return describe(*volume); };
    if (volume->provision == Provision::reserved && size > volume->size) {
      const uint64_t full = full_blocks(size);
      TRY(check_promise(volume.get(), full - std::min(full, volume->head->owned), name));
    }
    if (volume->size != size) pieces.push_back(ResizePiece{volume->id, size});
    return {};
  });
}

Result<void> Core::check_detached(const Volume& volume) const {
  const auto in_use = [](const std::string& name) {
    return Error{Errc::in_use, "\"" + name +
                                   "\" is attached: disconnect its clients first, or "
                                   "use force"};
  };
  if (volume.attached > 0) return in_use(volume.name);
  for (const auto& [suffix, snapshot] : volume.snapshots) {
    if (snapshot->attached > 0) return in_use(volume.name + "@" + suffix);
  }
  return {};
}

}  // namespace vellum::store

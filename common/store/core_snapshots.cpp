// SPDX-License-Identifier: BSD-2-Clause
//
// Snapshots, clones, copies and reverts: new versions that share the trees of old ones.
#include <algorithm>
#include <set>

#include "common/store/core_change.hpp"

namespace vellum::store {

namespace {

constexpr size_t kRecordPerSnapshot = 160;

// The suffix for a snapshot that was given none, and the number after it.
std::string next_suffix(const Volume& volume, uint64_t& next_number) {
  while (volume.snapshots.contains(std::to_string(next_number))) next_number++;
  return std::to_string(next_number++);
}

}  // namespace

// Names the present content of `volume`: with a new version, unless the last snapshot of the same
// volume holds just that. A version that only others have named, or nobody, is not shared: their
// names would turn up as parents of what never grew from them.
SnapshotPiece Core::name_content(const Volume& volume, const std::optional<std::string>& suffix,
                                 int64_t created, Ids& ids) {
  SnapshotPiece piece;
  piece.volume = volume.id;
  piece.id = ids.object++;
  piece.uuid = new_uuid();
  piece.created = created;
  piece.next_number = volume.next_number;
  piece.suffix = suffix ? *suffix : next_suffix(volume, piece.next_number);
  const Version& named = forest_.version_to_name(*volume.head);
  const bool own = std::any_of(named.names.begin(), named.names.end(),
                               [&](const Snapshot* other) { return other->volume == &volume; });
  if (&named == volume.head || !own) piece.new_head = ids.version++;
  return piece;
}

Result<std::vector<SnapshotInfo>> Core::create_snapshots(
    const std::vector<std::string>& volumes, const std::optional<std::string>& suffix,
    const Once<std::vector<SnapshotInfo>>& once) {
  if (volumes.empty() || volumes.size() > kGroupMax) {
    return Error{Errc::invalid_argument, "a snapshot is taken of 1 to " +
                                             std::to_string(kGroupMax) + " volumes, not of " +
                                             std::to_string(volumes.size())};
  }
  if (std::set<std::string>(volumes.begin(), volumes.end()).size() != volumes.size()) {
    return Error{Errc::invalid_argument, "a volume is named twice among the sources"};
  }
  if (suffix) TRY(check_name("the suffix of a snapshot", *suffix));
  const size_t bytes = kRecordPerSnapshot * volumes.size();
  return change<std::vector<SnapshotInfo>>(
      once, bytes, [&](Lock&, auto& pieces, auto& info) -> Result<void> {
        if (forest_.versions_exhausted(volumes.size())) return versions_exhausted();
        Ids ids = next_ids();
        const int64_t created = now();
        std::vector<ObjectId> made;
        made.reserve(volumes.size());
        NewHeads new_heads;
        for (const std::string& name : volumes) {
          TRY_ASSIGN(const Target target, find_volume(name));
          const auto& taken = target.volume->snapshots;
          if (const auto other = suffix ? taken.find(*suffix) : taken.end(); other != taken.end()) {
            const std::string message =
                "there is a snapshot \"" + name + "@" + *suffix + "\" already";
            return Error{Errc::exists,
                         is_destroyed(*other->second) ? message + kDestroyedButThere : message};
          }
          made.push_back(ids.object);
          SnapshotPiece piece = name_content(*target.volume, suffix, created, ids);
          if (piece.new_head != 0) new_heads.emplace(target.volume.get(), target.volume->size);
          pieces.emplace_back(std::move(piece));
        }
        TRY(check_new_heads(new_heads));
        info = [this, made] {
          std::vector<SnapshotInfo> list;
          list.reserve(made.size());
          for (const ObjectId id : made) list.push_back(describe(*forest_.snapshot(id)));
          stats_.snapshots += made.size();
          return list;
        };
        return {};
      });
}

std::vector<SnapshotInfo> Core::list_snapshots(const std::optional<std::string>& volume,
                                               bool destroyed) {
  const Lock lock(mutex_);
  std::vector<std::shared_ptr<Snapshot>> found;
  for (const auto& [name, each] : forest_.volumes()) {
    if (volume && name != *volume) continue;
    for (const auto& [suffix, snapshot] : each->snapshots) {
      if (is_destroyed(*snapshot) == destroyed) found.push_back(snapshot);
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a->id < b->id; });
  std::vector<SnapshotInfo> list;
  list.reserve(found.size());
  for (const auto& snapshot : found) list.push_back(describe(*snapshot));
  return list;
}

Result<void> Core::check_names_snapshot(const std::string& name) {
  if (name.find('@') != std::string::npos) return {};
  return Error{Errc::invalid_argument,
               "\"" + name + "\" names a volume, and a snapshot, VOLUME@SUFFIX, is needed"};
}

Result<Target> Core::find_snapshot(const std::string& name) {
  TRY(check_names_snapshot(name));
  return find_target(name);
}

Result<Target> Core::find_even_destroyed_snapshot(const std::string& name) {
  TRY(check_names_snapshot(name));
  return find_even_destroyed(name);
}

Result<SnapshotInfo> Core::get_snapshot(const std::string& name) {
  const Lock lock(mutex_);
  TRY_ASSIGN(const Target target, find_even_destroyed_snapshot(name));
  return describe(*target.snapshot);
}

// The version that a new head can grow beneath. A volume is split for it, unless it is unchanged.
VersionId Core::freeze_source(const Target& source, std::vector<Piece>& pieces, Ids& ids) {
  if (source.snapshot) return source.snapshot->version->id;
  Version& head = *source.volume->head;
  const Version& named = forest_.version_to_name(head);
  if (&named == &head) pieces.emplace_back(SplitPiece{source.volume->id, ids.version++});
  return named.id;
}

// What freeze_source() is going to split.
void Core::add_new_head(const Target& source, NewHeads& heads) const {
  if (source.snapshot) return;
  Version& head = *source.volume->head;
  if (&forest_.version_to_name(head) == &head) {
    heads.emplace(source.volume.get(), source.volume->size);
  }
}

Result<VolumeInfo> Core::clone(const std::string& source, const std::string& name,
                               const Once<VolumeInfo>& once) {
  return change<VolumeInfo>(once, 256, [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY_ASSIGN(const Target from, find_target(source));
    TRY(check_new_name(name));
    if (forest_.versions_exhausted(2)) return versions_exhausted();
    NewHeads new_heads;
    add_new_head(from, new_heads);
    TRY(check_new_heads(new_heads));
    add_clone(from, name, pieces);
    info = [this, &name, size = from.size()] { return cloned(name, size); };
    return {};
  });
}

void Core::add_clone(const Target& from, const std::string& name, std::vector<Piece>& pieces) {
  Ids ids = next_ids();
  const VersionId parent = freeze_source(from, pieces, ids);
  pieces.emplace_back(
      ClonePiece{parent, new_volume(name, from.size(), Provision::thin, ids.version++)});
}

VolumeInfo Core::cloned(const std::string& name, uint64_t size) {
  const auto volume = forest_.volume(name);
  for (IoStats* stats : {&stats_, &volume->stats}) {
    stats->copies++;
    stats->copy_bytes += size;
  }
  return describe(*volume);
}

// A new head for `target` beneath `parent`; the old content dies, or stays as the undo snapshot.
Result<void> Core::replace_content(Volume& target, VersionId parent, uint64_t size, bool undo,
                                   Ids& ids, std::vector<Piece>& pieces,
                                   std::optional<std::string>& undo_name) {
  if (target.attached > 0 && target.size != size) {
    return Error{Errc::in_use, "\"" + target.name +
                                   "\" is attached and would change its size: disconnect its "
                                   "clients first"};
  }
  if (undo) {
    SnapshotPiece piece = name_content(target, std::nullopt, now(), ids);
    undo_name = target.name + "@" + piece.suffix;
    pieces.emplace_back(std::move(piece));
  }
  pieces.emplace_back(SwitchPiece{target.id, parent, ids.version++, size});
  return {};
}

Result<CopyInfo> Core::copy(const std::string& source, const std::string& target, bool overwrite,
                            bool undo, const Once<CopyInfo>& once) {
  return change<CopyInfo>(once, 512, [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY_ASSIGN(const Target from, find_target(source));
    if (forest_.versions_exhausted(3)) return versions_exhausted();
    const auto onto = forest_.volume(target);
    if (onto && is_destroyed(*onto)) {
      return overwrite ? destroyed_error(Target{onto, nullptr}) : check_new_name(target);
    }
    std::optional<std::string> undo_name;
    NewHeads new_heads;
    add_new_head(from, new_heads);
    if (onto) new_heads[onto.get()] = from.size();
    TRY(check_new_heads(new_heads));
    if (!onto) {
      TRY(check_new_name(target));
      add_clone(from, target, pieces);
    } else if (!overwrite) {
      return Error{Errc::exists, "there is a volume \"" + target +
                                     "\" already; to replace its content, ask to overwrite it"};
    } else if (onto == from.volume && !from.snapshot) {
      return Error{Errc::invalid_argument, "\"" + source + "\" would be copied onto itself"};
    } else {
      Ids ids = next_ids();
      const VersionId parent = freeze_source(from, pieces, ids);
      TRY(replace_content(*onto, parent, from.size(), undo, ids, pieces, undo_name));
    }
    info = [this, &target, undo_name, size = from.size()] {
      return CopyInfo{cloned(target, size), undo_name};
    };
    return {};
  });
}

Result<CopyInfo> Core::revert(const std::string& name, const std::string& snapshot, bool undo,
                              const Once<CopyInfo>& once) {
  return change<CopyInfo>(once, 512, [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY_ASSIGN(const Target onto, find_volume(name));
    const bool in_full = snapshot.find('@') != std::string::npos;
    TRY_ASSIGN(const Target to, find_target(in_full ? snapshot : name + "@" + snapshot));
    if (forest_.versions_exhausted(2)) return versions_exhausted();
    bool related = to.volume == onto.volume;
    for (const Version* at = onto.volume->head; at != nullptr && !related; at = at->parent) {
      related = at == to.snapshot->version;
    }
    if (!related) {
      return Error{Errc::incompatible, "\"" + to.name() + "\" is no snapshot of \"" + name +
                                           "\" or of what it grew from; to replace the content, "
                                           "copy it onto the volume"};
    }
    TRY(check_new_heads({{onto.volume.get(), to.snapshot->size}}));
    Ids ids = next_ids();
    std::optional<std::string> undo_name;
    TRY(replace_content(*onto.volume, to.snapshot->version->id, to.snapshot->size, undo, ids,
                        pieces, undo_name));
    info = [this, &name, undo_name, size = to.snapshot->size] {
      return CopyInfo{cloned(name, size), undo_name};
    };
    return {};
  });
}

std::optional<std::string> Core::find_answer(const std::string& request_id) {
  std::optional<std::string> answer;
  {
    const Lock lock(mutex_);
    answer = answers_.find(request_id, now());
  }
  // The first call may still be waiting for its flush, or have failed in it.
  if (answer && !flush_quietly().ok()) answer.reset();
  return answer;
}

}  // namespace vellum::store

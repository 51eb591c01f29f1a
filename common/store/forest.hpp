// SPDX-License-Identifier: BSD-2-Clause
//
// The forest of versions and the catalogue of volumes and snapshots that name them. In memory as a
// whole; guarded by the store's mutex; changed by executing records only.
//
// 1. Ids of versions only grow, so they rise along any path away from the root.
// 2. A version that no name refers to is a zombie, and reclaim works on it. Which job, depends on
// how
//    many children it has.
// 3. What has changed since the last freeze is remembered by id, for the checkpoint's tables.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/store/block_io.hpp"
#include "common/store/node_cache.hpp"
#include "common/store/ranges.hpp"
#include "common/store/record.hpp"
#include "common/store/types.hpp"

namespace vellum::store {

enum class State : uint8_t { head = 1, snapshot = 2, zombie = 3 };

struct Volume;
struct Snapshot;

struct Version {
  VersionId id = 0;
  Version* parent = nullptr;
  std::vector<Version*> children;
  Entry root;
  State state = State::head;
  Job job = Job::none;
  Cursor cursor;
  uint64_t owned = 0;  // blocks and nodes charged to it: parent->id < tag <= id
  uint32_t pins = 0;   // readers that keep reclaim away
  // What its children have let go of since it was swept last, and it may be the only one to hold.
  uint64_t released = 0;
  uint64_t swept = 0;  // leaves that the last sweep looked at
  // A huge trim of a head moves whole subtrees into a zombie beneath the same parent, to be dropped
  // later. They stay charged to the head, which has to be there until then.
  Version* charged_to = nullptr;  // of such a zombie: the head
  std::vector<Version*> debtors;  // of the head: those zombies, by id
  bool changed = false;
  // Figures (figures.hpp). Data blocks in its tree before this block; kTreeBlocks: in all of it.
  uint64_t counted_to = 0;
  uint64_t referenced = 0;
  bool stale = false;            // what is shared with others has changed since it was looked at
  uint64_t marked_at = 0;        // when its relatives were last marked so, by Forest's epoch
  uint64_t not_shared = 0;       // blocks and nodes that nothing else visible has, as last counted
  Volume* volume = nullptr;      // whose head it is
  std::vector<Snapshot*> names;  // that refer to it
};

struct Snapshot {
  ObjectId id = 0;
  Volume* volume = nullptr;
  std::string suffix;
  Uuid uuid{};
  uint64_t size = 0;
  int64_t created = 0;
  Version* version = nullptr;
  bool gone = false;                    // eradicated; an export may still hold it
  std::optional<int64_t> eradicate_at;  // it is destroyed, and can be recovered until then
  // As eradicate_at, by the steady clock, if it was destroyed since the store was opened.
  std::optional<int64_t> not_before;
  uint32_t attached = 0;  // open exports
};

struct Volume {
  ObjectId id = 0;
  std::string name;
  Uuid uuid{};
  uint64_t size = 0;
  int64_t created = 0;
  Provision provision = Provision::thin;
  uint64_t next_number = 1;
  Version* head = nullptr;
  bool gone = false;                                // as of a snapshot
  std::optional<int64_t> eradicate_at, not_before;  // likewise
  uint32_t times_destroyed = 0;  // since the store was opened; older exports stay dead
  uint32_t attached = 0;         // open exports
  std::map<std::string, std::shared_ptr<Snapshot>> snapshots;  // by suffix
  uint64_t gives_back = 0;  // by eradicating it, where that has to be counted; as last counted
  IoStats stats;
  RangeQueue ranges;
};

// Destroyed or eradicated. A snapshot is destroyed with its volume, too.
inline bool is_destroyed(const Volume& volume) { return volume.gone || volume.eradicate_at; }
inline bool is_destroyed(const Snapshot& snapshot) {
  return snapshot.gone || snapshot.eradicate_at || is_destroyed(*snapshot.volume);
}

// "snapshot \"db@3\"", or what a version without a name is.
std::string name_of(const Version& version);
// Those of the volume and of all snapshots that refer to it.
void add_names(const Version& version, std::vector<std::string>& names);

class Forest {
 public:
  explicit Forest(NodeCache& nodes);

  Version* version(VersionId id);
  std::shared_ptr<Volume> volume(const std::string& name) const;
  std::shared_ptr<Volume> volume(ObjectId id) const;
  std::shared_ptr<Snapshot> snapshot(ObjectId id) const;
  const std::map<std::string, std::shared_ptr<Volume>>& volumes() const { return by_name_; }
  const std::map<VersionId, std::unique_ptr<Version>>& versions() const { return versions_; }
  size_t snapshot_count() const { return snapshots_.size(); }
  size_t object_count() const { return by_id_.size() + snapshots_.size(); }
  const std::set<const Volume*>& reserved_volumes() const { return reserved_; }
  VersionId next_version() const { return next_version_; }
  ObjectId next_object() const { return next_object_; }
  bool versions_exhausted(size_t wanted) const { return next_version_ + wanted >= 0xfffffff0u; }

  // Nothing of its own, and exactly what its parent is.
  bool unchanged(const Version& head) const;
  // The version that a snapshot of this head would name: its parent, if that is the same already.
  Version& version_to_name(Version& head) const {
    return unchanged(head) && head.parent->job == Job::none ? *head.parent : head;
  }

  // -- Executing records. False: it does not fit this state, which only damage can cause. ---------
  bool create_volume(const NewVolume& made, VersionId parent_id);
  bool rename(ObjectId id, const std::string& name);
  bool resize(ObjectId id, uint64_t size);
  bool take_snapshot(const SnapshotPiece& piece);
  bool split(ObjectId id, VersionId new_head);
  bool switch_head(const SwitchPiece& piece);
  bool eradicate_volume(ObjectId id);  // with its snapshots
  bool eradicate_snapshot(ObjectId id);
  // Of a volume or snapshot.
  bool destroy(ObjectId id, int64_t eradicate_at, std::optional<int64_t> not_before);
  bool recover(ObjectId id);
  // What has been destroyed, by the time at which it is to be eradicated.
  const std::set<std::pair<int64_t, ObjectId>>& destroyed() const { return destroyed_; }
  int64_t eradication_delay = 0;  // milliseconds
  // What reclaim is to do next; the job that has begun goes on first. A sweep looks at all that a
  // zombie does not share as a whole, so it waits until that promises something, unless it is
  // wanted for a single block.
  struct Work {
    Version* version = nullptr;
    Job job = Job::none;
  };
  Work next_work(bool for_a_single_block) const;
  // Whether subtrees can be moved out of this head now: not while its parent is collapsed into it.
  // And not of a reserved volume: its promise counts what it owns, and what is moved stays charged
  // to it.
  bool can_detach(const Version& head) const {
    const bool is_reserved =
        head.volume != nullptr && head.volume->provision == Provision::reserved;
    return head.parent->job != Job::collapse && !is_reserved && !versions_exhausted(1);
  }
  // The zombie that takes more subtrees of `head`: the youngest, if its job has not begun; else
  // null. Recovery must find the same one, so nothing but what a checkpoint keeps may decide.
  static Version* detached(const Version& head) {
    const bool any = !head.debtors.empty() && head.debtors.back()->job == Job::none;
    return any ? head.debtors.back() : nullptr;
  }
  // A new zombie, without content, for subtrees of `head`.
  Version& begin_detached(Version& head);
  // Which job a version is fit for. Job::none: it is in use, or its job has begun.
  static Job job_for(const Version& version);
  bool can_begin(const Version& version) const {
    return begun_ == nullptr && version.debtors.empty();  // which are younger, and dropped first
  }
  void begin_job(Version& version, Job job);
  void set_cursor(Version& version, Cursor cursor);
  // The cursor is at the end: the version goes, or, if it was swept, stays.
  void finish_job(Version& version);

  // What this version and its relatives have in common may have changed.
  void mark_stale(Version& changed);
  // The same after a change of its content: cheap while the relatives are the same, and all of them
  // are still marked.
  void note_change(Version& head) {
    if (head.marked_at == marks_epoch_) return;
    mark_stale(head);
    head.marked_at = marks_epoch_;
  }
  uint64_t removals() const { return removals_; }  // of versions, ever
  const std::set<VersionId>& stale() const { return stale_; }
  void clear_stale(Version& version);
  // Of all versions together.
  uint64_t data_blocks = 0;

  void touch(Version& version);
  void touch(const Volume& volume) { changed_objects_.insert(volume.id); }

  // -- Loading and checkpoints -------------------------------------------------------------------
  // Table records, as FORMAT.md has them. Loading is in any order; link() ends it and says whether
  // everything fits together.
  struct LoadedVersion {
    VersionId id, parent;
    Entry root;
    State state;
    Job job;
    Cursor cursor;
    uint64_t owned;
    VersionId charged_to;
    std::optional<uint64_t> referenced;
  };
  enum class ObjectType : uint8_t { volume = 1, snapshot = 2 };
  struct ObjectRecord {
    ObjectType type = ObjectType::volume;
    ObjectId id = 0;
    std::string name;  // of a snapshot: its suffix
    Uuid uuid{};
    uint64_t size = 0;
    int64_t created = 0;
    VersionId version = 0;                  // the head, or what the snapshot names
    Provision provision = Provision::thin;  // volumes only, as is the next
    uint64_t next_number = 0;
    ObjectId volume = 0;  // snapshots only
    std::optional<int64_t> eradicate_at;
  };
  void load(const LoadedVersion& version) { loaded_versions_[version.id] = version; }
  bool load_object(const std::byte* from);
  bool link(VersionId next_version, ObjectId next_object);

  // Table blocks (indices in their areas) that changed since they were last taken; and all others
  // too, if there are at most so many.
  std::set<uint64_t> take_version_blocks(size_t rewritten_max);
  std::set<uint64_t> take_object_blocks(size_t rewritten_max);
  // The records of one table block. The roots are copied out, since they may have no address yet.
  struct RootPlace {
    VersionId version;
    size_t offset;  // in the page
    Entry root;     // a counted reference
  };
  void store_versions(uint64_t block, Page& page, std::vector<RootPlace>& roots) const;
  void store_objects(uint64_t block, Page& page) const;

 private:
  Version* new_version(Version& parent, VersionId id);
  void make_zombie(Version& version);
  static void release_below(const Version& version);
  void classify(Version& version);
  void remove(Version& version);
  bool set_eradication(ObjectId id, std::optional<int64_t> at, std::optional<int64_t> not_before);
  template <typename Object>
  void set_eradication(Object& object, std::optional<int64_t> at,
                       std::optional<int64_t> not_before = std::nullopt);
  bool link_volume(const ObjectRecord& loaded);
  bool link_snapshot(const ObjectRecord& loaded);

  NodeCache& nodes_;
  std::map<VersionId, std::unique_ptr<Version>> versions_;
  std::map<std::string, std::shared_ptr<Volume>> by_name_;
  std::map<ObjectId, std::shared_ptr<Volume>> by_id_;
  std::map<ObjectId, std::shared_ptr<Snapshot>> snapshots_;
  std::set<const Volume*> reserved_;
  std::set<std::pair<int64_t, ObjectId>> destroyed_;
  std::set<VersionId> stale_;
  uint64_t marks_epoch_ = 1;  // goes on when a mark goes, or relations change
  uint64_t removals_ = 0;
  VersionId next_version_ = 1;
  ObjectId next_object_ = 1;
  std::map<Job, std::set<VersionId>> fit_for_;  // zombies, by job_for()
  Version* begun_ = nullptr;
  std::vector<VersionId> changed_versions_;
  std::set<ObjectId> changed_objects_;
  std::map<VersionId, LoadedVersion> loaded_versions_;
  std::vector<ObjectRecord> loaded_objects_;
};

}  // namespace vellum::store

// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/forest.hpp"

#include <algorithm>

namespace vellum::store {

namespace {

// A zombie is swept again once so many of the leaves that were looked at may have lost something.
constexpr uint64_t kSweepFraction = 16;

}  // namespace

Forest::Forest(NodeCache& nodes) : nodes_(nodes) {
  auto base = std::make_unique<Version>();
  base->state = State::snapshot;
  base->counted_to = kTreeBlocks;
  versions_.emplace(0, std::move(base));
}

Version* Forest::version(VersionId id) {
  const auto found = versions_.find(id);
  return found == versions_.end() ? nullptr : found->second.get();
}

std::shared_ptr<Volume> Forest::volume(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::shared_ptr<Volume> Forest::volume(ObjectId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

std::shared_ptr<Snapshot> Forest::snapshot(ObjectId id) const {
  const auto found = snapshots_.find(id);
  return found == snapshots_.end() ? nullptr : found->second;
}

bool Forest::unchanged(const Version& head) const {
  return head.owned == 0 && same_target(head.root, head.parent->root);
}

void Forest::touch(Version& version) {
  if (version.changed) return;
  version.changed = true;
  changed_versions_.push_back(version.id);
}

Version* Forest::new_version(Version& parent, VersionId id) {
  if (id != next_version_) return nullptr;
  next_version_++;
  auto fresh = std::make_unique<Version>();
  fresh->id = id;
  fresh->parent = &parent;
  fresh->root = parent.root;
  fresh->counted_to = parent.counted_to;
  fresh->referenced = parent.referenced;
  nodes_.ref(fresh->root);
  parent.children.push_back(fresh.get());
  classify(parent);
  Version* version = fresh.get();
  versions_.emplace(id, std::move(fresh));
  marks_epoch_++;
  touch(*version);
  mark_stale(*version);
  return version;
}

// All who read something together with it, as far as no visible version lies between.
void Forest::mark_stale(Version& changed) {
  const auto mark = [this](Version& version) {
    if (version.stale || version.id == 0) return;
    version.stale = true;
    stale_.insert(version.id);
  };
  if (changed.parent == nullptr) return;
  if (changed.state != State::zombie && changed.parent->state != State::zombie) {
    mark(changed);
    return mark(*changed.parent);
  }
  Version* top = &changed;
  while (top->parent != nullptr && top->parent->state == State::zombie) top = top->parent;
  if (top->parent != nullptr) mark(*top->parent);
  std::vector<Version*> left{top};
  while (!left.empty()) {
    Version* at = left.back();
    left.pop_back();
    if (at->state != State::zombie) {
      mark(*at);
    } else {
      left.insert(left.end(), at->children.begin(), at->children.end());
    }
  }
}

void Forest::clear_stale(Version& version) {
  marks_epoch_++;
  version.stale = false;
  stale_.erase(version.id);
}

void Forest::make_zombie(Version& version) {
  if (version.id == 0) return;
  version.state = State::zombie;
  clear_stale(version);
  mark_stale(version);
  release_below(version);
  classify(version);
  touch(version);
}

// What this zombie created, the sweeps of those below it have let alone so far: it was to be seen
// here.
void Forest::release_below(const Version& version) {
  std::vector<const Version*> left{&version};
  while (!left.empty()) {
    const Version* at = left.back();
    left.pop_back();
    for (Version* child : at->children) {
      if (child->state != State::zombie) continue;
      child->released += version.owned;
      left.push_back(child);
    }
  }
}

Job Forest::job_for(const Version& version) {
  if (version.state != State::zombie || version.job != Job::none) return Job::none;
  if (version.children.empty()) return Job::drop;
  return version.children.size() == 1 ? Job::collapse : Job::sweep;
}

// After each change of what job_for() looks at.
void Forest::classify(Version& version) {
  for (auto& [job, versions] : fit_for_) versions.erase(version.id);
  const Job job = job_for(version);
  if (job != Job::none) fit_for_[job].insert(version.id);
}

Forest::Work Forest::next_work(bool for_a_single_block) const {
  if (begun_ != nullptr) return {begun_, begun_->job};
  for (const auto& [job, fit] : fit_for_) {
    // Children before parents: what a sweep leaves to the parent is there when its turn comes.
    for (auto id = fit.rbegin(); id != fit.rend(); ++id) {
      Version* version = versions_.at(*id).get();
      const uint64_t least = for_a_single_block ? 0 : version->swept / kSweepFraction;
      if (job == Job::sweep && version->released <= least) continue;
      if (version->pins == 0) return {version, job};
    }
  }
  return {};
}

bool Forest::create_volume(const NewVolume& made, VersionId parent_id) {
  Version* parent = version(parent_id);
  if (parent == nullptr || by_name_.contains(made.name) || made.id != next_object_) return false;
  Version* head = new_version(*parent, made.version);
  if (head == nullptr) return false;
  next_object_++;
  auto volume = std::make_shared<Volume>();
  volume->id = made.id;
  volume->name = made.name;
  volume->uuid = made.uuid;
  volume->size = made.size;
  volume->created = made.created;
  volume->provision = made.provision;
  volume->head = head;
  head->volume = volume.get();
  touch(*volume);
  if (volume->provision == Provision::reserved) reserved_.insert(volume.get());
  by_id_.emplace(volume->id, volume);
  by_name_.emplace(volume->name, std::move(volume));
  return true;
}

bool Forest::rename(ObjectId id, const std::string& name) {
  const auto renamed = volume(id);
  if (!renamed || by_name_.contains(name)) return false;
  by_name_.erase(renamed->name);
  renamed->name = name;
  by_name_.emplace(name, renamed);
  touch(*renamed);
  return true;
}

bool Forest::resize(ObjectId id, uint64_t size) {
  const auto resized = volume(id);
  if (!resized) return false;
  resized->size = size;
  touch(*resized);
  return true;
}

bool Forest::take_snapshot(const SnapshotPiece& piece) {
  const auto of = volume(piece.volume);
  if (!of || piece.id != next_object_ || of->snapshots.contains(piece.suffix)) return false;
  Version* named = piece.new_head == 0 ? of->head->parent : of->head;
  if (piece.new_head != 0) {
    Version* head = new_version(*named, piece.new_head);
    if (head == nullptr) return false;
    named->volume = nullptr;
    head->volume = of.get();
    of->head = head;
  }
  if (named->id != 0) {
    named->state = State::snapshot;
    mark_stale(*named);
    classify(*named);
    touch(*named);
  }
  next_object_++;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->id = piece.id;
  snapshot->volume = of.get();
  snapshot->suffix = piece.suffix;
  snapshot->uuid = piece.uuid;
  snapshot->size = of->size;
  snapshot->created = piece.created;
  snapshot->version = named;
  named->names.push_back(snapshot.get());
  of->next_number = piece.next_number;
  changed_objects_.insert(snapshot->id);
  touch(*of);
  of->snapshots.emplace(snapshot->suffix, snapshot);
  snapshots_.emplace(snapshot->id, std::move(snapshot));
  return true;
}

bool Forest::split(ObjectId id, VersionId new_head) {
  const auto of = volume(id);
  if (!of) return false;
  Version* old = of->head;
  Version* head = new_version(*old, new_head);
  if (head == nullptr) return false;
  old->volume = nullptr;
  make_zombie(*old);
  head->volume = of.get();
  of->head = head;
  touch(*of);
  return true;
}

bool Forest::switch_head(const SwitchPiece& piece) {
  const auto of = volume(piece.volume);
  Version* parent = version(piece.parent);
  if (!of || parent == nullptr) return false;
  Version* head = new_version(*parent, piece.new_head);
  if (head == nullptr) return false;
  of->head->volume = nullptr;
  make_zombie(*of->head);
  head->volume = of.get();
  of->head = head;
  of->size = piece.size;
  touch(*of);
  return true;
}

template <typename Object>
void Forest::set_eradication(Object& object, std::optional<int64_t> at,
                             std::optional<int64_t> not_before) {
  if (object.eradicate_at) destroyed_.erase({*object.eradicate_at, object.id});
  object.eradicate_at = at;
  object.not_before = not_before;
  if (at) destroyed_.insert({*at, object.id});
  changed_objects_.insert(object.id);
}

bool Forest::set_eradication(ObjectId id, std::optional<int64_t> at,
                             std::optional<int64_t> not_before) {
  const auto of_volume = volume(id);
  const auto of_snapshot = snapshot(id);
  if (of_volume) set_eradication(*of_volume, at, not_before);
  if (of_snapshot) set_eradication(*of_snapshot, at, not_before);
  return of_volume || of_snapshot;
}

bool Forest::destroy(ObjectId id, int64_t eradicate_at, std::optional<int64_t> not_before) {
  if (const auto of_volume = volume(id)) of_volume->times_destroyed++;
  return set_eradication(id, eradicate_at, not_before);
}

bool Forest::recover(ObjectId id) { return set_eradication(id, std::nullopt, std::nullopt); }

bool Forest::eradicate_volume(ObjectId id) {
  const auto gone = volume(id);
  if (!gone) return false;
  while (!gone->snapshots.empty()) eradicate_snapshot(gone->snapshots.begin()->second->id);
  set_eradication(*gone, std::nullopt);
  gone->gone = true;
  gone->head->volume = nullptr;
  make_zombie(*gone->head);
  gone->head = nullptr;
  reserved_.erase(gone.get());
  by_name_.erase(gone->name);
  by_id_.erase(id);
  changed_objects_.insert(id);
  return true;
}

bool Forest::eradicate_snapshot(ObjectId id) {
  const auto gone = snapshot(id);
  if (!gone) return false;
  set_eradication(*gone, std::nullopt);
  gone->gone = true;
  Version& version = *gone->version;
  std::erase(version.names, gone.get());
  if (version.names.empty()) make_zombie(version);
  gone->volume->snapshots.erase(gone->suffix);
  snapshots_.erase(id);
  changed_objects_.insert(id);
  return true;
}

Version& Forest::begin_detached(Version& head) {
  Version* zombie = new_version(*head.parent, next_version_);
  nodes_.unref(zombie->root);
  zombie->root = Entry();
  zombie->state = State::zombie;
  clear_stale(*zombie);
  zombie->charged_to = &head;
  head.debtors.push_back(zombie);
  classify(*zombie);
  return *zombie;
}

void Forest::begin_job(Version& version, Job job) {
  CHECK(can_begin(version));
  version.job = job;
  version.cursor = {};
  if (job == Job::sweep) version.released = version.swept = 0;
  begun_ = &version;
  classify(version);
  touch(version);
}

void Forest::set_cursor(Version& version, Cursor cursor) {
  version.cursor = cursor;
  touch(version);
}

void Forest::finish_job(Version& version) {
  CHECK(begun_ == &version && version.pins == 0 && version.names.empty());
  begun_ = nullptr;
  if (version.job != Job::sweep) return remove(version);
  version.job = Job::none;
  if (version.cursor != kCursorEnd) version.released++;  // it was given up
  version.cursor = {};
  classify(version);
  touch(version);
}

// The only child, if there is one, takes its place and what it still owned.
void Forest::remove(Version& version) {
  Version& parent = *version.parent;
  std::erase(parent.children, &version);
  for (Version* child : version.children) {
    child->parent = &parent;
    child->owned += version.owned;
    parent.children.push_back(child);
    touch(*child);
  }
  parent.released++;
  classify(parent);
  marks_epoch_++;
  mark_stale(parent);
  for (Version* child : version.children) mark_stale(*child);
  if (version.charged_to != nullptr) std::erase(version.charged_to->debtors, &version);
  nodes_.unref(version.root);
  if (!version.changed) changed_versions_.push_back(version.id);
  removals_++;
  versions_.erase(version.id);
}

std::set<uint64_t> Forest::take_version_blocks(size_t rewritten_max) {
  std::set<uint64_t> blocks;
  for (const VersionId id : changed_versions_) {
    blocks.insert(id / kVersionsPerBlock);
    if (Version* changed = version(id)) changed->changed = false;
  }
  changed_versions_.clear();
  std::set<uint64_t> all;
  for (const auto& [id, version] : versions_) {
    if (id != 0) all.insert(all.end(), id / kVersionsPerBlock);
    if (all.size() > rewritten_max) return blocks;
  }
  blocks.merge(all);
  return blocks;
}

std::set<uint64_t> Forest::take_object_blocks(size_t rewritten_max) {
  std::set<uint64_t> blocks;
  for (const ObjectId id : changed_objects_) blocks.insert(id / kObjectsPerBlock);
  changed_objects_.clear();
  std::set<uint64_t> all;
  for (const auto& [id, volume] : by_id_) all.insert(all.end(), id / kObjectsPerBlock);
  for (const auto& [id, snapshot] : snapshots_) {
    all.insert(id / kObjectsPerBlock);
    if (all.size() > rewritten_max) return blocks;
  }
  if (all.size() <= rewritten_max) blocks.merge(all);
  return blocks;
}

std::string name_of(const Version& version) {
  if (version.volume != nullptr) return "volume \"" + version.volume->name + "\"";
  if (!version.names.empty()) {
    const Snapshot& snapshot = *version.names.front();
    return "snapshot \"" + snapshot.volume->name + "@" + snapshot.suffix + "\"";
  }
  const Version* below = &version;
  while (below->state == State::zombie && !below->children.empty()) {
    below = below->children.front();
  }
  if (below == &version || below->state == State::zombie) return "something destroyed";
  return "something destroyed that " + name_of(*below) + " comes from";
}

void add_names(const Version& version, std::vector<std::string>& names) {
  if (version.volume != nullptr) names.push_back(version.volume->name);
  for (const Snapshot* snapshot : version.names) {
    names.push_back(snapshot->volume->name + "@" + snapshot->suffix);
  }
}

}  // namespace vellum::store

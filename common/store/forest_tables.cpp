// SPDX-License-Identifier: BSD-2-Clause
//
// The forest and the catalogue as records of the system tree's tables.
#include <cstring>

#include "common/base/endian.hpp"
#include "common/store/block_io.hpp"
#include "common/store/forest.hpp"

namespace vellum::store {

namespace {

constexpr uint8_t kLive = 1, kDestroyed = 2;
constexpr size_t kNameAt = 128;

void store_object(const Forest::ObjectRecord& object, std::byte* to) {
  store_le64(to, object.id);
  to[8] = static_cast<std::byte>(object.type);
  to[9] = std::byte{object.eradicate_at ? kDestroyed : kLive};
  to[10] = static_cast<std::byte>(object.provision);
  to[11] = static_cast<std::byte>(object.name.size());
  store_le32(to + 12, object.version);
  std::memcpy(to + 16, object.uuid.data(), object.uuid.size());
  store_le64(to + 32, object.size);
  store_le64(to + 40, static_cast<uint64_t>(object.created));
  store_le64(to + 48, static_cast<uint64_t>(object.eradicate_at.value_or(0)));
  store_le64(to + 56, object.volume);
  store_le64(to + 64, object.next_number);
  std::memcpy(to + kNameAt, object.name.data(), object.name.size());
}

}  // namespace

void Forest::store_versions(uint64_t block, Page& page, std::vector<RootPlace>& roots) const {
  page.fill(std::byte{0});
  const uint64_t first = block * kVersionsPerBlock;
  for (auto at = versions_.lower_bound(static_cast<VersionId>(first));
       at != versions_.end() && at->first < first + kVersionsPerBlock; ++at) {
    const Version& version = *at->second;
    if (version.id == 0) continue;
    const size_t offset = (version.id - first) * kVersionRecord;
    std::byte* to = page.data() + offset;
    store_le32(to, version.id);
    store_le32(to + 4, version.parent->id);
    if (version.root.is_in_memory() && version.root.target()->dirty()) {
      roots.push_back({version.id, offset + 8, version.root});
      nodes_.ref(version.root);
    } else {
      store_entry(to + 8, version.root);
    }
    to[24] = static_cast<std::byte>(version.state);
    to[25] = static_cast<std::byte>(version.job);
    to[26] = static_cast<std::byte>(version.cursor.level);
    store_le32(to + 28, version.charged_to != nullptr ? version.charged_to->id : 0);
    store_le64(to + 32, version.cursor.end);
    store_le64(to + kOwnedAt, version.owned);
    const bool counted = version.counted_to == kTreeBlocks;
    store_le64(to + 48, counted ? version.referenced + 1 : 0);
  }
}

void Forest::store_objects(uint64_t block, Page& page) const {
  page.fill(std::byte{0});
  const uint64_t first = block * kObjectsPerBlock, end = first + kObjectsPerBlock;
  const auto place = [&](ObjectId id) { return page.data() + (id - first) * kObjectRecord; };
  for (auto at = by_id_.lower_bound(first); at != by_id_.end() && at->first < end; ++at) {
    const Volume& volume = *at->second;
    store_object({.type = ObjectType::volume,
                  .id = volume.id,
                  .name = volume.name,
                  .uuid = volume.uuid,
                  .size = volume.size,
                  .created = volume.created,
                  .version = volume.head->id,
                  .provision = volume.provision,
                  .next_number = volume.next_number,
                  .eradicate_at = volume.eradicate_at},
                 place(volume.id));
  }
  for (auto at = snapshots_.lower_bound(first); at != snapshots_.end() && at->first < end; ++at) {
    const Snapshot& snapshot = *at->second;
    store_object({.type = ObjectType::snapshot,
                  .id = snapshot.id,
                  .name = snapshot.suffix,
                  .uuid = snapshot.uuid,
                  .size = snapshot.size,
                  .created = snapshot.created,
                  .version = snapshot.version->id,
                  .volume = snapshot.volume->id,
                  .eradicate_at = snapshot.eradicate_at},
                 place(snapshot.id));
  }
}

bool Forest::load_object(const std::byte* from) {
  const auto type = static_cast<uint8_t>(from[8]), provision = static_cast<uint8_t>(from[10]);
  const auto name_length = static_cast<size_t>(from[11]);
  if (type != 1 && type != 2) return false;
  const auto state = static_cast<uint8_t>(from[9]);
  if ((state != kLive && state != kDestroyed) || provision > 1) return false;
  if (name_length == 0 || name_length > kNameLengthMax) return false;
  ObjectRecord object;
  object.type = static_cast<ObjectType>(type);
  object.id = load_le64(from);
  object.name.assign(reinterpret_cast<const char*>(from + kNameAt), name_length);
  std::memcpy(object.uuid.data(), from + 16, object.uuid.size());
  object.size = load_le64(from + 32);
  object.created = static_cast<int64_t>(load_le64(from + 40));
  object.version = load_le32(from + 12);
  object.provision = static_cast<Provision>(provision);
  object.next_number = load_le64(from + 64);
  object.volume = load_le64(from + 56);
  const uint64_t eradicate_at = load_le64(from + 48);
  if (eradicate_at > (state == kDestroyed ? uint64_t{kTimeMax} : 0)) return false;
  if (state == kDestroyed) object.eradicate_at = static_cast<int64_t>(eradicate_at);
  if (object.size > kVolumeSizeMax) return false;
  loaded_objects_.push_back(std::move(object));
  return true;
}

bool Forest::link_volume(const ObjectRecord& loaded) {
  auto volume = std::make_shared<Volume>();
  volume->id = loaded.id;
  volume->name = loaded.name;
  volume->uuid = loaded.uuid;
  volume->size = loaded.size;
  volume->created = loaded.created;
  volume->provision = loaded.provision;
  volume->next_number = loaded.next_number;
  volume->eradicate_at = loaded.eradicate_at;
  volume->head = version(loaded.version);
  if (volume->head == nullptr || volume->head->state != State::head) return false;
  if (volume->head->volume != nullptr) return false;
  volume->head->volume = volume.get();
  if (volume->provision == Provision::reserved) reserved_.insert(volume.get());
  return by_id_.emplace(volume->id, volume).second && by_name_.emplace(volume->name, volume).second;
}

bool Forest::link_snapshot(const ObjectRecord& loaded) {
  const auto of = volume(loaded.volume);
  Version* named = version(loaded.version);
  if (!of || named == nullptr || named->state != State::snapshot) return false;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->id = loaded.id;
  snapshot->volume = of.get();
  snapshot->suffix = loaded.name;
  snapshot->uuid = loaded.uuid;
  snapshot->size = loaded.size;
  snapshot->created = loaded.created;
  snapshot->eradicate_at = loaded.eradicate_at;
  snapshot->version = named;
  named->names.push_back(snapshot.get());
  return of->snapshots.emplace(snapshot->suffix, snapshot).second &&
         snapshots_.emplace(snapshot->id, snapshot).second;
}

bool Forest::link(VersionId next_version, ObjectId next_object) {
  next_version_ = next_version;
  next_object_ = next_object;
  for (const auto& [id, loaded] : loaded_versions_) {
    Version* parent = version(loaded.parent);
    if (id == 0 || id >= next_version || parent == nullptr || loaded.parent >= id) return false;
    auto made = std::make_unique<Version>();
    made->id = id;
    made->parent = parent;
    made->root = loaded.root;
    made->state = loaded.state;
    made->job = loaded.job;
    made->cursor = loaded.cursor;
    made->owned = loaded.owned;
    made->counted_to = loaded.referenced ? kTreeBlocks : 0;
    made->referenced = loaded.referenced.value_or(0);
    parent->children.push_back(made.get());
    versions_.emplace(id, std::move(made));
  }
  // A snapshot names its volume, so volumes come first.
  for (const ObjectType type : {ObjectType::volume, ObjectType::snapshot}) {
    for (const ObjectRecord& loaded : loaded_objects_) {
      if (loaded.type != type) continue;
      if (loaded.id == 0 || loaded.id >= next_object) return false;
      const bool linked = type == ObjectType::volume ? link_volume(loaded) : link_snapshot(loaded);
      if (!linked) return false;
      if (loaded.eradicate_at) destroyed_.insert({*loaded.eradicate_at, loaded.id});
    }
  }
  for (const auto& [id, loaded] : loaded_versions_) {
    if (loaded.charged_to == 0) continue;
    Version& zombie = *version(id);
    Version* head = version(loaded.charged_to);
    if (head == nullptr || head->parent != zombie.parent || loaded.charged_to >= id ||
        zombie.state != State::zombie || !zombie.children.empty())
      return false;
    zombie.charged_to = head;
    head->debtors.push_back(&zombie);
  }
  for (const auto& [id, version] : versions_) {
    const bool has_name = version->volume != nullptr || !version->names.empty();
    if (id != 0 && has_name != (version->state != State::zombie)) return false;
    classify(*version);
    version->released = 1;  // what was counted is forgotten
    if (id != 0 && version->state != State::zombie) {
      version->stale = true;
      stale_.insert(id);
    }
    if (version->job == Job::none) continue;
    if (version->state != State::zombie || begun_ != nullptr) return false;
    if (!version->debtors.empty()) return false;
    begun_ = version.get();
  }
  loaded_versions_.clear();
  loaded_objects_.clear();
  return true;
}

}  // namespace vellum::store

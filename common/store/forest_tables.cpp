// SPDX-License-Identifier: BSD-2-Clause
//
// The forest and the catalogue as records of the system tree's tables.
#include <cstring>

#include "common/base/endian.hpp"
#include "common/store/block_io.hpp"
#include "common/store/forest.hpp"

namespace vellum::store {

namespace {

enum class ObjectType : uint8_t { volume = 1, snapshot = 2 };
constexpr uint8_t kLive = 1;

}  // namespace

struct Forest::LoadedObject {
  ObjectType type = ObjectType::volume;
  ObjectId volume_id = 0;
  VersionId version = 0;
  std::shared_ptr<Volume> volume;
  std::shared_ptr<Snapshot> snapshot;
};

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
    store_le64(to + 32, version.cursor.end);
    store_le64(to + 40, version.owned);
  }
}

void Forest::store_object(const Volume* volume, const Snapshot* snapshot, std::byte* to) const {
  const std::string& name = volume != nullptr ? volume->name : snapshot->suffix;
  const Uuid& uuid = volume != nullptr ? volume->uuid : snapshot->uuid;
  store_le64(to, volume != nullptr ? volume->id : snapshot->id);
  to[8] = static_cast<std::byte>(volume != nullptr ? ObjectType::volume : ObjectType::snapshot);
  to[9] = std::byte{kLive};
  to[11] = static_cast<std::byte>(name.size());
  std::memcpy(to + 16, uuid.data(), uuid.size());
  std::memcpy(to + 128, name.data(), name.size());
  if (volume != nullptr) {
    to[10] = static_cast<std::byte>(volume->provision);
    store_le32(to + 12, volume->head->id);
    store_le64(to + 32, volume->size);
    store_le64(to + 40, static_cast<uint64_t>(volume->created));
    store_le64(to + 64, volume->next_number);
  } else {
    store_le32(to + 12, snapshot->version->id);
    store_le64(to + 32, snapshot->size);
    store_le64(to + 40, static_cast<uint64_t>(snapshot->created));
    store_le64(to + 56, snapshot->volume->id);
  }
}

void Forest::store_objects(uint64_t block, Page& page) const {
  page.fill(std::byte{0});
  const uint64_t first = block * kObjectsPerBlock, end = first + kObjectsPerBlock;
  for (auto at = by_id_.lower_bound(first); at != by_id_.end() && at->first < end; ++at) {
    store_object(at->second.get(), nullptr, page.data() + (at->first - first) * kObjectRecord);
  }
  for (auto at = snapshots_.lower_bound(first); at != snapshots_.end() && at->first < end; ++at) {
    store_object(nullptr, at->second.get(), page.data() + (at->first - first) * kObjectRecord);
  }
}

bool Forest::load_object(const std::byte* from) {
  auto loaded = std::make_shared<LoadedObject>();
  const uint64_t id = load_le64(from);
  const auto type = static_cast<uint8_t>(from[8]);
  const auto name_length = static_cast<size_t>(from[11]);
  if (type != 1 && type != 2) return false;
  if (static_cast<uint8_t>(from[9]) != kLive || name_length == 0 || name_length > kNameLengthMax) {
    return false;
  }
  const std::string name(reinterpret_cast<const char*>(from + 128), name_length);
  loaded->type = static_cast<ObjectType>(type);
  loaded->version = load_le32(from + 12);
  const uint64_t size = load_le64(from + 32);
  const auto created = static_cast<int64_t>(load_le64(from + 40));
  if (size > kVolumeSizeMax) return false;
  if (loaded->type == ObjectType::volume) {
    if (static_cast<uint8_t>(from[10]) > 1) return false;
    loaded->volume = std::make_shared<Volume>();
    Volume& volume = *loaded->volume;
    volume.id = id;
    volume.name = name;
    std::memcpy(volume.uuid.data(), from + 16, volume.uuid.size());
    volume.size = size;
    volume.created = created;
    volume.provision = static_cast<Provision>(from[10]);
    volume.next_number = load_le64(from + 64);
  } else {
    loaded->volume_id = load_le64(from + 56);
    loaded->snapshot = std::make_shared<Snapshot>();
    Snapshot& snapshot = *loaded->snapshot;
    snapshot.id = id;
    snapshot.suffix = name;
    std::memcpy(snapshot.uuid.data(), from + 16, snapshot.uuid.size());
    snapshot.size = size;
    snapshot.created = created;
  }
  loaded_objects_.push_back(std::move(loaded));
  return true;
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
    parent->children.push_back(made.get());
    versions_.emplace(id, std::move(made));
  }
  for (const auto& loaded : loaded_objects_) {
    if (loaded->type != ObjectType::volume) continue;
    const auto& volume = loaded->volume;
    Version* head = version(loaded->version);
    if (head == nullptr || head->state != State::head || head->volume != nullptr) return false;
    if (volume->id == 0 || volume->id >= next_object) return false;
    volume->head = head;
    head->volume = volume.get();
    if (!by_id_.emplace(volume->id, volume).second) return false;
    if (!by_name_.emplace(volume->name, volume).second) return false;
  }
  for (const auto& loaded : loaded_objects_) {
    if (loaded->type != ObjectType::snapshot) continue;
    const auto& snapshot = loaded->snapshot;
    Version* named = version(loaded->version);
    const auto of = volume(loaded->volume_id);
    if (named == nullptr || !of || named->state != State::snapshot) return false;
    if (snapshot->id == 0 || snapshot->id >= next_object) return false;
    snapshot->version = named;
    snapshot->volume = of.get();
    named->names.push_back(snapshot.get());
    if (!of->snapshots.emplace(snapshot->suffix, snapshot).second) return false;
    if (!snapshots_.emplace(snapshot->id, snapshot).second) return false;
  }
  for (const auto& [id, version] : versions_) {
    if (version->state != State::zombie || !version->children.empty()) continue;
    droppable_.insert(id);
    if (version->job != Job::none) begun_.insert(id);
  }
  loaded_versions_.clear();
  loaded_objects_.clear();
  return true;
}

}  // namespace vellum::store

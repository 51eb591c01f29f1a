// SPDX-License-Identifier: BSD-2-Clause
//
// Space figures counted the long way: everything that each volume and snapshot reads is visited,
// and for each block and node it is noted who reads it.
#include <unordered_map>

#include "common/store/core.hpp"

namespace vellum::store {

namespace {

class SpaceCounter {
 public:
  SpaceCounter(disk::Disk& disk, const AddressLimits& limits) : disk_(disk), limits_(limits) {}

  Result<void> add(SpaceInfo info, ObjectId volume, const Entry& root) {
    object_ = figures.size();
    volume_ = volume;
    volumes_.push_back(info.name.find('@') == std::string::npos ? volume : 0);
    figures.push_back(std::move(info));
    return visit(root, kLevels);
  }

  void finish() {
    for (const auto& [key, readers] : readers_) {
      if (readers.one_object) figures[readers.object].unique += kBlockSize;
      if (readers.one_volume) by_volume_[readers.volume] += kBlockSize;
    }
    for (size_t i = 0; i < figures.size(); i++) {
      SpaceInfo& info = figures[i];
      info.gives_back = volumes_[i] != 0 ? by_volume_[volumes_[i]] : info.unique;
      info.exact = true;
    }
  }

  std::vector<SpaceInfo> figures;

 private:
  struct Readers {
    size_t object = 0;
    ObjectId volume = 0;
    bool one_object = true, one_volume = true;
  };

  Result<void> visit(const Entry& entry, unsigned level) {
    if (entry.is_hole()) return {};
    // Nodes that replay made have no address yet.
    const bool is_new = entry.is_in_memory() && entry.target()->block == 0;
    const uint64_t key =
        is_new ? entry.word() : (entry.is_in_memory() ? entry.target()->block : entry.block());
    const auto [found, fresh] = readers_.try_emplace(key, Readers{object_, volume_});
    found->second.one_object = found->second.one_object && found->second.object == object_;
    found->second.one_volume = found->second.one_volume && found->second.volume == volume_;
    if (level == 0) {
      figures[object_].referenced += kBlockSize;
      return {};
    }
    if (entry.is_in_memory()) return visit_all(entry.target()->entries, level);
    TRY_ASSIGN(const Pointers pointers, read_node(disk_, entry, level, limits_));
    return visit_all(pointers, level);
  }

  Result<void> visit_all(const Pointers& pointers, unsigned level) {
    for (const Entry& pointer : pointers) TRY(visit(pointer, level - 1));
    return {};
  }

  disk::Disk& disk_;
  const AddressLimits limits_;
  size_t object_ = 0;
  ObjectId volume_ = 0;
  std::vector<ObjectId> volumes_;  // by object: the volume, 0 for a snapshot
  std::unordered_map<ObjectId, uint64_t> by_volume_;
  std::unordered_map<uint64_t, Readers> readers_;
};

}  // namespace

Result<std::vector<SpaceInfo>> Core::count_space() const {
  SpaceCounter counter(disk_, superblock_.limits());
  for (const auto& [name, volume] : forest_.volumes()) {
    SpaceInfo info;
    info.name = name;
    info.size = volume->size;
    info.destroyed = is_destroyed(*volume);
    info.promised = promised_to(*volume) * kBlockSize;
    TRY(counter.add(info, volume->id, volume->head->root));
    for (const auto& [suffix, snapshot] : volume->snapshots) {
      SpaceInfo of;
      of.name = name + "@" + suffix;
      of.size = snapshot->size;
      of.destroyed = is_destroyed(*snapshot);
      TRY(counter.add(of, volume->id, snapshot->version->root));
    }
  }
  counter.finish();
  return std::move(counter.figures);
}

}  // namespace vellum::store

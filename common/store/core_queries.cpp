// SPDX-License-Identifier: BSD-2-Clause
//
// What is where: allocated maps, extents, differences; and what the store says of itself. An answer
// is of one instant: the last pass over the trees runs in one critical section.
#include <algorithm>
#include <array>
#include <bit>

#include "common/base/units.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr uint64_t kBitsMax = 8192;
constexpr size_t kExtentsMax = 65536;

uint64_t blocks_of(uint64_t bytes) { return (bytes + kBlockSize - 1) / kBlockSize; }

Result<void> check_range(const std::string& name, uint64_t offset, uint64_t length, uint64_t size) {
  if (offset <= size && length <= size - offset) return {};
  return Error{Errc::out_of_range, "\"" + name + "\" has " + std::to_string(size) +
                                       " bytes; the range from " + std::to_string(offset) + " of " +
                                       std::to_string(length) + " is not within"};
}

// Keeps what a snapshot names from being reclaimed while nodes are read. Made and destroyed under
// the store's mutex.
class Pin {
 public:
  explicit Pin(const Target& target)
      : volume_(target.volume), version_(target.snapshot ? target.snapshot->version : nullptr) {
    if (version_ != nullptr) version_->pins++;
  }
  ~Pin() {
    if (version_ != nullptr) version_->pins--;
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  // The volume has gone meanwhile, and its head with it.
  bool gone() const { return version_ == nullptr && is_destroyed(*volume_); }
  const Entry& root() const { return (version_ != nullptr ? version_ : volume_->head)->root; }
  Error destroyed() const {
    return {Errc::destroyed, "the volume \"" + volume_->name + "\" has been destroyed"};
  }

 private:
  std::shared_ptr<Volume> volume_;
  Version* version_;
};

}  // namespace

Result<AllocatedMap> Core::chunk_map(const std::string& target,
                                     const std::optional<std::string>& base, uint64_t offset,
                                     uint64_t length, uint64_t chunk, bool hint) {
  if (chunk == 0) {
    chunk = std::max(kBlockSize, std::bit_ceil((length + kBitsMax - 1) / kBitsMax));
  } else if (!std::has_single_bit(chunk) || chunk < kBlockSize) {
    return Error{Errc::invalid_argument,
                 "chunk must be a power of two from 4096, not " + std::to_string(chunk)};
  }
  Lock lock(mutex_);
  TRY_ASSIGN(const Target found, find_target(target));
  TRY_ASSIGN(const Target other, find_target(base.value_or(target)));
  const uint64_t size = found.size();
  TRY(check_range(target, offset, length, size));
  const bool to_end = offset + length == size;
  if (offset % chunk != 0 || (length % chunk != 0 && !to_end)) {
    return Error{Errc::invalid_argument, "offset and length must be multiples of the chunk, " +
                                             std::to_string(chunk) + ", or reach the end"};
  }
  const uint64_t chunks = std::min(kBitsMax, (length + chunk - 1) / chunk);
  const uint64_t scanned_max = std::min(length, chunks * chunk);
  const uint64_t first = offset / kBlockSize, last = blocks_of(offset + scanned_max);
  const Pin pin(found), base_pin(other);
  AllocatedMap map;
  map.chunk = chunk;
  TRY(with_nodes(lock, Wait::allowed, {target, nullptr, nullptr, true}, [&](MissingNodes& missing) {
    if (pin.gone() || base_pin.gone()) return true;
    const Entry& root = pin.root();
    const Entry base_root = base ? base_pin.root() : Entry();
    ChunkWalk walk(nodes_, missing, first, last, chunk / kBlockSize);
    walk.difference(root, base_root);
    if (!missing.empty()) return false;
    map.scanned_length =
        walk.reached() == last ? scanned_max : walk.reached() * kBlockSize - offset;
    const uint64_t bits = (map.scanned_length + chunk - 1) / chunk;
    map.bitmap.assign((bits + 7) / 8, std::byte{0});
    map.allocated_chunks = 0;
    for (uint64_t i = 0; i < bits; i++) {
      if (!walk.bits()[i]) continue;
      map.bitmap[i / 8] |= std::byte{static_cast<uint8_t>(1u << (i % 8))};
      map.allocated_chunks++;
    }
    map.next_allocated.reset();
    if (hint && offset + map.scanned_length < size) {
      const uint64_t from = (offset + map.scanned_length) / kBlockSize;
      const auto next = next_difference(nodes_, missing, root, base_root,
                                        {from, blocks_of(size), chunk / kBlockSize});
      if (next) map.next_allocated = *next * kBlockSize;
    }
    return missing.empty();
  }));
  if (pin.gone()) return pin.destroyed();
  if (base_pin.gone()) return base_pin.destroyed();
  return map;
}

Result<ExtentList> Core::extents(const std::string& target, const std::optional<std::string>& base,
                                 uint64_t offset, size_t extents_max) {
  if (extents_max == 0 || extents_max > kExtentsMax) {
    return Error{Errc::invalid_argument,
                 "max must be 1 to " + std::to_string(kExtentsMax) + " extents"};
  }
  Lock lock(mutex_);
  TRY_ASSIGN(const Target found, find_target(target));
  std::optional<Target> other;
  if (base) {
    TRY_ASSIGN(other, find_target(*base));
  }
  const Pin pin(found);
  const Pin base_pin(other ? *other : found);
  ExtentList list;
  list.size = found.size();
  TRY(check_range(target, offset, 0, list.size));
  const uint64_t first = offset / kBlockSize, last = blocks_of(list.size);
  uint64_t reached = first;
  TRY(with_nodes(lock, Wait::allowed, {target, nullptr, nullptr, true}, [&](MissingNodes& missing) {
    if (pin.gone() || base_pin.gone()) return true;
    const Entry& root = pin.root();
    Walk walk(nodes_, missing, first, last, extents_max);
    if (other) {
      walk.difference(root, base_pin.root());
    } else {
      walk.data(root);
    }
    if (!missing.empty()) return false;
    list.extents.clear();
    for (const BlockExtent& extent : walk.extents()) {
      const uint64_t from = std::max(extent.block * kBlockSize, offset);
      const uint64_t to = std::min((extent.block + extent.count) * kBlockSize, list.size);
      if (from < to) list.extents.push_back({from, to - from, extent.kind});
    }
    reached = walk.reached();
    if (reached < last && !other) {
      // Jump over what holds nothing.
      const auto next = next_allocated(nodes_, missing, root, reached);
      if (!missing.empty()) return false;
      reached = next ? std::min(*next, last) : last;
    }
    return true;
  }));
  if (pin.gone()) return pin.destroyed();
  if (base_pin.gone()) return base_pin.destroyed();
  if (reached < last) list.next_offset = std::max(reached * kBlockSize, offset);
  return list;
}

Result<std::vector<Extent>> Core::map(Export& from, uint64_t offset, uint64_t length,
                                      size_t extents_max, Wait wait) {
  CHECK(extents_max > 0);
  Lock lock(mutex_);
  std::vector<Extent> extents;
  if (offset > kVolumeSizeMax || length > kVolumeSizeMax || length == 0) {
    return Error{Errc::out_of_range, "the range is empty, or lies beyond any volume"};
  }
  const uint64_t end = offset + length;
  const uint64_t first = offset / kBlockSize, last = blocks_of(end);
  Result<void> valid;
  Asker whom = asker(from);
  whom.goes_without = true;
  TRY(with_nodes(lock, wait, whom, [&](MissingNodes& missing) {
    Version* version = nullptr;
    valid = current_version(from, end, version);
    if (!valid.ok()) return true;
    Walk walk(nodes_, missing, first, last, extents_max);
    walk.data(version->root);
    if (!missing.empty()) return false;
    extents.clear();
    uint64_t at = offset;
    const auto add = [&](uint64_t to, ExtentKind kind) {
      to = std::min(to, end);
      if (to > at && extents.size() < extents_max) {
        extents.push_back({at, to - at, kind});
        at = to;
      }
    };
    for (const BlockExtent& extent : walk.extents()) {
      add(extent.block * kBlockSize, ExtentKind::zero);
      add((extent.block + extent.count) * kBlockSize, ExtentKind::data);
    }
    add(walk.reached() == last ? end : walk.reached() * kBlockSize, ExtentKind::zero);
    return true;
  }));
  TRY(valid);
  CHECK(!extents.empty());
  return extents;
}

StoreInfo Core::info() {
  const Lock lock(mutex_);
  return describe_store();
}

StoreInfo Core::describe_store() {
  StoreInfo info;
  info.name = disk_.name();
  info.uuid = superblock_.uuid;
  info.format = kFormatVersion;
  info.capacity = superblock_.capacity;
  info.used = allocator_->allocated() * kBlockSize;
  info.data = forest_.data_blocks * kBlockSize;
  info.metadata = info.used - info.data;
  info.promised = promised() * kBlockSize;
  info.reserve = std::min(available(), kept_blocks()) * kBlockSize;
  info.free = free_blocks() * kBlockSize;
  info.destroyed = forest_.destroyed().size();
  info.eradication_delay = forest_.eradication_delay;
  look_at_space();
  info.warning = warning_;
  info.damaged_regions = allocator_->regions_given_up();
  info.reclaim_skipped = reclaim_skipped_;
  info.waiting_for_reuse = allocator_->waiting() * kBlockSize;
  info.mount_generation = superblock_.generation;
  info.checkpoint = superblock_.newer.number;
  info.journal_size = superblock_.journal_size;
  info.journal_used = journal_->sectors_used() * kBlockSize;
  info.cache_size = nodes_.nodes_max() * sizeof(Node);
  info.cache_used = nodes_.count() * sizeof(Node);
  info.cache_dirty = nodes_.dirty_count() * sizeof(Node);
  info.volumes = forest_.volumes().size();
  info.snapshots = forest_.snapshot_count();
  info.versions = forest_.versions().size() - 1;
  info.read_only = failure_;
  for (const auto& [id, version] : forest_.versions()) {
    if (version->state != State::zombie) continue;
    info.zombies++;
    const bool has_brothers = version->job == Job::none && version->children.size() > 1;
    if (!has_brothers) info.waiting_for_reclaim += version->owned * kBlockSize;
    if (version->job == Job::none) continue;
    const double fraction =
        static_cast<double>(version->cursor.end) / static_cast<double>(kTreeBlocks);
    constexpr std::array kNames{"", "drop", "collapse", "sweep"};
    info.reclaim.push_back(
        {kNames.at(static_cast<size_t>(version->job)), id, version->owned * kBlockSize, fraction});
  }
  return info;
}

IoStats Core::stats() {
  const Lock lock(mutex_);
  IoStats stats = stats_;
  look_at_space();
  if (warning_) stats.warning = warning_->message;
  return stats;
}

Result<IoStats> Core::stats(const std::string& volume) {
  const Lock lock(mutex_);
  TRY_ASSIGN(const Target target, find_target(volume));
  if (target.snapshot) {
    return Error{Errc::invalid_argument, "\"" + volume +
                                             "\" names a snapshot, and figures are "
                                             "kept for volumes"};
  }
  return target.volume->stats;
}

}  // namespace vellum::store

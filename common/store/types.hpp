// SPDX-License-Identifier: BSD-2-Clause
//
// The values that go in and out of the store's facade (store.hpp). Offsets, lengths and sizes are
// bytes; times are milliseconds since 1970 in UTC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "common/base/result.hpp"

namespace vellum::store {

inline constexpr uint64_t kVolumeSizeMax = uint64_t{4} << 50;  // 4 PiB
inline constexpr uint64_t kVolumeSizeUnit = 512;
// How long what is destroyed can be recovered. Milliseconds.
inline constexpr int64_t kEradicationDelayDefault = int64_t{24} * 3600 * 1000;
inline constexpr int64_t kEradicationDelayMax = int64_t{3653} * 24 * 3600 * 1000;  // ten years
inline constexpr int64_t kTimeMax = (int64_t{1} << 53) - 1;  // of an eradication, since 1970
// Of a store: half of what 48 bits of sectors can address.
inline constexpr uint64_t kCapacityMax = uint64_t{1} << 56;
inline constexpr size_t kNameLengthMax = 63;  // of a volume, and of a snapshot's suffix
inline constexpr size_t kRequestIdLengthMax = 128;
inline constexpr size_t kGroupMax = 256;              // volumes in one snapshot.create
inline constexpr uint64_t kChangeBytesMax = 1 << 20;  // a request up to this, within one aligned
                                                      // MiB, is one change (P2); larger are several

using Uuid = std::array<std::byte, 16>;
std::string to_string(const Uuid& uuid);

enum class Provision { thin, reserved };

struct VolumeInfo {
  std::string name;
  uint64_t id = 0;  // of the object, never used again
  Uuid uuid{};
  uint64_t size = 0;
  int64_t created = 0;
  Provision provision = Provision::thin;
  uint64_t snapshots = 0;             // how many it has
  std::optional<std::string> parent;  // the nearest snapshot, in full, that its content grew from
  bool attached = false;              // opened by a client now
  std::optional<int64_t> time_remaining;  // of a destroyed one, milliseconds until it is eradicated
};

struct SnapshotInfo {
  std::string name;  // VOLUME@SUFFIX
  std::string volume;
  uint64_t id = 0;
  Uuid uuid{};
  uint64_t size = 0;
  int64_t created = 0;
  std::optional<std::string> parent;      // the nearest older snapshot that it grew from, in full
  std::vector<std::string> children;      // snapshots and volumes directly beneath it
  std::optional<int64_t> time_remaining;  // as of a volume; destroyed with it, its volume's
};

struct Destroyed {
  int64_t time_remaining = 0;  // milliseconds for which it can be recovered
};

struct CopyInfo {
  VolumeInfo volume;
  std::optional<std::string> undo_snapshot;  // in full
};

enum class ExtentKind { data, zero };

struct Extent {
  uint64_t offset = 0;
  uint64_t length = 0;
  ExtentKind kind = ExtentKind::data;
  bool operator==(const Extent&) const = default;
};

// Ascending, not overlapping, coalesced within one answer. `next_offset` is where to go on.
struct ExtentList {
  uint64_t size = 0;  // of the target
  std::vector<Extent> extents;
  std::optional<uint64_t> next_offset;
};

struct AllocatedMap {
  uint64_t chunk = 0;
  uint64_t scanned_length = 0;    // bytes from the offset that `bitmap` speaks of
  std::vector<std::byte> bitmap;  // a bit a chunk, least significant first
  uint64_t allocated_chunks = 0;
  std::optional<uint64_t> next_allocated;  // absent as well when no hint was asked for
};

// Counted since the store was opened.
struct IoStats {
  uint64_t reads = 0, read_bytes = 0;
  uint64_t writes = 0, write_bytes = 0;
  uint64_t flushes = 0;
  uint64_t trims = 0, trim_bytes = 0;   // done without moving data
  uint64_t zeroes = 0, zero_bytes = 0;  // likewise
  uint64_t copies = 0, copy_bytes = 0;  // clone, copy and revert; bytes: the size of the result
  uint64_t snapshots = 0;
  uint64_t checksum_errors = 0;
  std::optional<std::string> warning;  // of the whole store: SpaceWarning's message
};

// What a volume or snapshot takes. Bytes.
struct SpaceInfo {
  std::string name;
  uint64_t size = 0;
  uint64_t referenced = 0;  // data, shared with others or not
  uint64_t unique = 0;  // data and map that nothing else has: of a volume, its snapshots neither
  uint64_t gives_back = 0;  // by eradicating it, of a volume with its snapshots
  uint64_t promised = 0;    // to a reserved volume, beyond what it has
  bool destroyed = false;   // and not eradicated yet
  bool exact = false;       // else something is being counted, or reclaimed, still
  bool operator==(const SpaceInfo&) const = default;
};

enum class ScrubState { never, running, finished, stopped };

struct ScrubDamage {
  std::vector<std::string> names;   // volumes and snapshots that read it, up to 16
  uint64_t offset = 0, length = 0;  // in them
  uint64_t address = 0;             // in the store
  bool is_map = false;              // a node; else a block of data
  std::string message;
};

// The last scrub since the store was opened. Times: milliseconds since 1970. Bytes.
struct ScrubInfo {
  ScrubState state = ScrubState::never;
  std::optional<int64_t> started, finished;
  uint64_t checked_bytes = 0;
  uint64_t total_bytes = 0;  // that were in use when it began
  uint64_t errors = 0;
  std::vector<ScrubDamage> damages;  // the first 100
};

struct ReclaimProgress {
  std::string job;  // "drop"
  uint64_t version = 0;
  uint64_t owned_bytes = 0;  // still to be given back
  double fraction = 0;       // of the address space passed, 0 to 1
};

struct EradicationCandidate {
  std::string name;
  uint64_t gives_back = 0;  // bytes
};

inline constexpr unsigned kWarningFull = 100;  // changes that need space have been refused

// That space is getting short.
struct SpaceWarning {
  unsigned level = 0;  // 75, 90, kWarningFull
  unsigned percent_full = 0;
  std::vector<EradicationCandidate> candidates;  // those that give back most first
  std::string message;
};

struct StoreInfo {
  std::string name;  // of the disk
  Uuid uuid{};
  uint32_t format = 0;
  uint64_t capacity = 0;
  uint64_t used = 0;                // allocated: data and map of all versions, and the system tree
  uint64_t data = 0, metadata = 0;  // of `used`
  uint64_t free = 0;                // for what is not promised to anybody
  uint64_t promised = 0;            // to reserved volumes
  uint64_t reserve = 0;             // for destroying and reclaiming in a full store
  uint64_t waiting_for_reclaim = 0, waiting_for_reuse = 0;
  uint64_t damaged_regions = 0;  // in which no space is taken any more
  uint64_t mount_generation = 0;
  uint64_t checkpoint = 0;  // number of the newest
  uint64_t journal_size = 0, journal_used = 0;
  uint64_t cache_size = 0, cache_used = 0, cache_dirty = 0;
  uint64_t volumes = 0, snapshots = 0, versions = 0, zombies = 0;
  uint64_t destroyed = 0;                // of the volumes and snapshots
  int64_t eradication_delay = 0;         // milliseconds
  std::optional<std::string> read_only;  // why the store takes no changes any more
  std::optional<SpaceWarning> warning;
  uint64_t reclaim_skipped = 0;  // unreadable nodes that it passed over since the store was opened
  std::vector<ReclaimProgress> reclaim;
};

// The answer that a repeated request_id gets: journaled with the change in one record. `encode`
// runs under the store's lock, must not call the store, and must return at most 64 KiB.
template <typename T>
struct Once {
  std::string request_id;  // empty: none was given
  std::function<std::string(const T&)> encode;
};

}  // namespace vellum::store

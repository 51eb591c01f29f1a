// SPDX-License-Identifier: BSD-2-Clause
//
// The pieces of journal records, as values and as bytes (FORMAT.md, "Journal"). A record is what
// changes metadata: executing its pieces, now or in recovery, is the only way in which trees,
// forest and catalogue change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/store/allocator.hpp"
#include "common/store/node.hpp"
#include "common/store/types.hpp"

namespace vellum::store {

using ObjectId = uint64_t;

enum class Job : uint8_t { none = 0, drop = 1, collapse = 2, sweep = 3 };

// Post-order: everything that ends at or before (end, level) has been passed.
struct Cursor {
  uint64_t end = 0;
  unsigned level = 0;
  auto operator<=>(const Cursor&) const = default;  // NOLINT(modernize-use-nullptr)
};
inline constexpr Cursor kCursorEnd{kTreeBlocks, kLevels};
// The place of the target of `level` that covers `block`.
constexpr Cursor place_of(uint64_t block, unsigned level) {
  return {(block / span_blocks(level) + 1) * span_blocks(level), level};
}

struct WritePiece {
  VersionId version = 0;
  uint64_t block = 0;
  std::vector<Run> runs;
  std::vector<uint32_t> crcs;
};
struct TrimPiece {
  VersionId version = 0;
  uint64_t block = 0, count = 0;
};
struct NewVolume {
  ObjectId id = 0;
  VersionId version = 0;  // its head
  Uuid uuid{};
  uint64_t size = 0;
  int64_t created = 0;
  Provision provision = Provision::thin;
  std::string name;
};
struct CreateVolumePiece {
  NewVolume volume;
};
struct RenamePiece {
  ObjectId id = 0;
  std::string name;
};
struct ResizePiece {
  ObjectId id = 0;
  uint64_t size = 0;
};
struct SnapshotPiece {
  ObjectId volume = 0, id = 0;
  VersionId new_head = 0;  // 0: the snapshot names the parent of the head
  Uuid uuid{};
  int64_t created = 0;
  uint64_t next_number = 0;
  std::string suffix;
};
struct SplitPiece {
  ObjectId volume = 0;
  VersionId new_head = 0;
};
struct ClonePiece {
  VersionId parent = 0;
  NewVolume volume;
};
struct SwitchPiece {
  ObjectId volume = 0;
  VersionId parent = 0, new_head = 0;
  uint64_t size = 0;
};
struct EradicateVolumePiece {
  ObjectId id = 0;
};
struct EradicateSnapshotPiece {
  ObjectId id = 0;
};
struct AnswerPiece {
  uint32_t slot = 0;
  int64_t expires = 0;
  std::string request_id, text;
};
struct BeginReclaimPiece {
  VersionId version = 0;
  Job job = Job::none;
};
struct ReclaimStepPiece {
  VersionId version = 0;
  Cursor reached;
  bool finished = false;
  bool given_up = false;  // a sweep, for want of space
};

// There is a node that cannot be read: the job goes on behind it.
struct ReclaimSkipPiece {
  VersionId version = 0;
  Cursor reached;
};

// Of a volume or snapshot: from that time on it is eradicated.
struct DestroyPiece {
  ObjectId id = 0;
  int64_t eradicate_at = 0;
};
struct RecoverPiece {
  ObjectId id = 0;
};
struct EradicationDelayPiece {
  int64_t milliseconds = 0;
};

using Piece = std::variant<WritePiece, TrimPiece, CreateVolumePiece, RenamePiece, ResizePiece,
                           SnapshotPiece, SplitPiece, ClonePiece, SwitchPiece, EradicateVolumePiece,
                           EradicateSnapshotPiece, AnswerPiece, BeginReclaimPiece, ReclaimStepPiece,
                           DestroyPiece, RecoverPiece, EradicationDelayPiece, ReclaimSkipPiece>;

void encode(const Piece& piece, std::vector<std::byte>& to);
// The same as a WritePiece, without making one.
void encode_write(VersionId version, uint64_t block, std::span<const Run> runs,
                  std::span<const uint32_t> crcs, std::vector<std::byte>& to);

// Nothing if the bytes are no record.
std::optional<std::vector<Piece>> decode(std::span<const std::byte> record);

}  // namespace vellum::store

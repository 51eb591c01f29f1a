// SPDX-License-Identifier: BSD-2-Clause
//
// Numbers of the on-disk format. FORMAT.md beside this file is the authority.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vellum::store {

inline constexpr uint64_t kBlockSize = 4096;
inline constexpr uint64_t kBlockShift = 12;
inline constexpr uint64_t kSectorsPerBlock = kBlockSize / 512;

inline constexpr char kSuperblockMagic[9] = "VELLUMSB";
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kSuperblockSlots = 4;
inline constexpr uint64_t kSlotStride = 16 << 10;
inline constexpr uint64_t kOwnerRecordOffset = 4096;
inline constexpr uint64_t kJournalOffset = 64 << 10;

inline constexpr uint32_t kJournalMagic = 0x4a4d4c56;  // "VLMJ"
inline constexpr size_t kSectorHeader = 64;
inline constexpr size_t kSectorPayload = kBlockSize - kSectorHeader;
inline constexpr size_t kFragmentHeader = 4;

// The tree: levels count from 0 (data); a node of level L holds pointers to level L - 1.
inline constexpr unsigned kFanoutBits = 8;
inline constexpr size_t kFanout = 1 << kFanoutBits;
inline constexpr unsigned kLevels = 5;  // the level of a root
inline constexpr uint64_t kTreeBlocks = uint64_t{1} << (kFanoutBits * kLevels);

// Blocks under one pointer to a target of `level`.
constexpr uint64_t span_blocks(unsigned level) { return uint64_t{1} << (kFanoutBits * level); }
// A trim moves subtrees from this level on away as a whole: 256 MiB.
inline constexpr unsigned kDetachLevel = 2;

// Which pointer of a node of `level` leads to `block`.
constexpr size_t slot_of(uint64_t block, unsigned level) {
  return (block >> (kFanoutBits * (level - 1))) & (kFanout - 1);
}

enum class Kind : uint8_t { hole = 0, data = 1, node = 2, in_memory = 255 };  // 255: never on disk

enum class Area : uint64_t {
  versions = 0,
  objects,
  bitmaps,
  region_counts,
  segments,
  detached,
  answers
};
inline constexpr size_t kVersionRecord = 64, kOwnedAt = 40;  // bytes
inline constexpr size_t kVersionsPerBlock = kBlockSize / kVersionRecord;
inline constexpr size_t kObjectRecord = 256;
inline constexpr size_t kObjectsPerBlock = kBlockSize / kObjectRecord;
inline constexpr size_t kCountsPerBlock = kBlockSize / 4;
inline constexpr size_t kAnswerSlotBlocks = 32;
inline constexpr size_t kAnswerTextMax = 120 << 10;
inline constexpr uint64_t kRegionBlocksMax = kBlockSize * 8;

// Of each area but bitmaps and answers, a checkpoint writes all table blocks if they are no more.
// Then it shares none of them with the one before, which damage to either leaves whole.
inline constexpr size_t kTablesRewrittenMax = 256;
constexpr uint64_t system_block(Area area, uint64_t index) {
  return (static_cast<uint64_t>(area) << 32) + index;
}

}  // namespace vellum::store

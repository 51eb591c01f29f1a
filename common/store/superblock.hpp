// SPDX-License-Identifier: BSD-2-Clause
//
// The superblock (FORMAT.md, "Superblock").
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/result.hpp"
#include "common/disk/disk.hpp"
#include "common/store/block_io.hpp"
#include "common/store/journal.hpp"
#include "common/store/types.hpp"

namespace vellum::store {

struct Geometry;

struct CheckpointRecord {
  uint64_t number = 0;
  JournalPosition position;  // from where to replay
  VersionId next_version = 1;
  uint64_t next_object = 1;
  Entry system_root;
  uint64_t allocated_blocks = 0;
  uint64_t data_blocks = 0;
  int64_t eradication_delay = 0;  // milliseconds
};

struct Superblock {
  Uuid uuid{};
  uint64_t sequence = 0;
  uint64_t generation = 0;
  uint64_t capacity = 0, segment_size = 0, region_size = 0, journal_size = 0, data_offset = 0;
  uint64_t replay_end = 0;
  uint32_t replay_end_crc = 0;
  int64_t created = 0;
  CheckpointRecord older, newer;

  uint64_t journal_sectors() const { return journal_size / kBlockSize; }
  AddressLimits limits() const { return {data_offset / kBlockSize, capacity / kBlockSize}; }
};

// A superblock for a new store, or why that geometry is not possible.
Result<Superblock> new_superblock(const Geometry& geometry, const Uuid& uuid, int64_t created);

// Why no store can have these sizes; empty if it can.
std::string geometry_fault(const Superblock& superblock);

void store_superblock(const Superblock& superblock, Page& page);

struct FoundSuperblock {
  Superblock superblock;
  size_t slot = 0;
  bool read_only = false;  // features that only a reader can cope with
  std::vector<size_t> damaged_slots;
};
// The newest valid one. The error says what this disk is instead of a store.
Result<FoundSuperblock> find_superblock(disk::Disk& disk);

Result<void> write_superblock(disk::Disk& disk, const Superblock& superblock, size_t slot);

// Into all slots, from `first` on; durable when it returns.
Result<void> write_all_slots(disk::Disk& disk, const Superblock& superblock, size_t first);

}  // namespace vellum::store

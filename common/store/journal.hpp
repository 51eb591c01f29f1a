// SPDX-License-Identifier: BSD-2-Clause
//
// The journal (FORMAT.md, "Journal"): records are appended in memory, sectors are sealed when full
// or at a flush, and a sealed sector is never written twice.
//
// 1. Sequences are given out without gaps, and each sector carries the CRC of the one before.
// 2. Sectors from tail() on are kept: appending never reaches the place of the tail in the ring;
// the
//    caller sees to that with room_for(), and seal() checks it.
//
// Guarded by the store's mutex; taking sealed sectors and writing them is the caller's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/result.hpp"
#include "common/disk/disk.hpp"
#include "common/store/block_io.hpp"
#include "common/store/types.hpp"

namespace vellum::store {

struct SectorHeader {
  uint64_t generation = 0, sequence = 0, durable = 0;
  uint32_t crc = 0, previous_crc = 0, payload_length = 0;
};

struct SealedSector {
  uint64_t sequence = 0;
  std::unique_ptr<Page> page;
};

struct JournalPosition {
  uint64_t sequence = 1;      // of the next sector
  uint32_t previous_crc = 0;  // of the one before
};

class Journal {
 public:
  Journal(uint64_t sectors, const Uuid& uuid, uint64_t generation, JournalPosition next,
          uint64_t tail);

  void append(std::span<const std::byte> record);
  // Closes the sector being filled, if it holds anything. Afterwards position() is where the next
  // record begins.
  void seal();
  JournalPosition position() const { return next_; }
  std::vector<SealedSector> take_sealed() { return std::exchange(sealed_, {}); }
  size_t sealed_count() const { return sealed_.size(); }

  // All sectors before this one were written before a sync began that succeeded.
  void set_durable(uint64_t last_sequence) { durable_ = std::max(durable_, last_sequence); }
  uint64_t durable() const { return durable_; }

  void set_tail(uint64_t sequence) { tail_ = sequence; }
  uint64_t tail() const { return tail_; }
  uint64_t sectors() const { return sectors_; }
  uint64_t sectors_used() const { return next_.sequence - tail_; }
  // Whether records of so many bytes fit, each of which a flush may seal in a sector of its own.
  bool room_for(size_t record_bytes, size_t records) const;
  static uint64_t sectors_for(size_t record_bytes) { return record_bytes / 3900 + 2; }
  size_t record_max() const { return (sectors_ / 4) * 3900; }

 private:
  const uint64_t sectors_;
  const Uuid uuid_;
  const uint64_t generation_;
  JournalPosition next_;
  uint64_t tail_;
  uint64_t durable_ = 0;
  std::unique_ptr<Page> filling_;
  size_t used_ = 0;  // payload bytes of the sector being filled
  std::vector<SealedSector> sealed_;
};

// Writes sectors to their places in the ring, and starts their writeback.
Result<void> write_sectors(disk::Disk& disk, uint64_t ring_sectors,
                           std::span<const SealedSector> sectors);

// Reads the chain of sectors from a position on, as far as it is valid.
class JournalReader {
 public:
  struct Limits {
    Uuid uuid{};
    uint64_t ring_sectors = 0;
    uint64_t generation = 0;  // of the superblock
    uint64_t replay_end = 0;  // older generations count up to here
    uint32_t replay_end_crc = 0;
  };
  JournalReader(disk::Disk& disk, const Limits& limits, JournalPosition from)
      : disk_(disk), limits_(limits), next_(from), first_(from.sequence) {}

  // The next valid sector, or false where the chain ends. An error is one of the disk.
  Result<bool> next(SectorHeader& header, Page& sector);

 private:
  disk::Disk& disk_;
  Limits limits_;
  JournalPosition next_;
  uint64_t first_;
  std::vector<Page> ahead_;
  size_t ahead_used_ = 0;
};

// Cuts the payload of consecutive sectors into records. One record may need several sectors; a
// record that is cut off is dropped.
class RecordAssembler {
 public:
  // Calls are in the order of sectors. Appends the records that end in this sector. False if the
  // payload is malformed.
  bool add_sector(const SectorHeader& header, const Page& sector,
                  std::vector<std::vector<std::byte>>& records);

 private:
  std::vector<std::byte> partial_;
  bool in_record_ = false;
};

}  // namespace vellum::store

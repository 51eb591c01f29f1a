// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/superblock.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/endian.hpp"
#include "common/base/units.hpp"
#include "common/store/store.hpp"

namespace vellum::store {

namespace {

constexpr uint64_t kPartMin = 16 << 10;
constexpr uint64_t kSegmentMax = 1 << 30;
constexpr uint64_t kRegionMax = kRegionBlocksMax * kBlockSize;
constexpr uint64_t kJournalSectorsMin = 16, kJournalSectorsMax = 1 << 20;
constexpr size_t kCrcAt = 8, kOlderAt = 256, kNewerAt = 384;

bool power_of_two_within(uint64_t value, uint64_t least, uint64_t most) {
  return std::has_single_bit(value) && value >= least && value <= most;
}

void store_checkpoint(const CheckpointRecord& checkpoint, std::byte* to) {
  store_le64(to, checkpoint.number);
  store_le64(to + 8, checkpoint.position.sequence);
  store_le32(to + 16, checkpoint.position.previous_crc);
  store_le32(to + 20, checkpoint.next_version);
  store_le64(to + 24, checkpoint.next_object);
  store_entry(to + 32, checkpoint.system_root);
  store_le64(to + 48, checkpoint.allocated_blocks);
  store_le64(to + 56, static_cast<uint64_t>(checkpoint.eradication_delay));
  store_le64(to + 64, checkpoint.data_blocks);
}

CheckpointRecord load_checkpoint(const std::byte* from) {
  CheckpointRecord checkpoint;
  checkpoint.number = load_le64(from);
  checkpoint.position = {load_le64(from + 8), load_le32(from + 16)};
  checkpoint.next_version = load_le32(from + 20);
  checkpoint.next_object = load_le64(from + 24);
  checkpoint.system_root = load_entry(from + 32);
  checkpoint.allocated_blocks = load_le64(from + 48);
  checkpoint.eradication_delay = static_cast<int64_t>(load_le64(from + 56));
  checkpoint.data_blocks = load_le64(from + 64);
  return checkpoint;
}

bool is_root(const Superblock& superblock, const CheckpointRecord& checkpoint) {
  const Entry& root = checkpoint.system_root;
  const AddressLimits limits = superblock.limits();
  if (root.is_hole()) return root.version() == 0 && root.crc() == 0;
  return root.word() == Entry::node(root.block(), 0, 0).word() && root.version() == 0 &&
         root.block() >= limits.first_block && root.block() < limits.end_block;
}

enum class SlotState { foreign, damaged, other_version, unknown_features, valid };

SlotState parse(const Page& page, FoundSuperblock& found) {
  if (std::memcmp(page.data(), kSuperblockMagic, 8) != 0) return SlotState::foreign;
  const bool sound = page_crc(page, kCrcAt) == load_le32(page.data() + kCrcAt);
  if (load_le32(page.data() + 12) != kFormatVersion) return SlotState::other_version;
  if (!sound) return SlotState::damaged;
  if (load_le64(page.data() + 32) != 0) return SlotState::unknown_features;
  found.read_only = load_le64(page.data() + 40) != 0;
  Superblock& superblock = found.superblock;
  std::memcpy(superblock.uuid.data(), page.data() + 16, superblock.uuid.size());
  superblock.sequence = load_le64(page.data() + 56);
  superblock.generation = load_le64(page.data() + 64);
  superblock.capacity = load_le64(page.data() + 72);
  superblock.segment_size = load_le64(page.data() + 80);
  superblock.region_size = load_le64(page.data() + 88);
  superblock.journal_size = load_le64(page.data() + 96);
  superblock.data_offset = load_le64(page.data() + 104);
  superblock.replay_end = load_le64(page.data() + 112);
  superblock.replay_end_crc = load_le32(page.data() + 120);
  superblock.created = static_cast<int64_t>(load_le64(page.data() + 128));
  superblock.older = load_checkpoint(page.data() + kOlderAt);
  superblock.newer = load_checkpoint(page.data() + kNewerAt);
  const bool fits = geometry_fault(superblock).empty() && is_root(superblock, superblock.older) &&
                    is_root(superblock, superblock.newer);
  return fits ? SlotState::valid : SlotState::damaged;
}

}  // namespace

std::string geometry_fault(const Superblock& superblock) {
  if (!power_of_two_within(superblock.segment_size, kPartMin, kSegmentMax)) {
    return "the segment size must be a power of two from 16 KiB to 1 GiB";
  }
  if (!power_of_two_within(superblock.region_size, kPartMin, kRegionMax)) {
    return "the region size must be a power of two from 16 KiB to 128 MiB";
  }
  const uint64_t sectors = superblock.journal_sectors();
  if (superblock.journal_size % kBlockSize != 0 || sectors < kJournalSectorsMin ||
      sectors > kJournalSectorsMax) {
    return "the journal size must be a multiple of 4 KiB, from 64 KiB to 4 GiB";
  }
  if (superblock.capacity % kBlockSize != 0 || superblock.capacity > kCapacityMax) {
    return "the capacity must be a multiple of 4 KiB, up to 64 PiB";
  }
  if (superblock.data_offset < kJournalOffset + superblock.journal_size ||
      superblock.data_offset % kBlockSize != 0) {
    return "the data offset lies inside the journal";
  }
  if (superblock.capacity < superblock.data_offset + (uint64_t{1} << 20)) {
    return "the capacity must be at least " +
           format_size(superblock.data_offset + (uint64_t{1} << 20));
  }
  return {};
}

Result<Superblock> new_superblock(const Geometry& geometry, const Uuid& uuid, int64_t created) {
  Superblock superblock;
  superblock.uuid = uuid;
  superblock.sequence = 1;
  superblock.generation = 0;
  superblock.capacity = geometry.capacity / kBlockSize * kBlockSize;
  superblock.segment_size = geometry.segment_size;
  superblock.region_size = geometry.region_size;
  superblock.journal_size = geometry.journal_size;
  const uint64_t journal_end = kJournalOffset + geometry.journal_size;
  const uint64_t segment = std::max(geometry.segment_size, kBlockSize);
  superblock.data_offset = (journal_end + segment - 1) / segment * segment;
  superblock.created = created;
  if (geometry.eradication_delay < 0 || geometry.eradication_delay > kEradicationDelayMax) {
    return Error{Errc::invalid_argument, "the eradication delay must be 0 to ten years"};
  }
  superblock.older.eradication_delay = geometry.eradication_delay;
  superblock.newer.eradication_delay = geometry.eradication_delay;
  const std::string fault = geometry_fault(superblock);
  if (!fault.empty()) return Error{Errc::invalid_argument, "no store can be made so: " + fault};
  return superblock;
}

void store_superblock(const Superblock& superblock, Page& page) {
  page.fill(std::byte{0});
  std::memcpy(page.data(), kSuperblockMagic, 8);
  store_le32(page.data() + 12, kFormatVersion);
  std::memcpy(page.data() + 16, superblock.uuid.data(), superblock.uuid.size());
  store_le64(page.data() + 56, superblock.sequence);
  store_le64(page.data() + 64, superblock.generation);
  store_le64(page.data() + 72, superblock.capacity);
  store_le64(page.data() + 80, superblock.segment_size);
  store_le64(page.data() + 88, superblock.region_size);
  store_le64(page.data() + 96, superblock.journal_size);
  store_le64(page.data() + 104, superblock.data_offset);
  store_le64(page.data() + 112, superblock.replay_end);
  store_le32(page.data() + 120, superblock.replay_end_crc);
  store_le64(page.data() + 128, static_cast<uint64_t>(superblock.created));
  store_checkpoint(superblock.older, page.data() + kOlderAt);
  store_checkpoint(superblock.newer, page.data() + kNewerAt);
  store_le32(page.data() + kCrcAt, page_crc(page, kCrcAt));
}

Result<FoundSuperblock> find_superblock(disk::Disk& disk) {
  if (disk.size_bytes() < kJournalOffset) {
    return Error{Errc::incompatible,
                 disk.name() + " is no Vellum store: it has only " +
                     std::to_string(disk.size_bytes()) +
                     " bytes. Make one with `vellum init` or `vellumd --create`"};
  }
  std::optional<FoundSuperblock> best;
  std::vector<size_t> damaged;
  SlotState worst_hint = SlotState::foreign;
  for (size_t slot = 0; slot < kSuperblockSlots; slot++) {
    Page page;
    TRY(disk.read(slot * kSlotStride, std::span(page)));
    FoundSuperblock found;
    found.slot = slot;
    const SlotState state = parse(page, found);
    worst_hint = std::max(worst_hint, state);
    if (state != SlotState::valid) {
      damaged.push_back(slot);
      continue;
    }
    if (!best || found.superblock.sequence > best->superblock.sequence) best = found;
  }
  if (best) {
    best->damaged_slots = std::move(damaged);
    return *best;
  }
  switch (worst_hint) {
    case SlotState::other_version:
      return Error{Errc::incompatible, disk.name() + " is a Vellum store of another format than " +
                                           std::to_string(kFormatVersion) +
                                           "; it needs the version of Vellum that wrote it"};
    case SlotState::unknown_features:
      return Error{Errc::incompatible, disk.name() +
                                           " is a Vellum store that uses features which this "
                                           "version does not know; use a newer one"};
    case SlotState::damaged:
      return Error{Errc::corrupt,
                   disk.name() + " is a Vellum store, but all its superblocks are damaged"};
    default:
      return Error{
          Errc::incompatible,
          disk.name() + " is no Vellum store. Make one with `vellum init` or `vellumd --create`"};
  }
}

Result<void> write_superblock(disk::Disk& disk, const Superblock& superblock, size_t slot) {
  Page page;
  store_superblock(superblock, page);
  return disk.write(slot * kSlotStride, std::span<const std::byte>(page));
}

// Into one slot, synced, before the others: a crash never meets two half-written slots.
Result<void> write_all_slots(disk::Disk& disk, const Superblock& superblock, size_t first) {
  TRY(write_superblock(disk, superblock, first));
  TRY(disk.sync());
  for (size_t i = 1; i < kSuperblockSlots; i++) {
    TRY(write_superblock(disk, superblock, (first + i) % kSuperblockSlots));
  }
  return disk.sync();
}

}  // namespace vellum::store

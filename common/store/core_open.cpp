// SPDX-License-Identifier: BSD-2-Clause
//
// Making a store, and opening one: which of its checkpoints is taken, and how much of it has to be
// readable.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "common/base/endian.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

Result<void> Core::format(disk::Disk& disk, const Geometry& geometry, const Options& options) {
  Core maker(disk, options, Superblock());
  TRY_ASSIGN(const Superblock superblock, new_superblock(geometry, maker.new_uuid(), maker.now()));
  if (!disk.can_grow() && superblock.capacity > disk.size_bytes()) {
    return Error{Errc::invalid_argument, "the capacity of " + std::to_string(superblock.capacity) +
                                             " bytes is more than " + disk.name() +
                                             " has: " + std::to_string(disk.size_bytes())};
  }
  // The journal is written once, so that its syncs need not extend the file.
  const std::vector<Page> zeros(64, Page{});
  for (uint64_t at = 0; at < superblock.journal_size; at += zeros.size() * kBlockSize) {
    const uint64_t length = std::min(zeros.size() * kBlockSize, superblock.journal_size - at);
    TRY(disk.write(kJournalOffset + at, std::span(zeros[0].data(), length)));
  }
  TRY(disk.sync());
  TRY(write_all_slots(disk, superblock, 0));
  return disk.claim(0);
}

void Core::find(const std::string& what) {
  constexpr size_t kFindingsMax = 100;
  log(2, what);
  if (findings_.size() < kFindingsMax) findings_.push_back(what);
}

void Core::forget_older(const Error& why) {
  find("the older checkpoint is damaged: " + why.message);
  older_system_tree_.reset();
  superblock_.older = superblock_.newer;
}

namespace {

// The runs that writes between two positions of the journal name.
Result<std::vector<Run>> named_between(JournalReader reader, uint64_t end) {
  std::vector<Run> named;
  RecordAssembler assembler;
  SectorHeader header;
  Page page;
  for (;;) {
    TRY_ASSIGN(const bool more, reader.next(header, page));
    if (!more || header.sequence >= end) return named;
    std::vector<std::vector<std::byte>> records;
    if (!assembler.add_sector(header, page, records)) return named;
    for (const auto& record : records) {
      const auto pieces = decode(record);
      if (!pieces) continue;
      for (const Piece& piece : *pieces) {
        const auto* write = std::get_if<WritePiece>(&piece);
        if (write != nullptr) named.insert(named.end(), write->runs.begin(), write->runs.end());
      }
    }
  }
}

}  // namespace

// How much is free in the newer map and must not be used yet, since it is allocated in the older
// one or named in the journal from there on. An error: the newer map cannot be read. If it is the
// older one, that is forgotten.
Result<void> Core::hold_older() {
  const auto named =
      named_between(JournalReader(disk_, reader_limits(), superblock_.older.position),
                    superblock_.newer.position.sequence);
  if (!named.ok()) {
    forget_older(named.error());
    return {};
  }
  std::map<uint64_t, Allocator::Bitmap> bits_named;
  const uint64_t region_blocks = allocator_->region_blocks();
  for (const Run& run : *named) {
    for (uint64_t block = run.block; block < run.end(); block++) {
      auto& bits = bits_named[block / region_blocks];
      bits.resize(kBlockSize / 8);
      const uint64_t bit = block % region_blocks;
      bits[bit / 64] |= uint64_t{1} << (bit % 64);
    }
  }
  std::set<uint64_t> regions;
  for (const auto& [region, bits] : bits_named) regions.insert(region);
  const auto compared = system_tree_->differing(*older_system_tree_, Area::bitmaps,
                                                [&](uint64_t region) { regions.insert(region); });
  if (!compared.ok()) {
    const auto newer = system_tree_->for_each(
        Area::bitmaps, [](uint64_t /*region*/, const Page& /*page*/) { return Result<void>(); });
    if (!newer.ok() && !leaves_out_) return newer.error();
    forget_older(compared.error());
    return {};
  }
  std::map<uint64_t, uint32_t> counts;
  std::map<uint64_t, Error> unreadable;
  for (const uint64_t region : regions) {
    if (region >= allocator_->regions()) return damaged("a bitmap lies beyond the capacity");
    const auto place = system_block(Area::bitmaps, region);
    const auto newer = system_tree_->read(place);
    const auto older = older_system_tree_->read(place);
    if (!newer.ok() && !leaves_out_) return newer.error();
    if (!newer.ok()) {
      unreadable.emplace(region, newer.error());
      continue;
    }
    if (!older.ok()) {
      forget_older(older.error());
      return {};
    }
    const auto named_here = bits_named.find(region);
    uint32_t count = 0;
    for (size_t i = 0; i < kBlockSize / 8; i++) {
      uint64_t bits = load_le64(older->data() + i * 8);
      if (named_here != bits_named.end()) bits |= named_here->second[i];
      count += static_cast<uint32_t>(std::popcount(bits & ~load_le64(newer->data() + i * 8)));
    }
    if (count > 0) counts[region] = count;
  }
  for (const Run& run : *named) allocator_->hold_until_commit(run);
  for (const auto& [region, count] : counts) allocator_->count_held(region, count);
  for (const auto& [region, error] : unreadable) give_up_region(region, error);
  return {};
}

// What a checkpoint has allocated was written before it, so the disk has it all.
Result<void> Core::check_length() const {
  uint64_t last = allocator_->regions_used();
  while (last > 0 && allocator_->allocated_in(last - 1) == 0) last--;
  if (last == 0) return {};
  const auto bitmap = system_tree_->read(system_block(Area::bitmaps, last - 1));
  if (!bitmap.ok()) return {};  // then what is missing is found by its checksum
  uint64_t end = kBlockSize * 8;
  while (end > 0 && ((*bitmap)[(end - 1) / 8] >> ((end - 1) % 8) & std::byte{1}) == std::byte{0}) {
    end--;
  }
  const uint64_t needed = ((last - 1) * allocator_->region_blocks() + end) * kBlockSize;
  if (end == 0 || disk_.size_bytes() >= needed) return {};
  return truncated(disk_, needed);
}

Result<void> Core::recover(bool use_older) {
  if (use_older) superblock_.newer = superblock_.older;
  const AddressLimits limits = superblock_.limits();
  system_tree_ = std::make_unique<SystemTree>(disk_, limits, superblock_.newer.system_root);
  older_system_tree_ = std::make_unique<SystemTree>(disk_, limits, superblock_.older.system_root);
  uint64_t regions = 0;
  const auto older_counts = older_system_tree_->for_each(
      Area::region_counts, [&](uint64_t index, const Page& /*page*/) -> Result<void> {
        regions = (index + 1) * kCountsPerBlock;
        return {};
      });
  if (!older_counts.ok() && !use_older) forget_older(older_counts.error());
  const uint64_t region_blocks = superblock_.region_size / kBlockSize;
  regions = std::min(regions, (limits.end_block + region_blocks - 1) / region_blocks);
  TRY(load(superblock_.newer, *system_tree_, regions));
  TRY(check_length());
  if (older_system_tree_) TRY(hold_older());
  return replay();
}

// Nobody else's journal sectors count from now on, and all superblocks are whole.
Result<void> Core::begin_generation() {
  checkpoint_requested_ = true;  // afterwards less has to be held back
  const JournalPosition end = journal_->position();
  superblock_.generation++;
  superblock_.sequence++;
  superblock_.replay_end = end.sequence - 1;
  superblock_.replay_end_crc = end.previous_crc;
  TRY(disk_.claim(superblock_.generation));
  const size_t slot = (superblock_slot_ + 1) % kSuperblockSlots;
  TRY(write_all_slots(disk_, superblock_, slot));
  superblock_slot_ = (slot + kSuperblockSlots - 1) % kSuperblockSlots;
  return {};
}

// The older checkpoint, with all of the journal from there on, is the same state. Only if neither
// is whole, what the journal has for a part of the map that is damaged is left out.
Result<std::unique_ptr<Core>> Core::open(disk::Disk& disk, const Options& options, bool for_check) {
  TRY_ASSIGN(const FoundSuperblock found, find_superblock(disk));
  const Superblock& superblock = found.superblock;
  if (found.read_only && !for_check) {
    return Error{Errc::incompatible, disk.name() +
                                         " is a store with features that this version can only "
                                         "read; use a newer one"};
  }
  const uint64_t journal_end = kJournalOffset + superblock.journal_size;
  if (disk.size_bytes() < journal_end) return truncated(disk, journal_end);
  struct Way {
    bool use_older, leaves_out;
  };
  Result<void> first;
  for (const Way way : {Way{false, false}, Way{true, false}, Way{false, true}, Way{true, true}}) {
    if (way.use_older && superblock.older.number == superblock.newer.number) continue;
    auto core = std::make_unique<Core>(disk, options, superblock);
    core->superblock_slot_ = found.slot;
    core->damaged_slots_ = found.damaged_slots;
    core->leaves_out_ = way.leaves_out;
    if (way.use_older) {
      core->find("the newest checkpoint is damaged, the older one is used: " +
                 first.error().message);
    }
    const auto recovered = core->recover(way.use_older);
    if (recovered.ok()) {
      if (for_check) return core;
      TRY(core->begin_generation());
      // Else a later recovery could find readable, and execute, what this one has left out.
      if (core->has_left_out_) TRY(core->checkpoint());
      return core;
    }
    if (!is_damage(recovered.error())) return recovered.error();
    if (first.ok()) first = recovered;
  }
  return first.error();
}

}  // namespace vellum::store

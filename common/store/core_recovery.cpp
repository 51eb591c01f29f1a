// SPDX-License-Identifier: BSD-2-Clause
//
// Making a store, and opening one: FORMAT.md, "Recovery".
#include <algorithm>
#include <bit>
#include <set>

#include "common/base/crc32c.hpp"
#include "common/base/endian.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

Error damaged(const disk::Disk& disk, const std::string& what) {
  return {Errc::corrupt, "the store " + disk.name() + " is damaged: " + what};
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

bool fits_record(const std::byte* from, Forest::LoadedVersion& version,
                 const AddressLimits& limits) {
  version.id = load_le32(from);
  version.parent = load_le32(from + 4);
  version.root = load_entry(from + 8);
  const auto state = static_cast<uint8_t>(from[24]);
  const auto job = static_cast<uint8_t>(from[25]);
  version.state = static_cast<State>(state);
  version.job = static_cast<Job>(job);
  version.cursor = {load_le64(from + 32), static_cast<unsigned>(from[26])};
  version.owned = load_le64(from + 40);
  version.charged_to = load_le32(from + 28);
  if (const uint64_t counted = load_le64(from + 48); counted > 0) version.referenced = counted - 1;
  if (state < 1 || state > 3 || job > 3 || version.cursor.level > kLevels) return false;
  if (version.root.is_hole()) return true;
  const uint64_t block = version.root.block();
  const Entry expected = Entry::node(block, version.root.version(), version.root.crc());
  return version.root.word() == expected.word() && block >= limits.first_block &&
         block < limits.end_block && version.root.version() <= version.id;
}

}  // namespace

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

JournalReader::Limits Core::reader_limits() const {
  return {superblock_.uuid, superblock_.journal_sectors(), superblock_.generation,
          superblock_.replay_end, superblock_.replay_end_crc};
}

Result<void> Core::load(const CheckpointRecord& checkpoint, const SystemTree& tree,
                        uint64_t regions_min) {
  const AddressLimits limits = superblock_.limits();
  TRY(tree.for_each(Area::versions, [&](uint64_t index, const Page& page) -> Result<void> {
    for (size_t i = 0; i < kVersionsPerBlock; i++) {
      const std::byte* record = page.data() + i * kVersionRecord;
      if (load_le32(record) == 0) continue;
      Forest::LoadedVersion version;
      const bool fits = fits_record(record, version, limits);
      if (!fits || version.id != index * kVersionsPerBlock + i) {
        return damaged(disk_, "a version record is wrong");
      }
      forest_.load(version);
    }
    return {};
  }));
  forest_.data_blocks = checkpoint.data_blocks;
  forest_.eradication_delay = checkpoint.eradication_delay;
  if (forest_.eradication_delay < 0 || forest_.eradication_delay > kEradicationDelayMax) {
    return damaged(disk_, "the eradication delay is wrong");
  }
  TRY(tree.for_each(Area::objects, [&](uint64_t index, const Page& page) -> Result<void> {
    for (size_t i = 0; i < kObjectsPerBlock; i++) {
      const std::byte* record = page.data() + i * kObjectRecord;
      if (load_le64(record) == 0) continue;
      if (load_le64(record) != index * kObjectsPerBlock + i || !forest_.load_object(record)) {
        return damaged(disk_, "the record of a volume or snapshot is wrong");
      }
    }
    return {};
  }));
  if (!forest_.link(checkpoint.next_version, checkpoint.next_object)) {
    return damaged(disk_, "versions and names do not fit together");
  }
  TRY(tree.for_each(Area::answers, [&](uint64_t index, const Page& page) -> Result<void> {
    if (!answers_.load(index, page)) return damaged(disk_, "an answer is wrong");
    return {};
  }));
  if (!answers_.loaded()) return damaged(disk_, "an answer is wrong");
  const uint64_t region_blocks = superblock_.region_size / kBlockSize;
  const uint64_t regions = (limits.end_block + region_blocks - 1) / region_blocks;
  std::vector<uint32_t> counts(regions_min);
  TRY(tree.for_each(Area::region_counts, [&](uint64_t index, const Page& page) -> Result<void> {
    if (index * kCountsPerBlock >= regions) {
      return damaged(disk_, "blocks are allocated beyond the capacity");
    }
    counts.resize(std::max<size_t>(counts.size(), (index + 1) * kCountsPerBlock));
    for (size_t i = 0; i < kCountsPerBlock; i++) {
      counts[index * kCountsPerBlock + i] = load_le32(page.data() + i * 4);
    }
    return {};
  }));
  while (counts.size() > regions_min && counts.back() == 0) counts.pop_back();
  if (counts.size() > regions) return damaged(disk_, "blocks are allocated beyond the capacity");
  for (const uint32_t count : counts) {
    if (count > region_blocks) return damaged(disk_, "a region count is wrong");
  }
  allocator_ = std::make_unique<Allocator>(limits.first_block, limits.end_block, region_blocks,
                                           std::move(counts));
  tree_ = std::make_unique<Tree>(forest_, nodes_, *allocator_);
  reclaim_ = std::make_unique<Reclaim>(forest_, nodes_, *tree_);
  return {};
}

Result<void> Core::hold_named_since(const CheckpointRecord& older, const CheckpointRecord& newer) {
  JournalReader reader(disk_, reader_limits(), older.position);
  RecordAssembler assembler;
  SectorHeader header;
  Page page;
  for (;;) {
    TRY_ASSIGN(const bool more, reader.next(header, page));
    if (!more || header.sequence >= newer.position.sequence) return {};
    std::vector<std::vector<std::byte>> records;
    if (!assembler.add_sector(header, page, records)) return {};
    for (const auto& record : records) {
      const auto pieces = decode(record);
      if (!pieces) continue;
      for (const Piece& piece : *pieces) {
        if (const auto* write = std::get_if<WritePiece>(&piece)) {
          for (const Run& run : write->runs) allocator_->hold_until_commit(run);
        }
      }
    }
  }
}

// How much is free in the newer map and must not be used yet, since it is allocated in the older
// one or named in the journal from there on.
Result<void> Core::count_held() {
  std::map<uint64_t, Allocator::Bitmap> held;
  const uint64_t region_blocks = allocator_->region_blocks();
  for (const Run& run : allocator_->held()) {
    for (uint64_t block = run.block; block < run.end(); block++) {
      auto& bits = held[block / region_blocks];
      bits.resize(kBlockSize / 8);
      const uint64_t bit = block % region_blocks;
      bits[bit / 64] |= uint64_t{1} << (bit % 64);
    }
  }
  std::set<uint64_t> regions;
  for (const auto& [region, bits] : held) regions.insert(region);
  if (older_system_tree_) {
    TRY(system_tree_->differing(*older_system_tree_, Area::bitmaps,
                                [&](uint64_t region) { regions.insert(region); }));
  }
  for (const uint64_t region : regions) {
    if (region >= allocator_->regions()) return damaged(disk_, "a bitmap lies beyond the capacity");
    const auto place = system_block(Area::bitmaps, region);
    const auto newer = system_tree_->read(place);
    const auto older = older_system_tree_ ? older_system_tree_->read(place) : newer;
    if (!newer.ok() || !older.ok()) {
      give_up_region(region, (newer.ok() ? older : newer).error());
      continue;
    }
    const auto named = held.find(region);
    uint32_t count = 0;
    for (size_t i = 0; i < kBlockSize / 8; i++) {
      uint64_t bits = load_le64(older->data() + i * 8);
      if (named != held.end()) bits |= named->second[i];
      count += static_cast<uint32_t>(std::popcount(bits & ~load_le64(newer->data() + i * 8)));
    }
    if (count > 0) allocator_->count_held(region, count);
  }
  return {};
}

Result<bool> Core::data_is_sound(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    const auto* write = std::get_if<WritePiece>(&piece);
    if (write == nullptr) continue;
    size_t crc = 0;
    for (const Run& run : write->runs) {
      if (run.end() > superblock_.limits().end_block) return false;
      std::vector<std::byte> data(run.count * kBlockSize);
      const auto read = disk_.read(run.block * kBlockSize, std::span(data));
      if (!read.ok()) return read.error();
      for (uint64_t i = 0; i < run.count; i++, crc++) {
        if (crc32c(std::span(data).subspan(i * kBlockSize, kBlockSize)) != write->crcs[crc]) {
          return false;
        }
      }
    }
  }
  return true;
}

Result<void> Core::replay_record(std::span<const Piece> pieces) {
  Lock lock(mutex_);
  for (const Piece& piece : pieces) {
    const auto* step = std::get_if<ReclaimStepPiece>(&piece);
    if (step != nullptr && !step->given_up) {
      // Reclaim again, in the trees as they are now, as far as was recorded.
      Version* version = forest_.version(step->version);
      const Cursor reached = step->finished ? kCursorEnd : step->reached;
      if (version == nullptr || version->job == Job::none || reached > kCursorEnd) {
        return damaged(disk_, "a step of reclaim is recorded that cannot have been");
      }
      TRY(with_nodes(lock, Wait::allowed, {"the journal"}, [&](MissingNodes& missing) {
        while (version->cursor < reached) {
          if (!reclaim_->step(*version, missing)) return false;
        }
        return true;
      }));
    }
    bool fits = false;
    TRY(with_nodes(lock, Wait::allowed, {"the journal"}, [&](MissingNodes& missing) {
      if (!can_execute(piece, missing)) return false;
      fits = execute(piece, true);
      return true;
    }));
    if (!fits) return damaged(disk_, "a journal record does not fit");
    if (allocator_->is_contradicted()) {
      return damaged(disk_, "what its maps free was never allocated");
    }
  }
  return {};
}

// Reads the chain twice: first for how far it is known to be durable, then to execute it.
Result<void> Core::replay(bool for_check) {
  const JournalPosition from = superblock_.newer.position;
  uint64_t durable = 0, chain_end = from.sequence - 1;
  SectorHeader header;
  Page page;
  JournalReader first_pass(disk_, reader_limits(), from);
  for (;;) {
    TRY_ASSIGN(const bool more, first_pass.next(header, page));
    if (!more) break;
    durable = std::max(durable, header.durable);
    chain_end = header.sequence;
  }
  if (chain_end < superblock_.replay_end || chain_end < durable) {
    return damaged(disk_, "journal sector " + std::to_string(chain_end + 1) +
                              " cannot be read, and later ones were in use");
  }
  durable = std::max(durable, superblock_.replay_end);
  JournalReader reader(disk_, reader_limits(), from);
  RecordAssembler assembler;
  JournalPosition end = from;
  for (;;) {
    TRY_ASSIGN(const bool more, reader.next(header, page));
    if (!more) break;
    std::vector<std::vector<std::byte>> records;
    if (!assembler.add_sector(header, page, records)) {
      return damaged(disk_, "a journal sector is malformed");
    }
    std::vector<std::vector<Piece>> decoded;
    bool sound = true;
    for (const auto& record : records) {
      auto pieces = decode(record);
      if (!pieces) return damaged(disk_, "a journal record is malformed");
      if (header.sequence > durable) {
        TRY_ASSIGN(const bool data_sound, data_is_sound(*pieces));
        sound = sound && data_sound;
      }
      decoded.push_back(std::move(*pieces));
    }
    if (!sound) break;
    for (const auto& pieces : decoded) TRY(replay_record(pieces));
    end = {header.sequence + 1, header.crc};
  }
  if (end.sequence > from.sequence) {
    log(1, "replayed journal sectors " + std::to_string(from.sequence) + " to " +
               std::to_string(end.sequence - 1));
  }
  const uint64_t generation = superblock_.generation + 1;
  journal_ = std::make_unique<Journal>(superblock_.journal_sectors(), superblock_.uuid, generation,
                                       end, superblock_.older.position.sequence);
  journal_->set_durable(end.sequence - 1);
  written_sequence_ = end.sequence - 1;
  if (for_check) return {};
  checkpoint_requested_ = true;  // afterwards less has to be held back
  superblock_.generation = generation;
  superblock_.sequence++;
  superblock_.replay_end = end.sequence - 1;
  superblock_.replay_end_crc = end.previous_crc;
  TRY(disk_.claim(generation));
  const size_t slot = (superblock_slot_ + 1) % kSuperblockSlots;
  TRY(write_all_slots(disk_, superblock_, slot));
  superblock_slot_ = (slot + kSuperblockSlots - 1) % kSuperblockSlots;
  return {};
}

Result<std::unique_ptr<Core>> Core::open(disk::Disk& disk, const Options& options, bool for_check) {
  TRY_ASSIGN(const FoundSuperblock found, find_superblock(disk));
  if (found.read_only && !for_check) {
    return Error{Errc::incompatible, disk.name() +
                                         " is a store with features that this version can only "
                                         "read; use a newer one"};
  }
  if (disk.size_bytes() < kJournalOffset + found.superblock.journal_size) {
    return Error{Errc::corrupt, disk.name() + " is a Vellum store that was truncated: it has " +
                                    std::to_string(disk.size_bytes()) +
                                    " bytes, and its journal alone ends at " +
                                    std::to_string(kJournalOffset + found.superblock.journal_size)};
  }
  Result<void> result;
  for (const bool use_older : {false, true}) {
    auto core = std::make_unique<Core>(disk, options, found.superblock);
    core->superblock_slot_ = found.slot;
    Superblock& superblock = core->superblock_;
    if (use_older) {
      core->log(
          2, "the newest checkpoint is damaged, the older one is used: " + result.error().message);
      superblock.newer = superblock.older;
    }
    const AddressLimits limits = superblock.limits();
    core->system_tree_ = std::make_unique<SystemTree>(disk, limits, superblock.newer.system_root);
    core->older_system_tree_ =
        std::make_unique<SystemTree>(disk, limits, superblock.older.system_root);
    uint64_t regions = 0;
    const auto older_counts = core->older_system_tree_->for_each(
        Area::region_counts, [&](uint64_t index, const Page&) -> Result<void> {
          regions = (index + 1) * kCountsPerBlock;
          return {};
        });
    const uint64_t region_blocks = superblock.region_size / kBlockSize;
    regions = std::min(regions, (limits.end_block + region_blocks - 1) / region_blocks);
    if (!older_counts.ok()) {
      core->log(2, "the older checkpoint is damaged: " + older_counts.error().message);
      core->older_system_tree_.reset();
      superblock.older = superblock.newer;
    }
    result = core->load(superblock.newer, *core->system_tree_, regions);
    if (!result.ok()) {
      if (superblock.older.number == superblock.newer.number) return result.error();
      continue;
    }
    TRY(core->hold_named_since(superblock.older, superblock.newer));
    TRY(core->count_held());
    TRY(core->replay(for_check));
    return core;
  }
  return result.error();
}

}  // namespace vellum::store

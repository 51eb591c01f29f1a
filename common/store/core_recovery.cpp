// SPDX-License-Identifier: BSD-2-Clause
//
// Loading a checkpoint and replaying the journal: FORMAT.md, "Recovery".
#include <algorithm>
#include <bit>
#include <set>

#include "common/base/crc32c.hpp"
#include "common/base/endian.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

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
  version.owned = load_le64(from + kOwnedAt);
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

Error Core::damaged(const std::string& what) const {
  return {Errc::corrupt, "the store " + disk_.name() + " is damaged: " + what};
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
        return damaged("a version record is wrong");
      }
      forest_.load(version);
    }
    return {};
  }));
  forest_.data_blocks = checkpoint.data_blocks;
  forest_.eradication_delay = checkpoint.eradication_delay;
  if (forest_.eradication_delay < 0 || forest_.eradication_delay > kEradicationDelayMax) {
    return damaged("the eradication delay is wrong");
  }
  TRY(tree.for_each(Area::objects, [&](uint64_t index, const Page& page) -> Result<void> {
    for (size_t i = 0; i < kObjectsPerBlock; i++) {
      const std::byte* record = page.data() + i * kObjectRecord;
      if (load_le64(record) == 0) continue;
      if (load_le64(record) != index * kObjectsPerBlock + i || !forest_.load_object(record)) {
        return damaged("the record of a volume or snapshot is wrong");
      }
    }
    return {};
  }));
  if (!forest_.link(checkpoint.next_version, checkpoint.next_object)) {
    return damaged("versions and names do not fit together");
  }
  TRY(load_answers(tree));
  const uint64_t region_blocks = superblock_.region_size / kBlockSize;
  const uint64_t regions = (limits.end_block + region_blocks - 1) / region_blocks;
  std::vector<uint32_t> counts(regions_min);
  TRY(tree.for_each(Area::region_counts, [&](uint64_t index, const Page& page) -> Result<void> {
    if (index * kCountsPerBlock >= regions) {
      return damaged("blocks are allocated beyond the capacity");
    }
    counts.resize(std::max<size_t>(counts.size(), (index + 1) * kCountsPerBlock));
    for (size_t i = 0; i < kCountsPerBlock; i++) {
      counts[index * kCountsPerBlock + i] = load_le32(page.data() + i * 4);
    }
    return {};
  }));
  while (counts.size() > regions_min && counts.back() == 0) counts.pop_back();
  if (counts.size() > regions) return damaged("blocks are allocated beyond the capacity");
  for (const uint32_t count : counts) {
    if (count > region_blocks) return damaged("a region count is wrong");
  }
  allocator_ = std::make_unique<Allocator>(limits.first_block, limits.end_block, region_blocks,
                                           std::move(counts));
  tree_ = std::make_unique<Tree>(forest_, nodes_, *allocator_);
  reclaim_ = std::make_unique<Reclaim>(forest_, nodes_, *tree_);
  return {};
}

// A request whose answer is lost would be carried out again if it is repeated. Hence only what is
// damaged in both checkpoints is, never what the disk fails to read.
Result<void> Core::load_answers(const SystemTree& tree) {
  Result<void> unreadable;
  TRY(tree.for_each(
      Area::answers,
      [&](uint64_t index, const Page& page) -> Result<void> {
        if (!answers_.load(index, page)) return damaged("an answer is wrong");
        return {};
      },
      [&](uint64_t index, uint64_t count, const Error& error) {
        if (!leaves_out_ || error.code != Errc::corrupt) {
          unreadable = error;
          return;
        }
        answers_.lose(index, count);
        find("answers kept for requests are lost: " + error.message);
      }));
  TRY(unreadable);
  return answers_.loaded() ? Result<void>() : damaged("an answer is wrong");
}

// Of data that the disk fails to read nothing is known: it stays, and whoever reads it is told.
Result<bool> Core::data_is_sound(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    const auto* write = std::get_if<WritePiece>(&piece);
    if (write == nullptr) continue;
    size_t crc = 0;
    for (const Run& run : write->runs) {
      if (run.end() > superblock_.limits().end_block) return false;
      std::vector<std::byte> data(run.count * kBlockSize);
      const auto read = disk_.read(run.block * kBlockSize, std::span(data));
      if (!read.ok() && leaves_out_) {
        find("not known to be whole: " + read.error().message);
        crc += run.count;
        continue;
      }
      TRY(read);
      for (uint64_t i = 0; i < run.count; i++, crc++) {
        if (crc32c(std::span(data).subspan(i * kBlockSize, kBlockSize)) != write->crcs[crc]) {
          return false;
        }
      }
    }
  }
  return true;
}

// The volume goes on without: whoever reads there gets the error, with this piece or without it.
void Core::leave_out(const Error& why) {
  has_left_out_ = true;
  find("left out of what the journal holds: " + why.message);
}

// Whether it is a node of this version's own tree.
bool Core::is_node_of(const Version& version, const Missing& unreadable) {
  Entry entry = version.root;
  for (unsigned level = kLevels; level > unreadable.level && !entry.is_hole(); level--) {
    const Node* node = nodes_.find(entry);
    if (node == nullptr) return false;
    entry = node->entries[slot_of(unreadable.block, level)];
  }
  return same_target(entry, unreadable.pointer);
}

Result<void> Core::replay_trim_around(Lock& lock, const TrimPiece& trim,
                                      const Missing& unreadable) {
  const uint64_t span = span_blocks(unreadable.level);
  const uint64_t first = unreadable.block / span * span, last = first + span;
  const uint64_t end = trim.block + trim.count;
  if (first > trim.block) {
    TRY(replay_piece(lock, TrimPiece{trim.version, trim.block, first - trim.block}));
  }
  return last < end ? replay_piece(lock, TrimPiece{trim.version, last, end - last})
                    : Result<void>();
}

Result<void> Core::replay_piece(Lock& lock, const Piece& piece) {
  const auto* write = std::get_if<WritePiece>(&piece);
  const auto* trim = std::get_if<TrimPiece>(&piece);
  const VersionId id = write != nullptr ? write->version : (trim != nullptr ? trim->version : 0);
  const Version* version = id != 0 ? forest_.version(id) : nullptr;
  if (write != nullptr) {
    uint64_t end = 0;
    for (const Run& run : write->runs) end = std::max(end, run.end() * kBlockSize);
    if (end > disk_.size_bytes()) return truncated(disk_, end);
  }
  bool fits = false;
  std::optional<Missing> unreadable;
  const Asker asker{"the journal", version};
  const auto replayed = with_nodes(
      lock, Wait::allowed, asker,
      [&](MissingNodes& missing) {
        if (!can_execute(piece, missing)) return false;
        fits = execute(piece, true);
        return true;
      },
      &unreadable);
  const bool is_lost = unreadable && leaves_out_ && replayed.error().code == Errc::corrupt;
  if (is_lost && version != nullptr && is_node_of(*version, *unreadable)) {
    leave_out(replayed.error());
    return trim != nullptr ? replay_trim_around(lock, *trim, *unreadable) : Result<void>();
  }
  TRY(replayed);
  if (!fits) return damaged("a journal record does not fit");
  if (allocator_->is_contradicted()) return damaged("what its maps free was never allocated");
  return {};
}

// Reclaim again, in the trees as they are now, as far as was recorded.
Result<void> Core::replay_step(Lock& lock, const ReclaimStepPiece& step) {
  Version* version = forest_.version(step.version);
  const Cursor reached = step.finished ? kCursorEnd : step.reached;
  if (version == nullptr || version->job == Job::none || reached > kCursorEnd) {
    return damaged("a step of reclaim is recorded that cannot have been");
  }
  for (;;) {
    std::optional<Missing> unreadable;
    auto stepped = with_nodes(
        lock, Wait::allowed, {"the journal", version},
        [&](MissingNodes& missing) {
          while (version->cursor < reached) {
            if (!reclaim_->step(*version, missing)) return false;
          }
          return true;
        },
        &unreadable);
    if (!unreadable || !leaves_out_ || stepped.error().code != Errc::corrupt) return stepped;
    const Cursor place = place_of(unreadable->block, unreadable->level);
    if (place <= version->cursor) return stepped;
    leave_out(stepped.error());
    reclaim_skipped_++;
    forest_.set_cursor(*version, place);
  }
}

// Where a part was left out, a job of reclaim is ahead of what was recorded.
bool Core::is_ahead_of(const Piece& piece) {
  const auto* step = std::get_if<ReclaimStepPiece>(&piece);
  const auto* skip = std::get_if<ReclaimSkipPiece>(&piece);
  const bool is_place = skip != nullptr || (step != nullptr && !step->finished && !step->given_up);
  if (!has_left_out_ || !is_place) return false;
  const Version* version = forest_.version(step != nullptr ? step->version : skip->version);
  const Cursor reached = step != nullptr ? step->reached : skip->reached;
  return version != nullptr && version->job != Job::none && version->cursor >= reached;
}

Result<void> Core::replay_record(std::span<const Piece> pieces) {
  Lock lock(mutex_);
  for (const Piece& piece : pieces) {
    if (is_ahead_of(piece)) continue;
    const auto* step = std::get_if<ReclaimStepPiece>(&piece);
    if (step != nullptr && !step->given_up) {
      TRY(replay_step(lock, *step));
      if (is_ahead_of(piece)) continue;
    }
    TRY(replay_piece(lock, piece));
  }
  return {};
}

// Reads the chain twice: first for how far it is known to be durable, then to execute it.
Result<void> Core::replay() {
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
    return damaged("journal sector " + std::to_string(chain_end + 1) +
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
      return damaged("a journal sector is malformed");
    }
    std::vector<std::vector<Piece>> decoded;
    bool sound = true;
    for (const auto& record : records) {
      auto pieces = decode(record);
      if (!pieces) return damaged("a journal record is malformed");
      if (header.sequence > durable) {
        TRY_ASSIGN(sound, data_is_sound(*pieces));
        if (!sound) break;
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
  journal_ = std::make_unique<Journal>(superblock_.journal_sectors(), superblock_.uuid,
                                       superblock_.generation + 1, end,
                                       superblock_.older.position.sequence);
  journal_->set_durable(end.sequence - 1);
  written_sequence_ = end.sequence - 1;
  return {};
}

}  // namespace vellum::store

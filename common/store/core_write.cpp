// SPDX-License-Identifier: BSD-2-Clause
//
// Changing the content of volumes. The data is written to reserved blocks first, outside the mutex;
// then the record is executed and appended. What covers blocks only in part is merged with their
// old content, which must not have changed when the record is executed; else it is done again.
#include <algorithm>
#include <cstring>

#include "common/base/crc32c.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr uint64_t kLeafBytes = kFanout * kBlockSize;
constexpr size_t kRecordPerBlock = 12;  // a run and a CRC, at worst
constexpr size_t kRecordFixed = 24;

bool whole_blocks_in_one_leaf(uint64_t offset, uint64_t length) {
  return offset % kBlockSize == 0 && length % kBlockSize == 0 &&
         offset / kLeafBytes == (offset + length - 1) / kLeafBytes;
}

size_t record_bytes(uint64_t blocks) { return kRecordFixed + blocks * kRecordPerBlock; }

// One change of a batch, between reservation and record.
struct Planned {
  Write* write;
  size_t first_run, runs;  // in the batch's list
  size_t first_crc;
};

// Cuts the reserved runs into one list a change, and gathers what goes to each run on disk.
class Plan {
 public:
  void clear() {
    changes.clear();
    runs.clear();
    crcs.clear();
  }
  void add(Write& write, BlockSupply& supply) {
    Planned planned{&write, runs.size(), 0, crcs.size()};
    const size_t blocks = write.data.size() / kBlockSize;
    for (size_t i = 0; i < blocks; i++) {
      const uint64_t block = supply.next();
      if (runs.size() > planned.first_run && runs.back().end() == block) {
        runs.back().count++;
      } else {
        runs.push_back({block, 1});
      }
      crcs.push_back(crc32c(write.data.subspan(i * kBlockSize, kBlockSize)));
    }
    planned.runs = runs.size() - planned.first_run;
    changes.push_back(planned);
  }
  std::span<const Run> runs_of(const Planned& planned) const {
    return std::span(runs).subspan(planned.first_run, planned.runs);
  }
  std::span<const uint32_t> crcs_of(const Planned& planned) const {
    return std::span(crcs).subspan(planned.first_crc, planned.write->data.size() / kBlockSize);
  }
  // Writes all data: what is contiguous on disk with one call.
  Result<void> write_data(disk::Disk& disk) const {
    std::vector<iovec> parts;
    uint64_t first = 0, end = 0;
    for (const Planned& planned : changes) {
      const std::byte* from = planned.write->data.data();
      for (const Run& run : runs_of(planned)) {
        if (!parts.empty() && run.block != end) {
          TRY(disk.write(first * kBlockSize, parts));
          parts.clear();
        }
        if (parts.empty()) first = run.block;
        end = run.end();
        parts.push_back({const_cast<std::byte*>(from), run.count * kBlockSize});
        from += run.count * kBlockSize;
      }
    }
    return parts.empty() ? Result<void>() : disk.write(first * kBlockSize, parts);
  }

  std::vector<Planned> changes;
  std::vector<Run> runs;
  std::vector<uint32_t> crcs;
};

}  // namespace

Result<void> Core::check_writable(Export& to, uint64_t offset, uint64_t length) const {
  if (to.read_only()) {
    return Error{Errc::read_only, "\"" + to.name() + "\" is a snapshot and cannot be changed"};
  }
  if (offset > kVolumeSizeMax || length > kVolumeSizeMax) {
    return Error{Errc::out_of_range, "the request lies beyond any volume"};
  }
  Version* head = nullptr;
  return current_version(to, offset + length, head);
}

// Aligned changes, each within one leaf, all of them ready.
void Core::write_batch(Export& to, std::span<Write> writes, Wait wait) {
  thread_local Plan plan;
  plan.clear();
  std::vector<Write*> admitted;
  uint64_t blocks = 0;
  std::vector<Run> reserved;
  MissingNodes missing;
  Admission admission(*this);
  {
    Lock lock(mutex_);
    for (Write& write : writes) {
      write.result = check_writable(to, write.offset, write.data.size());
      if (write.result.ok() && wait == Wait::never &&
          !tree_->can_write(*to.state_->volume->head, write.offset / kBlockSize, missing)) {
        write.result = Error{Errc::would_block, "the map is not in memory"};
      }
      if (!write.result.ok()) continue;
      admitted.push_back(&write);
      blocks += write.data.size() / kBlockSize;
    }
    if (admitted.empty()) return;
    Cost cost;
    cost.record_bytes = record_bytes(blocks) + admitted.size() * kRecordFixed;
    cost.records = admitted.size();
    cost.blocks = blocks;
    cost.nodes = admitted.size() * kLevels;
    cost.volume = to.state_->volume.get();
    auto result = admit(lock, cost, wait, admission);
    if (result.ok()) result = take_blocks(lock, blocks, reserved, &admission);
    if (!result.ok()) {
      for (Write* write : admitted) write->result = result;
      return;
    }
  }
  BlockSupply supply(reserved);
  for (Write* write : admitted) plan.add(*write, supply);
  const auto written = plan.write_data(disk_);

  Lock lock(mutex_);
  if (!written.ok()) note_write_error(written.error());
  for (const Planned& planned : plan.changes) {
    Write& write = *planned.write;
    const auto runs = plan.runs_of(planned);
    write.result = written;
    if (written.ok()) {
      const Written change{write.offset, write.data.size(), runs, plan.crcs_of(planned)};
      const auto recorded = record_write(lock, to, change, {}, wait);
      if (!recorded.ok()) write.result = recorded.error();
    }
    if (write.result.ok()) {
      count_write(to, write.data.size());
    } else {
      for (const Run& run : runs) allocator_->unreserve(run);
    }
  }
  for (const Run& run : reserved) {
    note_appended(run.block * kBlockSize, run.count * kBlockSize);
  }
}

// The data is on its way to the disk: makes it the content, if the edges are what they were. All in
// one attempt, since the nodes that it needs stay in memory only as long.
Result<bool> Core::record_write(Lock& lock, Export& to, const Written& written,
                                std::span<const Edge> edges, Wait wait) {
  const uint64_t block = written.offset / kBlockSize;
  Result<void> valid;
  bool unchanged = true;
  TRY(with_nodes(lock, wait, asker(to), [&](MissingNodes& missing) {
    valid = check_writable(to, written.offset, written.length);
    if (valid.ok() && failure_) valid = failure_error();
    if (!valid.ok()) return true;
    Version& head = *to.state_->volume->head;
    unchanged = edges_unchanged(head, edges, missing);
    if (!tree_->can_write(head, block, missing) || !missing.empty()) return false;
    if (!unchanged) return true;
    for (const Run& run : written.runs) allocator_->record(run);
    tree_->write(head, block, written.runs, written.crcs);
    record_.clear();
    encode_write(head.id, block, written.runs, written.crcs, record_);
    journal_->append(record_);
    note_record();
    return true;
  }));
  TRY(valid);
  return unchanged;
}

void Core::count_write(Export& to, uint64_t length) {
  for (IoStats* stats : {&stats_, &to.state_->volume->stats}) {
    stats->writes++;
    stats->write_bytes += length;
  }
}

void Core::write(Export& to, std::span<Write> writes, Wait wait) {
  for (size_t at = 0; at < writes.size();) {
    Write& first = writes[at];
    if (!first.ticket.valid()) first.ticket = enter(to, first.offset, first.data.size());
    if (!first.ticket.ready()) {
      if (wait == Wait::never) {
        first.result = Error{Errc::would_block, "an earlier change overlaps"};
        at++;
        continue;
      }
      first.ticket.range_->queue->wait(first.ticket.range_);
    }
    size_t count = 0, bytes = 0;
    const size_t count_max = std::min<size_t>(writes.size() - at, journal_->sectors() / 4);
    while (count < count_max) {
      const Write& next = writes[at + count];
      bytes += record_bytes(next.data.size() / kBlockSize) + kRecordFixed;
      if (count > 0 && bytes > journal_->record_max()) break;
      if (next.data.empty() || !whole_blocks_in_one_leaf(next.offset, next.data.size()) ||
          !next.ticket.valid() || !next.ticket.ready()) {
        break;
      }
      count++;
    }
    if (count > 0) {
      write_batch(to, writes.subspan(at, count), wait);
    } else {
      first.result = write_pieces(to, first.offset, first.data, wait);
      count = 1;
    }
    for (Write& done : writes.subspan(at, count)) {
      if (done.result.ok() || done.result.error().code != Errc::would_block) done.ticket.give_up();
    }
    at += count;
  }
}

// Any length and alignment, the ticket ready: one change for each leaf that it touches.
Result<void> Core::write_pieces(Export& to, uint64_t offset, std::span<const std::byte> data,
                                Wait wait) {
  {
    const Lock lock(mutex_);
    TRY(check_writable(to, offset, data.size()));
  }
  const uint64_t end = offset + data.size();
  const bool several = !data.empty() && offset / kLeafBytes != (end - 1) / kLeafBytes;
  if (several && wait == Wait::never) {
    return Error{Errc::would_block, "the request is done in several pieces"};
  }
  for (uint64_t at = offset; at < end;) {
    const uint64_t length = std::min(end, (at / kLeafBytes + 1) * kLeafBytes) - at;
    Write piece{at, data.subspan(at - offset, length), {}, {}};
    if (whole_blocks_in_one_leaf(at, length)) {
      write_batch(to, std::span(&piece, 1), wait);
      TRY(piece.result);
    } else {
      TRY(merge(to, at, length, piece.data, wait));
    }
    at += length;
  }
  return {};
}

// The first and the last block of a range, if they are covered in part.
Result<std::vector<Core::Edge>> Core::read_edges(Export& to, uint64_t offset, uint64_t length,
                                                 Wait wait) {
  const uint64_t end = offset + length;
  std::vector<uint64_t> blocks;
  if (offset % kBlockSize != 0) blocks.push_back(offset / kBlockSize);
  if (end % kBlockSize != 0 && (blocks.empty() || blocks[0] != end / kBlockSize)) {
    blocks.push_back(end / kBlockSize);
  }
  std::vector<Edge> edges(blocks.size());
  for (size_t i = 0; i < blocks.size(); i++) {
    edges[i].block = blocks[i];
    TRY(read_whole_block(to, blocks[i], edges[i].page, edges[i].old, wait));
  }
  return edges;
}

bool Core::edges_unchanged(const Version& head, std::span<const Edge> edges,
                           MissingNodes& missing) {
  for (const Edge& edge : edges) {
    const Node* leaf = tree_->leaf(head, edge.block, missing);
    const Entry now = leaf != nullptr ? leaf->entries[slot_of(edge.block, 1)] : Entry();
    if (!same_target(now, edge.old)) return false;
  }
  return true;
}

Result<void> Core::merge(Export& to, uint64_t offset, uint64_t length,
                         std::span<const std::byte> data, Wait wait) {
  const uint64_t first = offset / kBlockSize;
  const uint64_t count = (offset + length - 1) / kBlockSize - first + 1;
  for (;;) {
    Admission admission(*this);
    {
      Lock lock(mutex_);
      Cost cost;
      cost.record_bytes = record_bytes(count);
      cost.blocks = count;
      cost.nodes = kLevels;
      cost.volume = to.state_->volume.get();
      TRY(admit(lock, cost, wait, admission));
    }
    // A reader keeps the old blocks from being reused: equal addresses mean equal content.
    ReaderGuard guard(*this);
    TRY_ASSIGN(const std::vector<Edge> edges, read_edges(to, offset, length, wait));
    std::vector<std::byte> whole(count * kBlockSize);
    for (const Edge& edge : edges) {
      std::memcpy(whole.data() + (edge.block - first) * kBlockSize, edge.page.data(), kBlockSize);
    }
    std::memcpy(whole.data() + offset % kBlockSize, data.data(), length);
    Write write{first * kBlockSize, whole, {}, {}};
    std::vector<Run> runs;
    Lock lock(mutex_);
    TRY(take_blocks(lock, count, runs, &admission));
    lock.unlock();
    BlockSupply supply(runs);
    Plan plan;
    plan.add(write, supply);
    const auto on_disk = plan.write_data(disk_);
    lock.lock();
    Result<bool> recorded = false;
    if (on_disk.ok()) {
      // The last block may reach beyond the end of the volume; the request does not.
      recorded = record_write(lock, to, {offset, length, plan.runs, plan.crcs}, edges, wait);
    } else {
      recorded = on_disk.error();
      note_write_error(on_disk.error());
    }
    if (recorded.ok() && *recorded) {
      count_write(to, length);
      for (const Run& run : runs) note_appended(run.block * kBlockSize, run.count * kBlockSize);
      return {};
    }
    for (const Run& run : runs) allocator_->unreserve(run);
    if (!recorded.ok()) return recorded.error();
  }
}

Result<void> Core::zero(Export& to, Ticket& ticket, uint64_t offset, uint64_t length, Wait wait,
                        bool is_trim) {
  if (!ticket.valid()) ticket = enter(to, offset, length);
  if (!ticket.ready()) {
    if (wait == Wait::never) return Error{Errc::would_block, "an earlier change overlaps"};
    ticket.range_->queue->wait(ticket.range_);
  }
  Result<void> result;
  {
    const Lock lock(mutex_);
    result = check_writable(to, offset, length);
  }
  const uint64_t end = offset + length;
  if (result.ok() && wait == Wait::never && length > 0 && piece_end(offset, end, true) != end) {
    return Error{Errc::would_block, "the request is done in several pieces"};
  }
  if (result.ok()) result = zero_all(to, offset, end, wait);
  if (!result.ok() && result.error().code == Errc::would_block) return result;
  ticket.give_up();
  // A trim is a hint: without space for the map that it changes, it has no effect.
  if (is_trim && !result.ok() && result.error().code == Errc::no_space) result = {};
  if (!result.ok()) return result;
  const Lock lock(mutex_);
  for (IoStats* stats : {&stats_, &to.state_->volume->stats}) {
    (is_trim ? stats->trims : stats->zeroes)++;
    (is_trim ? stats->trim_bytes : stats->zero_bytes) += length;
  }
  return {};
}

uint64_t Core::piece_end(uint64_t at, uint64_t end, bool may_detach) {
  constexpr uint64_t kBytesMax = 64 << 20;  // whose blocks are let go of one by one
  for (unsigned level = kLevels; may_detach && level >= kDetachLevel; level--) {
    const uint64_t span = span_blocks(level) * kBlockSize;
    if (at % span == 0 && end - at >= span) return at + span;
  }
  return std::min(end, (at / kBytesMax + 1) * kBytesMax);
}

// Piece by piece: whole subtrees of the map, as large as can be, or what is a bounded amount of
// work.
Result<void> Core::zero_all(Export& to, uint64_t offset, uint64_t end, Wait wait) {
  bool may_detach = true;
  for (uint64_t at = offset; at < end;) {
    if (at != offset) {
      // Of a large range only what is there costs anything.
      Lock lock(mutex_);
      TRY_ASSIGN(const auto next, first_allocated(lock, to, at / kBlockSize));
      if (!next) return {};
      constexpr uint64_t kSpan = span_blocks(kDetachLevel) * kBlockSize;
      at = std::max(at, *next * kBlockSize / kSpan * kSpan);
      if (at >= end) return {};
    }
    const uint64_t to_here = piece_end(at, end, may_detach);
    TRY_ASSIGN(may_detach, zero_piece(to, at, to_here - at, wait));
    if (may_detach || to_here == piece_end(at, end, false)) at = to_here;
  }
  return {};
}

Result<bool> Core::zero_piece(Export& to, uint64_t offset, uint64_t length, Wait wait) {
  for (;;) {
    Admission admission(*this);
    {
      Cost cost;
      cost.record_bytes = 3 * kRecordFixed + 2 * kRecordPerBlock;
      cost.blocks = 2;           // edges
      cost.nodes = 3 * kLevels;  // two paths, and one in the zombie that takes what is detached
      cost.volume = to.state_->volume.get();
      Lock lock(mutex_);
      TRY(admit(lock, cost, wait, admission));
    }
    ReaderGuard guard(*this);
    uint64_t end = offset + length;
    {
      // What lies beyond the end of the volume is zero, or cut off: its last block goes whole.
      const Lock lock(mutex_);
      if (end == to.state_->volume->size) end = (end + kBlockSize - 1) / kBlockSize * kBlockSize;
    }
    TRY_ASSIGN(std::vector<Edge> edges, read_edges(to, offset, end - offset, wait));
    uint64_t edges_to_write = 0;
    for (Edge& edge : edges) {
      edges_to_write += edge.old.is_hole() ? 0 : 1;
      const uint64_t base = edge.block * kBlockSize;
      const uint64_t from = std::max(offset, base), to_byte = std::min(end, base + kBlockSize);
      std::memset(edge.page.data() + (from - base), 0, to_byte - from);
    }
    const uint64_t first = (offset + kBlockSize - 1) / kBlockSize, last = end / kBlockSize;
    std::vector<Run> runs;
    Lock lock(mutex_);
    TRY(take_blocks(lock, edges_to_write, runs, &admission));
    lock.unlock();
    BlockSupply supply(runs);
    std::vector<Piece> pieces;
    Result<void> result;
    for (const Edge& edge : edges) {
      if (edge.old.is_hole()) continue;
      const uint64_t block = supply.next();
      if (result.ok()) {
        result = disk_.write(block * kBlockSize, std::span<const std::byte>(edge.page));
      }
      pieces.emplace_back(WritePiece{0, edge.block, {{block, 1}}, {crc32c(edge.page)}});
    }
    if (first < last) pieces.emplace_back(TrimPiece{0, first, last - first});
    lock.lock();
    if (!result.ok()) note_write_error(result.error());
    bool unchanged = true, too_large = false;
    Result<void> valid;
    if (result.ok()) {
      result = with_nodes(lock, wait, asker(to), [&](MissingNodes& missing) {
        valid = check_writable(to, offset, length);
        if (valid.ok() && failure_) valid = failure_error();
        if (!valid.ok()) return true;
        const Version& head = *to.state_->volume->head;
        too_large = offset + length > piece_end(offset, offset + length, forest_.can_detach(head));
        if (too_large) return true;
        unchanged = edges_unchanged(head, edges, missing);
        for (Piece& piece : pieces) {
          if (auto* write = std::get_if<WritePiece>(&piece)) write->version = head.id;
          if (auto* trim = std::get_if<TrimPiece>(&piece)) trim->version = head.id;
          can_execute(piece, missing);
        }
        if (!missing.empty()) return false;
        if (unchanged && !pieces.empty()) append(pieces);
        return true;
      });
    }
    if (result.ok() && valid.ok() && unchanged && !too_large) return true;
    for (const Run& run : runs) allocator_->unreserve(run);
    TRY(result);
    TRY(valid);
    if (too_large) return false;
  }
}

}  // namespace vellum::store

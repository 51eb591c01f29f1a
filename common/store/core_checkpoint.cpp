// SPDX-License-Identifier: BSD-2-Clause
//
// Checkpoints: freeze at one journal position, write dirty nodes bottom-up, then tables and
// bitmaps, sync, superblock, sync. The foreground goes on meanwhile; the checkpoint appends nothing
// to the journal.
#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "common/base/crc32c.hpp"
#include "common/base/endian.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

struct Core::Running {
  CheckpointRecord record;          // system root and allocated blocks are known last
  std::map<uint64_t, Page> tables;  // block of the system tree -> content at the freeze
  std::map<uint64_t, std::vector<Forest::RootPlace>> roots;  // to be filled into tables
  unsigned level = 1;
  size_t nodes_unsynced = 0;
  std::vector<Run> unwritten;  // blocks for the next nodes, which a step before found no room for
  // Once all nodes are written:
  std::unique_ptr<SystemUpdate> update;
  std::vector<Run> own;           // blocks for it
  std::set<uint64_t> unreadable;  // regions
  bool found_no_room = false;     // the host's
  uint64_t tables_freed = 0;      // blocks of the system tree before it
};

namespace {

// A flush never has to wait for more of a checkpoint's nodes than these: 2 MiB.
constexpr size_t kNodesUnsyncedMax = 512;

bool all_zero(const Page& page) {
  return std::all_of(page.begin(), page.end(), [](std::byte b) { return b == std::byte{0}; });
}

// What a checkpoint changed in the bitmaps, region by region, and what it counted.
class BitmapChanges {
 public:
  BitmapChanges(const Allocator::Interval& interval, uint64_t region_blocks)
      : set_(split(interval.allocated, region_blocks)),
        cleared_(split(interval.freed, region_blocks)),
        region_blocks_(region_blocks) {}

  // Applies the changes of one region. False: a block was allocated or freed twice.
  bool apply(uint64_t region, Page& page) {
    const bool sound = change(set_, region, page, true) && change(cleared_, region, page, false);
    uint32_t count = 0;
    for (size_t i = 0; i < kBlockSize; i += 8) {
      count += static_cast<uint32_t>(std::popcount(load_le64(page.data() + i)));
    }
    counts_[region] = count;
    return sound;
  }
  // Of a region whose bitmap cannot be read: it stays as it is, and only the count goes on.
  void count_only(uint64_t region) { unreadable_.insert(region); }
  // Of the regions from `first` on, as many as a block has.
  void apply_counts(uint64_t first, Page& page) const {
    for (auto at = counts_.lower_bound(first);
         at != counts_.end() && at->first < first + kCountsPerBlock; ++at) {
      store_le32(page.data() + (at->first - first) * 4, at->second);
    }
    for (auto at = unreadable_.lower_bound(first);
         at != unreadable_.end() && *at < first + kCountsPerBlock; ++at) {
      std::byte* count = page.data() + (*at - first) * 4;
      store_le32(count, load_le32(count) + sum(set_, *at) - sum(cleared_, *at));
    }
  }

 private:
  static std::vector<Run> split(const std::vector<Run>& runs, uint64_t region_blocks) {
    std::vector<Run> parts;
    for (const Run& run : runs) {
      for (uint64_t at = run.block; at < run.end();) {
        const uint64_t end = std::min(run.end(), (at / region_blocks + 1) * region_blocks);
        parts.push_back({at, end - at});
        at = end;
      }
    }
    std::sort(parts.begin(), parts.end(),
              [](const Run& a, const Run& b) { return a.block < b.block; });
    return parts;
  }

  bool change(const std::vector<Run>& runs, uint64_t region, Page& page, bool value) const {
    const uint64_t first = region * region_blocks_, end = first + region_blocks_;
    auto at = std::lower_bound(runs.begin(), runs.end(), first,
                               [](const Run& run, uint64_t block) { return run.block < block; });
    bool sound = true;
    for (; at != runs.end() && at->block < end; ++at) {
      for (uint64_t block = at->block; block < at->end(); block++) {
        const uint64_t bit = block - first;
        const std::byte mask{static_cast<uint8_t>(1u << (bit % 8))};
        std::byte& in = page[bit / 8];
        sound = sound && ((in & mask) != std::byte{0}) != value;
        in = value ? in | mask : in & ~mask;
      }
    }
    return sound;
  }

  uint32_t sum(const std::vector<Run>& parts, uint64_t region) const {
    uint64_t sum = 0;
    for (const Run& run : parts) sum += run.block / region_blocks_ == region ? run.count : 0;
    return static_cast<uint32_t>(sum);
  }

  const std::vector<Run> set_, cleared_;
  const uint64_t region_blocks_;
  std::map<uint64_t, uint32_t> counts_;
  std::set<uint64_t> unreadable_;
};

}  // namespace

void Core::begin_checkpoint(Lock& lock) {
  CHECK(lock.owns_lock());
  checkpoint_requested_ = false;
  auto running = std::make_shared<Running>();
  journal_->seal();
  nodes_.freeze();
  allocator_->freeze();
  running->record.number = superblock_.newer.number + 1;
  running->record.position = journal_->position();
  running->record.next_version = forest_.next_version();
  running->record.next_object = forest_.next_object();
  running->record.data_blocks = forest_.data_blocks;
  running->record.eradication_delay = forest_.eradication_delay;
  for (const uint64_t block : forest_.take_version_blocks(kTablesRewrittenMax)) {
    const uint64_t place = system_block(Area::versions, block);
    forest_.store_versions(block, running->tables[place], running->roots[place]);
  }
  for (const uint64_t block : forest_.take_object_blocks(kTablesRewrittenMax)) {
    forest_.store_objects(block, running->tables[system_block(Area::objects, block)]);
  }
  for (const uint32_t slot : answers_.take_changed_slots()) {
    const auto pages = answers_.store(slot);
    for (size_t i = 0; i < pages.size(); i++) {
      running->tables[system_block(Area::answers, slot * kAnswerSlotBlocks + i)] = pages[i];
    }
  }
  running_tables_ = running->tables.size();
  running_ = std::move(running);
}

Result<bool> Core::write_nodes(size_t count) {
  Lock lock(mutex_);
  std::vector<Node*> batch;
  while (running_->level <= kLevels) {
    batch = nodes_.frozen(running_->level, count);
    if (!batch.empty()) break;
    running_->level++;
  }
  if (batch.empty()) return false;
  std::vector<Run> runs = std::exchange(running_->unwritten, {});
  exchange_for_spare(runs);
  if (runs.empty()) TRY(take_for_checkpoint(lock, batch.size(), runs));
  CHECK(blocks_in(runs) == batch.size());
  lock.unlock();

  // Frozen nodes do not change, and their children have addresses by now.
  BlockSupply supply(runs);
  BlockWriter writer(disk_);
  std::vector<Page> pages(batch.size());
  std::vector<uint64_t> blocks;
  std::vector<uint32_t> crcs;
  Result<void> written;
  for (size_t i = 0; i < batch.size() && written.ok(); i++) {
    for (size_t slot = 0; slot < kFanout; slot++) {
      store_entry(pages[i].data() + slot * sizeof(Entry), batch[i]->entries[slot]);
    }
    blocks.push_back(supply.next());
    crcs.push_back(crc32c(pages[i]));
    written = writer.add(blocks[i], pages[i]);
  }
  if (written.ok()) written = writer.flush();
  if (!written.ok()) {
    running_->unwritten = std::move(runs);
    running_->found_no_room = written.error().code == Errc::no_space;
    return written.error();
  }

  lock.lock();
  for (size_t i = 0; i < batch.size(); i++) {
    const bool freed = batch[i]->freed;
    nodes_.written(*batch[i], blocks[i], crcs[i]);
    if (freed) allocator_->free(blocks[i]);
  }
  nodes_.shrink();
  running_->nodes_unsynced += batch.size();
  if (options_.background && running_->nodes_unsynced >= kNodesUnsyncedMax) {
    running_->nodes_unsynced = 0;
    TRY(sync_all(lock));
  }
  return true;
}

// The new system tree has to hold the bitmaps that say where it lies itself: blocks are taken, and
// bitmaps touched, until nothing more is needed.
Result<void> Core::plan_system_tree() {
  if (!running_->update) running_->update = std::make_unique<SystemUpdate>(*system_tree_);
  SystemUpdate& update = *running_->update;
  std::vector<uint64_t> freed;
  for (const auto& [block, page] : running_->tables) {
    TRY(update.touch(block, all_zero(page) && !running_->roots.contains(block), freed));
  }
  const uint64_t region_blocks = allocator_->region_blocks();
  uint64_t count_blocks = 0;
  {
    const Lock lock(mutex_);
    count_blocks = (allocator_->regions_used() + kCountsPerBlock - 1) / kCountsPerBlock;
  }
  for (uint64_t i = 0; i < count_blocks && count_blocks <= kTablesRewrittenMax; i++) {
    TRY(update.touch(system_block(Area::region_counts, i), false, freed));
  }
  uint64_t own_blocks = blocks_in(running_->own);
  std::set<uint64_t> regions;
  size_t allocated_seen = 0, freed_seen = 0;
  // The lists of the frozen interval grow by what is done here alone.
  const auto look = [&](const std::vector<Run>& runs, size_t& seen, std::set<uint64_t>& fresh) {
    for (size_t i = seen > 0 ? seen - 1 : 0; i < runs.size(); i++) {
      for (uint64_t r = runs[i].block / region_blocks; r <= (runs[i].end() - 1) / region_blocks;
           r++) {
        if (regions.insert(r).second) fresh.insert(r);
      }
    }
    seen = runs.size();
  };
  for (;;) {
    const uint64_t needed = update.blocks_needed();
    {
      Lock lock(mutex_);
      for (const uint64_t block : freed) allocator_->free_by_checkpoint(block);
      running_->tables_freed += freed.size();
      freed.clear();
      if (needed > own_blocks) {
        TRY(take_for_checkpoint(lock, needed - own_blocks, running_->own));
        own_blocks = needed;
      }
    }
    std::set<uint64_t> fresh;
    look(allocator_->frozen().allocated, allocated_seen, fresh);
    look(allocator_->frozen().freed, freed_seen, fresh);
    if (fresh.empty()) break;
    for (const uint64_t region : fresh) {
      const uint64_t bitmap = system_block(Area::bitmaps, region);
      if (const auto page = system_tree_->read(bitmap); page.ok()) {
        TRY(update.touch(bitmap, false, freed));
      } else {
        running_->unreadable.insert(region);
        Lock lock(mutex_);
        if (!allocator_->is_given_up(region)) give_up_region(region, page.error());
      }
      TRY(update.touch(system_block(Area::region_counts, region / kCountsPerBlock), false, freed));
    }
  }
  return {};
}

Result<Entry> Core::write_system_tree() {
  BitmapChanges changes(allocator_->frozen(), allocator_->region_blocks());
  for (const uint64_t region : running_->unreadable) changes.count_only(region);
  running_->record.allocated_blocks = superblock_.newer.allocated_blocks +
                                      blocks_in(allocator_->frozen().allocated) -
                                      blocks_in(allocator_->frozen().freed);
  const auto content = [&](uint64_t block, Page& page) -> Result<void> {
    const auto area = static_cast<Area>(block >> 32);
    const uint64_t index = block & 0xffffffff;
    if (area == Area::bitmaps) {
      if (changes.apply(index, page)) return {};
      return Error{Errc::corrupt,
                   "a block of region " + std::to_string(index) + " was allocated or freed twice"};
    }
    if (area == Area::region_counts) {
      changes.apply_counts(index * kCountsPerBlock, page);
      return {};
    }
    page = running_->tables.at(block);
    const auto roots = running_->roots.find(block);
    if (roots == running_->roots.end()) return {};
    for (const auto& place : roots->second) store_entry(page.data() + place.offset, place.root);
    return {};
  };
  BlockSupply supply(running_->own);
  auto root = running_->update->write(supply, content);
  running_->found_no_room = !root.ok() && root.error().code == Errc::no_space;
  return root;
}

Result<void> Core::write_next_superblock(Lock& lock, Superblock& next) {
  next.sequence++;
  const size_t slot = (superblock_slot_ + 1) % kSuperblockSlots;
  lock.unlock();
  const auto written = write_superblock(disk_, next, slot);
  lock.lock();
  if (!written.ok()) {
    fail(lock, "a superblock cannot be written: " + written.error().message);
    return failure_error();
  }
  TRY(sync_all(lock));
  superblock_ = next;
  superblock_slot_ = slot;
  return {};
}

Result<void> Core::commit_checkpoint(const Entry& root) {
  Lock lock(mutex_);
  running_->record.system_root = root;
  TRY(write_out(lock));
  TRY(sync_all(lock));
  Superblock next = superblock_;
  next.older = superblock_.newer;
  next.newer = running_->record;
  TRY(write_next_superblock(lock, next));
  older_system_tree_ = std::move(system_tree_);
  system_tree_ = std::make_unique<SystemTree>(disk_, superblock_.limits(), root);
  allocator_->commit();
  journal_->set_tail(next.older.position.sequence);
  nodes_.settle_references();
  for (const auto& [block, places] : running_->roots) {
    for (const auto& place : places) {
      if (Version* version = forest_.version(place.version)) nodes_.settle(version->root);
      nodes_.unref(place.root);
    }
  }
  nodes_.shrink();
  tables_freed_ = running_->tables_freed;
  running_.reset();
  running_tables_ = 0;
  commits_++;
  lock.unlock();
  progress_.notify_all();
  return {};
}

Result<void> Core::finish_checkpoint() {
  bool is_planned = running_->update != nullptr;
  if (is_planned) {
    const Lock lock(mutex_);
    is_planned = !exchange_for_spare(running_->own);
  }
  if (!is_planned) TRY(plan_system_tree());
  TRY_ASSIGN(const Entry root, write_system_tree());
  return commit_checkpoint(root);
}

Result<bool> Core::checkpoint_step() {
  constexpr size_t kNodesAtOnce = 64;
  const std::lock_guard one(checkpoint_mutex_);
  {
    Lock lock(mutex_);
    if (failure_) return failure_error();
    if (!running_) {
      begin_checkpoint(lock);
      return true;
    }
  }
  auto nodes = write_nodes(kNodesAtOnce);
  Result<void> result;
  if (nodes.ok() && *nodes) return true;
  result = nodes.ok() ? finish_checkpoint() : nodes.error();
  Lock lock(mutex_);
  if (result.ok()) {
    checkpoint_is_stuck_ = false;
    return false;
  }
  if (running_ && std::exchange(running_->found_no_room, false)) {
    return postpone_checkpoint(result.error());
  }
  fail(lock, "a checkpoint cannot be written: " + result.error().message);
  return failure_error();
}

Result<void> Core::checkpoint() {
  uint64_t commits;
  {
    const Lock lock(mutex_);
    // What a checkpoint that runs already has frozen is not all that there is now.
    commits = commits_ + (running_ ? 2 : 1);
  }
  for (;;) {
    TRY_ASSIGN(const bool more, checkpoint_step());
    if (more) continue;
    const Lock lock(mutex_);
    if (commits_ >= commits) return {};
  }
}

}  // namespace vellum::store

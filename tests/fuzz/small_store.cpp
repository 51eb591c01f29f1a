// SPDX-License-Identifier: BSD-2-Clause
#include "tests/fuzz/small_store.hpp"

#include <algorithm>

#include "common/base/crc32c.hpp"
#include "common/base/endian.hpp"
#include "common/store/superblock.hpp"
#include "tests/support/content.hpp"
#include "tests/support/failure.hpp"

namespace vellum::fuzz {

using namespace store;
using support::demand_ok;

namespace {

constexpr uint64_t kMib = 1 << 20;
constexpr uint64_t kSubtree = 256 * kMib;  // what a trim moves away as a whole
constexpr size_t kSuperblockCrc = 8, kSectorCrc = 4;
constexpr size_t kCheckpoints[] = {256, 384};  // in a superblock

bool is_slot(uint64_t block) {
  return block % (kSlotStride / kBlockSize) == 0 && block < kJournalOffset / kBlockSize;
}

bool is_sector(uint64_t block) {
  return block >= kJournalOffset / kBlockSize &&
         block < kJournalOffset / kBlockSize + kJournalSectors;
}

class Maker {
 public:
  SmallStore make() {
    Geometry geometry;
    geometry.capacity = 8 * kMib;
    geometry.segment_size = 64 << 10;
    geometry.region_size = 256 << 10;
    geometry.journal_size = kJournalSectors * kBlockSize;
    geometry.eradication_delay = 0;
    Options options = small_options();
    options.random_seed = 2;
    demand_ok(Store::format(disk_, geometry, options), "format");
    store_ = demand_ok(Store::open(disk_, small_options()), "open");
    live();
    store_.reset();
    support::Random random(1);
    made_.disk = disk_.survivor(support::Survival::everything, random);
    find_blocks();
    return std::move(made_);
  }

 private:
  void write(const std::string& name, uint64_t offset, uint64_t length) {
    const auto opened = demand_ok(store_->open_export(name), "open");
    demand_ok(opened->write(offset, support::pattern(++tag_, offset, length)), "write");
    for (uint64_t at = offset / kBlockSize; at * kBlockSize < offset + length; ++at)
      places_.insert(at);
    remember();
  }
  void trim(const std::string& name, uint64_t offset, uint64_t length) {
    demand_ok(demand_ok(store_->open_export(name), "open")->trim(offset, length), "trim");
    remember();
  }
  void snap(const std::vector<std::string>& names, const std::string& suffix) {
    demand_ok(store_->create_snapshots(names, suffix), "snapshot");
    remember();
  }
  void reclaim(int steps) {
    for (int i = 0; i < steps; ++i) demand_ok(store_->reclaim_step(), "reclaim");
  }

  void live() {
    Once<VolumeInfo> once;
    once.request_id = "request";
    once.encode = [](const VolumeInfo& info) { return info.name; };
    demand_ok(store_->create_volume("a", 3 * kMib, Provision::thin, once), "create");
    demand_ok(store_->create_volume("b", 8 * kBlockSize, Provision::reserved), "create");
    demand_ok(store_->create_volume("d", 2 * kSubtree, Provision::thin), "create");
    write("a", 0, 6 * kBlockSize);
    write("a", 2 * kMib, 2 * kBlockSize);
    write("b", 0, 3 * kBlockSize);
    snap({"a"}, "1");
    write("a", kBlockSize, kBlockSize);
    demand_ok(store_->clone("a@1", "c"), "clone");
    write("c", 3 * kBlockSize + 100, 5000);
    demand_ok(store_->checkpoint(), "checkpoint");
    write("d", 0, kBlockSize);
    write("d", kSubtree, 2 * kBlockSize);
    snap({"a", "d"}, "2");
    write("a", 4 * kBlockSize, 2 * kBlockSize);
    demand_ok(store_->destroy_snapshot("a@1"), "destroy");  // with two children
    reclaim(3);
    write("d", kSubtree + kBlockSize, kBlockSize);
    write("d", 0, kBlockSize);
    trim("a", 5 * kBlockSize, kBlockSize);
    demand_ok(store_->destroy_snapshot("a@2"), "destroy");  // with one child
    reclaim(2);
    trim("d", 0, kSubtree);  // moved away, to wait for the end of that
    demand_ok(store_->checkpoint(), "checkpoint");
    write("b", 0, 2 * kBlockSize);
    demand_ok(store_->checkpoint(), "checkpoint");
    // The tail of the journal.
    write("a", 512, 1024);
    reclaim(1);
    snap({"b", "c"}, "late");
    write("c", 2 * kMib, kBlockSize);
    demand_ok(store_->flush(), "flush");
    trim("c", 0, kBlockSize);
    write("b", 2 * kBlockSize, kBlockSize);
    demand_ok(store_->flush(), "flush");
    demand_ok(store_->set_eradication_delay(kEradicationDelayDefault), "set the delay");
    demand_ok(store_->destroy_snapshot("b@late"), "destroy");
  }

  // What all volumes and snapshots hold now.
  void remember() {
    std::vector<std::string> names;
    for (const auto& info : store_->list_volumes()) names.push_back(info.name);
    for (const auto& info : store_->list_snapshots(std::nullopt)) names.push_back(info.name);
    for (const std::string& name : names) {
      const auto opened = demand_ok(store_->open_export(name), "open");
      for (const uint64_t place : places_) {
        if ((place + 1) * kBlockSize > opened->size_bytes()) continue;
        Page page;
        demand_ok(opened->read(place * kBlockSize, page), "read");
        made_.contents[name][place].insert(crc32c(page));
      }
    }
  }

  Page read(uint64_t block) {
    Page page;
    demand_ok(made_.disk->read(block * kBlockSize, std::span(page)), "read");
    return page;
  }

  void find_blocks() {
    for (size_t slot = 0; slot < kSuperblockSlots; ++slot) {
      const uint64_t block = slot * kSlotStride / kBlockSize;
      const Page page = read(block);
      made_.blocks.push_back(block);
      // Older slots lead to trees that have been given up in part.
      if (block != newest_slot()) continue;
      for (const size_t at : kCheckpoints) follow(page, block, at + 32, kLevels, true, 0);
    }
    for (uint64_t i = 0; i < kJournalSectors; ++i)
      made_.blocks.push_back(kJournalOffset / kBlockSize + i);
    made_.blocks.insert(made_.blocks.end(), seen_.begin(), seen_.end());
  }

  uint64_t newest_slot() {
    return demand_ok(find_superblock(*made_.disk), "superblock").slot * kSlotStride / kBlockSize;
  }

  // The pointer at `at` of `parent`.
  void follow(const Page& page, uint64_t parent, size_t at, unsigned level, bool is_system,
              uint64_t base) {
    const Entry entry = load_entry(page.data() + at);
    if (entry.is_hole()) return;
    const uint64_t block = entry.block();
    if (level > 0 || is_system) made_.links.emplace(block, Link{parent, at + 12});
    if (!seen_.insert(block).second) return;
    const Page child = read(block);
    if (level > 0) {
      for (size_t i = 0; i < kFanout; ++i)
        follow(child, block, i * sizeof(Entry), level - 1, is_system,
               base + i * span_blocks(level - 1));
    } else if (is_system) {
      made_.tables.push_back(block);
      if (base >> 32 != static_cast<uint64_t>(Area::versions)) return;
      for (size_t i = 0; i < kVersionsPerBlock; ++i)
        if (load_le32(child.data() + i * kVersionRecord) != 0)
          follow(child, block, i * kVersionRecord + 8, kLevels, false, 0);
    }
  }

  support::SimulatedDisk disk_;
  std::unique_ptr<Store> store_;
  uint64_t tag_ = 0;
  std::set<uint64_t> places_, seen_;
  SmallStore made_;
};

}  // namespace

Options small_options() {
  Options options;
  options.background = false;
  options.cache_bytes = kMib;
  options.random_seed = 1;
  options.reclaim_places = 1;
  options.clock = [] { return int64_t{1700000000000}; };
  return options;
}

SmallStore make_small_store() { return Maker().make(); }

const SmallStore& small_store() {
  static const SmallStore kMade = make_small_store();
  return kMade;
}

Page& Editor::page(uint64_t block) {
  const auto [found, fresh] = pages_.try_emplace(block);
  if (fresh) demand_ok(disk_.read(block * kBlockSize, std::span(found->second)), "read");
  return found->second;
}

void Editor::fix_checksums() {
  std::vector<uint64_t> edited;
  for (const auto& [block, unused] : pages_) edited.push_back(block);
  for (const uint64_t block : edited) fix(block);
}

void Editor::fix(uint64_t block) {
  Page& changed = page(block);
  if (is_slot(block)) {
    store_le32(changed.data() + kSuperblockCrc, page_crc(changed, kSuperblockCrc));
    return;
  }
  if (is_sector(block)) return fix_sector(block);
  const auto [first, last] = small_store().links.equal_range(block);
  for (auto at = first; at != last; ++at) {
    std::byte* crc = page(at->second.parent).data() + at->second.crc_at;
    if (load_entry(crc - 12).block() != block) continue;
    store_le32(crc, crc32c(changed));
    fix(at->second.parent);
  }
}

// And those after it, and what the superblocks know of it.
void Editor::fix_sector(uint64_t block) {
  for (uint64_t i = 0; i < kJournalSectors; ++i) {
    Page& sector = page(block);
    const uint64_t sequence = load_le64(sector.data() + 32);
    const uint32_t crc = page_crc(sector, kSectorCrc);
    store_le32(sector.data() + kSectorCrc, crc);
    for (size_t slot = 0; slot < kSuperblockSlots; ++slot) {
      const uint64_t at = slot * kSlotStride / kBlockSize;
      std::byte* superblock = page(at).data();
      if (load_le64(superblock + 112) == sequence) store_le32(superblock + 120, crc);
      for (const size_t checkpoint : kCheckpoints)
        if (load_le64(superblock + checkpoint + 8) == sequence + 1)
          store_le32(superblock + checkpoint + 16, crc);
      fix(at);
    }
    const uint64_t first = kJournalOffset / kBlockSize;
    block = first + (block - first + 1) % kJournalSectors;
    Page& next = page(block);
    if (load_le64(next.data() + 32) != sequence + 1) return;
    store_le32(next.data() + 40, crc);
  }
}

void Editor::write() {
  for (const auto& [block, content] : pages_)
    demand_ok(disk_.write(block * kBlockSize, std::span<const std::byte>(content)), "write");
}

}  // namespace vellum::fuzz

// SPDX-License-Identifier: BSD-2-Clause
//
// The fsck: every allocated block is reached exactly once, by the version that is charged with it
// or by the system tree, and what is reached is allocated.
#include <algorithm>
#include <unordered_map>

#include "common/base/crc32c.hpp"
#include "common/base/endian.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr size_t kErrorsMax = 100;

// A bit a block, region by region as they are met.
class BlockSet {
 public:
  explicit BlockSet(uint64_t region_blocks) : region_blocks_(region_blocks) {}
  // False if it was there already.
  bool insert(uint64_t block) { return change(block, true); }
  bool erase(uint64_t block) { return change(block, false); }
  bool contains(uint64_t block) const {
    const auto found = regions_.find(block / region_blocks_);
    return found != regions_.end() && found->second[block % region_blocks_];
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [region, bits] : regions_) {
      for (uint64_t i = 0; i < region_blocks_; i++) {
        if (bits[i]) visit(region * region_blocks_ + i);
      }
    }
  }

 private:
  bool change(uint64_t block, bool value) {
    auto& bits = regions_[block / region_blocks_];
    if (bits.empty()) bits.resize(region_blocks_);
    const bool changed = bits[block % region_blocks_] != value;
    bits[block % region_blocks_] = value;
    return changed;
  }
  const uint64_t region_blocks_;
  std::unordered_map<uint64_t, std::vector<bool>> regions_;
};

}  // namespace

class Checker {
 public:
  Checker(disk::Disk& disk, const Superblock& superblock, bool read_data)
      : disk_(disk),
        limits_(superblock.limits()),
        read_data_(read_data),
        allocated_(superblock.region_size / kBlockSize),
        visited_(superblock.region_size / kBlockSize),
        reached_(superblock.region_size / kBlockSize) {}

  void error(const std::string& message) {
    report.errors_total++;
    if (report.errors.size() < kErrorsMax) report.errors.push_back(message);
  }

  Result<void> load_bitmaps(const SystemTree& tree, uint64_t region_blocks, uint64_t regions) {
    TRY(tree.for_each(Area::bitmaps, [&](uint64_t region, const Page& page) -> Result<void> {
      if (region >= regions) {
        error("there is a bitmap for region " + std::to_string(region) + ", beyond the capacity");
        return {};
      }
      for (uint64_t i = 0; i < region_blocks; i++) {
        if ((page[i / 8] & std::byte{static_cast<uint8_t>(1u << (i % 8))}) == std::byte{0}) {
          continue;
        }
        allocated_.insert(region * region_blocks + i);
      }
      const auto is_set = [](std::byte bits) { return bits != std::byte{0}; };
      if (std::any_of(page.begin() + static_cast<ptrdiff_t>((region_blocks + 7) / 8), page.end(),
                      is_set)) {
        error("the bitmap of region " + std::to_string(region) + " goes on beyond its end");
      }
      return {};
    }));
    return tree.for_each_address([&](uint64_t block) {
      visit_block(block, "the system tree");
      report.system_blocks++;
    });
  }

  void apply(const Allocator::Interval& since) {
    for (const Run& run : since.allocated) {
      for (uint64_t block = run.block; block < run.end(); block++) {
        if (!allocated_.insert(block))
          error("block " + std::to_string(block) + " is allocated twice");
      }
    }
    for (const Run& run : since.freed) {
      for (uint64_t block = run.block; block < run.end(); block++) {
        if (!allocated_.erase(block)) error("block " + std::to_string(block) + " is freed twice");
      }
    }
  }

  void visit_version(const Version& version) {
    version_ = &version;
    report.versions++;
    walk(version.root, kLevels, 0);
  }

  // Marks what a version that has a name reads, of which others may be the owners.
  void reach(const Entry& entry, unsigned level) {
    if (entry.is_hole()) return;
    const bool in_memory = entry.is_in_memory();
    const uint64_t block = in_memory ? entry.target()->block : entry.block();
    if (block != 0 && !reached_.insert(block)) return;
    if (level == 0) return;
    if (in_memory) {
      for (const Entry& child : entry.target()->entries) reach(child, level - 1);
      return;
    }
    const auto pointers = read_node(disk_, entry, level, limits_);
    if (!pointers.ok()) return;  // visit_version() says it
    for (const Entry& child : *pointers) reach(child, level - 1);
  }

  void compare_owned(const Version& version) {
    const uint64_t owned = owned_[version.id];
    if (owned == version.owned) return;
    error("version " + std::to_string(version.id) + " is charged with " +
          std::to_string(version.owned) + " blocks and nodes, and owns " + std::to_string(owned));
  }

  void compare() {
    allocated_.for_each([&](uint64_t block) {
      report.allocated_blocks++;
      if (!visited_.contains(block)) {
        error("block " + std::to_string(block) + " is allocated, and nothing leads to it");
      }
    });
  }

  CheckReport report;

 private:
  void visit_block(uint64_t block, const std::string& from) {
    if (!allocated_.contains(block)) {
      error("block " + std::to_string(block) + " is not allocated, and " + from + " leads to it");
    }
    if (!visited_.insert(block)) {
      error("block " + std::to_string(block) + " is reached twice, also from " + from);
    }
  }

  bool dangles() const { return version_->job == Job::drop || version_->job == Job::collapse; }

  // What a collapse has passed in the parent is charged to the parent still, and visited from here.
  void walk(const Entry& entry, unsigned level, uint64_t base) {
    const Version& parent = *version_->parent;
    const bool is_own = entry.version() > parent.id;
    const Cursor place = place_of(base, level);
    if (entry.is_hole() || (dangles() && place <= version_->cursor)) return;
    if (!is_own) {
      const bool passed = parent.job == Job::collapse && place <= parent.cursor;
      if (!passed || entry.version() <= parent.parent->id) return;
    }
    const bool is_debt = version_->charged_to != nullptr && entry.version() != version_->id;
    const Version& own = is_debt ? *version_->charged_to : *version_;
    owned_[is_own ? own.id : parent.id]++;
    if (level == 0) {
      report.data_blocks++;
      if (read_data_ && !reached_.contains(entry.block())) report.hidden_data_blocks++;
    } else {
      report.nodes++;
    }
    const bool in_memory = entry.is_in_memory();  // a node that replay made
    if (!in_memory || entry.target()->block != 0) {
      visit_block(in_memory ? entry.target()->block : entry.block(),
                  "version " + std::to_string(version_->id));
    }
    if (level == 0) {
      check_data(entry, base);
      return;
    }
    if (in_memory) {
      visit_children(entry.target()->entries, level, base);
      return;
    }
    const auto pointers = read_node(disk_, entry, level, limits_);
    if (!pointers.ok()) return error(pointers.error().message);
    visit_children(*pointers, level, base);
  }

  void visit_children(const Pointers& pointers, unsigned level, uint64_t base) {
    bool empty = true;
    for (size_t i = 0; i < kFanout; i++) {
      empty = empty && pointers[i].is_hole();
      walk(pointers[i], level - 1, base + i * span_blocks(level - 1));
    }
    if (empty && !dangles()) {
      error("a node of version " + std::to_string(version_->id) + " is all holes");
    }
  }

  void check_data(const Entry& entry, uint64_t block) {
    if (!read_data_) return;
    Page page;
    const auto read = read_block(disk_, entry, "a data block", page);
    if (read.ok()) return;
    error("version " + std::to_string(version_->id) + ", offset " +
          std::to_string(block * kBlockSize) + ": " + read.error().message);
  }

  disk::Disk& disk_;
  const AddressLimits limits_;
  const bool read_data_;
  BlockSet allocated_, visited_, reached_;
  const Version* version_ = nullptr;
  std::unordered_map<VersionId, uint64_t> owned_;
};

Result<CheckReport> Core::check(const CheckOptions& what) {
  const bool read_data = what.read_data;
  const Lock lock(mutex_);
  Checker checker(disk_, superblock_, read_data);
  const uint64_t region_blocks = allocator_->region_blocks();
  TRY(checker.load_bitmaps(*system_tree_, region_blocks, allocator_->regions()));
  checker.apply(allocator_->current_interval());
  for (const auto& [id, version] : forest_.versions()) {
    if (read_data && version->state != State::zombie) checker.reach(version->root, kLevels);
  }
  for (const auto& [id, version] : forest_.versions()) {
    if (id != 0) checker.visit_version(*version);
  }
  for (const auto& [id, version] : forest_.versions()) checker.compare_owned(*version);
  checker.compare();
  checker.report.volumes = forest_.volumes().size();
  checker.report.snapshots = forest_.snapshot_count();
  if (checker.report.allocated_blocks != allocator_->allocated()) {
    checker.error("the region counts add up to " + std::to_string(allocator_->allocated()) +
                  " blocks, and the bitmaps hold " +
                  std::to_string(checker.report.allocated_blocks));
  }
  if (checker.report.data_blocks != forest_.data_blocks) {
    checker.error("the store counts " + std::to_string(forest_.data_blocks) +
                  " blocks of data, and there are " + std::to_string(checker.report.data_blocks));
  }
  if (what.count_space) {
    TRY_ASSIGN(checker.report.space, count_space());
  }
  return checker.report;
}

Result<CheckReport> check(disk::Disk& disk, const Options& options, const CheckOptions& what) {
  Options quiet = options;
  quiet.background = false;
  TRY_ASSIGN(const std::unique_ptr<Core> core, Core::open(disk, quiet, true));
  return core->check(what);
}

}  // namespace vellum::store

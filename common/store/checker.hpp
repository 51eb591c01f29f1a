// SPDX-License-Identifier: BSD-2-Clause
//
// The fsck's walk through a store at rest: every allocated block is reached exactly once, by the
// version that is charged with it or by the system tree, and what is reached is allocated. Goes on
// behind what cannot be read. For one thread.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/store/allocator.hpp"
#include "common/store/forest.hpp"
#include "common/store/store.hpp"
#include "common/store/superblock.hpp"
#include "common/store/system_tree.hpp"

namespace vellum::store {

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
  // Ascending.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const auto& [region, bits] : regions_) for_each_in(region, visit);
  }
  template <typename Visit>
  void for_each_in(uint64_t region, Visit visit) const {
    const auto found = regions_.find(region);
    if (found == regions_.end()) return;
    for (uint64_t i = 0; i < region_blocks_; i++) {
      if (found->second[i]) visit(region * region_blocks_ + i);
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
  std::map<uint64_t, std::vector<bool>> regions_;
};

class Checker {
 public:
  Checker(disk::Disk& disk, const Superblock& superblock, bool read_data);

  // In this order: the bitmaps, what has changed since they were written, what is read by name (all
  // versions that have one; only if the data is read), all versions, the comparisons.
  Result<void> load_bitmaps(const SystemTree& tree, const Allocator& allocator);
  void apply(const Allocator::Interval& since);
  void reach(const Version& version);
  void visit_version(const Version& version);
  void compare(const Forest& forest, uint64_t allocated_blocks);

  void error(const std::string& message);

  CheckReport report;

  // What a repair needs to know.
  bool map_is_whole() const { return report.unreadable_nodes == 0; }
  // Bitmaps, counts or charges are not what the versions reach.
  bool tables_are_wrong() const { return wrong_tables_ > 0; }
  uint64_t wrong_charges() const { return wrong_charges_; }  // versions
  const BlockSet& allocated() const { return allocated_; }   // by the bitmaps that can be read
  const BlockSet& reached() const { return visited_; }       // by versions and the system tree
  const BlockSet& system() const { return system_; }
  const std::set<uint64_t>& damaged_bitmaps() const { return damaged_bitmaps_; }  // regions
  uint64_t owned_by(VersionId version) const;

 private:
  void wrong_table(const std::string& message);
  void reach(const Entry& entry, unsigned level);
  void visit_block(uint64_t block, const std::string& from);
  bool dangles() const { return version_->job == Job::drop || version_->job == Job::collapse; }
  void walk(const Entry& entry, unsigned level, uint64_t base);
  void visit_children(const Pointers& pointers, unsigned level, uint64_t base);
  void check_data(const Entry& entry, uint64_t block);
  struct Damage {
    const Version* owner;
    Entry pointer;
    unsigned level;
    uint64_t base;  // the first block that it maps
    std::string message;
  };
  void damage(const Entry& pointer, unsigned level, uint64_t base, const Error& error);
  std::string readers_of(const Forest& forest, const Damage& damage) const;
  void tell_damages(const Forest& forest);
  void compare_bitmaps();

  disk::Disk& disk_;
  const AddressLimits limits_;
  const uint64_t region_blocks_;
  const bool read_data_;
  BlockSet allocated_, visited_, system_, named_;
  std::set<uint64_t> damaged_bitmaps_;
  std::vector<Damage> damages_;  // as many as are told
  uint64_t damages_total_ = 0, wrong_tables_ = 0, wrong_charges_ = 0;
  const Version* version_ = nullptr;
  std::unordered_map<VersionId, uint64_t> owned_;
};

}  // namespace vellum::store

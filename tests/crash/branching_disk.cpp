// SPDX-License-Identifier: BSD-2-Clause
#include "tests/crash/branching_disk.hpp"

#include <algorithm>
#include <string_view>

namespace vellum::support {

namespace {

uint64_t hash_of(const Block& bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::hash<std::string_view>()(text);
}

Unit unit_of(BlockPointer data) {
  static const uint64_t of_zeros = hash_of(Block{});
  const uint64_t hash = data ? hash_of(*data) : of_zeros;
  return {std::move(data), hash};
}

void add(std::vector<Unit>& units, const Unit& unit) {
  const auto same = [&](const Unit& each) { return each.hash == unit.hash; };
  if (std::none_of(units.begin(), units.end(), same)) units.push_back(unit);
}

std::vector<Unit>& of_block(Left& left, uint64_t index) {
  std::vector<Unit>& units = left[index];
  if (units.empty()) units.push_back(unit_of(nullptr));
  return units;
}

}  // namespace

Left left_by_crash(const SimulatedDisk& disk) {
  Left left;
  for (auto& [index, blocks] : disk.possible())
    for (const BlockPointer& block : blocks) add(left[index], unit_of(block));
  return left;
}

Left left_by_crash(const Left& before, std::span<const Change> done) {
  Left left = before;
  size_t synced = done.size();
  while (synced > 0 && !done[synced - 1].is_sync) --synced;
  for (size_t i = 0; i < done.size(); ++i) {
    if (done[i].is_sync) continue;
    if (i < synced)
      left[done[i].index] = {done[i].unit};
    else
      add(of_block(left, done[i].index), done[i].unit);
  }
  return left;
}

const std::vector<Unit>& units_at(const Left& left, uint64_t index) {
  static const std::vector<Unit> zeros{unit_of(nullptr)};
  const auto found = left.find(index);
  return found == left.end() ? zeros : found->second;
}

BlockPointer BranchingDisk::visible(uint64_t index) {
  if (const auto known = known_.find(index); known != known_.end()) return known->second;
  const auto decided = decisions_.find(index);
  const Unit& unit = decided != decisions_.end() ? decided->second : units_at(left_, index).front();
  readings_.push_back({index, unit.hash});
  known_[index] = unit.data;
  return unit.data;
}

void BranchingDisk::change(uint64_t index, BlockPointer data) {
  known_[index] = data;
  changes_.push_back({false, index, unit_of(std::move(data))});
}

Result<void> BranchingDisk::read(uint64_t offset, std::span<std::byte> out, disk::Wait wait) {
  const iovec part{out.data(), out.size()};
  return read(offset, std::span(&part, 1), wait);
}

Result<void> BranchingDisk::read(uint64_t offset, std::span<const iovec> parts, disk::Wait) {
  read_blocks(offset, parts, [this](uint64_t index) { return visible(index); });
  return {};
}

Result<void> BranchingDisk::write(uint64_t offset, std::span<const iovec> parts) {
  uint64_t index = offset / kBlockBytes;
  for (BlockPointer& block : blocks_of(parts)) change(index++, std::move(block));
  return {};
}

Result<void> BranchingDisk::sync() {
  changes_.push_back({true, 0, {}});
  return {};
}

Result<void> BranchingDisk::prepare(uint64_t offset, uint64_t length) {
  for (uint64_t at = offset; at < offset + length; at += kBlockBytes)
    change(at / kBlockBytes, nullptr);
  return {};
}

Result<void> BranchingDisk::discard(uint64_t offset, uint64_t length) {
  for (uint64_t at = offset; at < offset + length; at += kBlockBytes)
    change(at / kBlockBytes, discarded_block(at / kBlockBytes));
  return {};
}

}  // namespace vellum::support

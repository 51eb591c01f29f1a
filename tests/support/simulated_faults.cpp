// SPDX-License-Identifier: BSD-2-Clause
//
// The side of the simulated disk that tests command: counting, power, faults, survivors.
#include <algorithm>
#include <cstring>

#include "tests/support/simulated_disk.hpp"

namespace vellum::support {

uint64_t SimulatedDisk::call_number() const {
  std::lock_guard lock(mutex_);
  return call_number_;
}

CallCounts SimulatedDisk::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void SimulatedDisk::log_calls(bool on) {
  std::lock_guard lock(mutex_);
  logging_ = on;
  log_.clear();
}

std::vector<CallEntry> SimulatedDisk::log() const {
  std::lock_guard lock(mutex_);
  return log_;
}

void SimulatedDisk::limit_host(std::optional<uint64_t> blocks) {
  std::lock_guard lock(mutex_);
  host_limit_ = blocks ? std::optional(occupied_.size() + *blocks) : std::nullopt;
}

// -- Power ---------------------------------------------------------------------------------------

void SimulatedDisk::power_off() {
  std::lock_guard lock(mutex_);
  power_is_off_ = has_failed_ = true;
}

bool SimulatedDisk::has_failed() const {
  std::lock_guard lock(mutex_);
  return has_failed_;
}

void SimulatedDisk::power_off_at(uint64_t in_calls) {
  std::lock_guard lock(mutex_);
  CHECK(in_calls > 0);
  power_off_number_ = call_number_ + in_calls;
}

bool SimulatedDisk::power_is_off() const {
  std::lock_guard lock(mutex_);
  return power_is_off_;
}

BlockPointer SimulatedDisk::choose(uint64_t index, const Versions& versions, Survival how,
                                   Random& random) const {
  auto found = durable_.find(index);
  BlockPointer durable = found == durable_.end() ? nullptr : found->second;
  auto version = [&](uint64_t i) { return i == 0 ? durable : versions[i - 1].data; };
  if (how == Survival::nothing) return durable;
  if (how == Survival::everything || how == Survival::all_but_one) return versions.back().data;
  const uint64_t newest = random.below(versions.size() + 1);
  if (how == Survival::whole_units || newest == 0 || random.chance(50)) return version(newest);
  // Some sectors of an older version, the others of this one.
  auto torn = std::make_shared<Block>(*version(newest));
  const BlockPointer older = version(random.below(newest));
  const bool prefix = random.chance(50);
  const uint64_t border = random.below(kBlockBytes / kSectorBytes);
  for (uint64_t sector = 0; sector < kBlockBytes / kSectorBytes; ++sector) {
    const bool keep = prefix ? sector < border : random.chance(50);
    if (keep) continue;
    std::byte* to = torn->data() + sector * kSectorBytes;
    if (older)
      std::memcpy(to, older->data() + sector * kSectorBytes, kSectorBytes);
    else
      std::memset(to, 0, kSectorBytes);
  }
  return torn;
}

std::unique_ptr<SimulatedDisk> SimulatedDisk::survivor(Survival how, Random& random) const {
  std::lock_guard lock(mutex_);
  auto left = std::make_unique<SimulatedDisk>(grows_ ? 0 : size_bytes_, grows_);
  left->durable_ = durable_;
  std::optional<uint64_t> lost;
  if (how == Survival::all_but_one && !unsynced_.empty())
    lost =
        std::next(unsynced_.begin(), static_cast<ptrdiff_t>(random.below(unsynced_.size())))->first;
  for (const auto& [index, versions] : unsynced_)
    if (BlockPointer block = choose(index, versions, how, random); block && index != lost)
      left->durable_[index] = std::move(block);
  if (grows_)
    for (const auto& [index, block] : left->durable_)
      left->size_bytes_ = std::max(left->size_bytes_, (index + 1) * kBlockBytes);
  return left;
}

std::map<uint64_t, std::vector<BlockPointer>> SimulatedDisk::possible() const {
  std::lock_guard lock(mutex_);
  std::map<uint64_t, std::vector<BlockPointer>> left;
  for (const auto& [index, block] : durable_) left[index].push_back(block);
  for (const auto& [index, versions] : unsynced_) {
    std::vector<BlockPointer>& blocks = left[index];
    if (blocks.empty()) blocks.push_back(nullptr);
    for (const Version& version : versions) blocks.push_back(version.data);
  }
  return left;
}

// -- Faults --------------------------------------------------------------------------------------

void SimulatedDisk::fail(Call kind, uint64_t nth, Fault fault) {
  std::lock_guard lock(mutex_);
  CHECK(nth > 0);
  faults_.push_back({kind, nth, fault});
}

void SimulatedDisk::flip_bit(uint64_t offset, unsigned bit) {
  std::lock_guard lock(mutex_);
  auto flipped = [&](const BlockPointer& block) {
    auto copy = block ? std::make_shared<Block>(*block) : std::make_shared<Block>();
    (*copy)[offset % kBlockBytes] ^= static_cast<std::byte>(1u << (bit % 8));
    return copy;
  };
  BlockPointer& durable = durable_[offset / kBlockBytes];
  durable = flipped(durable);
  if (auto found = unsynced_.find(offset / kBlockBytes); found != unsynced_.end())
    for (Version& version : found->second) version.data = flipped(version.data);
}

void SimulatedDisk::set_cold(bool cold) {
  std::lock_guard lock(mutex_);
  cold_ = cold;
}

void SimulatedDisk::set_sync_delay(std::chrono::microseconds delay) {
  std::lock_guard lock(mutex_);
  sync_delay_ = delay;
}

void SimulatedDisk::stall_writes(Matcher matches) {
  std::lock_guard lock(mutex_);
  write_stalls_ = std::move(matches);
}

void SimulatedDisk::stall_reads(Matcher matches) {
  std::lock_guard lock(mutex_);
  read_stalls_ = std::move(matches);
}

void SimulatedDisk::wait_while_stalled(std::unique_lock<std::mutex>& lock, const Matcher& matches,
                                       uint64_t offset, std::span<const iovec> parts) {
  if (!matches || !matches(offset, parts)) return;
  ++stalled_;
  changed_.notify_all();
  changed_.wait(lock, [this, before = releases_] { return releases_ != before; });
  --stalled_;
}

bool SimulatedDisk::wait_until_stalled(size_t calls, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return stalled_ >= calls; });
}

void SimulatedDisk::release() {
  std::lock_guard lock(mutex_);
  write_stalls_ = read_stalls_ = nullptr;
  ++releases_;
  changed_.notify_all();
}

bool holds_at_block_start(std::span<const iovec> parts, std::span<const std::byte> text) {
  for (const iovec& part : parts)
    for (size_t at = 0; at + text.size() <= part.iov_len; at += kBlockBytes)
      if (std::memcmp(static_cast<const std::byte*>(part.iov_base) + at, text.data(),
                      text.size()) == 0)
        return true;
  return false;
}

}  // namespace vellum::support

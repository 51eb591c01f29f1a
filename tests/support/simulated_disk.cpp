// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/simulated_disk.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace vellum::support {

namespace {

constexpr uint64_t kMisdirectedBy = 1 << 20;

}  // namespace

// -- Admission: numbers, power, faults -----------------------------------------------------------

std::optional<Fault> SimulatedDisk::take_fault(Call kind) {
  std::optional<Fault> due;
  std::erase_if(faults_, [&](PlannedFault& planned) {
    if (planned.kind != kind || --planned.remaining > 0) return false;
    due = planned.fault;
    return true;
  });
  return due;
}

void SimulatedDisk::count(Call kind, uint64_t offset, uint64_t length) {
  counts_[static_cast<size_t>(kind)].calls += 1;
  counts_[static_cast<size_t>(kind)].bytes += length;
  if (logging_ && kind != Call::writeback) log_.push_back({kind, offset, length});
}

SimulatedDisk::Verdict SimulatedDisk::admit(Call kind, uint64_t offset, uint64_t length) {
  CHECK(offset % kBlockBytes == 0 && length % kBlockBytes == 0);
  ++call_number_;
  count(kind, offset, length);
  if (power_is_off_) return Verdict::power_is_off;
  if (power_off_number_ && call_number_ >= *power_off_number_) {
    power_is_off_ = has_failed_ = true;
    return Verdict::power_goes;
  }
  const std::optional<Fault> fault = take_fault(kind);
  if (!fault) {
    const bool fits = (kind != Call::write && kind != Call::prepare) || has_room(offset, length);
    return fits && inside(offset, length) ? Verdict::proceed : Verdict::no_space;
  }
  has_failed_ = true;
  switch (*fault) {
    case Fault::io_error:
      return Verdict::io_error;
    case Fault::no_space:
      return Verdict::no_space;
    case Fault::lost:
      return Verdict::lost;
    case Fault::misdirected:
      return Verdict::misdirected;
  }
  return Verdict::proceed;
}

Error SimulatedDisk::failure(Verdict verdict, const char* what) const {
  if (verdict == Verdict::power_goes || verdict == Verdict::power_is_off)
    return {Errc::io_error, name() + ": the power is off"};
  if (verdict == Verdict::no_space) return {Errc::no_space, name() + ": no space for this " + what};
  return {Errc::io_error, name() + ": this " + what + " failed, as it was told to"};
}

bool SimulatedDisk::inside(uint64_t offset, uint64_t length) const {
  return grows_ || (offset <= size_bytes_ && length <= size_bytes_ - offset);
}

bool SimulatedDisk::has_room(uint64_t offset, uint64_t length) const {
  if (!host_limit_) return true;
  uint64_t fresh = 0;
  for (uint64_t at = 0; at < length; at += kBlockBytes) {
    fresh += occupied_.contains((offset + at) / kBlockBytes) ? 0 : 1;
  }
  return occupied_.size() + fresh <= *host_limit_;
}

// -- Content -------------------------------------------------------------------------------------

BlockPointer SimulatedDisk::visible(uint64_t index) const {
  if (auto found = unsynced_.find(index); found != unsynced_.end())
    return found->second.back().data;
  auto found = durable_.find(index);
  return found == durable_.end() ? nullptr : found->second;
}

void SimulatedDisk::store(uint64_t index, BlockPointer data) {
  unsynced_[index].push_back({std::move(data), next_sequence_++, false});
  occupied_.insert(index);
  if (grows_) size_bytes_ = std::max(size_bytes_, (index + 1) * kBlockBytes);
}

void SimulatedDisk::store_parts(uint64_t offset, std::span<const iovec> parts,
                                uint64_t blocks_max) {
  std::vector<BlockPointer> blocks = blocks_of(parts);
  for (uint64_t i = 0; i < std::min<uint64_t>(blocks.size(), blocks_max); ++i)
    store(offset / kBlockBytes + i, std::move(blocks[i]));
}

void SimulatedDisk::make_durable(uint64_t before_sequence) {
  for (auto unit = unsynced_.begin(); unit != unsynced_.end();) {
    Versions& versions = unit->second;
    for (size_t i = versions.size(); i-- > 0;) {
      if (versions[i].lost || versions[i].sequence >= before_sequence) continue;
      durable_[unit->first] = versions[i].data;
      versions.erase(versions.begin(), versions.begin() + static_cast<ptrdiff_t>(i) + 1);
      break;
    }
    unit = versions.empty() ? unsynced_.erase(unit) : std::next(unit);
  }
}

// -- disk::Disk ----------------------------------------------------------------------------------

Result<void> SimulatedDisk::read(uint64_t offset, std::span<std::byte> out, disk::Wait wait) {
  const iovec part{out.data(), out.size()};
  return read(offset, std::span(&part, 1), wait);
}

Result<void> SimulatedDisk::read(uint64_t offset, std::span<const iovec> parts, disk::Wait wait) {
  std::unique_lock lock(mutex_);
  if (cold_ && wait == disk::Wait::never)
    return Error{Errc::would_block, name() + ": not in memory"};
  const Verdict verdict = admit(Call::read, offset, total_bytes(parts));
  if (verdict != Verdict::proceed) return failure(verdict, "read");
  read_blocks(offset, parts, [this](uint64_t index) { return visible(index); });
  wait_while_stalled(lock, read_stalls_, offset, parts);
  return {};
}

Result<void> SimulatedDisk::write(uint64_t offset, std::span<const iovec> parts) {
  std::unique_lock lock(mutex_);
  wait_while_stalled(lock, write_stalls_, offset, parts);
  const uint64_t length = total_bytes(parts);
  const Verdict verdict = admit(Call::write, offset, length);
  switch (verdict) {
    case Verdict::proceed:
      store_parts(offset, parts, length / kBlockBytes);
      return {};
    case Verdict::lost:
      return {};
    case Verdict::misdirected:
      store_parts(offset + kMisdirectedBy, parts, length / kBlockBytes);
      return {};
    case Verdict::power_goes:
      if (inside(offset, length)) store_parts(offset, parts, length / kBlockBytes);
      break;
    case Verdict::io_error:
      if (inside(offset, length)) store_parts(offset, parts, length / kBlockBytes / 2);
      break;
    case Verdict::power_is_off:
    case Verdict::no_space:
      break;
  }
  return failure(verdict, "write");
}

Result<void> SimulatedDisk::sync() {
  std::unique_lock lock(mutex_);
  const Verdict verdict = admit(Call::sync, 0, 0);
  const uint64_t begun_at = next_sequence_;
  if (sync_delay_.count() > 0) {
    const auto delay = sync_delay_;
    lock.unlock();
    std::this_thread::sleep_for(delay);
    lock.lock();
  }
  if (verdict == Verdict::proceed) {
    make_durable(begun_at);
    return {};
  }
  if (verdict == Verdict::io_error)
    for (auto& [index, versions] : unsynced_)
      for (Version& version : versions) version.lost = true;
  return failure(verdict, "sync");
}

void SimulatedDisk::start_writeback(uint64_t offset, uint64_t length) {
  std::lock_guard lock(mutex_);
  count(Call::writeback, offset, length);
}

Result<void> SimulatedDisk::prepare(uint64_t offset, uint64_t length) {
  std::lock_guard lock(mutex_);
  const Verdict verdict = admit(Call::prepare, offset, length);
  if (verdict == Verdict::proceed || verdict == Verdict::power_goes) {
    static const auto zeros = std::make_shared<const Block>();
    for (uint64_t at = 0; at < length && inside(offset, length); at += kBlockBytes)
      store((offset + at) / kBlockBytes, zeros);
  }
  return verdict == Verdict::proceed ? Result<void>{} : failure(verdict, "prepare");
}

Result<void> SimulatedDisk::discard(uint64_t offset, uint64_t length) {
  std::lock_guard lock(mutex_);
  const Verdict verdict = admit(Call::discard, offset, length);
  if (verdict == Verdict::proceed || verdict == Verdict::power_goes) {
    for (uint64_t at = 0; at < length && inside(offset, length); at += kBlockBytes) {
      store((offset + at) / kBlockBytes, discarded_block((offset + at) / kBlockBytes));
      occupied_.erase((offset + at) / kBlockBytes);
    }
  }
  return verdict == Verdict::proceed ? Result<void>{} : failure(verdict, "discard");
}

std::optional<uint64_t> SimulatedDisk::room_bytes() const {
  std::lock_guard lock(mutex_);
  if (!host_limit_) return std::nullopt;
  return (*host_limit_ - std::min<uint64_t>(*host_limit_, occupied_.size())) * kBlockBytes;
}

uint64_t SimulatedDisk::size_bytes() const {
  std::lock_guard lock(mutex_);
  return size_bytes_;
}

Result<void> SimulatedDisk::claim(uint64_t) {
  std::lock_guard lock(mutex_);
  if (power_is_off_) return failure(Verdict::power_is_off, "claim");
  return {};
}

}  // namespace vellum::support

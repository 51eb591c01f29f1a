// SPDX-License-Identifier: BSD-2-Clause
//
// Exports, and reading from them. A read looks up its blocks under the mutex, registers as a reader
// so that none of them is handed out again, and does its I/O and checksums outside.
#include <algorithm>
#include <cstring>

#include "common/base/crc32c.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr uint64_t kLeafBytes = kFanout * kBlockSize;

void add_extent(std::vector<Extent>& extents, uint64_t offset, uint64_t length, ExtentKind kind) {
  if (!extents.empty() && extents.back().kind == kind) {
    extents.back().length += length;
  } else {
    extents.push_back({offset, length, kind});
  }
}

}  // namespace

Result<std::shared_ptr<Export>> Core::open_export(const std::string& name, bool by_client) {
  const Lock lock(mutex_);
  if (closing_) return Error{Errc::shut_down, "the store is being closed"};
  TRY_ASSIGN(const Target target, find_target(name));
  auto state = std::make_shared<Export::State>();
  state->volume = target.volume;
  state->snapshot = target.snapshot;
  std::shared_ptr<Export> opened(new Export());
  opened->core_ = this;
  opened->name_ = name;
  state->by_client = by_client;
  state->times_destroyed = target.volume->times_destroyed;
  if (target.snapshot) {
    state->pinned = target.snapshot->version;
    state->pinned->pins++;
  }
  if (by_client) (target.snapshot ? target.snapshot->attached : target.volume->attached)++;
  opened->uuid_ = target.snapshot ? target.snapshot->uuid : target.volume->uuid;
  opened->read_only_ = target.snapshot != nullptr;
  opened->state_ = std::move(state);
  exports_++;
  return opened;
}

void Core::close_export(Export& gone) {
  const Lock lock(mutex_);
  exports_--;
  const auto& state = *gone.state_;
  if (state.by_client) (state.snapshot ? state.snapshot->attached : state.volume->attached)--;
  if (state.pinned != nullptr) {
    state.pinned->pins--;
    reclaim_wanted_.notify_one();
  }
}

uint64_t Core::size_of(Export& of) {
  const Lock lock(mutex_);
  return of.state_->snapshot ? of.state_->snapshot->size : of.state_->volume->size;
}

Ticket Core::enter(Export& to, uint64_t offset, uint64_t length) {
  const uint64_t first = offset / kBlockSize;
  const uint64_t end = length == 0 ? first : (offset + length - 1) / kBlockSize + 1;
  return Ticket(to.state_->volume->ranges.enter(first, end));
}

// The version to read now, if the range up to `end` (bytes) lies in it.
Result<void> Core::current_version(Export& from, uint64_t end, Version*& version) const {
  const auto& state = *from.state_;
  const bool is_dead =
      is_destroyed(*state.volume) || state.times_destroyed != state.volume->times_destroyed;
  if (!state.snapshot && is_dead) {
    return Error{Errc::destroyed, "the volume \"" + from.name() + "\" has been destroyed"};
  }
  const uint64_t size = state.snapshot ? state.snapshot->size : state.volume->size;
  if (end > size) {
    return Error{Errc::out_of_range, "\"" + from.name() + "\" has " + std::to_string(size) +
                                         " bytes, and the request reaches to " +
                                         std::to_string(end)};
  }
  version = state.snapshot ? state.pinned : state.volume->head;
  return {};
}

Core::Asker Core::asker(const Export& of) {
  return {of.name(), nullptr, &of.state_->volume->stats};
}

// One read within one leaf: what its blocks are, and then their data.
struct Core::Piecewise {
  Core& core;
  Export& from;
  Wait wait;
  std::array<Entry, kFanout> entries;
  uint64_t reader = 0;

  Result<void> look_up(uint64_t block, size_t count, uint64_t end_byte, bool count_it,
                       uint64_t bytes) {
    Lock lock(core.mutex_);
    Result<void> valid;
    TRY(core.with_nodes(lock, wait, asker(from), [&](MissingNodes& missing) {
      Version* version = nullptr;
      valid = core.current_version(from, end_byte, version);
      if (!valid.ok()) return true;
      const Node* leaf = core.tree_->leaf(*version, block, missing);
      if (!missing.empty()) return false;
      for (size_t i = 0; i < count; i++) {
        entries[i] = leaf != nullptr ? leaf->entries[slot_of(block, 1) + i] : Entry();
      }
      return true;
    }));
    TRY(valid);
    if (count_it) {
      for (IoStats* stats : {&core.stats_, &from.state_->volume->stats}) {
        stats->reads++;
        stats->read_bytes += bytes;
      }
    }
    reader = core.allocator_->enter_reader();
    return {};
  }

  void leave() {
    const Lock lock(core.mutex_);
    core.allocator_->leave_reader(reader);
  }

  Error damage(uint64_t block, size_t i, size_t n, const Error& error) {
    const Lock lock(core.mutex_);
    return core.damage(asker(from), entries[i], (block + i) * kBlockSize, n * kBlockSize, error);
  }

  Result<void> check(uint64_t block, size_t i, std::span<const std::byte> data) {
    if (crc32c(data) == entries[i].crc()) return {};
    return damage(block, i, 1, wrong_checksum(core.disk_, entries[i], "a block"));
  }

  Result<void> read_blocks(uint64_t block, size_t i, size_t n, std::span<std::byte> out) {
    Result<void> read = core.disk_.read(entries[i].block() * kBlockSize, out, wait);
    if (read.ok() || !is_damage(read.error())) return read;
    return damage(block, i, n, read.error());
  }

  // Part of one block, through a buffer: only a whole block can be checked.
  Result<void> read_part(uint64_t block, size_t i, size_t skip, std::span<std::byte> out) {
    Page page;
    TRY(read_blocks(block, i, 1, page));
    TRY(check(block, i, page));
    std::memcpy(out.data(), page.data() + skip, out.size());
    return {};
  }

  // Blocks i to i + n, which lie one after another on the disk.
  Result<void> read_run(uint64_t block, size_t i, size_t n, std::span<std::byte> out) {
    TRY(read_blocks(block, i, n, out));
    for (size_t k = 0; k < n; k++) {
      TRY(check(block, i + k, out.subspan(k * kBlockSize, kBlockSize)));
    }
    return {};
  }

  Result<void> fill(uint64_t offset, std::span<std::byte> out, std::vector<Extent>* extents) {
    const uint64_t block = offset / kBlockSize;
    for (size_t done = 0; done < out.size();) {
      const uint64_t at = offset + done;
      const size_t i = at / kBlockSize - block, skip = at % kBlockSize;
      size_t length = std::min<size_t>(kBlockSize - skip, out.size() - done);
      const bool hole = entries[i].is_hole();
      size_t n = 1;
      while (
          length % kBlockSize == 0 && skip == 0 && out.size() - done - length >= kBlockSize &&
          (hole ? entries[i + n].is_hole()
                : !entries[i + n].is_hole() && entries[i + n].block() == entries[i].block() + n)) {
        length += kBlockSize;
        n++;
      }
      const auto part = out.subspan(done, length);
      if (hole) {
        std::memset(part.data(), 0, part.size());
      } else if (skip == 0 && length % kBlockSize == 0) {
        TRY(read_run(block, i, n, part));
      } else {
        TRY(read_part(block, i, skip, part));
      }
      if (extents != nullptr) {
        add_extent(*extents, at, length, hole ? ExtentKind::zero : ExtentKind::data);
      }
      done += length;
    }
    return {};
  }
};

Result<void> Core::read(Export& from, uint64_t offset, std::span<std::byte> out, Wait wait,
                        std::vector<Extent>* extents) {
  if (extents != nullptr) extents->clear();
  if (offset > kVolumeSizeMax || out.size() > kVolumeSizeMax) {
    return Error{Errc::out_of_range, "the request lies beyond any volume"};
  }
  const uint64_t end = offset + out.size();
  if (out.empty()) {
    const Lock lock(mutex_);
    Version* version = nullptr;
    return current_version(from, end, version);
  }
  Piecewise piecewise{*this, from, wait, {}};
  for (uint64_t at = offset; at < end;) {
    const uint64_t piece_end = std::min(end, (at / kLeafBytes + 1) * kLeafBytes);
    const uint64_t block = at / kBlockSize;
    const size_t count = (piece_end - 1) / kBlockSize - block + 1;
    TRY(piecewise.look_up(block, count, end, at == offset, out.size()));
    const auto result = piecewise.fill(at, out.subspan(at - offset, piece_end - at), extents);
    piecewise.leave();
    TRY(result);
    at = piece_end;
  }
  return {};
}

Result<void> Core::read_whole_block(Export& from, uint64_t block, Page& page, Entry& entry,
                                    Wait wait) {
  Piecewise piecewise{*this, from, wait, {}};
  TRY(piecewise.look_up(block, 1, 0, false, 0));
  entry = piecewise.entries[0];
  page.fill(std::byte{0});
  Result<void> result;
  if (!entry.is_hole()) result = piecewise.read_run(block, 0, 1, page);
  piecewise.leave();
  return result;
}

Result<void> Core::cache(Export& from, uint64_t offset, uint64_t length) {
  constexpr uint64_t kCachedMax = 32 << 20;
  std::vector<std::byte> buffer(std::min(length, kLeafBytes));
  const uint64_t end = offset + std::min(length, kCachedMax);
  for (uint64_t at = offset; at < end;) {
    const uint64_t part = std::min<uint64_t>(end - at, buffer.size());
    TRY(read(from, at, std::span(buffer).first(part), Wait::allowed, nullptr));
    at += part;
  }
  return {};
}

}  // namespace vellum::store

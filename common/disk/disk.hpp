// SPDX-License-Identifier: BSD-2-Clause
//
// The one seam for storage. The store reads and writes through it and knows nothing of files,
// devices or objects. Addresses and lengths are bytes, multiples of 4096.
//
// 1. A write that has returned is visible to every later read, and durable once a sync() that began
//    after it has succeeded. Writes that were not synced may survive a crash in any subset.
// 2. A failed sync() is final: what was written since the last good one may be lost although a
// later
//    call succeeds. The caller must not retry (see the store's promise P9).
// 3. All calls are thread-safe. sync() calls are not made at the same time by the store.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/base/result.hpp"

namespace vellum::disk {

enum class Wait { allowed, never };

class Disk {
 public:
  virtual ~Disk() = default;

  // Fills `out` from `offset`. Beyond the end of what was written the bytes are zero or any. With
  // Wait::never the answer is Errc::would_block when the data is not in memory; disks that cannot
  // tell read it anyway.
  virtual Result<void> read(uint64_t offset, std::span<std::byte> out,
                            Wait wait = Wait::allowed) = 0;

  // Scatters one contiguous range of the disk into `parts`, as read() does.
  virtual Result<void> read(uint64_t offset, std::span<const iovec> parts, Wait wait) = 0;

  // Writes `parts` one after another from `offset` on.
  virtual Result<void> write(uint64_t offset, std::span<const iovec> parts) = 0;

  Result<void> write(uint64_t offset, std::span<const std::byte> data) {
    const iovec part{const_cast<std::byte*>(data.data()), data.size()};
    return write(offset, std::span(&part, 1));
  }

  virtual Result<void> sync() = 0;

  // A hint: start writing this range to the medium now, and do not wait for it.
  virtual void start_writeback(uint64_t offset, uint64_t length) = 0;

  // A hint: the next read of this range is to come from the medium.
  virtual void drop_cached(uint64_t /*offset*/, uint64_t /*length*/) {}

  // Makes [offset, offset + length), which holds nothing that is needed, ready for fast durable
  // writes: allocated and written once (zeros), if this disk gains by it.
  virtual Result<void> prepare(uint64_t offset, uint64_t length) = 0;

  // The range holds nothing that is needed. Its content is undefined from now on.
  virtual Result<void> discard(uint64_t offset, uint64_t length) = 0;

  // The bytes that can be addressed now. A file grows by being written to; a device does not.
  virtual uint64_t size_bytes() const = 0;

  // Looks again how large the disk is: a device may have been made larger.
  virtual Result<void> refresh_size() { return {}; }

  // What the file system that holds the file can still take; nothing if that is not known, or if
  // it does not grow.
  virtual std::optional<uint64_t> room_bytes() const { return std::nullopt; }

  // True for a file, whose capacity is a number chosen by its owner.
  virtual bool can_grow() const = 0;

  // From now on writes of whoever claimed with a smaller generation fail. A file or device that is
  // held by a lock has nothing to do here.
  virtual Result<void> claim(uint64_t generation) = 0;

  // For messages: the path, or what stands for it.
  virtual std::string name() const = 0;
};

}  // namespace vellum::disk

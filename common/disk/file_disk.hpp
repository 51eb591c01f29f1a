// SPDX-License-Identifier: BSD-2-Clause
//
// A disk in a regular file or on a block device.
//
// 1. One descriptor serves all reading, writing and syncing. It is opened before the first write,
// so
//    that no error of writeback can be reported to anybody else.
// 2. One owner: a lock is held from open() until the object is destroyed. Whoever comes second gets
//    Errc::in_use and the owner's pid (owner.hpp). The lock survives fork() and ends with the last
//    process that holds the descriptor.
// 3. Nothing is written to a file that was opened as an existing store before it has shown that it
//    is one: it carries an owner record, or the store has called claim().
// 4. What an existing store answers right after open() comes from the medium, not from the page
//    cache: pages that failed to be written would look clean.
// 5. After a failed sync() every later sync() fails with the same error.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/disk/descriptor.hpp"
#include "common/disk/disk.hpp"
#include "common/disk/owner.hpp"

namespace vellum::disk {

enum class OpenMode {
  existing,       // read and write
  inspect,        // read only; several may inspect at once, but not beside an owner
  create,         // a new or empty file, or a device on which nothing is seen; else Errc::exists
  create_forced,  // whatever the file or device holds is given up
};

class FileDisk final : public Disk {
 public:
  // Errors: not_found, exists, in_use, invalid_argument (neither file nor device), precondition
  // (not permitted), read_only, io_error. Each names `path`.
  static Result<std::unique_ptr<FileDisk>> open(const std::string& path, OpenMode mode);

  ~FileDisk() override;
  FileDisk(const FileDisk&) = delete;
  FileDisk& operator=(const FileDisk&) = delete;

  using Disk::write;
  Result<void> read(uint64_t offset, std::span<std::byte> out, Wait wait = Wait::allowed) override;
  Result<void> read(uint64_t offset, std::span<const iovec> parts, Wait wait) override;
  Result<void> write(uint64_t offset, std::span<const iovec> parts) override;
  Result<void> sync() override;
  void start_writeback(uint64_t offset, uint64_t length) override;
  // Files: fills the holes of the range with zeros. Devices, and files in memory: nothing.
  void drop_cached(uint64_t offset, uint64_t length) override;
  Result<void> prepare(uint64_t offset, uint64_t length) override;
  std::optional<uint64_t> room_bytes() const override;
  // Frees the range where file system and device can; elsewhere nothing happens.
  Result<void> discard(uint64_t offset, uint64_t length) override;
  uint64_t size_bytes() const override { return size_.load(std::memory_order_acquire); }
  Result<void> refresh_size() override;
  bool can_grow() const override { return kind_ == Kind::file; }
  // Writes the owner record if open() could not; there is nobody else to keep away.
  Result<void> claim(uint64_t generation) override;
  std::string name() const override { return path_; }

 private:
  enum class Kind { file, device };

  FileDisk(std::string path, OpenMode mode, Descriptor descriptor, Kind kind, uint64_t size);
  Result<void> take_over();
  Result<void> start_new();
  Result<void> refuse_what_is_seen();
  Result<void> become_owner();
  static bool lies_in_memory(const Descriptor& descriptor);
  Result<void> fill_hole(uint64_t begin, uint64_t end);
  Result<void> check_writable() const;
  void grow_to(uint64_t end);

  const std::string path_;
  const OpenMode mode_;
  const Descriptor descriptor_;
  const Kind kind_;
  const bool in_memory_;                   // a file on tmpfs
  std::atomic<uint64_t> size_;             // files: only ever grows, after a write or at open
  std::atomic<bool> can_tell_wait_{true};  // false once the file system refused RWF_NOWAIT
  std::atomic<bool> owner_recorded_{false};
  std::mutex sync_mutex_;
  std::optional<Error> sync_error_;  // guarded by sync_mutex_
};

}  // namespace vellum::disk

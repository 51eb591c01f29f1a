// SPDX-License-Identifier: BSD-2-Clause
#include "common/disk/file_disk.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <vector>

#include "common/disk/signature.hpp"

namespace vellum::disk {
namespace {

std::string range_text(std::string_view verb, uint64_t length, uint64_t offset) {
  return std::string(verb) + " " + std::to_string(length) + " bytes at offset " +
         std::to_string(offset);
}

bool creates(OpenMode mode) { return mode == OpenMode::create || mode == OpenMode::create_forced; }

int open_flags(OpenMode mode) {
  if (mode == OpenMode::inspect) return O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // it may be a pipe
  return O_RDWR | O_CLOEXEC | (creates(mode) ? O_CREAT : 0);
}

constexpr mode_t kNewFileMode = 0600;  // a store holds what its clients think private

// What is a device already is opened with O_EXCL, which for devices means: not while it is mounted
// or part of something else.
Result<Descriptor> open_path(const std::string& path, OpenMode mode) {
  struct stat status {};
  const bool is_device = ::stat(path.c_str(), &status) == 0 && S_ISBLK(status.st_mode);
  const int flags = is_device ? (open_flags(mode) & ~O_CREAT) | O_EXCL : open_flags(mode);
  Descriptor descriptor(::open(path.c_str(), flags, kNewFileMode));
  if (descriptor.valid()) return descriptor;
  const int error_number = errno;
  if (is_device && error_number == EBUSY) {
    const Descriptor reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return in_use_error(reader.number(), path);
  }
  return os_error(path, "open it", error_number);
}

Result<uint64_t> device_size(const Descriptor& descriptor, const std::string& path) {
  uint64_t size = 0;
  if (::ioctl(descriptor.number(), BLKGETSIZE64, &size) != 0) {
    return os_error(path, "tell its size", errno);
  }
  return size;
}

}  // namespace

Result<std::unique_ptr<FileDisk>> FileDisk::open(const std::string& path, OpenMode mode) {
  TRY_ASSIGN(Descriptor descriptor, open_path(path, mode));
  struct stat status {};
  if (::fstat(descriptor.number(), &status) != 0) return os_error(path, "examine it", errno);
  const bool is_device = S_ISBLK(status.st_mode);
  if (!is_device && !S_ISREG(status.st_mode)) {
    return Error{Errc::invalid_argument, path + " is neither a regular file nor a block device"};
  }
  uint64_t size = static_cast<uint64_t>(status.st_size);
  if (is_device) {
    TRY_ASSIGN(size, device_size(descriptor, path));
  }
  const Kind kind = is_device ? Kind::device : Kind::file;
  std::unique_ptr<FileDisk> disk(new FileDisk(path, mode, std::move(descriptor), kind, size));
  TRY(disk->take_over());
  return disk;
}

FileDisk::FileDisk(std::string path, OpenMode mode, Descriptor descriptor, Kind kind, uint64_t size)
    : path_(std::move(path)),
      mode_(mode),
      descriptor_(std::move(descriptor)),
      kind_(kind),
      in_memory_(lies_in_memory(descriptor_)),
      size_(size) {}

FileDisk::~FileDisk() {
  // Nobody reads the record of a store without a lock, so an error here harms nobody.
  if (owner_recorded_) (void)write_owner(descriptor_.number(), path_, Owner{});
}

Result<void> FileDisk::take_over() {
  const bool inspects = mode_ == OpenMode::inspect;
  TRY(lock(descriptor_.number(), path_, inspects ? LockKind::shared : LockKind::exclusive));
  if (creates(mode_)) return start_new();
  if (!inspects && read_owner(descriptor_.number())) TRY(become_owner());
  if (::fdatasync(descriptor_.number()) != 0) return os_error(path_, "sync it", errno);
  ::posix_fadvise(descriptor_.number(), 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

Result<void> FileDisk::start_new() {
  if (mode_ == OpenMode::create) TRY(refuse_what_is_seen());
  if (kind_ == Kind::file) {
    if (::ftruncate(descriptor_.number(), 0) != 0) return os_error(path_, "empty it", errno);
    size_ = 0;
    return become_owner();
  }
  // What tells other programs what the device holds must not outlive its content.
  const std::vector<std::byte> zeros(std::min<uint64_t>(kSignatureBytes, size_bytes()));
  TRY(write(0, zeros));
  TRY(write(size_bytes() - zeros.size(), zeros));
  return become_owner();
}

Result<void> FileDisk::refuse_what_is_seen() {
  constexpr std::string_view kRemedy = "; force the creation to give it up";
  if (kind_ == Kind::file) {
    // The size of before the lock may be too old: somebody else may have created a store meanwhile.
    struct stat status {};
    if (::fstat(descriptor_.number(), &status) != 0) return os_error(path_, "examine it", errno);
    if (status.st_size == 0) return {};
    size_ = static_cast<uint64_t>(status.st_size);
  }
  std::vector<std::byte> head(std::min<uint64_t>(kSignatureBytes, size_bytes()));
  std::vector<std::byte> tail(head.size());
  TRY(read(0, head));
  TRY(read(size_bytes() - tail.size(), tail));
  const std::optional<std::string> content = describe_content(head, tail);
  if (content && content->find("Vellum store") != std::string::npos) {
    return Error{Errc::exists, path_ + " holds " + *content +
                                   " already: open it without creating one, or force the creation, "
                                   "which gives up all that is in it"};
  }
  if (kind_ == Kind::file) {
    return Error{Errc::exists, path_ + " is not empty: it holds " + std::to_string(size_bytes()) +
                                   " bytes" + std::string(kRemedy)};
  }
  if (!content) return {};
  return Error{Errc::exists, path_ + " holds " + *content + std::string(kRemedy)};
}

Result<void> FileDisk::become_owner() {
  TRY(write_owner(descriptor_.number(), path_, this_process()));
  grow_to(kOwnerOffset + kOwnerBytes);
  owner_recorded_ = true;
  return {};
}

Result<void> FileDisk::claim(uint64_t) {
  TRY(check_writable());
  return owner_recorded_ ? Result<void>() : become_owner();
}

Result<void> FileDisk::read(uint64_t offset, std::span<std::byte> out, Wait wait) {
  const iovec part{out.data(), out.size()};
  return read(offset, {&part, 1}, wait);
}

Result<void> FileDisk::read(uint64_t offset, std::span<const iovec> parts, Wait wait) {
  bool never_wait = wait == Wait::never && can_tell_wait_.load(std::memory_order_relaxed);
  Parts rest(parts);
  std::array<iovec, IOV_MAX> batch;
  while (!rest.empty()) {
    const int count = rest.copy_to(batch);
    const off_t at = static_cast<off_t>(offset);
    const ssize_t length =
        never_wait ? ::preadv2(descriptor_.number(), batch.data(), count, at, RWF_NOWAIT)
                   : ::preadv(descriptor_.number(), batch.data(), count, at);
    if (length > 0) {
      rest.advance(static_cast<size_t>(length));
      offset += static_cast<uint64_t>(length);
    } else if (length == 0 && (!never_wait || offset >= size_bytes())) {
      rest.zero();
      return {};
    } else if (length == 0 || (never_wait && errno == EAGAIN)) {
      return Error{Errc::would_block, path_ + ": the data is not in memory"};
    } else if (never_wait && errno == EOPNOTSUPP) {
      can_tell_wait_.store(false, std::memory_order_relaxed);
      never_wait = false;
    } else if (errno != EINTR) {
      return os_error(path_, range_text("read", rest.length_bytes(), offset), errno);
    }
  }
  return {};
}

Result<void> FileDisk::write(uint64_t offset, std::span<const iovec> parts) {
  TRY(check_writable());
  const Parts all(parts);
  TRY(write_fully(descriptor_.number(), path_, offset, all));
  grow_to(offset + all.length_bytes());
  return {};
}

Result<void> FileDisk::sync() {
  const std::lock_guard guard(sync_mutex_);
  if (!sync_error_ && ::fdatasync(descriptor_.number()) != 0) {
    sync_error_ = os_error(path_, "sync it", errno);
  }
  return sync_error_ ? Result<void>(*sync_error_) : Result<void>();
}

void FileDisk::start_writeback(uint64_t offset, uint64_t length) {
  // Only a hint; an error of the writing itself is left for sync() to report.
  (void)::sync_file_range(descriptor_.number(), static_cast<off_t>(offset),
                          static_cast<off_t>(length), SYNC_FILE_RANGE_WRITE);
}

// A file system in memory commits nothing in a sync.
bool FileDisk::lies_in_memory(const Descriptor& descriptor) {
  struct statfs info {};
  return ::fstatfs(descriptor.number(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

Result<void> FileDisk::prepare(uint64_t offset, uint64_t length) {
  TRY(check_writable());
  if (kind_ == Kind::device) return {};
  if (in_memory_) {
    // Written twice, it would only be slower; but it has to be there.
    if (::fallocate(descriptor_.number(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                    static_cast<off_t>(length)) != 0 &&
        errno != EOPNOTSUPP) {
      return os_error(path_, "allocate space in it", errno);
    }
    return {};
  }
  const uint64_t end = offset + length;
  while (offset < end) {
    const off_t hole = ::lseek(descriptor_.number(), static_cast<off_t>(offset), SEEK_HOLE);
    // Beyond the end of the file (ENXIO) all is a hole.
    const uint64_t begin = hole >= 0 ? static_cast<uint64_t>(hole) : offset;
    if (begin >= end) return {};
    const off_t data = ::lseek(descriptor_.number(), static_cast<off_t>(begin), SEEK_DATA);
    const uint64_t stop = data >= 0 ? std::min(end, static_cast<uint64_t>(data)) : end;
    TRY(fill_hole(begin, stop));
    offset = stop;
  }
  return {};
}

void FileDisk::drop_cached(uint64_t offset, uint64_t length) {
  ::posix_fadvise(descriptor_.number(), static_cast<off_t>(offset), static_cast<off_t>(length),
                  POSIX_FADV_DONTNEED);
}

std::optional<uint64_t> FileDisk::room_bytes() const {
  struct statvfs info {};
  if (kind_ == Kind::device || ::fstatvfs(descriptor_.number(), &info) != 0) return std::nullopt;
  const uint64_t blocks = ::geteuid() == 0 ? info.f_bfree : info.f_bavail;
  return blocks * info.f_frsize;
}

Result<void> FileDisk::fill_hole(uint64_t begin, uint64_t end) {
  static constexpr size_t kZerosBytes = 64 << 10;
  static const std::array<std::byte, kZerosBytes> zeros{};
  constexpr uint64_t kPiecesMax = 16;  // a MiB a call
  std::array<iovec, kPiecesMax> pieces;
  while (begin < end) {
    size_t count = 0;
    uint64_t length = 0;
    while (count < kPiecesMax && begin + length < end) {
      const uint64_t piece = std::min<uint64_t>(kZerosBytes, end - begin - length);
      pieces[count++] = {const_cast<std::byte*>(zeros.data()), piece};
      length += piece;
    }
    TRY(write(begin, std::span<const iovec>(pieces.data(), count)));
    begin += length;
  }
  return {};
}

Result<void> FileDisk::discard(uint64_t offset, uint64_t length) {
  TRY(check_writable());
  int result = 0;
  if (kind_ == Kind::device) {
    uint64_t range[2] = {offset, length};
    result = ::ioctl(descriptor_.number(), BLKDISCARD, &range);
  } else {
    result = ::fallocate(descriptor_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         static_cast<off_t>(offset), static_cast<off_t>(length));
  }
  if (result == 0 || errno == EOPNOTSUPP) return {};
  return os_error(path_, range_text("discard", length, offset), errno);
}

Result<void> FileDisk::refresh_size() {
  if (kind_ != Kind::device) return {};
  TRY_ASSIGN(const uint64_t size, device_size(descriptor_, path_));
  size_.store(size, std::memory_order_release);
  return {};
}

Result<void> FileDisk::check_writable() const {
  if (mode_ != OpenMode::inspect) return {};
  return Error{Errc::read_only, path_ + " was opened for inspection only"};
}

void FileDisk::grow_to(uint64_t end) {
  if (kind_ == Kind::device) return;
  uint64_t size = size_.load(std::memory_order_relaxed);
  while (size < end && !size_.compare_exchange_weak(size, end, std::memory_order_acq_rel)) {
  }
}

}  // namespace vellum::disk

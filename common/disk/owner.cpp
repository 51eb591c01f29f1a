// SPDX-License-Identifier: BSD-2-Clause
#include "common/disk/owner.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "common/base/endian.hpp"
#include "common/disk/descriptor.hpp"

namespace vellum::disk {
namespace {

constexpr std::string_view kMagic = "VLMOWNER";
constexpr size_t kPidOffset = 8;
constexpr size_t kSinceOffset = 16;

struct flock first_byte(LockKind kind) {
  struct flock range {};
  range.l_type = kind == LockKind::exclusive ? F_WRLCK : F_RDLCK;
  range.l_whence = SEEK_SET;
  range.l_start = 0;
  range.l_len = 1;
  return range;
}

}  // namespace

std::optional<Owner> read_owner(int descriptor) {
  std::array<std::byte, kSinceOffset + sizeof(uint64_t)> head;
  const ssize_t length = ::pread(descriptor, head.data(), head.size(), kOwnerOffset);
  if (length != static_cast<ssize_t>(head.size())) return std::nullopt;
  if (std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) return std::nullopt;
  return Owner{load_le64(&head[kPidOffset]), load_le64(&head[kSinceOffset])};
}

Result<void> write_owner(int descriptor, std::string_view path, const Owner& owner) {
  std::array<std::byte, kOwnerBytes> block{};
  std::memcpy(block.data(), kMagic.data(), kMagic.size());
  store_le64(&block[kPidOffset], owner.pid);
  store_le64(&block[kSinceOffset], owner.since_ms);
  const iovec part{block.data(), block.size()};
  return write_fully(descriptor, path, kOwnerOffset, Parts({&part, 1}));
}

Owner this_process() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {static_cast<uint64_t>(::getpid()),
          static_cast<uint64_t>(duration_cast<milliseconds>(now).count())};
}

Result<void> lock(int descriptor, std::string_view path, LockKind kind) {
  struct flock range = first_byte(kind);
  if (::fcntl(descriptor, F_OFD_SETLK, &range) == 0) return {};
  if (errno != EAGAIN && errno != EACCES) return os_error(path, "lock it", errno);
  range = first_byte(kind);
  const bool known = ::fcntl(descriptor, F_OFD_GETLK, &range) == 0;
  if (known && range.l_type == F_RDLCK) {
    return Error{Errc::in_use,
                 std::string(path) + " is being inspected by another process; try again later"};
  }
  return in_use_error(descriptor, path);
}

Error in_use_error(int descriptor, std::string_view path) {
  const std::optional<Owner> owner = read_owner(descriptor);
  const std::string who = owner && owner->pid != 0 ? "process " + std::to_string(owner->pid)
                                                   : std::string("another process");
  return {Errc::in_use, std::string(path) + " is in use by " + who};
}

}  // namespace vellum::disk

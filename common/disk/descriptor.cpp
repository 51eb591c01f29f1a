// SPDX-License-Identifier: BSD-2-Clause
#include "common/disk/descriptor.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "common/base/check.hpp"

namespace vellum::disk {
namespace {

Errc code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENXIO:
    case ENODEV:
      return Errc::not_found;
    case EEXIST:
      return Errc::exists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Errc::no_space;
    case EROFS:
      return Errc::read_only;
    case EACCES:
    case EPERM:
      return Errc::precondition;
    case EBUSY:
    case ETXTBSY:
      return Errc::in_use;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return Errc::invalid_argument;
    default:
      return Errc::io_error;
  }
}

}  // namespace

Descriptor::~Descriptor() {
  // What matters was synced before; an error of close() would come too late for anybody.
  if (valid()) ::close(number_);
}

Error os_error(std::string_view path, std::string_view what, int error_number) {
  const char* const reason = strerrordesc_np(error_number);
  std::string message(path);
  message.append(": cannot ").append(what).append(": ");
  message.append(reason != nullptr ? reason : "unknown error " + std::to_string(error_number));
  return {code_of(error_number), std::move(message)};
}

uint64_t Parts::length_bytes() const {
  uint64_t length = 0;
  for (const iovec& part : parts_) length += part.iov_len;
  return length - done_;
}

int Parts::copy_to(std::span<iovec> out) const {
  const size_t count = std::min(parts_.size(), out.size());
  std::copy_n(parts_.begin(), count, out.begin());
  if (count > 0) {
    out[0].iov_base = static_cast<std::byte*>(out[0].iov_base) + done_;
    out[0].iov_len -= done_;
  }
  return static_cast<int>(count);
}

void Parts::advance(size_t length) {
  done_ += length;
  drop_empty();
}

// Also drops what is done: of the first part nothing is left then.
void Parts::drop_empty() {
  while (!parts_.empty() && done_ >= parts_[0].iov_len) {
    done_ -= parts_[0].iov_len;
    parts_ = parts_.subspan(1);
  }
  CHECK(!parts_.empty() || done_ == 0);
}

void Parts::zero() const {
  size_t done = done_;
  for (const iovec& part : parts_) {
    std::memset(static_cast<std::byte*>(part.iov_base) + done, 0, part.iov_len - done);
    done = 0;
  }
}

Result<void> write_fully(int descriptor, std::string_view path, uint64_t offset, Parts parts) {
  std::array<iovec, IOV_MAX> batch;
  while (!parts.empty()) {
    const int count = parts.copy_to(batch);
    const ssize_t written = ::pwritev(descriptor, batch.data(), count, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error_number = written < 0 ? errno : EIO;
      return os_error(path,
                      "write " + std::to_string(parts.length_bytes()) + " bytes at offset " +
                          std::to_string(offset),
                      error_number);
    }
    parts.advance(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

}  // namespace vellum::disk

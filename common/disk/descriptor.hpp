// SPDX-License-Identifier: BSD-2-Clause
//
// File descriptors, and errno as an Error.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/result.hpp"

namespace vellum::disk {

// Owns a file descriptor, or nothing (-1).
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  int number() const { return number_; }
  bool valid() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

// "PATH: cannot WHAT: REASON", with the code that fits `error_number`.
Error os_error(std::string_view path, std::string_view what, int error_number);

// What is left to transfer of the parts of one vectored read or write.
class Parts {
 public:
  explicit Parts(std::span<const iovec> parts) : parts_(parts) { drop_empty(); }

  bool empty() const { return parts_.empty(); }
  uint64_t length_bytes() const;

  // Copies the next parts, as many as fit, and says how many that are.
  int copy_to(std::span<iovec> out) const;
  // The next `length` bytes are done; at most length_bytes().
  void advance(size_t length);
  // Fills all that is left with zeros.
  void zero() const;

 private:
  void drop_empty();

  std::span<const iovec> parts_;  // empty, or the first one is not done
  size_t done_ = 0;               // bytes of the first part
};

// Writes all of `parts` at `offset`, or fails.
Result<void> write_fully(int descriptor, std::string_view path, uint64_t offset, Parts parts);

}  // namespace vellum::disk

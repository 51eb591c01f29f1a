// SPDX-License-Identifier: BSD-2-Clause
//
// Who owns a store: a lock on the first byte of its file or device, and beside it, for the message
// to whoever comes second, a record of the owner.
//
// The record is the block at byte 4096 of the store; nothing else of the store uses this block.
//
//   0   8  magic "VLMOWNER"
//   8   8  pid of the owner, 0 if there is none, little-endian like all numbers
//   16  8  when it became the owner, in milliseconds since 1970
//   24     zeros up to the end of the block
//
// The lock decides, the record only informs: the pid of an owner that crashed stays in it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/result.hpp"

namespace vellum::disk {

inline constexpr uint64_t kOwnerOffset = 4096;
inline constexpr size_t kOwnerBytes = 4096;

struct Owner {
  uint64_t pid = 0;
  uint64_t since_ms = 0;
};

// Nothing: `descriptor` carries no record, and is perhaps no store at all.
std::optional<Owner> read_owner(int descriptor);

Result<void> write_owner(int descriptor, std::string_view path, const Owner& owner);

// This process, from now on.
Owner this_process();

enum class LockKind { exclusive, shared };

// Takes the lock for as long as the open file description lives; never waits. Errors: Errc::in_use
// with the owner's pid, and what is wrong otherwise. An exclusive lock needs a descriptor that can
// write.
Result<void> lock(int descriptor, std::string_view path, LockKind kind);

// "PATH is in use by process PID", as far as the record tells.
Error in_use_error(int descriptor, std::string_view path);

}  // namespace vellum::disk

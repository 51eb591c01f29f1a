// SPDX-License-Identifier: BSD-2-Clause
//
// Blocks with checksums: reading what a pointer leads to, and writing rows of new blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.hpp"
#include "common/disk/disk.hpp"
#include "common/store/allocator.hpp"
#include "common/store/node.hpp"

namespace vellum::store {

using Page = std::array<std::byte, kBlockSize>;
using Pointers = std::array<Entry, kFanout>;

// CRC32C of a page that holds its own checksum at `at`: as if those four bytes were zero.
uint32_t page_crc(const Page& page, size_t at);

Error wrong_checksum(const disk::Disk& disk, const Entry& pointer, const char* what);

// Errc::corrupt if the checksum is wrong; the message names `what` and the address.
Result<void> read_block(disk::Disk& disk, const Entry& pointer, const char* what, Page& page,
                        disk::Wait wait = disk::Wait::allowed);

// A node of `level`. Pointers that cannot be right are corrupt: a kind that this level has not, an
// address outside [first, end), a version newer than the node's, bits that are reserved.
struct AddressLimits {
  uint64_t first_block = 0, end_block = 0;
};
Result<Pointers> read_node(disk::Disk& disk, const Entry& pointer, unsigned level,
                           const AddressLimits& limits, disk::Wait wait = disk::Wait::allowed);
Result<Pointers> parse_node(const Page& page, const Entry& pointer, unsigned level,
                            const AddressLimits& limits);

Entry load_entry(const std::byte* from);
void store_entry(std::byte* to, const Entry& entry);

// The end of the disk lies before `needed`, where it was written to before.
Error truncated(const disk::Disk& disk, uint64_t needed);

// Hands out the blocks of `runs` one after another.
class BlockSupply {
 public:
  explicit BlockSupply(std::vector<Run> runs) : runs_(std::move(runs)) {}
  uint64_t next();

 private:
  std::vector<Run> runs_;
  size_t run_ = 0;
  uint64_t used_ = 0;
};

// Collects blocks and writes what is contiguous with one call.
class BlockWriter {
 public:
  explicit BlockWriter(disk::Disk& disk) : disk_(disk) {}
  // `page` must live until flush().
  Result<void> add(uint64_t block, const Page& page);
  Result<void> flush();

 private:
  static constexpr size_t kPartsMax = 256;
  disk::Disk& disk_;
  uint64_t first_ = 0;
  std::vector<iovec> parts_;
};

}  // namespace vellum::store

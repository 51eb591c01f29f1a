// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/block_io.hpp"

#include "common/base/crc32c.hpp"
#include "common/base/endian.hpp"

namespace vellum::store {

Entry load_entry(const std::byte* from) {
  return Entry::raw(load_le64(from), load_le32(from + 8), load_le32(from + 12));
}

void store_entry(std::byte* to, const Entry& entry) {
  const Entry pointer = as_pointer(entry);
  store_le64(to, pointer.word());
  store_le32(to + 8, pointer.version());
  store_le32(to + 12, pointer.crc());
}

uint32_t page_crc(const Page& page, size_t at) {
  static constexpr std::byte kZeros[4]{};
  const uint32_t crc = crc32c_extend(crc32c(std::span(page).first(at)), kZeros);
  return crc32c_extend(crc, std::span(page).subspan(at + sizeof(kZeros)));
}

Error wrong_checksum(const disk::Disk& disk, const Entry& pointer, const char* what) {
  return {Errc::corrupt, std::string(what) + " at byte " +
                             std::to_string(pointer.block() * kBlockSize) + " of " + disk.name() +
                             " has a wrong checksum"};
}

Error truncated(const disk::Disk& disk, uint64_t needed) {
  const std::string size = std::to_string(needed);
  return {Errc::incompatible,
          disk.name() + " is a Vellum store that was truncated: it has " +
              std::to_string(disk.size_bytes()) + " bytes and needs at least " + size +
              ". If the rest is lost, lengthen it (truncate --size=" + size +
              "): what is missing is then found damaged, and all else is served"};
}

Result<void> read_block(disk::Disk& disk, const Entry& pointer, const char* what, Page& page,
                        disk::Wait wait) {
  const uint64_t at = pointer.block() * kBlockSize;
  if (at >= disk.size_bytes()) {
    return Error{Errc::corrupt, std::string(what) + " at byte " + std::to_string(at) + " of " +
                                    disk.name() + " lies beyond its end, so it was truncated"};
  }
  TRY(disk.read(at, std::span(page), wait));
  if (crc32c(page) == pointer.crc()) return {};
  return wrong_checksum(disk, pointer, what);
}

Result<Pointers> parse_node(const Page& page, const Entry& pointer, unsigned level,
                            const AddressLimits& limits) {
  Pointers pointers;
  const Kind kind = level == 1 ? Kind::data : Kind::node;
  for (size_t i = 0; i < kFanout; i++) {
    const Entry entry = load_entry(page.data() + i * sizeof(Entry));
    const uint64_t block = entry.block();
    const Entry expected = kind == Kind::data ? Entry::data(block, entry.version(), entry.crc())
                                              : Entry::node(block, entry.version(), entry.crc());
    const bool hole = entry.word() == 0 && entry.version() == 0 && entry.crc() == 0;
    const bool sound = entry.word() == expected.word() && block >= limits.first_block &&
                       block < limits.end_block && entry.version() <= pointer.version();
    if (!hole && !sound) {
      return Error{Errc::corrupt, "a map node at byte " +
                                      std::to_string(pointer.block() * kBlockSize) +
                                      " holds an impossible pointer in place " + std::to_string(i)};
    }
    pointers[i] = entry;
  }
  return pointers;
}

Result<Pointers> read_node(disk::Disk& disk, const Entry& pointer, unsigned level,
                           const AddressLimits& limits, disk::Wait wait) {
  Page page;
  TRY(read_block(disk, pointer, "a map node", page, wait));
  return parse_node(page, pointer, level, limits);
}

uint64_t BlockSupply::next() {
  CHECK(run_ < runs_.size());
  const uint64_t block = runs_[run_].block + used_++;
  if (used_ == runs_[run_].count) {
    run_++;
    used_ = 0;
  }
  return block;
}

Result<void> BlockWriter::add(uint64_t block, const Page& page) {
  if (!parts_.empty() && (block != first_ + parts_.size() || parts_.size() == kPartsMax)) {
    TRY(flush());
  }
  if (parts_.empty()) first_ = block;
  parts_.push_back({const_cast<std::byte*>(page.data()), page.size()});
  return {};
}

Result<void> BlockWriter::flush() {
  if (parts_.empty()) return {};
  TRY(disk_.write(first_ * kBlockSize, parts_));
  disk_.start_writeback(first_ * kBlockSize, parts_.size() * kBlockSize);
  parts_.clear();
  return {};
}

}  // namespace vellum::store

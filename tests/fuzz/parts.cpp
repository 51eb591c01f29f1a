// SPDX-License-Identifier: BSD-2-Clause
//
// The targets that decode one structure. What is accepted must be in bounds, and writing it again
// must give the same bytes: so nothing that is reserved was overlooked.
#include <algorithm>
#include <cstring>

#include "common/base/endian.hpp"
#include "common/store/journal.hpp"
#include "common/store/record.hpp"
#include "common/store/store.hpp"
#include "common/store/superblock.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/failure.hpp"
#include "tests/support/simulated_disk.hpp"

namespace vellum::fuzz {

using store::kBlockSize;
using store::Page;
using support::demand;

namespace {

constexpr uint64_t kDiskBytes = 2 << 20;
constexpr uint64_t kRingSectors = 16;

void put(support::SimulatedDisk& disk, uint64_t offset, const Page& page) {
  (void)disk.write(offset, std::span<const std::byte>(page));
}

void seal(Page& page, size_t crc_at) {
  store_le32(page.data() + crc_at, store::page_crc(page, crc_at));
}

}  // namespace

void superblock(Input input) {
  Bytes bytes(input);
  const uint64_t flags = bytes.number(1);
  Page page{};
  const Input content = bytes.some(kBlockSize);
  std::copy(content.begin(), content.end(), page.begin());
  if (flags & 4) {
    std::memcpy(page.data(), store::kSuperblockMagic, 8);
    store_le32(page.data() + 12, store::kFormatVersion);
    seal(page, 8);
  }
  support::SimulatedDisk disk(kDiskBytes, false);
  put(disk, (flags & 3) * store::kSlotStride, page);
  const auto found = store::find_superblock(disk);
  if (found.ok()) {
    demand(store::geometry_fault(found->superblock).empty(), "an impossible geometry is accepted");
    Page again;
    store::store_superblock(found->superblock, again);
    support::SimulatedDisk other(kDiskBytes, false);
    put(other, 0, again);
    const auto same = store::find_superblock(other);
    demand(same.ok() && same->superblock.capacity == found->superblock.capacity,
           "a superblock that was written again is another");
  }
  store::Options options;
  options.background = false;
  options.cache_bytes = 1 << 20;
  (void)store::check(disk, options, {});
  (void)store::Store::open(disk, options);
}

void record(Input input) {
  const auto pieces = store::decode(input);
  if (!pieces) return;
  std::vector<std::byte> again;
  for (const store::Piece& piece : *pieces) encode(piece, again);
  demand(std::ranges::equal(again, input), "a record is not what its pieces are written as");
}

void journal(Input input) {
  Bytes bytes(input);
  support::SimulatedDisk disk(kDiskBytes, false);
  store::JournalReader::Limits limits{{}, kRingSectors, 3, bytes.number(1) % kRingSectors, 0};
  uint32_t previous_crc = 0;
  uint64_t written = 0;
  for (uint64_t sequence = 1; sequence <= kRingSectors + 1 && !bytes.empty(); ++sequence) {
    Page page{};
    const uint64_t flags = bytes.number(1);
    const Input payload = bytes.some(bytes.number(2) % (store::kSectorPayload + 1));
    store_le32(page.data(), store::kJournalMagic);
    store_le64(page.data() + 24, sequence <= limits.replay_end ? flags % 4 : 3);
    store_le64(page.data() + 32, sequence);
    store_le32(page.data() + 40, previous_crc);
    store_le32(page.data() + 44, static_cast<uint32_t>(payload.size()));
    store_le64(page.data() + 48, flags / 8);
    std::copy(payload.begin(), payload.end(), page.begin() + store::kSectorHeader);
    const bool edited = flags & 4;
    const size_t at = edited ? bytes.number(1) % store::kSectorHeader : 0;
    if (edited) page[at] = static_cast<std::byte>(bytes.number(1));
    seal(page, 4);
    previous_crc = load_le32(page.data() + 4);
    if (sequence == limits.replay_end) limits.replay_end_crc = previous_crc;
    put(disk, store::kJournalOffset + sequence % kRingSectors * kBlockSize, page);
    written = sequence;
  }
  store::JournalReader reader(disk, limits, {});
  store::RecordAssembler assembler;
  store::SectorHeader header;
  Page page;
  size_t bytes_read = 0;
  for (uint64_t expected = 1;; ++expected) {
    const auto more = reader.next(header, page);
    demand(more.ok(), "reading the journal");
    if (!*more) break;
    demand(header.sequence == expected && expected <= written, "a sector that was not written");
    std::vector<std::vector<std::byte>> records;
    if (!assembler.add_sector(header, page, records)) break;
    for (const auto& each : records) {
      bytes_read += each.size();
      record(each);
    }
  }
  demand(bytes_read <= written * store::kSectorPayload, "more is read than there is");
}

void node(Input input) {
  Bytes bytes(input);
  const auto level = static_cast<unsigned>(bytes.number(1) % store::kLevels + 1);
  const auto version = static_cast<store::VersionId>(bytes.number(4));
  const store::AddressLimits limits{bytes.number(2), bytes.number(2)};
  const bool is_plausible = bytes.number(1) & 1;
  Page page{};
  const Input content = bytes.some(kBlockSize);
  std::copy(content.begin(), content.end(), page.begin());
  if (is_plausible) {
    for (size_t at = 0; at < content.size() / 16 * 16; at += 16) {
      page[at + 6] = std::byte{store::kSectorsPerBlock};
      page[at + 7] = static_cast<std::byte>(level == 1 ? 1 : 2);
    }
  }
  const auto pointers = store::parse_node(page, store::Entry::node(1, version, 0), level, limits);
  if (!pointers.ok()) return;
  Page again;
  for (size_t i = 0; i < store::kFanout; ++i) {
    const store::Entry& entry = (*pointers)[i];
    store::store_entry(again.data() + i * sizeof(store::Entry), entry);
    if (entry.is_hole()) continue;
    demand(entry.kind() == (level == 1 ? store::Kind::data : store::Kind::node), "a wrong kind");
    demand(entry.block() >= limits.first_block && entry.block() < limits.end_block, "an address");
    demand(entry.version() <= version, "a pointer that is newer than its node");
  }
  demand(again == page, "a node is not what its pointers are written as");
}

}  // namespace vellum::fuzz

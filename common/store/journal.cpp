// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/journal.hpp"

#include <algorithm>
#include <cstring>

#include "common/base/check.hpp"
#include "common/base/endian.hpp"

namespace vellum::store {

namespace {

enum class Fragment : uint8_t { whole = 1, first, middle, last };

constexpr size_t kReadAheadSectors = 64;
constexpr size_t kCrcAt = 4;  // in a sector

bool parse_header(const Page& page, const Uuid& uuid, SectorHeader& header) {
  if (load_le32(page.data()) != kJournalMagic) return false;
  if (std::memcmp(page.data() + 8, uuid.data(), uuid.size()) != 0) return false;
  header.crc = load_le32(page.data() + kCrcAt);
  header.generation = load_le64(page.data() + 24);
  header.sequence = load_le64(page.data() + 32);
  header.previous_crc = load_le32(page.data() + 40);
  header.payload_length = load_le32(page.data() + 44);
  header.durable = load_le64(page.data() + 48);
  return header.payload_length <= kSectorPayload && header.crc == page_crc(page, kCrcAt);
}

}  // namespace

Journal::Journal(uint64_t sectors, const Uuid& uuid, uint64_t generation, JournalPosition next,
                 uint64_t tail)
    : sectors_(sectors), uuid_(uuid), generation_(generation), next_(next), tail_(tail) {}

bool Journal::room_for(size_t record_bytes, size_t records) const {
  const uint64_t seals = std::min<uint64_t>(records, sectors_ / 4);
  return sectors_used() + sectors_for(record_bytes) + seals < sectors_;
}

void Journal::append(std::span<const std::byte> record) {
  bool first = true;
  do {
    if (used_ + kFragmentHeader >= kSectorPayload) seal();
    if (!filling_) filling_ = std::make_unique<Page>();
    const size_t room = kSectorPayload - used_ - kFragmentHeader;
    const size_t length = std::min(room, record.size());
    const bool last = length == record.size();
    const auto type = first ? (last ? Fragment::whole : Fragment::first)
                            : (last ? Fragment::last : Fragment::middle);
    std::byte* to = filling_->data() + kSectorHeader + used_;
    store_le16(to, static_cast<uint16_t>(length));
    to[2] = static_cast<std::byte>(type);
    to[3] = std::byte{0};
    std::memcpy(to + kFragmentHeader, record.data(), length);
    used_ += kFragmentHeader + length;
    record = record.subspan(length);
    first = false;
  } while (!record.empty());
}

void Journal::seal() {
  if (used_ == 0) return;
  CHECK(sectors_used() < sectors_);
  Page& page = *filling_;
  store_le32(page.data(), kJournalMagic);
  std::memcpy(page.data() + 8, uuid_.data(), uuid_.size());
  store_le64(page.data() + 24, generation_);
  store_le64(page.data() + 32, next_.sequence);
  store_le32(page.data() + 40, next_.previous_crc);
  store_le32(page.data() + 44, static_cast<uint32_t>(used_));
  store_le64(page.data() + 48, durable_);
  store_le64(page.data() + 56, 0);
  std::memset(page.data() + kSectorHeader + used_, 0, kSectorPayload - used_);
  const uint32_t crc = page_crc(page, kCrcAt);
  store_le32(page.data() + kCrcAt, crc);
  sealed_.push_back({next_.sequence, std::move(filling_)});
  next_ = {next_.sequence + 1, crc};
  used_ = 0;
}

Result<void> write_sectors(disk::Disk& disk, uint64_t ring_sectors,
                           std::span<const SealedSector> sectors) {
  constexpr size_t kPartsMax = 256;
  for (size_t at = 0; at < sectors.size();) {
    const uint64_t place = sectors[at].sequence % ring_sectors;
    const size_t run =
        std::min({sectors.size() - at, kPartsMax, static_cast<size_t>(ring_sectors - place)});
    std::vector<iovec> parts(run);
    for (size_t i = 0; i < run; i++) parts[i] = {sectors[at + i].page->data(), kBlockSize};
    const uint64_t offset = kJournalOffset + place * kBlockSize;
    TRY(disk.write(offset, parts));
    at += run;
  }
  return {};
}

Result<bool> JournalReader::next(SectorHeader& header, Page& sector) {
  if (next_.sequence - first_ >= limits_.ring_sectors) return false;
  if (ahead_used_ == ahead_.size()) {
    const uint64_t place = next_.sequence % limits_.ring_sectors;
    const size_t count = std::min<uint64_t>(kReadAheadSectors, limits_.ring_sectors - place);
    ahead_.resize(count);
    ahead_used_ = 0;
    TRY(disk_.read(kJournalOffset + place * kBlockSize,
                   std::span(ahead_[0].data(), count * kBlockSize)));
  }
  const Page& page = ahead_[ahead_used_];
  if (!parse_header(page, limits_.uuid, header)) return false;
  if (header.sequence != next_.sequence || header.previous_crc != next_.previous_crc) return false;
  const bool older = header.sequence <= limits_.replay_end;
  if (older ? header.generation > limits_.generation : header.generation != limits_.generation) {
    return false;
  }
  if (header.sequence == limits_.replay_end && header.crc != limits_.replay_end_crc) return false;
  sector = page;
  ahead_used_++;
  next_ = {header.sequence + 1, header.crc};
  return true;
}

bool RecordAssembler::add_sector(const SectorHeader& header, const Page& sector,
                                 std::vector<std::vector<std::byte>>& records) {
  const std::byte* at = sector.data() + kSectorHeader;
  const std::byte* end = at + header.payload_length;
  while (at != end) {
    if (end - at < static_cast<ptrdiff_t>(kFragmentHeader)) return false;
    const size_t length = load_le16(at);
    const auto type = static_cast<Fragment>(at[2]);
    at += kFragmentHeader;
    if (static_cast<size_t>(end - at) < length) return false;
    const bool begins = type == Fragment::whole || type == Fragment::first;
    const bool ends = type == Fragment::whole || type == Fragment::last;
    if (!begins && type != Fragment::middle && type != Fragment::last) return false;
    if (begins) {
      partial_.clear();
      in_record_ = true;
    }
    if (in_record_) partial_.insert(partial_.end(), at, at + length);
    if (ends && in_record_) {
      records.push_back(std::move(partial_));
      partial_.clear();
      in_record_ = false;
    }
    at += length;
  }
  return true;
}

}  // namespace vellum::store

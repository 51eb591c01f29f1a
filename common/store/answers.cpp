// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/answers.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/endian.hpp"
#include "common/store/types.hpp"

namespace vellum::store {

namespace {
constexpr size_t kAnswerHeader = 16;
}

std::optional<std::string> Answers::find(const std::string& request_id, int64_t now) const {
  const auto found = by_request_.find(request_id);
  if (found == by_request_.end()) return std::nullopt;
  const Answer& answer = slots_.at(found->second);
  if (answer.expires <= now) return std::nullopt;
  return answer.text;
}

std::optional<uint32_t> Answers::slot_for_new(size_t text_bytes, int64_t now) const {
  uint32_t next = 0;
  for (const auto& [slot, answer] : slots_) {
    if (slot != next || answer.expires <= now) break;
    next++;
  }
  const auto taken = slots_.find(next);
  const size_t given_back = taken == slots_.end() ? 0 : taken->second.text.size();
  if (next >= kAnswersMax || text_bytes_ - given_back + text_bytes > kTextBytesMax) {
    return std::nullopt;
  }
  return next;
}

bool Answers::execute(const AnswerPiece& piece) {
  if (piece.slot >= kAnswersMax || piece.text.size() > kAnswerTextMax) return false;
  Answer& answer = slots_[piece.slot];
  const auto old = by_request_.find(answer.request_id);
  if (old != by_request_.end() && old->second == piece.slot) by_request_.erase(old);
  text_bytes_ -= answer.text.size();
  answer = {piece.expires, piece.request_id, piece.text};
  text_bytes_ += answer.text.size();
  by_request_[answer.request_id] = piece.slot;
  changed_.insert(piece.slot);
  return true;
}

uint64_t Answers::changed_blocks() const {
  uint64_t blocks = 0;
  for (const uint32_t slot : changed_) blocks += blocks_of(slots_.at(slot));
  return blocks;
}

std::set<uint32_t> Answers::take_changed_slots() { return std::exchange(changed_, {}); }

std::vector<uint32_t> Answers::used_slots() const {
  std::vector<uint32_t> used;
  for (const auto& [slot, answer] : slots_) used.push_back(slot);
  return used;
}

size_t Answers::blocks_of(const Answer& answer) {
  const size_t length = kAnswerHeader + answer.request_id.size() + answer.text.size();
  return (length + kBlockSize - 1) / kBlockSize;
}

std::vector<Page> Answers::store(uint32_t slot) const {
  const Answer& answer = slots_.at(slot);
  std::vector<Page> pages(blocks_of(answer));
  std::byte* to = pages[0].data();
  std::memset(to, 0, pages.size() * kBlockSize);
  store_le64(to, static_cast<uint64_t>(answer.expires));
  store_le32(to + 8, static_cast<uint32_t>(answer.request_id.size()));
  store_le32(to + 12, static_cast<uint32_t>(answer.text.size()));
  std::memcpy(to + kAnswerHeader, answer.request_id.data(), answer.request_id.size());
  std::memcpy(to + kAnswerHeader + answer.request_id.size(), answer.text.data(),
              answer.text.size());
  return pages;
}

bool Answers::load(uint64_t index, const Page& page) {
  const uint64_t slot = index / kAnswerSlotBlocks, part = index % kAnswerSlotBlocks;
  if (slot >= kAnswersMax) return false;
  auto& bytes = loading_[static_cast<uint32_t>(slot)];
  if (bytes.size() < (part + 1) * kBlockSize) bytes.resize((part + 1) * kBlockSize);
  std::memcpy(bytes.data() + part * kBlockSize, page.data(), kBlockSize);
  return true;
}

void Answers::lose(uint64_t index, uint64_t count) {
  is_damaged_ = true;
  const uint64_t end = std::min(index + count, kAnswersMax * kAnswerSlotBlocks);
  while (index < end) {
    lost_.emplace(static_cast<uint32_t>(index / kAnswerSlotBlocks), index % kAnswerSlotBlocks);
    index = (index / kAnswerSlotBlocks + 1) * kAnswerSlotBlocks;
  }
}

// A slot may have blocks behind its answer, left from a longer one.
bool Answers::is_lost(uint32_t slot, const std::vector<std::byte>& bytes) const {
  const auto lost = lost_.find(slot);
  if (lost == lost_.end()) return false;
  const uint64_t length =
      uint64_t{kAnswerHeader} + load_le32(bytes.data() + 8) + load_le32(bytes.data() + 12);
  return lost->second * kBlockSize < length;
}

bool Answers::loaded() {
  for (const auto& [slot, bytes] : loading_) {
    if (is_lost(slot, bytes)) continue;
    const auto expires = static_cast<int64_t>(load_le64(bytes.data()));
    const size_t id_length = load_le32(bytes.data() + 8), length = load_le32(bytes.data() + 12);
    if (id_length > kRequestIdLengthMax || length > kAnswerTextMax) return false;
    if (kAnswerHeader + id_length + length > bytes.size()) return false;
    const auto* text = reinterpret_cast<const char*>(bytes.data()) + kAnswerHeader;
    execute({slot, expires, std::string(text, id_length), std::string(text + id_length, length)});
  }
  loading_.clear();
  lost_.clear();
  changed_.clear();
  return true;
}

}  // namespace vellum::store

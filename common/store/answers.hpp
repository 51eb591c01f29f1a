// SPDX-License-Identifier: BSD-2-Clause
//
// Answers to requests that carried a request_id, kept for an hour, also across restarts (DESIGN,
// "Control protocol"). Guarded by the store's mutex; changed by executing records only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/store/block_io.hpp"
#include "common/store/record.hpp"

namespace vellum::store {

class Answers {
 public:
  static constexpr int64_t kKeptMs = 60 * 60 * 1000;
  static constexpr size_t kAnswersMax = 65536;
  static constexpr size_t kTextBytesMax = 64 << 20;  // of all answers together

  std::optional<std::string> find(const std::string& request_id, int64_t now) const;
  // A slot for a new answer: a free one, or that of an expired answer; none if all are in use.
  std::optional<uint32_t> slot_for_new(size_t text_bytes, int64_t now) const;
  bool execute(const AnswerPiece& piece);

  // Blocks that the next checkpoint writes.
  uint64_t changed_blocks() const;

  // -- Tables: kAnswerSlotBlocks blocks a slot ---------------------------------------------------
  std::set<uint32_t> take_changed_slots();
  std::vector<Page> store(uint32_t slot) const;    // as many blocks as it needs
  bool load(uint64_t index, const Page& page);     // ascending; false: wrong
  void lose(uint64_t index, uint64_t count);       // blocks that are damaged, in their order too
  bool loaded();                                   // after the last
  bool is_damaged() const { return is_damaged_; }  // lose() was called
  std::vector<uint32_t> used_slots() const;        // ascending

 private:
  struct Answer {
    int64_t expires = 0;
    std::string request_id, text;
  };
  static size_t blocks_of(const Answer& answer);
  bool is_lost(uint32_t slot, const std::vector<std::byte>& bytes) const;
  std::map<uint32_t, Answer> slots_;
  std::unordered_map<std::string, uint32_t> by_request_;
  size_t text_bytes_ = 0;
  std::set<uint32_t> changed_;
  std::map<uint32_t, std::vector<std::byte>> loading_;
  std::map<uint32_t, uint64_t> lost_;  // by slot, the first of its blocks that is damaged
  bool is_damaged_ = false;
};

}  // namespace vellum::store

// SPDX-License-Identifier: BSD-2-Clause
//
// A store that is getting full says so in time, and what could be eradicated.
#include <algorithm>
#include <array>

#include "common/base/units.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<unsigned, 2> kWarningLevels{75, 90};  // percent
constexpr unsigned kHysteresis = 2;
constexpr auto kLookInterval = std::chrono::seconds(1);
// To find candidates, all snapshots are looked at.
constexpr auto kCandidatesInterval = std::chrono::seconds(60);
constexpr size_t kCandidatesMax = 3;

std::string enumerate(const std::vector<EradicationCandidate>& candidates) {
  std::string text;
  for (const EradicationCandidate& candidate : candidates) {
    text += (text.empty() ? "\"" : ", \"") + candidate.name + "\" (" +
            format_size(candidate.gives_back) + ")";
  }
  return text;
}

}  // namespace

// What is destroyed already, and then, by what is at hand of the figures, the snapshots that would
// give back most.
std::vector<EradicationCandidate> Core::eradication_candidates() const {
  std::vector<std::pair<uint64_t, const Snapshot*>> best;
  for (const auto& [name, volume] : forest_.volumes()) {
    for (const auto& [suffix, snapshot] : volume->snapshots) {
      const Version& version = *snapshot->version;
      const uint64_t blocks = version.children.empty() ? version.owned : version.not_shared;
      if (blocks == 0 || version.names.size() != 1 || is_destroyed(*snapshot)) continue;
      best.emplace_back(blocks, snapshot.get());
      std::sort(best.rbegin(), best.rend());
      if (best.size() > kCandidatesMax) best.pop_back();
    }
  }
  std::vector<EradicationCandidate> candidates;
  const auto add = [&](const auto& object) {
    if (candidates.size() == kCandidatesMax) return;
    const SpaceInfo space = space_of(object);
    if (space.gives_back > 0) candidates.push_back({space.name, space.gives_back});
  };
  for (const auto& [time, id] : forest_.destroyed()) {
    if (const auto volume = forest_.volume(id)) add(*volume);
    if (const auto snapshot = forest_.snapshot(id)) add(*snapshot);
  }
  for (const auto& [blocks, snapshot] : best) add(*snapshot);
  return candidates;
}

std::string Core::warning_text(unsigned level, unsigned percent) const {
  const std::string refused = " is full, writes that need space are refused: ";
  const auto& candidates = warning_->candidates;
  const std::string first = candidates.empty()
                                ? "eradicate volumes or snapshots"
                                : "what could be eradicated first is " + enumerate(candidates);
  if (host_is_full_) {
    return "the file system that holds " + disk_.name() + refused + "make room there; " + first;
  }
  const std::string store = "the store " + disk_.name();
  return (level == kWarningFull ? store + refused
                                : store + " is " + std::to_string(percent) + " % full: ") +
         first + "; or let the store grow";
}

void Core::warn(unsigned level, unsigned percent) {
  const auto now = Clock::now();
  const unsigned before = warning_ ? warning_->level : 0;
  if (level == 0) {
    if (before != 0 && before != kWarningFull) {
      log(1, "the store " + disk_.name() + " is " + std::to_string(percent) +
                 " % full, no longer " + std::to_string(before) + " %");
    }
    warning_.reset();
    return;
  }
  if (!warning_) warning_.emplace();
  if (level != before || now - candidates_found_ >= kCandidatesInterval) {
    warning_->candidates = eradication_candidates();
    candidates_found_ = now;
  }
  warning_->level = level;
  warning_->percent_full = percent;
  warning_->message = warning_text(level, percent);
  if (level > before) log(level == kWarningFull ? 3 : 2, warning_->message);
}

void Core::look_at_space() {
  const auto now = Clock::now();
  if (options_.background && now - looked_at_space_ < kLookInterval) return;
  looked_at_space_ = now;
  const uint64_t capacity = allocator_->capacity();
  const auto percent = static_cast<unsigned>((capacity - free_blocks()) * 100 / capacity);
  const unsigned before = warning_ ? warning_->level : 0;
  unsigned level = 0;
  for (const unsigned threshold : {kWarningLevels[0], kWarningLevels[1], kWarningFull}) {
    if (percent + (before >= threshold ? kHysteresis : 0) >= threshold) level = threshold;
  }
  warn(host_is_full_ ? kWarningFull : level, percent);
}

// A change has been refused.
void Core::note_full() {
  if (!warning_ || warning_->level != kWarningFull) warn(kWarningFull, kWarningFull);
}

}  // namespace vellum::store

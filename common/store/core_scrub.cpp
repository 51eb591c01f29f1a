// SPDX-License-Identifier: BSD-2-Clause
//
// Scrub: everything that is in use is read from the medium and compared with its checksum, in
// bounded steps beside all else. Versions come by id; of each, what is charged to it and its
// parent's running collapse, by place. What moves meanwhile moves to later versions, so nothing
// that was there at the start is left out, and some of it may be read twice.
#include <algorithm>

#include "common/base/crc32c.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

namespace {

constexpr size_t kStepBlocks = 256;
constexpr size_t kDamagesMax = 100;
constexpr size_t kNamesMax = 16;  // of those that one damaged block is named for

// What a version holds from a place on, until there are enough.
class Collector {
 public:
  Collector(NodeCache& nodes, MissingNodes& missing, const Version& version, uint64_t from)
      : nodes_(nodes), missing_(missing), version_(version), from_(from) {}

  std::vector<Missing> held;
  uint64_t reached = kTreeBlocks;

  bool collect(const Entry& entry, unsigned level, uint64_t base) {
    if (entry.is_hole() || base + span_blocks(level) <= from_) return true;
    if (!holds(version_, entry, place_of(base, level))) return true;
    if (held.size() >= kStepBlocks) {
      reached = base;
      return false;
    }
    const bool is_written = !entry.is_in_memory() || entry.target()->block != 0;
    if (is_written && base >= from_) held.push_back({as_pointer(entry), level, base});
    if (level == 0) return true;
    const Node* node = nodes_.find(entry);
    if (node == nullptr && nodes_.is_damaged(entry)) return true;  // as its own reading tells
    if (node == nullptr) {
      missing_.push_back({entry, level, base});
      return false;
    }
    const uint64_t span = span_blocks(level - 1);
    for (size_t i = from_ > base ? (from_ - base) / span : 0; i < kFanout; i++) {
      if (!collect(node->entries[i], level - 1, base + i * span)) return false;
    }
    return true;
  }

 private:
  NodeCache& nodes_;
  MissingNodes& missing_;
  const Version& version_;
  const uint64_t from_;
};

}  // namespace

ScrubInfo Core::start_scrub() {
  const Lock lock(mutex_);
  if (scrub_.info.state == ScrubState::running) return scrub_.info;
  const uint64_t run = scrub_.run + 1;
  scrub_ = {};
  scrub_.run = run;
  scrub_.info.state = ScrubState::running;
  scrub_.info.started = now();
  scrub_.info.total_bytes = allocator_->allocated() * kBlockSize;
  nodes_.forget_damaged();  // and try all of it again
  log(1, "scrub: started");
  scrub_wanted_.notify_one();
  return scrub_.info;
}

ScrubInfo Core::stop_scrub() {
  const Lock lock(mutex_);
  if (scrub_.info.state == ScrubState::running) finish_scrub(ScrubState::stopped);
  return scrub_.info;
}

ScrubInfo Core::scrub_info() {
  const Lock lock(mutex_);
  return scrub_.info;
}

void Core::finish_scrub(ScrubState state) {
  ScrubInfo& info = scrub_.info;
  info.state = state;
  info.finished = now();
  log(info.errors > 0 ? 3 : 1, std::string("scrub: ") +
                                   (state == ScrubState::finished ? "finished, " : "stopped, ") +
                                   std::to_string(info.checked_bytes) + " bytes read, " +
                                   std::to_string(info.errors) + " damaged blocks");
}

// Of the visible versions at and below `owner`, those that read this target.
std::vector<std::string> Core::readers_of(Lock& lock, VersionId owner, const Missing& held) {
  std::vector<std::string> names;
  std::vector<VersionId> left{owner};
  while (!left.empty() && names.size() < kNamesMax) {
    const Version* version = forest_.version(left.back());
    left.pop_back();
    if (version == nullptr) continue;
    bool has = false;
    const Asker whom{{}, version};
    const auto looked = with_nodes(lock, Wait::allowed, whom, [&](MissingNodes& missing) {
      Entry entry = version->root;
      for (unsigned level = kLevels; level > held.level && !entry.is_hole(); level--) {
        const Node* node = nodes_.find(entry);
        if (node == nullptr) {
          missing.push_back({entry, level, held.block});
          return false;
        }
        entry = node->entries[slot_of(held.block, level)];
      }
      has = same_target(entry, held.pointer);
      return true;
    });
    if (!looked.ok() || !has) continue;
    for (const Version* child : version->children) left.push_back(child->id);
    add_names(*version, names);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void Core::note_scrubbed_damage(Lock& lock, VersionId owner, const Missing& held,
                                const Error& error) {
  const Version* version = forest_.version(owner);
  if (version == nullptr) return;  // it is being freed
  ScrubDamage found;
  found.offset = held.block * kBlockSize;
  found.length = span_blocks(held.level) * kBlockSize;
  found.address = held.pointer.block() * kBlockSize;
  found.is_map = held.level > 0;
  found.message = damage({{}, version}, held.pointer, found.offset, found.length, error).message;
  scrub_.info.errors++;
  if (scrub_.info.damages.size() == kDamagesMax) return;
  found.names = readers_of(lock, owner, held);
  scrub_.info.damages.push_back(std::move(found));
}

void Core::scrub_rows(std::vector<Missing>& held, std::vector<std::pair<Missing, Error>>& damaged) {
  std::sort(held.begin(), held.end(), [](const Missing& a, const Missing& b) {
    return a.pointer.block() < b.pointer.block();
  });
  for (size_t at = 0; at < held.size();) {
    size_t end = at + 1;
    while (end < held.size() && held[end].pointer.block() == held[end - 1].pointer.block() + 1) {
      end++;
    }
    scrub_row(std::span(held).subspan(at, end - at), damaged);
    at = end;
  }
}

// Reads what lies in one row on the disk; where that fails, each block by itself.
void Core::scrub_row(std::span<const Missing> row,
                     std::vector<std::pair<Missing, Error>>& damaged) {
  const uint64_t at = row.front().pointer.block() * kBlockSize;
  std::vector<std::byte> data(row.size() * kBlockSize);
  const bool was_cached = disk_.read(at, std::span(data).first(kBlockSize), Wait::never).ok();
  disk_.drop_cached(at, data.size());
  const auto read = disk_.read(at, std::span(data));
  if (!was_cached) disk_.drop_cached(at, data.size());
  if (!read.ok() && row.size() > 1) {
    for (size_t i = 0; i < row.size(); i++) scrub_row(row.subspan(i, 1), damaged);
    return;
  }
  if (!read.ok()) {
    damaged.emplace_back(row.front(), read.error());
    return;
  }
  for (size_t i = 0; i < row.size(); i++) {
    if (crc32c(std::span(data).subspan(i * kBlockSize, kBlockSize)) == row[i].pointer.crc()) {
      continue;
    }
    const char* what = row[i].level > 0 ? "a map node" : "a block";
    damaged.emplace_back(row[i], wrong_checksum(disk_, row[i].pointer, what));
  }
}

// Tables and bitmaps of the newest checkpoint.
void Core::scrub_system(Lock& lock) {
  const SystemTree tree = *system_tree_;
  const uint64_t reader = allocator_->enter_reader();
  lock.unlock();
  uint64_t blocks = 0;
  std::vector<Error> damaged;
  for (auto area = Area::versions; area <= Area::answers;
       area = static_cast<Area>(static_cast<uint64_t>(area) + 1)) {
    const auto read = tree.for_each(
        area,
        [&](uint64_t /*index*/, const Page& /*page*/) {
          blocks++;
          return Result<void>();
        },
        [&](uint64_t /*index*/, uint64_t /*count*/, const Error& error) {
          // A node above several areas is met in each.
          const bool is_same = !damaged.empty() && damaged.back().message == error.message;
          if (!is_same) damaged.push_back(error);
        });
    CHECK(read.ok());
  }
  lock.lock();
  allocator_->leave_reader(reader);
  scrub_.info.checked_bytes += blocks * kBlockSize;
  for (const Error& error : damaged) {
    scrub_.info.errors++;
    stats_.checksum_errors++;
    log(3, "scrub: in the tables of the store, " + error.message);
    ScrubDamage found;
    found.message = error.message;
    scrub_.info.damages.push_back(found);
  }
}

Result<bool> Core::scrub_step() {
  const std::lock_guard one(reclaim_mutex_);  // and no version is removed meanwhile
  Lock lock(mutex_);
  if (scrub_.info.state != ScrubState::running) return false;
  const uint64_t run = scrub_.run;
  if (scrub_.version == 0) {
    scrub_system(lock);
    if (scrub_.run == run) scrub_.version = 1;
    return true;
  }
  const auto next = forest_.versions().lower_bound(scrub_.version);
  if (next == forest_.versions().end()) {
    finish_scrub(ScrubState::finished);
    return false;
  }
  const Version& version = *next->second;
  if (version.id != scrub_.version) scrub_.block = 0;
  std::vector<Missing> held;
  uint64_t reached = 0;
  const Asker whom{{}, &version, nullptr, true};
  TRY(with_nodes(lock, Wait::allowed, whom, [&](MissingNodes& missing) {
    Collector collector(nodes_, missing, version, scrub_.block);
    collector.collect(version.root, kLevels, 0);
    if (!missing.empty()) return false;
    held = std::move(collector.held);
    reached = collector.reached;
    return true;
  }));
  const uint64_t reader = allocator_->enter_reader();
  lock.unlock();
  std::vector<std::pair<Missing, Error>> damaged;
  scrub_rows(held, damaged);
  lock.lock();
  allocator_->leave_reader(reader);
  if (scrub_.run != run || scrub_.info.state != ScrubState::running) return true;
  scrub_.info.checked_bytes += held.size() * kBlockSize;
  const bool is_done = reached == kTreeBlocks;
  scrub_.version = is_done ? version.id + 1 : version.id;
  scrub_.block = is_done ? 0 : reached;
  std::sort(damaged.begin(), damaged.end(), [](const auto& a, const auto& b) {
    return place_of(a.first.block, a.first.level) < place_of(b.first.block, b.first.level);
  });
  for (const auto& [place, error] : damaged) note_scrubbed_damage(lock, version.id, place, error);
  return true;
}

// Beside clients, a tenth of the time.
void Core::scrubber() {
  uint64_t requests_before = 0;
  for (;;) {
    {
      Lock lock(mutex_);
      scrub_wanted_.wait(lock,
                         [&] { return stopping_ || scrub_.info.state == ScrubState::running; });
      if (stopping_) return;
    }
    const auto began = std::chrono::steady_clock::now();
    const auto more = scrub_step();
    const auto took = std::chrono::steady_clock::now() - began;
    Lock lock(mutex_);
    const bool is_busy = requests() != std::exchange(requests_before, requests());
    const auto pause = more.ok() ? took * 9 : std::chrono::seconds(5);
    if (is_busy || !more.ok()) scrub_wanted_.wait_for(lock, pause, [&] { return stopping_; });
    if (stopping_) return;
  }
}

}  // namespace vellum::store

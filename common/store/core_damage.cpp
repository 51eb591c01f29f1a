// SPDX-License-Identifier: BSD-2-Clause
//
// What cannot be read, or has a wrong checksum: who is told, how often, and by which name. An error
// goes to whoever asked for it; the log has each block once.
#include "common/base/units.hpp"
#include "common/store/core.hpp"

namespace vellum::store {

Error Core::damage(const Asker& asker, const Entry& pointer, uint64_t offset, uint64_t length,
                   const Error& error) {
  const bool is_corrupt = error.code == Errc::corrupt;
  const std::string who =
      asker.version != nullptr ? name_of(*asker.version) : "\"" + std::string(asker.name) + "\"";
  const std::string what = is_corrupt ? " is damaged at offset " : " cannot be read at offset ";
  Error damage{error.code, who + what + std::to_string(offset) + " (" + format_size(length) +
                               "): " + error.message};
  if (is_corrupt) {
    stats_.checksum_errors++;
    if (asker.stats != nullptr) asker.stats->checksum_errors++;
  }
  if (nodes_.note_damaged(pointer)) log(3, damage.message);
  return damage;
}

bool Core::is_damage(const Error& error) {
  return error.code == Errc::corrupt || error.code == Errc::io_error;
}

// Reads what is missing, and pins it. With the first that fails, `missing` is only that.
Result<void> Core::load_nodes(Lock& lock, const Asker& asker, MissingNodes& missing,
                              std::vector<Node*>& pinned) {
  // Nobody may overwrite what we are about to read, even if it is freed meanwhile.
  const uint64_t reader = allocator_->enter_reader();
  const AddressLimits limits = superblock_.limits();
  lock.unlock();
  std::sort(missing.begin(), missing.end(), [](const Missing& a, const Missing& b) {
    return a.pointer.block() < b.pointer.block();
  });
  std::vector<std::pair<Missing, Pointers>> read;
  std::optional<Missing> failed;
  Result<void> result;
  for (const Missing& wanted : missing) {
    if (!read.empty() && read.back().first.pointer.block() == wanted.pointer.block()) continue;
    auto pointers = read_node(disk_, wanted.pointer, wanted.level, limits);
    if (!pointers.ok()) {
      result = pointers.error();
      failed = wanted;
      break;
    }
    read.emplace_back(wanted, *pointers);
  }
  lock.lock();
  for (const auto& [wanted, pointers] : read) {
    Node* node = nodes_.insert(wanted.pointer, wanted.level, pointers);
    nodes_.pin(*node);
    pinned.push_back(node);
  }
  allocator_->leave_reader(reader);
  if (!failed) return {};
  missing.assign(1, *failed);
  if (!is_damage(result.error())) return result;
  const uint64_t span = span_blocks(failed->level);
  return damage(asker, failed->pointer, failed->block / span * span * kBlockSize, span * kBlockSize,
                result.error());
}

Result<void> Core::with_nodes(Lock& lock, Wait wait, const Asker& asker, const Attempt& attempt,
                              std::optional<Missing>* unreadable) {
  MissingNodes missing;
  std::vector<Node*> pinned;
  Result<void> result;
  while (!attempt(missing)) {
    CHECK(!missing.empty());
    if (wait == Wait::never) {
      result = Error{Errc::would_block, "the map is not in memory"};
      break;
    }
    result = load_nodes(lock, asker, missing, pinned);
    if (!result.ok()) {
      if (!asker.goes_without || !nodes_.is_damaged(missing[0].pointer)) {
        if (unreadable != nullptr && is_damage(result.error())) *unreadable = missing[0];
        break;
      }
      result = {};
    }
    missing.clear();
  }
  for (Node* node : pinned) nodes_.unpin(*node);
  if (!pinned.empty()) nodes_.shrink();
  return result;
}

}  // namespace vellum::store

// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/operation.hpp"

#include <algorithm>

#include "common/store/types.hpp"

namespace vellum::support {

namespace {

const char* const kActionNames[kActions] = {"write",
                                            "zeroes",
                                            "trim",
                                            "read",
                                            "flush",
                                            "create",
                                            "destroy",
                                            "rename",
                                            "resize",
                                            "take_snapshots",
                                            "destroy_snapshot",
                                            "clone",
                                            "copy",
                                            "recover",
                                            "eradicate",
                                            "revert",
                                            "attach",
                                            "detach",
                                            "query",
                                            "checkpoint",
                                            "checkpoint_step",
                                            "reclaim_step",
                                            "set_delay",
                                            "wait",
                                            "repeat_request",
                                            "reopen"};

void set_weights(Profile& profile, std::initializer_list<std::pair<Action, unsigned>> weights) {
  for (unsigned& weight : profile.weights) weight = 0;
  for (const auto& [action, weight] : weights) profile.weights[static_cast<int>(action)] = weight;
}

}  // namespace

std::string answer_to(const std::string& request_id) { return "answer to " + request_id; }

std::string describe(const Operation& operation) {
  std::string text = "#" + std::to_string(operation.number) + " " +
                     kActionNames[static_cast<int>(operation.action)];
  for (const std::string& name : operation.names) text += " " + name;
  for (const Range& range : operation.ranges)
    text += " [" + std::to_string(range.offset) + " +" + std::to_string(range.length) +
            (operation.action == Action::write ? " write " + std::to_string(range.tag) : "") + "]";
  if (operation.suffix) text += " suffix=" + *operation.suffix;
  if (operation.size_bytes) text += " size=" + std::to_string(operation.size_bytes);
  if (operation.force) text += " force";
  if (operation.eradicate) text += " eradicate";
  if (operation.undo) text += " undo";
  if (!operation.request_id.empty()) text += " request_id=" + operation.request_id;
  return text;
}

Profile model_profile() {
  Profile profile{};
  set_weights(profile, {{Action::write, 300},
                        {Action::zeroes, 40},
                        {Action::trim, 60},
                        {Action::read, 120},
                        {Action::flush, 30},
                        {Action::create, 15},
                        {Action::destroy, 10},
                        {Action::recover, 12},
                        {Action::eradicate, 8},
                        {Action::set_delay, 4},
                        {Action::wait, 3},
                        {Action::rename, 8},
                        {Action::resize, 15},
                        {Action::take_snapshots, 30},
                        {Action::destroy_snapshot, 22},
                        {Action::clone, 12},
                        {Action::copy, 14},
                        {Action::revert, 12},
                        {Action::attach, 10},
                        {Action::detach, 8},
                        {Action::query, 60},
                        {Action::checkpoint, 6},
                        {Action::checkpoint_step, 60},
                        {Action::reclaim_step, 60},
                        {Action::repeat_request, 8},
                        {Action::reopen, 8}});
  return profile;
}

Profile reclaim_profile() {
  Profile profile{};
  set_weights(profile, {{Action::write, 300},
                        {Action::zeroes, 10},
                        {Action::trim, 80},
                        {Action::read, 20},
                        {Action::flush, 5},
                        {Action::create, 10},
                        {Action::destroy, 15},
                        {Action::resize, 5},
                        {Action::take_snapshots, 70},
                        {Action::destroy_snapshot, 80},
                        {Action::clone, 40},
                        {Action::copy, 15},
                        {Action::revert, 40},
                        {Action::query, 10},
                        {Action::checkpoint, 5},
                        {Action::checkpoint_step, 40},
                        {Action::reclaim_step, 500},
                        {Action::reopen, 6}});
  profile.volumes_max = 4;
  profile.snapshots_max = 8;
  profile.size_small_bytes = profile.size_large_bytes = 700 << 20;
  profile.huge_percent = 0;
  profile.wrong_percent = 0;
  profile.range_bytes = 64 << 10;
  profile.places = 20;
  profile.subtree_percent = 20;
  profile.last_writes = 40;
  return profile;
}

Profile crash_profile() {
  Profile profile = model_profile();
  set_weights(profile, {{Action::write, 300},
                        {Action::zeroes, 25},
                        {Action::trim, 50},
                        {Action::flush, 70},
                        {Action::create, 20},
                        {Action::destroy, 14},
                        {Action::recover, 14},
                        {Action::eradicate, 10},
                        {Action::set_delay, 5},
                        {Action::wait, 4},
                        {Action::rename, 8},
                        {Action::resize, 15},
                        {Action::take_snapshots, 50},
                        {Action::destroy_snapshot, 40},
                        {Action::clone, 20},
                        {Action::copy, 20},
                        {Action::revert, 20},
                        {Action::checkpoint, 15},
                        {Action::checkpoint_step, 60},
                        {Action::reclaim_step, 60},
                        {Action::repeat_request, 4},
                        {Action::reopen, 15}});
  profile.volumes_max = 3;
  profile.snapshots_max = 6;
  profile.wrong_percent = 0;
  profile.huge_percent = 5;
  profile.zero_range_bytes = 4 << 20;
  return profile;
}

std::vector<Operation> changes_of(const Operation& operation) {
  std::vector<Operation> changes;
  for (const Range& range : operation.ranges) {
    for (uint64_t done = 0; done < range.length;) {
      const uint64_t at = range.offset + done;
      const uint64_t length =
          std::min(store::kChangeBytesMax - at % store::kChangeBytesMax, range.length - done);
      Operation change = operation;
      change.ranges = {{at, length, range.tag}};
      changes.push_back(std::move(change));
      done += length;
    }
  }
  if (changes.empty()) changes.push_back(operation);
  return changes;
}

}  // namespace vellum::support

// SPDX-License-Identifier: BSD-2-Clause
#include "tests/crash/alphabet.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace vellum::support {

namespace {

constexpr uint64_t kBlock = kContentBlockBytes;

Operation forced(Operation operation) {
  operation.force = true;
  return operation;
}

std::string volume_of(const std::string& snapshot) {
  return snapshot.substr(0, snapshot.find('@'));
}

std::vector<std::string> volumes(const Model& model) {
  std::vector<std::string> there;
  for (const char* name : {"a", "b"})
    if (model.volume(name)) there.emplace_back(name);
  return there;
}

void append(std::vector<Operations>& all, std::vector<Operations> more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

void add_every_content(std::vector<Operations>& all, const std::string& name) {
  for (const Action action : {Action::write, Action::zeroes, Action::trim}) {
    for (uint64_t first = 0; first < kSmallVolumeBytes; first += kBlock)
      for (uint64_t end = first + kBlock; end <= kSmallVolumeBytes; end += kBlock)
        all.push_back({content(action, name, first, end - first)});
    all.push_back({content(action, name, kBlock + 512, 1024)});
    all.push_back({content(action, name, kBlock + 512, 2 * kBlock - 512)});
  }
  all.push_back({content(Action::write, name, 0, kBlock), named(Action::flush, {})});
  all.push_back({content(Action::trim, name, kBlock, kBlock), named(Action::flush, {})});
}

void add_few_contents(std::vector<Operations>& all, const Model& model) {
  if (model.volume("a")) {
    all.push_back({content(Action::write, "a", 0, kBlock)});
    all.push_back({content(Action::write, "a", 0, 3 * kBlock)});
    all.push_back({content(Action::write, "a", kBlock + 512, 1024)});
    all.push_back({content(Action::write, "a", kBlock, 2 * kBlock), named(Action::flush, {})});
    all.push_back({content(Action::trim, "a", 0, kBlock)});
    all.push_back({content(Action::trim, "a", 0, 3 * kBlock)});
    all.push_back({content(Action::zeroes, "a", kBlock + 512, 2 * kBlock - 512)});
  }
  if (model.volume("b")) {
    all.push_back({content(Action::write, "b", kBlock, kBlock)});
    all.push_back({content(Action::trim, "b", kBlock, 2 * kBlock)});
    all.push_back({content(Action::zeroes, "b", 0, kBlock)});
  }
}

void add_with_snapshot(std::vector<Operations>& all, const Model& model,
                       const std::string& snapshot, const std::vector<std::string>& targets) {
  if (!model.volume("c")) all.push_back({named(Action::clone, {snapshot, "c"})});
  for (const std::string& target : targets)
    all.push_back({forced(named(Action::copy, {snapshot, target}))});
  if (model.volume(volume_of(snapshot)))
    all.push_back({named(Action::revert, {volume_of(snapshot), snapshot})});
  all.push_back({named(Action::destroy_snapshot, {snapshot})});
}

void add_with_destroyed(std::vector<Operations>& all, const std::string& name) {
  all.push_back({named(Action::recover, {name})});
  all.push_back({named(Action::eradicate, {name})});
}

std::vector<Operations> without_names() {
  return {{named(Action::flush, {})},
          {named(Action::checkpoint, {})},
          {named(Action::reclaim_step, {})}};
}

}  // namespace

Operation named(Action action, std::vector<std::string> names) {
  Operation operation;
  operation.action = action;
  operation.names = std::move(names);
  return operation;
}

Operation content(Action action, const std::string& name, uint64_t offset, uint64_t length) {
  Operation operation = named(action, {name});
  operation.ranges = {{offset, length, 0}};
  return operation;
}

Operation create_small(const std::string& name) {
  Operation operation = named(Action::create, {name});
  operation.size_bytes = kSmallVolumeBytes;
  return operation;
}

Operation set_delay(uint64_t milliseconds) {
  Operation operation = named(Action::set_delay, {});
  operation.size_bytes = milliseconds;
  return operation;
}

std::vector<Operations> every_step(const Model& model) {
  std::vector<Operations> all;
  const std::vector<std::string> there = volumes(model);
  for (const std::string& name : there) {
    add_every_content(all, name);
    all.push_back({named(Action::take_snapshots, {name})});
    all.push_back({named(Action::destroy, {name})});
    for (const std::string& target : there)
      if (target != name) all.push_back({forced(named(Action::copy, {name, target}))});
  }
  if (there.size() > 1) all.push_back({named(Action::take_snapshots, there)});
  for (const std::string& snapshot : model.snapshot_names())
    add_with_snapshot(all, model, snapshot, there);
  for (const std::string& name : model.recoverable_names()) add_with_destroyed(all, name);
  append(all, without_names());
  return all;
}

std::vector<Operations> few_steps(const Model& model) {
  std::vector<Operations> all;
  add_few_contents(all, model);
  const std::vector<std::string> there = volumes(model);
  if (model.volume("a")) {
    all.push_back({named(Action::take_snapshots, {"a"})});
    all.push_back({named(Action::destroy, {"a"})});
  }
  if (there.size() > 1) {
    all.push_back({named(Action::take_snapshots, there)});
    all.push_back({forced(named(Action::copy, {"b", "a"}))});
  }
  std::vector<std::string> target;
  if (model.volume("b")) target.emplace_back("b");
  if (const std::vector<std::string> names = model.snapshot_names(); !names.empty())
    add_with_snapshot(all, model, names.back(), target);
  if (const std::vector<std::string> names = model.recoverable_names(); !names.empty())
    add_with_destroyed(all, names.back());
  append(all, without_names());
  return all;
}

}  // namespace vellum::support

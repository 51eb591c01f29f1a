// SPDX-License-Identifier: BSD-2-Clause
#include "tests/crash/observation.hpp"

#include <algorithm>

#include "tests/support/driver.hpp"
#include "tests/support/failure.hpp"

namespace vellum::support {

namespace {

constexpr uint64_t kBlock = kContentBlockBytes;
constexpr uint64_t kWholeMax = 8 * kBlock;

// Blocks that are worth a look: what the store calls data, and what any candidate calls so.
std::set<uint64_t> places(store::Store& store, const std::string& name, uint64_t size_bytes,
                          const std::vector<Model>& candidates) {
  std::set<uint64_t> indexes;
  for (uint64_t at = 0; size_bytes <= kWholeMax && at < size_bytes; at += kBlock)
    indexes.insert(at / kBlock);
  const auto list = demand_ok(store.extents(name, 0, 65536), "extents of " + name);
  for (const store::Extent& extent : list.extents)
    for (uint64_t at = extent.offset; at < extent.offset + extent.length; at += kBlock)
      indexes.insert(at / kBlock);
  for (const Model& candidate : candidates)
    if (const Content* content = candidate.content(name))
      for (const auto& [index, block] : content->blocks())
        if (index * kBlock < size_bytes) indexes.insert(index);
  return indexes;
}

Seen look(store::Store& store, const std::string& name, const std::vector<Model>& candidates) {
  const auto opened = demand_ok(store.open_export(name), "open " + name);
  Seen seen;
  seen.size_bytes = opened->size_bytes();
  for (uint64_t index : places(store, name, seen.size_bytes, candidates)) {
    std::vector<std::byte> block(std::min(kBlock, seen.size_bytes - index * kBlock));
    demand_ok(opened->read(index * kBlock, block), "reading " + name);
    seen.blocks[index] = std::move(block);
  }
  return seen;
}

}  // namespace

Observation observe(store::Store& store, const std::vector<Model>& candidates) {
  Observation observation;
  for (const auto& info : store.list_volumes()) {
    observation.volumes.insert(info.name);
    observation.versions[info.name] = look(store, info.name, candidates);
    observation.versions[info.name].parent = info.parent;
  }
  for (const auto& info : store.list_snapshots(std::nullopt)) {
    observation.versions[info.name] = look(store, info.name, candidates);
    observation.versions[info.name].parent = info.parent;
  }
  observation.destroyed = destroyed_in(store);
  observation.eradication_delay = store.info().eradication_delay;
  for (const Model& candidate : candidates)
    for (const auto& [request_id, answer] : candidate.answers())
      observation.answers[request_id] = store.find_answer(request_id);
  return observation;
}

std::string difference(const Observation& observation, const Model& model) {
  const std::vector<std::string> names = model.all_names();
  for (const std::string& name : names)
    if (!observation.versions.count(name)) return name + " is missing";
  for (const auto& [name, seen] : observation.versions) {
    const Content* content = model.content(name);
    if (!content) return name + " should not be there";
    if (content->size_bytes() != seen.size_bytes)
      return name + " is of " + std::to_string(seen.size_bytes) + " bytes, not " +
             std::to_string(content->size_bytes());
    if (!model.may_be_parent(name, seen.parent))
      return name + " has the parent " + seen.parent.value_or("none");
    for (const auto& [index, bytes] : seen.blocks)
      if (const std::string wrong = content->difference(index * kBlock, bytes); !wrong.empty())
        return name + " " + wrong;
  }
  if (observation.destroyed != model.destroyed_names())
    return "other volumes or snapshots are destroyed";
  if (observation.eradication_delay != static_cast<int64_t>(model.eradication_delay()))
    return "the eradication delay is " + std::to_string(observation.eradication_delay);
  for (const auto& [request_id, answer] : observation.answers) {
    auto found = model.answers().find(request_id);
    if (answer.has_value() != (found != model.answers().end()))
      return request_id + (answer ? " has" : " lacks") + " its answer";
  }
  return {};
}

}  // namespace vellum::support

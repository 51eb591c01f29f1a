// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/driver.hpp"

#include <algorithm>
#include <cstdio>

#include "tests/support/driver_results.hpp"
#include "tests/support/failure.hpp"
#include "tests/support/map_checks.hpp"

namespace vellum::support {

namespace {

bool is_disk_failure(const Error& error) {
  return error.code == Errc::io_error || error.code == Errc::read_only ||
         error.code == Errc::no_space || error.code == Errc::corrupt;
}

}  // namespace

store::Geometry tiny_geometry(uint64_t capacity_bytes) {
  store::Geometry geometry;
  geometry.eradication_delay = 0;
  geometry.capacity = capacity_bytes;
  geometry.segment_size = 64 << 10;
  geometry.region_size = 256 << 10;
  geometry.journal_size = 64 << 10;
  return geometry;
}

Driver::Driver(SimulatedDisk& disk, const DriverOptions& options, Model model)
    : disk_(disk), options_(options), random_(options.seed), model_(std::move(model)) {
  model_.detach_all();
}

store::Options Driver::store_options() {
  store::Options options;
  options.cache_bytes = options_.cache_bytes;
  options.background = false;
  options.clock = [this] { return clock_ += tick_; };
  options.random_seed = options_.seed + 1;
  options.reclaim_places = options_.seed % 3 == 0 ? 16 : options_.seed % 3;
  if (options_.verbose)
    options.log = [](int level, const std::string& message) {
      std::fprintf(stderr, "    store(%d): %s\n", level, message.c_str());
    };
  return options;
}

Result<void> Driver::open() {
  auto opened = store::Store::open(disk_, store_options());
  if (!opened.ok()) return opened.error();
  store_ = std::move(opened).value();
  model_.detach_all();
  return {};
}

void Driver::abandon() {
  attached_.clear();
  store_.reset();
  model_.detach_all();
}

bool Driver::run(const Operation& operation) {
  if (options_.verbose) std::fprintf(stderr, "  %s\n", describe(operation).c_str());
  last_ = operation;
  Model after = model_;
  const Model::Errors expected = after.apply(operation);
  std::optional<Error> error;
  try {
    error = execute(operation, after);
  } catch (const Refused&) {
    if (!disk_.has_failed()) throw;
    return false;
  }
  const std::string what = describe(operation);
  if (!error) {
    demand(expected.empty(), what + ": it succeeded and must not");
    if (operation.action == Action::trim && disk_.has_failed() && !is_trimmed(operation, after))
      return false;
    model_ = std::move(after);
    return true;
  }
  const bool foreseen = std::find(expected.begin(), expected.end(), error->code) != expected.end();
  if (!foreseen && is_disk_failure(*error) && disk_.has_failed()) return false;
  demand(foreseen,
         what + ": error " + std::to_string(static_cast<int>(error->code)) + ", " + error->message);
  demand(!error->message.empty(), what + ": an error without a message");
  return true;
}

// A trim that finds no space for the map succeeds and has no effect.
bool Driver::is_trimmed(const Operation& trim, const Model& after) {
  const auto opened = open_export(trim.names[0]);
  if (!opened.ok()) return false;
  const Content& content = *after.content(trim.names[0]);
  const Range& range = trim.ranges[0];
  std::vector<std::byte> block(kContentBlockBytes);
  for (const auto& [index, data] : model_.content(trim.names[0])->blocks()) {
    const uint64_t at = index * kContentBlockBytes;
    if (at + kContentBlockBytes <= range.offset || at >= range.offset + range.length) continue;
    const auto part = std::span(block).first(std::min(content.size_bytes() - at, block.size()));
    if (!(*opened)->read(at, part).ok() || !content.difference(at, part).empty()) return false;
  }
  return true;
}

std::optional<Error> Driver::execute(const Operation& operation, Model& after) {
  switch (operation.action) {
    case Action::write:
    case Action::zeroes:
    case Action::trim:
      return change_content(operation);
    case Action::read:
      return read(operation);
    case Action::flush:
      return error_of(store_->flush());
    case Action::create:
    case Action::rename:
    case Action::resize:
    case Action::clone:
      return change_volumes(operation, after);
    case Action::take_snapshots:
      return take_snapshots(operation, after);
    case Action::copy:
    case Action::revert:
      return copy_or_revert(operation, after);
    case Action::destroy:
    case Action::destroy_snapshot:
      return destroy(operation, after);
    case Action::recover:
    case Action::eradicate:
      return recover_or_eradicate(operation, after);
    case Action::set_delay:
      return error_of(store_->set_eradication_delay(static_cast<int64_t>(operation.size_bytes)));
    case Action::wait:
      clock_ += static_cast<int64_t>(model_.eradication_delay()) + 1;
      return std::nullopt;
    case Action::attach:
      if (!model_.volume(operation.names[0])) return std::nullopt;
      attached_[operation.names[0]] = demand_ok(open_export(operation.names[0]), "attach");
      return std::nullopt;
    case Action::detach:
      attached_.erase(operation.names[0]);
      return std::nullopt;
    case Action::query:
      query(operation);
      return std::nullopt;
    case Action::checkpoint:
      return error_of(store_->checkpoint());
    case Action::checkpoint_step:
      return error_of(store_->checkpoint_step());
    case Action::reclaim_step:
      return error_of(reclaim_step(after));
    case Action::repeat_request:
      return repeat_request(operation);
    case Action::reopen:
      return reopen();
  }
  return std::nullopt;
}

// -- Content -------------------------------------------------------------------------------------

Result<std::shared_ptr<store::Export>> Driver::open_export(const std::string& name) {
  if (auto found = attached_.find(name); found != attached_.end()) return found->second;
  return store_->open_export(name);
}

std::optional<Error> Driver::change_content(const Operation& operation) {
  auto opened = open_export(operation.names[0]);
  if (!opened.ok()) return opened.error();
  store::Export& target = **opened;
  const Content* content = model_.content(operation.names[0]);
  demand(target.size_bytes() == content->size_bytes(), target.name() + ": size_bytes()");
  disk_.set_cold(random_.chance(20));
  std::optional<Error> error =
      operation.action == Action::write ? write(target, operation) : zero(target, operation);
  disk_.set_cold(false);
  return error;
}

std::optional<Error> Driver::write(store::Export& opened, const Operation& operation) {
  std::vector<std::vector<std::byte>> data;
  for (const Range& range : operation.ranges)
    data.push_back(pattern(range.tag, range.offset, range.length));
  if (data.size() == 1 && random_.chance(50))
    return error_of(opened.write(operation.ranges[0].offset, data[0]));
  std::vector<store::Write> writes(data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    writes[i].offset = operation.ranges[i].offset;
    writes[i].data = data[i];
    writes[i].ticket = opened.enter(operation.ranges[i].offset, operation.ranges[i].length);
  }
  if (random_.chance(50)) {
    opened.write(writes, disk::Wait::never);
    const auto is_done = [](const store::Write& one) {
      return one.result.ok() || one.result.error().code != Errc::would_block;
    };
    std::stable_partition(last_.ranges.begin(), last_.ranges.end(), [&](const Range& range) {
      return is_done(writes[static_cast<size_t>(range.tag - operation.ranges[0].tag)]);
    });
    const auto blocked = std::stable_partition(writes.begin(), writes.end(), is_done);
    for (auto one = writes.begin(); one != blocked; ++one)
      if (!one->result.ok()) return one->result.error();
    writes.erase(writes.begin(), blocked);
    for (store::Write& one : writes) one.result = {};
  }
  if (!writes.empty()) opened.write(writes, disk::Wait::allowed);
  for (const store::Write& one : writes)
    if (!one.result.ok()) return one.result.error();
  return std::nullopt;
}

std::optional<Error> Driver::zero(store::Export& opened, const Operation& operation) {
  const Range range = operation.ranges[0];
  const bool trim = operation.action == Action::trim;
  if (random_.chance(40))
    return error_of(trim ? opened.trim(range.offset, range.length)
                         : opened.write_zeroes(range.offset, range.length));
  store::Ticket ticket = opened.enter(range.offset, range.length);
  for (disk::Wait wait : {disk::Wait::never, disk::Wait::allowed}) {
    Result<void> done = trim ? opened.trim(ticket, range.offset, range.length, wait)
                             : opened.write_zeroes(ticket, range.offset, range.length, wait);
    if (!done.ok() && done.error().code == Errc::would_block && wait == disk::Wait::never) continue;
    return error_of(done);
  }
  return std::nullopt;
}

std::optional<Error> Driver::read(const Operation& operation) {
  auto opened = open_export(operation.names[0]);
  if (!opened.ok()) return opened.error();
  const Content& content = *model_.content(operation.names[0]);
  for (const Range& range : operation.ranges) {
    if (range.offset + range.length > content.size_bytes()) {
      std::vector<std::byte> out(range.length);
      const Result<void> beyond = (*opened)->read(range.offset, out);
      demand(!beyond.ok() && beyond.error().code == Errc::out_of_range, "a read beyond the end");
      continue;
    }
    disk_.set_cold(random_.chance(20));
    if (random_.chance(10)) demand_ok((*opened)->cache(range.offset, range.length), "cache");
    check_read(**opened, content, range.offset, range.length, random_.chance(30));
    disk_.set_cold(false);
  }
  return std::nullopt;
}

std::optional<Error> Driver::reopen() {
  attached_.clear();
  if (random_.chance(40)) {
    if (auto error = error_of(store_->flush())) return error;
  } else {
    if (auto error = error_of(store_->close())) return error;
  }
  store_.reset();
  if (random_.chance(50) && !disk_.has_failed()) check_disk(disk_, "between close and open");
  if (auto error = error_of(open())) return error;
  if (!disk_.has_failed()) check_all();
  return std::nullopt;
}

Result<void> Driver::close() {
  attached_.clear();
  model_.detach_all();
  return store_->close();
}

void Driver::close_and_check() {
  demand_ok(close(), "close");
  store_.reset();
  check_disk(disk_, "after close");
}

store::CheckReport Driver::settle() {
  attached_.clear();
  while (demand_ok(store_->reclaim_step(), "reclaim")) {
  }
  while (demand_ok(store_->figures_step(), "counting space")) {
  }
  const auto space = demand_ok(store_->space({}), "space");
  demand_ok(close(), "close");
  store_.reset();
  store::CheckReport report = check_disk(disk_, "once reclaim was idle");
  demand(space.size() == report.space.size(), "space: how many there are");
  for (size_t i = 0; i < space.size(); ++i) {
    const store::SpaceInfo& told = space[i];
    const store::SpaceInfo& counted = report.space[i];
    const auto text = [](const store::SpaceInfo& info) {
      return info.name + ": " + std::to_string(info.referenced / 4096) + " referenced, " +
             std::to_string(info.unique / 4096) + " unique, " +
             std::to_string(info.gives_back / 4096) + " to come back" +
             (info.exact ? "" : ", not exact");
    };
    demand(told == counted, "space of " + text(told) + "; counted: " + text(counted));
  }
  return report;
}

void Driver::check_reclaim() {
  tick_ = 0;  // nothing becomes due between the first look and the second
  const store::CheckReport idle = settle();
  demand(idle.hidden_data_blocks == 0,
         std::to_string(idle.hidden_data_blocks) + " blocks are held by zombies alone");
  // After an open each zombie is looked at again, so this is what counting has missed.
  demand_ok(open(), "open");
  const store::CheckReport again = settle();
  demand(idle.data_blocks == again.data_blocks && idle.nodes == again.nodes,
         "reclaim was idle too early: " + std::to_string(idle.data_blocks - again.data_blocks) +
             " blocks and " + std::to_string(idle.nodes - again.nodes) + " nodes were left");
  demand_ok(open(), "open");
  const bool by_time = random_.chance(50);
  for (const auto& info : store_->list_volumes())
    demand_ok(store_->destroy_volume(info.name, true, !by_time), "destroy " + info.name);
  if (by_time) {
    clock_ += store::kEradicationDelayDefault;
  } else {
    for (const auto& info : store_->list_volumes(true))
      demand_ok(store_->eradicate_volume(info.name), "eradicate " + info.name);
  }
  const store::CheckReport empty = settle();
  demand(empty.versions == 0 && empty.nodes == 0 && empty.data_blocks == 0,
         "something is left of what was destroyed: " + std::to_string(empty.versions) +
             " versions, " + std::to_string(empty.nodes) + " nodes, " +
             std::to_string(empty.data_blocks) + " blocks");
}

}  // namespace vellum::support

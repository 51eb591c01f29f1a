// SPDX-License-Identifier: BSD-2-Clause
//
// Makes the operations of random histories (operation.hpp).
#include <algorithm>

#include "common/store/types.hpp"
#include "tests/support/model.hpp"
#include "tests/support/operation.hpp"

namespace vellum::support {

namespace {

constexpr uint64_t kBlock = kContentBlockBytes;
constexpr uint64_t kSubtreeBytes = 256 << 20;  // of the map: what a trim moves away as a whole

class Generator {
 public:
  Generator(const Model& model, const Profile& profile, Random& random, uint64_t number)
      : model_(model), profile_(profile), random_(random) {
    operation_.number = number;
  }

  Operation make() {
    operation_.action = choose_action();
    fill();
    return operation_;
  }

 private:
  Action choose_action() {
    if (model_.volumes().empty()) return Action::create;
    unsigned total = 0;
    for (unsigned weight : profile_.weights) total += weight;
    uint64_t at = random_.below(total);
    int action = 0;
    while (at >= profile_.weights[action]) at -= profile_.weights[action++];
    return allowed(static_cast<Action>(action));
  }

  // Keeps the numbers of volumes and snapshots in their bounds.
  Action allowed(Action action) {
    const size_t volumes = model_.volumes().size();
    const size_t snapshots = model_.snapshot_names().size();
    if ((action == Action::create || action == Action::clone) && volumes >= profile_.volumes_max)
      return Action::write;
    if (action == Action::destroy && volumes < 2) return Action::write;
    if (action == Action::take_snapshots && snapshots >= profile_.snapshots_max)
      return Action::destroy_snapshot;
    if ((action == Action::destroy_snapshot || action == Action::revert) && snapshots == 0)
      return Action::take_snapshots;
    const bool on_destroyed = action == Action::recover || action == Action::eradicate;
    if (on_destroyed && model_.destroyed_names().empty()) return Action::set_delay;
    if (action == Action::repeat_request && model_.answers().empty()) return Action::read;
    return action;
  }

  void fill() {
    switch (operation_.action) {
      case Action::write:
      case Action::zeroes:
      case Action::trim:
      case Action::read:
        fill_ranges();
        break;
      case Action::create:
        operation_.names = {new_name()};
        operation_.size_bytes = random_size();
        break;
      case Action::destroy:
        operation_.names = {any_volume()};
        operation_.force = random_.chance(50);
        operation_.eradicate = random_.chance(30);
        break;
      case Action::rename:
        operation_.names = {any_volume(), new_name()};
        if (operation_.names[0] == operation_.names[1]) operation_.names[1] += "-new";
        break;
      case Action::resize:
        operation_.names = {any_volume()};
        operation_.size_bytes = new_size();
        operation_.force = random_.chance(60) || cuts_off_written_zeros();
        break;
      case Action::take_snapshots:
        fill_snapshots();
        break;
      case Action::destroy_snapshot:
        operation_.names = {wrong_or(model_.snapshot_names(), destroyed_snapshots())};
        operation_.eradicate = random_.chance(30);
        break;
      case Action::recover:
        operation_.names = {any_destroyed(model_.recoverable_names())};
        break;
      case Action::eradicate:
        operation_.names = {any_destroyed(model_.destroyed_names())};
        break;
      case Action::set_delay:
        operation_.size_bytes = random_.chance(30) ? 0 : 1000;
        return;
      case Action::clone:
        operation_.names = {wrong_or(model_.all_names(), model_.destroyed_names()), new_name()};
        break;
      case Action::copy:
        fill_copy();
        break;
      case Action::revert:
        fill_revert();
        break;
      case Action::attach:
      case Action::detach:
        operation_.names = {any_volume()};
        break;
      case Action::query:
        operation_.names = {any_of(model_.all_names()), any_of(model_.all_names())};
        break;
      case Action::repeat_request:
        fill_repeat();
        return;
      default:
        return;
    }
    if (wants_request_id() && random_.chance(profile_.request_id_percent))
      operation_.request_id = "request-" + std::to_string(operation_.number);
  }

  bool wants_request_id() const {
    return operation_.action >= Action::create && operation_.action <= Action::revert;
  }

  // -- Names -------------------------------------------------------------------------------------
  std::string any_of(const std::vector<std::string>& names) { return random_.pick(names); }

  std::string any_destroyed(const std::vector<std::string>& names) {
    const bool wrong = names.empty() || random_.chance(profile_.wrong_percent);
    return wrong ? any_of(model_.all_names()) : any_of(names);
  }

  std::vector<std::string> destroyed_snapshots() const {
    std::vector<std::string> names = model_.destroyed_names();
    std::erase_if(names,
                  [](const std::string& name) { return name.find('@') == std::string::npos; });
    return names;
  }

  // One of them; or, by mistake, something that is destroyed.
  std::string wrong_or(const std::vector<std::string>& names,
                       const std::vector<std::string>& destroyed) {
    const bool wrong = !destroyed.empty() && random_.chance(profile_.wrong_percent);
    return any_of(wrong ? destroyed : names);
  }

  std::string wrong_volume() {
    const std::vector<std::string> destroyed = model_.destroyed_names();
    if (destroyed.empty() || random_.chance(50)) return "nobody";
    const std::string name = any_of(destroyed);
    return name.substr(0, name.find('@'));
  }

  std::string any_volume() {
    if (model_.volumes().empty() || random_.chance(profile_.wrong_percent)) return wrong_volume();
    auto at = model_.volumes().begin();
    std::advance(at, random_.below(model_.volumes().size()));
    return at->first;
  }

  std::string new_name() {
    if (random_.chance(profile_.wrong_percent)) {
      return any_of({any_volume(), wrong_volume(), "-bad/"});
    }
    return "v" + std::to_string(operation_.number);
  }

  // -- Sizes and ranges --------------------------------------------------------------------------
  uint64_t rounded(uint64_t bytes) {
    const uint64_t unit = random_.chance(70) ? kBlock : store::kVolumeSizeUnit;
    return std::max<uint64_t>(bytes / unit * unit, unit);
  }

  uint64_t random_size() {
    if (random_.chance(profile_.huge_percent)) {
      const unsigned bits = static_cast<unsigned>(random_.between(24, 52));
      return std::min(rounded(random_.next() >> (64 - bits)), store::kVolumeSizeMax);
    }
    const bool large = random_.chance(30);
    return rounded(
        random_.between(1, large ? profile_.size_large_bytes : profile_.size_small_bytes));
  }

  uint64_t new_size() {
    const ModelVolume* target = model_.volume(operation_.names[0]);
    if (!target || random_.chance(40)) return random_size();
    return rounded(random_.between(1, target->content.size_bytes()));
  }

  // Whether blocks that were written and read as zeros are "nothing" is the store's choice.
  bool cuts_off_written_zeros() const {
    const ModelVolume* target = model_.volume(operation_.names[0]);
    return target && target->content.next_block(operation_.size_bytes / kBlock) &&
           !target->content.holds_data_beyond(operation_.size_bytes);
  }

  // Somewhere in a volume: anywhere, near what is written, near a border of leaves, at the end.
  uint64_t random_place(const Content& content) {
    const uint64_t size = content.size_bytes();
    if (profile_.places > 0) {
      const uint64_t place = random_.below(profile_.places) * (size / profile_.places);
      return std::min(place / kBlock * kBlock + random_.below(4 * kBlock), size - 1);
    }
    uint64_t place = random_.below(size);
    const unsigned way = static_cast<unsigned>(random_.below(10));
    if (way < 5 && !content.blocks().empty()) {
      auto near = content.blocks().lower_bound(place / kBlock);
      if (near == content.blocks().end()) --near;
      place = near->first * kBlock + random_.below(2 * kBlock);
    } else if (way == 5 && size > store::kChangeBytesMax) {
      const unsigned shift = 20 + 8 * static_cast<unsigned>(random_.below(4));
      const uint64_t border = (place >> shift) << shift;
      place = border + random_.below(4 * kBlock);
      place -= std::min(place, 2 * kBlock);
    } else if (way == 6) {
      place = size - std::min(size, random_.between(1, 3 * kBlock));
    }
    return std::min(place, size - 1);
  }

  Range random_range(const Content& content) {
    Range range;
    const uint64_t size = content.size_bytes();
    range.offset = random_place(content);
    const unsigned way = static_cast<unsigned>(random_.below(100));
    uint64_t length = random_.between(1, 2 * kBlock);
    if (way < 50) length = kBlock * random_.between(1, 4);
    if (way >= 70) length = random_.between(1, 16 * kBlock);
    if (way >= 95) length = random_.between(1, profile_.range_bytes);
    if (random_.chance(70)) range.offset -= range.offset % kBlock;
    if (operation_.action == Action::trim || operation_.action == Action::zeroes) {
      if (random_.chance(10)) length = random_.between(1, size);
      if (random_.chance(3)) range.offset = 0, length = size;
      length = std::min(length, profile_.zero_range_bytes);
      if (random_.chance(profile_.subtree_percent)) {
        length = kSubtreeBytes;
        range.offset -= range.offset % length;
      }
    }
    range.length = std::min(length, size - range.offset);
    return range;
  }

  Range wrong_range(const Content& content) {
    const uint64_t inside = random_.below(std::min(content.size_bytes(), 2 * kBlock));
    return {content.size_bytes() - inside, inside + random_.between(1, kBlock), 0};
  }

  void fill_ranges() {
    const bool snapshot = operation_.action == Action::read || random_.chance(1);
    operation_.names = {snapshot && profile_.wrong_percent > 0 ? any_of(model_.all_names())
                                                               : existing_volume()};
    const Content& content = *model_.content(operation_.names[0]);
    size_t count = 1;
    if (operation_.action == Action::write && random_.chance(15)) count = random_.between(2, 5);
    for (size_t i = 0; i < count; ++i) {
      const bool wrong = count == 1 && random_.chance(profile_.wrong_percent);
      Range range = wrong ? wrong_range(content) : random_range(content);
      range.tag = operation_.number * 8 + i;
      operation_.ranges.push_back(range);
    }
  }

  std::string existing_volume() {
    std::string name = any_volume();
    return model_.volume(name) ? name : model_.volumes().begin()->first;
  }

  // -- Snapshots, copies, reverts ----------------------------------------------------------------
  void fill_snapshots() {
    for (const auto& [name, volume] : model_.volumes())
      if (random_.chance(40)) operation_.names.push_back(name);
    if (operation_.names.empty()) operation_.names = {any_volume()};
    if (random_.chance(50)) operation_.suffix = "s" + std::to_string(operation_.number);
    std::vector<std::string> existing = model_.snapshot_names();
    for (const std::string& name : destroyed_snapshots()) existing.push_back(name);
    if (operation_.suffix && !existing.empty() && random_.chance(profile_.wrong_percent)) {
      const std::string name = any_of(existing);
      operation_.names = {name.substr(0, name.find('@'))};
      operation_.suffix = name.substr(name.find('@') + 1);
    }
  }

  void fill_copy() {
    const std::string source = wrong_or(model_.all_names(), model_.destroyed_names());
    std::string target = existing_volume();
    const bool room = model_.volumes().size() < profile_.volumes_max;
    if (target == source || (room && random_.chance(20))) target = room ? new_name() : target;
    operation_.names = {source, target};
    operation_.force = !random_.chance(profile_.wrong_percent);
    operation_.undo = random_.chance(50);
    if (target == source) operation_.action = Action::flush;  // nothing to choose from
  }

  void fill_revert() {
    const std::string snapshot = any_of(model_.snapshot_names());
    std::string volume = snapshot.substr(0, snapshot.find('@'));
    if (random_.chance(30)) {  // perhaps an ancestor's
      volume = existing_volume();
      if (const auto parent = model_.nearest(model_.volume(volume)->ancestors))
        operation_.names = {volume, *parent};
    }
    if (operation_.names.empty())
      operation_.names = {snapshot.substr(0, snapshot.find('@')), snapshot};
    operation_.undo = random_.chance(50);
    if (!random_.chance(profile_.wrong_percent)) return;
    const std::string stranger = existing_volume();
    if (!model_.stands_for_ancestor(stranger, snapshot)) operation_.names = {stranger, snapshot};
  }

  void fill_repeat() {
    auto at = model_.answers().begin();
    std::advance(at, random_.below(model_.answers().size()));
    operation_.request_id = at->first;
    operation_.names = {"r" + std::to_string(operation_.number)};
    operation_.size_bytes = kBlock;
  }

  const Model& model_;
  const Profile& profile_;
  Random& random_;
  Operation operation_;
};

}  // namespace

Operation generate(const Model& model, const Profile& profile, Random& random, uint64_t number) {
  return Generator(model, profile, random, number).make();
}

}  // namespace vellum::support

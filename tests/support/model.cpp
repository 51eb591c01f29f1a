// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/model.hpp"

#include <algorithm>
#include <cctype>

#include "common/store/types.hpp"

namespace vellum::support {

namespace {

const Model::Errors kSuccess;

bool valid_size(uint64_t size_bytes) {
  return size_bytes % store::kVolumeSizeUnit == 0 && size_bytes <= store::kVolumeSizeMax;
}

std::string volume_part(const std::string& name) { return name.substr(0, name.find('@')); }

}  // namespace

bool valid_name(const std::string& name) {
  if (name.empty() || name.size() > store::kNameLengthMax) return false;
  if (!std::isalnum(static_cast<unsigned char>(name[0]))) return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '.' || c == '_' || c == '-';
  });
}

// -- Looking -------------------------------------------------------------------------------------

ModelVolume* Model::volume(const std::string& name) {
  auto found = volumes_.find(name);
  return found == volumes_.end() ? nullptr : &found->second;
}

const ModelVolume* Model::volume(const std::string& name) const {
  return const_cast<Model*>(this)->volume(name);
}

ModelSnapshot* Model::snapshot(const std::string& name) {
  ModelVolume* owner = volume(volume_part(name));
  const size_t at = name.find('@');
  if (!owner || at == std::string::npos) return nullptr;
  for (ModelSnapshot& snapshot : owner->snapshots)
    if (snapshot.suffix == name.substr(at + 1)) return &snapshot;
  return nullptr;
}

const Content* Model::content(const std::string& name) const {
  auto* self = const_cast<Model*>(this);
  if (name.find('@') == std::string::npos) {
    ModelVolume* found = self->volume(name);
    return found ? &found->content : nullptr;
  }
  ModelSnapshot* found = self->snapshot(name);
  return found ? &found->content : nullptr;
}

std::vector<std::string> Model::snapshot_names() const {
  std::vector<std::string> names;
  for (const auto& [name, volume] : volumes_)
    for (const ModelSnapshot& snapshot : volume.snapshots)
      names.push_back(name + "@" + snapshot.suffix);
  return names;
}

std::vector<std::string> Model::all_names() const {
  std::vector<std::string> names = snapshot_names();
  for (const auto& [name, volume] : volumes_) names.push_back(name);
  return names;
}

std::optional<std::string> Model::name_of(uint64_t snapshot_id) const {
  for (const auto& [name, volume] : volumes_)
    for (const ModelSnapshot& snapshot : volume.snapshots)
      if (snapshot.id == snapshot_id) return name + "@" + snapshot.suffix;
  return std::nullopt;
}

std::optional<std::string> Model::nearest(std::span<const ModelAncestor> ancestors) const {
  for (const ModelAncestor& ancestor : ancestors)
    if (auto name = name_of(ancestor.id)) return name;
  return std::nullopt;
}

bool Model::may_be_parent(std::span<const ModelAncestor> ancestors,
                          const std::optional<std::string>& parent) const {
  const std::optional<std::string> expected = nearest(ancestors);
  if (parent == expected) return true;
  if (!parent || !content(*parent)) return false;
  const uint64_t volume_id = volume(volume_part(*parent))->id;
  for (const ModelAncestor& ancestor : ancestors) {
    if (ancestor.volume_id == volume_id && read_alike(ancestor.content, *content(*parent)))
      return true;
    if (expected && name_of(ancestor.id) == expected) return false;
  }
  return false;
}

bool Model::may_be_parent(const std::string& child,
                          const std::optional<std::string>& parent) const {
  if (const ModelVolume* found = volume(child)) return may_be_parent(found->ancestors, parent);
  const ModelSnapshot* found = const_cast<Model*>(this)->snapshot(child);
  CHECK(found);
  std::span<const ModelAncestor> ancestors = found->ancestors;
  const uint64_t volume_id = volume(volume_part(child))->id;
  // An ancestor that reads alike may be the same version, once those between the two are gone.
  while (!may_be_parent(ancestors, parent)) {
    while (!ancestors.empty() && !name_of(ancestors[0].id)) ancestors = ancestors.subspan(1);
    if (ancestors.empty() || ancestors[0].volume_id != volume_id ||
        !read_alike(ancestors[0].content, found->content))
      return false;
    ancestors = ancestors.subspan(1);
  }
  return true;
}

bool Model::stands_for_ancestor(const std::string& name, const std::string& snapshot) const {
  const Content* other = content(snapshot);
  const ModelVolume* found = volume(name);
  return other && found &&
         std::any_of(found->ancestors.begin(), found->ancestors.end(),
                     [&](const auto& each) { return read_alike(each.content, *other); });
}

Ancestors Model::lineage(const std::string& name) const {
  if (const ModelVolume* found = volume(name)) return found->ancestors;
  const ModelSnapshot* found = const_cast<Model*>(this)->snapshot(name);
  CHECK(found);
  Ancestors ancestors = found->ancestors;
  const uint64_t volume_id = volume(volume_part(name))->id;
  ancestors.insert(ancestors.begin(), {found->id, volume_id, found->content});
  return ancestors;
}

void Model::detach_all() {
  for (auto& [name, volume] : volumes_) volume.attached = false;
}

// -- Changing ------------------------------------------------------------------------------------

Model::Errors Model::apply(const Operation& operation) {
  if (!operation.request_id.empty() && answers_->count(operation.request_id))
    return {Errc::answered};
  Errors errors = dispatch(operation);
  if (errors.empty() && !operation.request_id.empty()) {
    if (answers_.use_count() > 1) answers_ = std::make_shared<AnswerTexts>(*answers_);
    (*answers_)[operation.request_id] = answer_to(operation.request_id);
  }
  return errors;
}

Model::Errors Model::dispatch(const Operation& operation) {
  switch (operation.action) {
    case Action::write:
    case Action::zeroes:
    case Action::trim:
      return change_content(operation);
    case Action::create:
      return create(operation);
    case Action::rename:
      return rename(operation);
    case Action::resize:
      return resize(operation);
    case Action::take_snapshots:
      return take_snapshots(operation);
    case Action::clone:
      return clone(operation);
    case Action::copy:
      return copy(operation);
    case Action::revert:
      return revert(operation);
    case Action::destroy:
      return destroy(operation);
    case Action::destroy_snapshot:
      return destroy_snapshot(operation);
    case Action::recover:
      return recover(operation);
    case Action::eradicate:
      return eradicate(operation);
    case Action::set_delay:
      delay_ = operation.size_bytes;
      return kSuccess;
    case Action::attach:
      if (ModelVolume* found = volume(operation.names[0])) found->attached = true;
      return kSuccess;
    case Action::detach:
      if (ModelVolume* found = volume(operation.names[0])) found->attached = false;
      return kSuccess;
    case Action::reopen:
      detach_all();
      return kSuccess;
    default:
      return kSuccess;
  }
}

Model::Errors Model::change_content(const Operation& operation) {
  ModelVolume* target = volume(operation.names[0]);
  if (!target) return {Errc::read_only};  // a snapshot
  for (const Range& range : operation.ranges)
    if (range.offset > target->content.size_bytes() ||
        range.length > target->content.size_bytes() - range.offset)
      return {Errc::out_of_range};
  for (const Range& range : operation.ranges) {
    if (operation.action == Action::write)
      target->content.write(range.tag, range.offset, range.length);
    else
      target->content.zero(range.offset, range.length);
  }
  return kSuccess;
}

Model::Errors Model::create(const Operation& operation) {
  const std::string& name = operation.names[0];
  Errors errors;
  if (!valid_name(name) || !valid_size(operation.size_bytes))
    errors.push_back(Errc::invalid_argument);
  if (is_taken(name)) errors.push_back(Errc::exists);
  if (!errors.empty()) return errors;
  ModelVolume fresh;
  fresh.id = next_id_++;
  fresh.content = Content(operation.size_bytes);
  volumes_[name] = std::move(fresh);
  return kSuccess;
}

Model::Errors Model::rename(const Operation& operation) {
  Errors errors;
  if (!volume(operation.names[0])) errors.push_back(missing(operation.names[0]));
  if (!valid_name(operation.names[1])) errors.push_back(Errc::invalid_argument);
  if (is_taken(operation.names[1])) errors.push_back(Errc::exists);
  if (!errors.empty()) return errors;
  auto node = volumes_.extract(operation.names[0]);
  node.key() = operation.names[1];
  volumes_.insert(std::move(node));
  return kSuccess;
}

Model::Errors Model::resize(const Operation& operation) {
  ModelVolume* target = volume(operation.names[0]);
  Errors errors;
  if (!target) errors.push_back(missing(operation.names[0]));
  if (!valid_size(operation.size_bytes)) errors.push_back(Errc::invalid_argument);
  if (errors.empty() && !operation.force && target->content.holds_data_beyond(operation.size_bytes))
    errors.push_back(Errc::precondition);
  if (errors.empty()) target->content.resize(operation.size_bytes);
  return errors;
}

ModelSnapshot& Model::add_snapshot(ModelVolume& target, const std::optional<std::string>& suffix) {
  ModelSnapshot fresh;
  fresh.suffix = suffix ? *suffix : std::to_string(target.next_number++);
  fresh.id = next_id_++;
  fresh.content = target.content;
  fresh.ancestors = target.ancestors;
  target.ancestors.insert(target.ancestors.begin(), {fresh.id, target.id, target.content});
  target.snapshots.push_back(std::move(fresh));
  return target.snapshots.back();
}

Model::Errors Model::take_snapshots(const Operation& operation) {
  Errors errors;
  if (operation.suffix && !valid_name(*operation.suffix)) errors.push_back(Errc::invalid_argument);
  for (const std::string& name : operation.names) {
    if (!volume(name)) errors.push_back(missing(name));
    if (operation.suffix && is_taken(name + "@" + *operation.suffix))
      errors.push_back(Errc::exists);
  }
  if (!errors.empty()) return errors;
  for (const std::string& name : operation.names) add_snapshot(*volume(name), operation.suffix);
  return kSuccess;
}

Model::Errors Model::clone(const Operation& operation) {
  const std::string& source = operation.names[0];
  const std::string& name = operation.names[1];
  Errors errors;
  if (!content(source)) errors.push_back(missing(source));
  if (!valid_name(name)) errors.push_back(Errc::invalid_argument);
  if (is_taken(name)) errors.push_back(Errc::exists);
  if (!errors.empty()) return errors;
  ModelVolume fresh;
  fresh.id = next_id_++;
  fresh.content = *content(source);
  fresh.ancestors = lineage(source);
  volumes_[name] = std::move(fresh);
  return kSuccess;
}

void Model::replace(ModelVolume& target, Content content, Ancestors ancestors, bool undo) {
  if (undo) add_snapshot(target, std::nullopt);
  target.content = std::move(content);
  target.ancestors = std::move(ancestors);
}

Model::Errors Model::copy(const Operation& operation) {
  const std::string& source = operation.names[0];
  const std::string& name = operation.names[1];
  ModelVolume* target = volume(name);
  if (!target && !(operation.force && is_taken(name))) return clone(operation);
  Errors errors;
  if (!target) errors.push_back(Errc::destroyed);
  if (!content(source)) errors.push_back(missing(source));
  if (!operation.force) errors.push_back(Errc::exists);
  if (errors.empty() && target && target->attached &&
      target->content.size_bytes() != content(source)->size_bytes())
    errors.push_back(Errc::in_use);
  if (!errors.empty()) return errors;
  replace(*target, *content(source), lineage(source), operation.undo);
  return kSuccess;
}

Model::Errors Model::revert(const Operation& operation) {
  ModelVolume* target = volume(operation.names[0]);
  const ModelSnapshot* source = snapshot(operation.names[1]);
  if (!target) return {missing(operation.names[0])};
  if (!source) return {missing(operation.names[1])};
  const bool own = volume_part(operation.names[1]) == operation.names[0];
  const bool above = std::any_of(target->ancestors.begin(), target->ancestors.end(),
                                 [&](const auto& each) { return each.id == source->id; });
  if (!own && !above) return {Errc::incompatible, Errc::precondition, Errc::not_found};
  if (target->attached && target->content.size_bytes() != source->content.size_bytes())
    return {Errc::in_use};
  replace(*target, source->content, lineage(operation.names[1]), operation.undo);
  return kSuccess;
}

}  // namespace vellum::support

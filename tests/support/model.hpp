// SPDX-License-Identifier: BSD-2-Clause
//
// The whole store as plain values: what every operation must do to volumes and snapshots, and which
// errors it must give. Copying a Model is cheap (contents share blocks), so a test keeps one for
// every moment of a history.
//
// Objects carry ids of the model's own; the store's id is learnt from the first answer that has it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/result.hpp"
#include "tests/support/content.hpp"
#include "tests/support/operation.hpp"

namespace vellum::support {

// A snapshot that a content grew from. It may be gone by now.
struct ModelAncestor {
  uint64_t id = 0;
  uint64_t volume_id = 0;
  Content content;
};
using Ancestors = std::vector<ModelAncestor>;  // nearest first

struct ModelSnapshot {
  std::string suffix;
  uint64_t id = 0;
  uint64_t store_id = 0;  // 0: not learnt yet
  Content content;
  Ancestors ancestors;
  int64_t not_before = 0;  // of a destroyed one: it is not eradicated before this time
};

struct ModelVolume {
  uint64_t id = 0;
  uint64_t store_id = 0;
  Content content;
  Ancestors ancestors;
  std::vector<ModelSnapshot> snapshots;  // in the order of their creation
  std::vector<ModelSnapshot> destroyed_snapshots;
  int64_t not_before = 0;
  uint64_t next_number = 1;  // for snapshots without a suffix
  bool attached = false;
};

using AnswerTexts = std::map<std::string, std::string>;  // by request_id

class Model {
 public:
  // Errors of which one must come; none: it must succeed, and the model has changed.
  using Errors = std::vector<Errc>;
  Errors apply(const Operation& operation);

  const std::map<std::string, ModelVolume>& volumes() const { return volumes_; }
  ModelVolume* volume(const std::string& name);
  const ModelVolume* volume(const std::string& name) const;
  // `name` is a volume or VOLUME@SUFFIX; null if there is none.
  const Content* content(const std::string& name) const;
  ModelSnapshot* snapshot(const std::string& name);
  std::vector<std::string> all_names() const;       // volumes and snapshots
  std::vector<std::string> snapshot_names() const;  // in full
  // Whether the store may say that `parent` is the nearest ancestor that still exists. Snapshots of
  // one volume with nothing written in between are one version, and stand for each other.
  bool may_be_parent(const std::string& child, const std::optional<std::string>& parent) const;
  // Whether the snapshot holds just what an ancestor of the volume does: they may be one version,
  // and a revert to it is allowed or not.
  bool stands_for_ancestor(const std::string& name, const std::string& snapshot) const;
  // The full name of the nearest ancestor that still exists.
  std::optional<std::string> nearest(std::span<const ModelAncestor> ancestors) const;
  const AnswerTexts& answers() const { return *answers_; }
  void detach_all();

  // -- What is destroyed, and can be recovered ---------------------------------------------------
  // No other call finds it. Snapshots of destroyed volumes are destroyed as well.
  std::vector<std::string> destroyed_names() const;
  std::vector<std::string> recoverable_names() const;
  uint64_t eradication_delay() const { return delay_; }
  int64_t* not_before(const std::string& destroyed);  // its time, or 0 until that is known
  // From when on it may be eradicated, by itself or with its volume.
  int64_t due(const std::string& destroyed);
  void forget(const std::string& destroyed);  // it has been eradicated

 private:
  Errors change_content(const Operation& operation);
  Errors create(const Operation& operation);
  Errors rename(const Operation& operation);
  Errors resize(const Operation& operation);
  Errors take_snapshots(const Operation& operation);
  Errors clone(const Operation& operation);
  Errors copy(const Operation& operation);
  Errors revert(const Operation& operation);
  Errors destroy(const Operation& operation);
  Errors destroy_snapshot(const Operation& operation);
  Errors recover(const Operation& operation);
  Errors eradicate(const Operation& operation);
  bool is_taken(const std::string& name) const;  // by something that may be destroyed
  Errc missing(const std::string& name) const;   // what a call about it gets
  Errors dispatch(const Operation& operation);
  ModelSnapshot& add_snapshot(ModelVolume& target, const std::optional<std::string>& suffix);
  Ancestors lineage(const std::string& name) const;
  void replace(ModelVolume& target, Content content, Ancestors ancestors, bool undo);
  std::optional<std::string> name_of(uint64_t snapshot_id) const;
  bool may_be_parent(std::span<const ModelAncestor> ancestors,
                     const std::optional<std::string>& parent) const;

  std::map<std::string, ModelVolume> volumes_, destroyed_;
  uint64_t delay_ = 0;
  // Shared with copies until a change.
  std::shared_ptr<AnswerTexts> answers_ = std::make_shared<AnswerTexts>();
  uint64_t next_id_ = 1;
};

bool valid_name(const std::string& name);

}  // namespace vellum::support

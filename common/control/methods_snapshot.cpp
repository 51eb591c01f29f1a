// SPDX-License-Identifier: BSD-2-Clause
//
// snapshot.*: the methods that make, show, destroy and recover snapshots.
#include "common/control/encode.hpp"
#include "common/control/method.hpp"
#include "common/control/once.hpp"

namespace vellum::control {
namespace {

using store::Destroyed;
using store::Once;
using store::SnapshotInfo;

Result<std::string> create(const Call& call) {
  using Created = std::vector<SnapshotInfo>;
  return carry_out_once<Created>(call, [&](const Once<Created>& once) {
    return call.store.create_snapshots(call.arguments.texts("sources"),
                                       call.arguments.maybe_text("suffix"), once);
  });
}

Result<std::string> list(const Call& call) {
  const auto volume = call.arguments.maybe_text("volume");
  // A volume that does not exist is a mistake, not a volume without snapshots.
  if (volume) TRY(call.store.get_volume(*volume));
  return encode_list(call.store.list_snapshots(volume, call.arguments.flag("destroyed")));
}

Result<std::string> get(const Call& call) {
  TRY_ASSIGN(const SnapshotInfo snapshot, call.store.get_snapshot(call.arguments.text("name")));
  return encode(snapshot);
}

Result<std::string> destroy(const Call& call) {
  return carry_out_once<Destroyed>(call, [&](const Once<Destroyed>& once) {
    return call.store.destroy_snapshot(call.arguments.text("name"),
                                       call.arguments.flag("eradicate"), once);
  });
}

Result<std::string> recover(const Call& call) {
  return carry_out_once<SnapshotInfo>(call, [&](const Once<SnapshotInfo>& once) {
    return call.store.recover_snapshot(call.arguments.text("name"), once);
  });
}

Result<std::string> eradicate(const Call& call) {
  return carry_out_once<Destroyed>(call, [&](const Once<Destroyed>& once) {
    return call.store.eradicate_snapshot(call.arguments.text("name"), once);
  });
}

}  // namespace

std::vector<Method> snapshot_methods() {
  const Parameter name = required("name", Kind::snapshot);
  return {
      {"snapshot.create",
       create,
       {required("sources", Kind::volumes), optional("suffix", Kind::suffix)},
       true},
      {"snapshot.list", list, {optional("volume", Kind::volume), flag("destroyed", false)}},
      {"snapshot.get", get, {name}},
      {"snapshot.destroy", destroy, {name, flag("eradicate", false)}, true},
      {"snapshot.recover", recover, {name}, true},
      {"snapshot.eradicate", eradicate, {name}, true},
  };
}

}  // namespace vellum::control

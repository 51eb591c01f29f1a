// SPDX-License-Identifier: BSD-2-Clause
//
// volume.*: the methods that make, show, change, destroy and recover volumes.
#include "common/control/encode.hpp"
#include "common/control/method.hpp"
#include "common/control/once.hpp"

namespace vellum::control {
namespace {

using store::CopyInfo;
using store::Destroyed;
using store::Once;
using store::VolumeInfo;

Result<std::string> create(const Call& call) {
  const auto provision = call.arguments.text("provision") == "reserved" ? store::Provision::reserved
                                                                        : store::Provision::thin;
  return carry_out_once<VolumeInfo>(call, [&](const Once<VolumeInfo>& once) {
    return call.store.create_volume(call.arguments.text("name"), call.arguments.number("size"),
                                    provision, once);
  });
}

Result<std::string> list(const Call& call) {
  return encode(call.store.list_volumes(call.arguments.flag("destroyed")));
}

Result<std::string> get(const Call& call) {
  TRY_ASSIGN(const VolumeInfo volume, call.store.get_volume(call.arguments.text("name")));
  return encode(volume);
}

Result<std::string> rename(const Call& call) {
  return carry_out_once<VolumeInfo>(call, [&](const Once<VolumeInfo>& once) {
    return call.store.rename_volume(call.arguments.text("name"), call.arguments.text("new_name"),
                                    once);
  });
}

Result<std::string> resize(const Call& call) {
  return carry_out_once<VolumeInfo>(call, [&](const Once<VolumeInfo>& once) {
    return call.store.resize_volume(call.arguments.text("name"), call.arguments.number("size"),
                                    call.arguments.flag("truncate"), once);
  });
}

Result<std::string> destroy(const Call& call) {
  return carry_out_once<Destroyed>(call, [&](const Once<Destroyed>& once) {
    return call.store.destroy_volume(call.arguments.text("name"), call.arguments.flag("force"),
                                     call.arguments.flag("eradicate"), once);
  });
}

Result<std::string> recover(const Call& call) {
  return carry_out_once<VolumeInfo>(call, [&](const Once<VolumeInfo>& once) {
    return call.store.recover_volume(call.arguments.text("name"), once);
  });
}

Result<std::string> eradicate(const Call& call) {
  return carry_out_once<Destroyed>(call, [&](const Once<Destroyed>& once) {
    return call.store.eradicate_volume(call.arguments.text("name"), once);
  });
}

Result<std::string> clone(const Call& call) {
  return carry_out_once<VolumeInfo>(call, [&](const Once<VolumeInfo>& once) {
    return call.store.clone(call.arguments.text("source"), call.arguments.text("name"), once);
  });
}

Result<std::string> copy(const Call& call) {
  return carry_out_once<CopyInfo>(call, [&](const Once<CopyInfo>& once) {
    return call.store.copy(call.arguments.text("source"), call.arguments.text("target"),
                           call.arguments.flag("overwrite"), call.arguments.flag("undo"), once);
  });
}

Result<std::string> revert(const Call& call) {
  return carry_out_once<CopyInfo>(call, [&](const Once<CopyInfo>& once) {
    return call.store.revert(call.arguments.text("name"), call.arguments.text("snapshot"),
                             call.arguments.flag("undo"), once);
  });
}

Parameter provision() {
  Parameter parameter = optional("provision", Kind::choice);
  parameter.choices = {"thin", "reserved"};
  parameter.otherwise = R"("thin")";
  return parameter;
}

}  // namespace

std::vector<Method> volume_methods() {
  const Parameter name = required("name", Kind::volume);
  return {
      {"volume.create", create, {name, volume_size("size"), provision()}, true},
      {"volume.list", list, {flag("destroyed", false)}},
      {"volume.get", get, {name}},
      {"volume.rename", rename, {name, required("new_name", Kind::volume)}, true},
      {"volume.resize", resize, {name, volume_size("size"), flag("truncate", false)}, true},
      {"volume.destroy", destroy, {name, flag("force", false), flag("eradicate", false)}, true},
      {"volume.recover", recover, {name}, true},
      {"volume.eradicate", eradicate, {name}, true},
      {"volume.clone", clone, {required("source", Kind::target), name}, true},
      {"volume.copy",
       copy,
       {required("source", Kind::target), required("target", Kind::volume),
        flag("overwrite", false), flag("undo", true)},
       true},
      {"volume.revert",
       revert,
       {name, required("snapshot", Kind::reference), flag("undo", true)},
       true},
  };
}

}  // namespace vellum::control

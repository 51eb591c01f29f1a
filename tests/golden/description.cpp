// SPDX-License-Identifier: BSD-2-Clause
#include "tests/golden/description.hpp"

#include <nlohmann/json.hpp>

#include "common/base/crc32c.hpp"
#include "tests/support/failure.hpp"

namespace vellum::golden {

namespace {

using Json = nlohmann::ordered_json;
using support::demand_ok;

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

// [offset, length, CRC32C of the data] of each extent.
Json content_of(store::Store& from, const std::string& name) {
  const auto opened = demand_ok(from.open_export(name), "open " + name);
  const auto list = demand_ok(from.extents(name, 0, 65536), "extents of " + name);
  support::demand(!list.next_offset, name + " has too many extents");
  Json extents = Json::array();
  for (const store::Extent& extent : list.extents) {
    std::vector<std::byte> data(extent.length);
    demand_ok(opened->read(extent.offset, data), "read " + name);
    extents.push_back({extent.offset, extent.length, crc32c(data)});
  }
  return extents;
}

}  // namespace

std::string describe(store::Store& from) {
  Json all;
  const store::StoreInfo info = from.info();
  all["uuid"] = store::to_string(info.uuid);
  all["capacity"] = info.capacity;
  for (const auto& volume : from.list_volumes()) {
    all["volumes"].push_back({
        {"name", volume.name},
        {"id", volume.id},
        {"uuid", store::to_string(volume.uuid)},
        {"size", volume.size},
        {"created", volume.created},
        {"reserved", volume.provision == store::Provision::reserved},
        {"snapshots", volume.snapshots},
        {"parent", or_null(volume.parent)},
        {"content", content_of(from, volume.name)},
    });
  }
  for (const auto& snapshot : from.list_snapshots(std::nullopt)) {
    all["snapshots"].push_back({
        {"name", snapshot.name},
        {"id", snapshot.id},
        {"uuid", store::to_string(snapshot.uuid)},
        {"size", snapshot.size},
        {"created", snapshot.created},
        {"parent", or_null(snapshot.parent)},
        {"children", snapshot.children},
        {"content", content_of(from, snapshot.name)},
    });
  }
  all["zombies"] = info.zombies;
  all["answer"] = or_null(from.find_answer("request"));
  return all.dump(1) + "\n";
}

}  // namespace vellum::golden

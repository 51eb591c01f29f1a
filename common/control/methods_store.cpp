// SPDX-License-Identifier: BSD-2-Clause
//
// server.info, store.* and stats.get: what a client finds out first, and what an operator watches.
#include <nlohmann/json.hpp>

#include "common/control/encode.hpp"
#include "common/control/message.hpp"
#include "common/control/method.hpp"
#include "common/control/once.hpp"

namespace vellum::control {
namespace {

using nlohmann::ordered_json;

Result<std::string> server_info(const Call& call) {
  const store::StoreInfo info = call.store.info();
  ordered_json names = ordered_json::array();
  for (const Method& method : methods()) names.push_back(std::string(method.name));
  return to_text(ordered_json{
      {"server", call.facts.server},
      {"version", call.facts.version},
      {"protocol_version", kProtocolVersion},
      {"features", {"group-snapshots", "request-id"}},
      {"methods", std::move(names)},
      {"listeners", call.facts.listeners},
      {"started", time_text(call.started)},
      {"store",
       {{"name", info.name}, {"uuid", store::to_string(info.uuid)}, {"format", info.format}}}});
}

Result<std::string> store_get(const Call& call) { return encode(call.store.info()); }

Result<std::string> store_grow(const Call& call) {
  std::optional<uint64_t> capacity;
  if (call.arguments.has("capacity")) capacity = call.arguments.number("capacity");
  TRY_ASSIGN(const store::StoreInfo info, call.store.grow(capacity));
  return encode(info);
}

Result<std::string> store_set(const Call& call) {
  const auto delay = static_cast<int64_t>(call.arguments.number("eradication_delay_ms"));
  return carry_out_once<store::StoreInfo>(call, [&](const store::Once<store::StoreInfo>& once) {
    return call.store.set_eradication_delay(delay, once);
  });
}

Result<std::string> store_scrub(const Call& call) {
  const std::string action = call.arguments.maybe_text("action").value_or("status");
  if (action == "start") return encode(call.store.start_scrub());
  if (action == "stop") return encode(call.store.stop_scrub());
  return encode(call.store.scrub_info());
}

Result<std::string> stats_get(const Call& call) {
  const auto volume = call.arguments.maybe_text("volume");
  if (!volume) return encode(call.store.stats());
  TRY_ASSIGN(const store::IoStats stats, call.store.stats(*volume));
  return encode(stats);
}

}  // namespace

std::vector<Method> store_methods() {
  Parameter capacity = optional("capacity", Kind::integer);
  capacity.least = 1;
  capacity.most = store::kCapacityMax;
  Parameter delay = required("eradication_delay_ms", Kind::integer);
  delay.most = store::kEradicationDelayMax;
  Parameter action = optional("action", Kind::choice);
  action.choices = {"status", "start", "stop"};
  return {
      {"server.info", server_info, {}},
      {"store.get", store_get, {}},
      {"store.set", store_set, {delay}, true},
      {"store.grow", store_grow, {capacity}},
      {"store.scrub", store_scrub, {action}},
      {"stats.get", stats_get, {optional("volume", Kind::volume)}},
  };
}

}  // namespace vellum::control

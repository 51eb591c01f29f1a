// SPDX-License-Identifier: BSD-2-Clause
#include "common/control/encode.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

#include <nlohmann/json.hpp>

#include "common/control/message.hpp"

namespace vellum::control {
namespace {

using nlohmann::ordered_json;

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json json_of(const store::VolumeInfo& volume) {
  return {{"name", volume.name},
          {"id", volume.id},
          {"uuid", store::to_string(volume.uuid)},
          {"size", volume.size},
          {"created", time_text(volume.created)},
          {"provision", volume.provision == store::Provision::thin ? "thin" : "reserved"},
          {"snapshots", volume.snapshots},
          {"parent", or_null(volume.parent)},
          {"attached", volume.attached},
          {"destroyed", volume.time_remaining.has_value()},
          {"time_remaining_ms", or_null(volume.time_remaining)}};
}

ordered_json json_of(const store::SnapshotInfo& snapshot) {
  return {{"name", snapshot.name},
          {"id", snapshot.id},
          {"uuid", store::to_string(snapshot.uuid)},
          {"volume", snapshot.volume},
          {"size", snapshot.size},
          {"created", time_text(snapshot.created)},
          {"parent", or_null(snapshot.parent)},
          {"children", snapshot.children},
          {"destroyed", snapshot.time_remaining.has_value()},
          {"time_remaining_ms", or_null(snapshot.time_remaining)}};
}

ordered_json json_of(const store::SpaceWarning& warning) {
  ordered_json candidates = ordered_json::array();
  for (const store::EradicationCandidate& candidate : warning.candidates) {
    candidates.push_back({{"name", candidate.name}, {"gives_back", candidate.gives_back}});
  }
  return {{"level", warning.level},
          {"percent_full", warning.percent_full},
          {"message", warning.message},
          {"candidates", std::move(candidates)}};
}

ordered_json json_of(const store::ReclaimProgress& job) {
  return {{"job", job.job},
          {"version", job.version},
          {"owned_bytes", job.owned_bytes},
          {"fraction", job.fraction}};
}

ordered_json json_of(const store::ScrubDamage& damage) {
  return {{"names", damage.names},     {"offset", damage.offset},
          {"length", damage.length},   {"address", damage.address},
          {"message", damage.message}, {"kind", damage.is_map ? "map" : "data"}};
}

template <typename T, typename Convert>
std::string array_of(const std::vector<T>& values, Convert convert) {
  ordered_json array = ordered_json::array();
  for (const T& value : values) array.push_back(convert(value));
  return to_text(array);
}

}  // namespace

std::string encode(const store::VolumeInfo& volume) { return to_text(json_of(volume)); }

std::string encode(const std::vector<store::VolumeInfo>& volumes) {
  return array_of(volumes, [](const store::VolumeInfo& volume) { return json_of(volume); });
}

std::string encode(const store::SnapshotInfo& snapshot) { return to_text(json_of(snapshot)); }

std::string encode(const std::vector<store::SnapshotInfo>& created) {
  return array_of(created, [](const store::SnapshotInfo& snapshot) {
    return ordered_json{{"name", snapshot.name},
                        {"id", snapshot.id},
                        {"uuid", store::to_string(snapshot.uuid)},
                        {"created", time_text(snapshot.created)}};
  });
}

std::string encode_list(const std::vector<store::SnapshotInfo>& snapshots) {
  return array_of(snapshots, [](const store::SnapshotInfo& snapshot) { return json_of(snapshot); });
}

std::string encode(const store::CopyInfo& copy) {
  return to_text(ordered_json{{"volume", json_of(copy.volume)},
                              {"undo_snapshot", or_null(copy.undo_snapshot)}});
}

std::string encode(const store::Destroyed& destroyed) {
  return to_text(ordered_json{{"time_remaining_ms", destroyed.time_remaining}});
}

std::string encode(const store::AllocatedMap& map) {
  return to_text(ordered_json{{"chunk", map.chunk},
                              {"scanned_length", map.scanned_length},
                              {"bitmap", base64(map.bitmap)},
                              {"allocated_chunks", map.allocated_chunks},
                              {"next_allocated", or_null(map.next_allocated)}});
}

std::string encode(const store::ExtentList& list) {
  ordered_json extents = ordered_json::array();
  for (const store::Extent& extent : list.extents) {
    extents.push_back({{"offset", extent.offset},
                       {"length", extent.length},
                       {"kind", extent.kind == store::ExtentKind::data ? "data" : "zero"}});
  }
  return to_text(ordered_json{{"size", list.size},
                              {"extents", std::move(extents)},
                              {"next_offset", or_null(list.next_offset)}});
}

std::string encode(const std::vector<store::SpaceInfo>& list) {
  return array_of(list, [](const store::SpaceInfo& space) {
    return ordered_json{{"name", space.name},
                        {"size", space.size},
                        {"referenced", space.referenced},
                        {"unique", space.unique},
                        {"gives_back", space.gives_back},
                        {"promised", space.promised},
                        {"destroyed", space.destroyed},
                        {"exact", space.exact}};
  });
}

std::string encode(const store::IoStats& stats) {
  return to_text(ordered_json{{"reads", stats.reads},
                              {"read_bytes", stats.read_bytes},
                              {"writes", stats.writes},
                              {"write_bytes", stats.write_bytes},
                              {"flushes", stats.flushes},
                              {"trims", stats.trims},
                              {"trim_bytes", stats.trim_bytes},
                              {"zeroes", stats.zeroes},
                              {"zero_bytes", stats.zero_bytes},
                              {"copies", stats.copies},
                              {"copy_bytes", stats.copy_bytes},
                              {"snapshots", stats.snapshots},
                              {"checksum_errors", stats.checksum_errors},
                              {"warning", or_null(stats.warning)}});
}

std::string encode(const store::ScrubInfo& scrub) {
  constexpr std::array kStates{"never", "running", "finished", "stopped"};
  const auto when = [](std::optional<int64_t> time) {
    return time ? ordered_json(time_text(*time)) : ordered_json(nullptr);
  };
  ordered_json damages = ordered_json::array();
  for (const store::ScrubDamage& damage : scrub.damages) damages.push_back(json_of(damage));
  return to_text(ordered_json{{"state", kStates.at(static_cast<size_t>(scrub.state))},
                              {"started", when(scrub.started)},
                              {"finished", when(scrub.finished)},
                              {"checked_bytes", scrub.checked_bytes},
                              {"total_bytes", scrub.total_bytes},
                              {"errors", scrub.errors},
                              {"damages", std::move(damages)}});
}

std::string encode(const store::StoreInfo& store) {
  ordered_json reclaim = ordered_json::array();
  for (const store::ReclaimProgress& job : store.reclaim) reclaim.push_back(json_of(job));
  return to_text(ordered_json{{"name", store.name},
                              {"uuid", store::to_string(store.uuid)},
                              {"format", store.format},
                              {"capacity", store.capacity},
                              {"used", store.used},
                              {"data", store.data},
                              {"metadata", store.metadata},
                              {"free", store.free},
                              {"promised", store.promised},
                              {"reserve", store.reserve},
                              {"waiting_for_reclaim", store.waiting_for_reclaim},
                              {"waiting_for_reuse", store.waiting_for_reuse},
                              {"damaged_regions", store.damaged_regions},
                              {"reclaim_skipped", store.reclaim_skipped},
                              {"mount_generation", store.mount_generation},
                              {"checkpoint", store.checkpoint},
                              {"journal_size", store.journal_size},
                              {"journal_used", store.journal_used},
                              {"cache_size", store.cache_size},
                              {"cache_used", store.cache_used},
                              {"cache_dirty", store.cache_dirty},
                              {"volumes", store.volumes},
                              {"snapshots", store.snapshots},
                              {"versions", store.versions},
                              {"zombies", store.zombies},
                              {"destroyed", store.destroyed},
                              {"eradication_delay_ms", store.eradication_delay},
                              {"read_only", or_null(store.read_only)},
                              {"warning", store.warning ? json_of(*store.warning) : nullptr},
                              {"reclaim", std::move(reclaim)}});
}

std::string time_text(int64_t milliseconds) {
  // Rounded down, also before 1970: a damaged clock must not give a negative fraction.
  int64_t seconds = milliseconds / 1000;
  int64_t fraction = milliseconds % 1000;
  if (fraction < 0) {
    fraction += 1000;
    --seconds;
  }
  const auto time = static_cast<time_t>(seconds);
  std::tm parts{};
  std::array<char, 64> text{};
  if (gmtime_r(&time, &parts) == nullptr) return "1970-01-01T00:00:00.000Z";
  const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + length, text.size() - length, ".%03dZ", static_cast<int>(fraction));
  return text.data();
}

std::string base64(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t given = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < given ? std::to_integer<uint32_t>(bytes[i + k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += k <= given ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

}  // namespace vellum::control

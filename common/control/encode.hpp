// SPDX-License-Identifier: BSD-2-Clause
//
// The store's values as JSON text, member by member as PROTOCOL.md lists them. Integers are written
// in full, times in RFC 3339 in UTC with milliseconds, bitmaps in base64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/store/store.hpp"

namespace vellum::control {

std::string encode(const store::VolumeInfo& volume);
std::string encode(const std::vector<store::VolumeInfo>& volumes);
std::string encode(const store::SnapshotInfo& snapshot);
std::string encode(const store::CopyInfo& copy);
std::string encode(const store::AllocatedMap& map);
std::string encode(const store::ExtentList& list);
std::string encode(const std::vector<store::SpaceInfo>& list);
std::string encode(const store::IoStats& stats);
std::string encode(const store::StoreInfo& store);
std::string encode(const store::ScrubInfo& scrub);
std::string encode(const store::Destroyed& destroyed);
// What snapshot.create answers. It is short, since it is kept by request_id: 256 snapshots with the
// longest names fit into the 64 KiB that the store keeps.
std::string encode(const std::vector<store::SnapshotInfo>& created);
// What snapshot.list answers.
std::string encode_list(const std::vector<store::SnapshotInfo>& snapshots);

std::string time_text(int64_t milliseconds);
std::string base64(std::span<const std::byte> bytes);

}  // namespace vellum::control

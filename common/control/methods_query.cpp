// SPDX-License-Identifier: BSD-2-Clause
//
// bitmap.*, extents.* and space.*: what is where, and what it takes. All of them read metadata
// only.
#include <algorithm>
#include <string>

#include "common/control/encode.hpp"
#include "common/control/method.hpp"

namespace vellum::control {
namespace {

constexpr uint64_t kChunkMin = 4096;
constexpr uint64_t kBitsMax = 8192;  // of a bitmap in one answer
constexpr uint64_t kExtentsMax = 65536;

Result<uint64_t> size_of(store::Store& store, const std::string& target) {
  if (target.find('@') != std::string::npos) {
    TRY_ASSIGN(const store::SnapshotInfo snapshot, store.get_snapshot(target));
    return snapshot.size;
  }
  TRY_ASSIGN(const store::VolumeInfo volume, store.get_volume(target));
  return volume.size;
}

// With a base: where the target differs from it. Without a length: up to the end. Never more than
// fits into one answer; the caller sees from scanned_length how far it got.
Result<store::AllocatedMap> chunk_map(const Call& call, bool has_base) {
  const std::string& target = call.arguments.text("target");
  const uint64_t offset = call.arguments.number("offset");
  const uint64_t chunk = call.arguments.has("chunk") ? call.arguments.number("chunk") : 0;
  const bool hint = call.arguments.flag("hint");
  uint64_t length = 0;
  if (call.arguments.has("length")) {
    length = call.arguments.number("length");
  } else {
    TRY_ASSIGN(const uint64_t size, size_of(call.store, target));
    if (offset >= size) {
      return Error{Errc::out_of_range, "offset " + std::to_string(offset) + " is not inside " +
                                           target + ", which has " + std::to_string(size) +
                                           " bytes"};
    }
    length = size - offset;
  }
  // A power of two times 8,192 cannot overflow: chunk is at most 4 PiB.
  if (chunk != 0) length = std::min(length, chunk * kBitsMax);
  if (!has_base) return call.store.allocated(target, offset, length, chunk, hint);
  return call.store.unshared(target, call.arguments.text("base"), offset, length, chunk, hint);
}

Result<std::string> allocated(const Call& call) {
  TRY_ASSIGN(const store::AllocatedMap map, chunk_map(call, false));
  return encode(map);
}

Result<std::string> unshared(const Call& call) {
  TRY_ASSIGN(const store::AllocatedMap map, chunk_map(call, true));
  return encode(map);
}

Result<std::string> space(const Call& call) {
  std::vector<std::string> names;
  if (call.arguments.has("names")) names = call.arguments.texts("names");
  TRY_ASSIGN(const std::vector<store::SpaceInfo> list, call.store.space(names));
  return encode(list);
}

Result<std::string> list(const Call& call) {
  TRY_ASSIGN(const store::ExtentList extents,
             call.store.extents(call.arguments.text("target"), call.arguments.number("offset"),
                                call.arguments.number("max")));
  return encode(extents);
}

Result<std::string> diff(const Call& call) {
  TRY_ASSIGN(const store::ExtentList extents,
             call.store.diff(call.arguments.text("target"), call.arguments.text("base"),
                             call.arguments.number("offset"), call.arguments.number("max")));
  return encode(extents);
}

Parameter number(std::string_view name, uint64_t least, uint64_t most, const char* otherwise) {
  Parameter parameter = optional(name, Kind::integer);
  parameter.least = least;
  parameter.most = most;
  parameter.otherwise = otherwise;
  return parameter;
}

Parameter chunk() {
  Parameter parameter = number("chunk", kChunkMin, store::kVolumeSizeMax, nullptr);
  parameter.power_of_two = true;
  return parameter;
}

}  // namespace

std::vector<Method> query_methods() {
  const Parameter target = required("target", Kind::target);
  const Parameter offset = number("offset", 0, store::kVolumeSizeMax, "0");
  const Parameter length = number("length", 1, store::kVolumeSizeMax, nullptr);
  const Parameter max = number("max", 1, kExtentsMax, "4096");
  return {
      {"bitmap.allocated", allocated, {target, offset, length, chunk(), flag("hint", true)}},
      {"bitmap.unshared",
       unshared,
       {target, required("base", Kind::target), offset, length, chunk(), flag("hint", true)}},
      {"extents.list", list, {target, offset, max}},
      {"extents.diff", diff, {target, required("base", Kind::target), offset, max}},
      {"space.get", space, {optional("names", Kind::targets)}},
  };
}

}  // namespace vellum::control

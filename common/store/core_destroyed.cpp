// SPDX-License-Identifier: BSD-2-Clause
//
// Destroying, recovering, eradicating.
//
// 1. What is destroyed keeps its name, its content and its space until it is eradicated: by
//    command, or when its time has come. That time is fixed when it is destroyed.
// 2. A volume takes its snapshots with it, and brings them back. A snapshot that was destroyed
//    before keeps its own time.
// 3. Nothing is eradicated early: the wall clock may be set, so a steady clock has to agree that
//    the time has come. It counts from when something was destroyed, or from when the store was
//    opened; across that the wall clock is all there is.
// 4. None of this takes space (P10).
#include <algorithm>
#include <array>
#include <ctime>

#include "common/store/core_change.hpp"

namespace vellum::store {

namespace {

constexpr size_t kRecordBytes = 64;

// Goes on while the machine is suspended.
int64_t since_boot_ms() {
  timespec now{};
  CHECK(::clock_gettime(CLOCK_BOOTTIME, &now) == 0);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

std::string quoted(const Target& target) { return "\"" + target.name() + "\""; }

Error not_destroyed(const Target& target) {
  return {Errc::precondition, quoted(target) + " is not destroyed"};
}

}  // namespace

Error Core::destroyed_error(const Target& target) {
  std::string message = quoted(target) + " is destroyed";
  if (target.snapshot && is_destroyed(*target.volume)) {
    message += " with its volume";
    return {Errc::destroyed, message + ": recover the volume first"};
  }
  return {Errc::destroyed, message + ": recover it first"};
}

int64_t Core::steady_now() const {
  if (options_.steady_clock) return options_.steady_clock();
  return options_.clock ? options_.clock() : since_boot_ms();
}

void Core::note_opened() {
  opened_at_ = now();
  opened_at_steady_ = steady_now();
}

// Until both clocks say that it is due.
int64_t Core::time_left(int64_t eradicate_at, std::optional<int64_t> not_before) const {
  const int64_t steady = not_before.value_or(opened_at_steady_ + (eradicate_at - opened_at_));
  return std::max({int64_t{0}, eradicate_at - now(), steady - steady_now()});
}

std::optional<int64_t> Core::time_remaining(const Volume& volume) const {
  if (!volume.eradicate_at) return std::nullopt;
  return time_left(*volume.eradicate_at, volume.not_before);
}

// Of a snapshot that was destroyed itself and with its volume, what comes first.
std::optional<int64_t> Core::time_remaining(const Snapshot& snapshot) const {
  const auto with_volume = time_remaining(*snapshot.volume);
  if (!snapshot.eradicate_at) return with_volume;
  const int64_t own = time_left(*snapshot.eradicate_at, snapshot.not_before);
  return std::min(own, with_volume.value_or(own));
}

Piece Core::destroying(ObjectId id, bool is_volume, bool eradicate) const {
  if (!eradicate && forest_.eradication_delay > 0) {
    return DestroyPiece{id, std::clamp<int64_t>(now() + forest_.eradication_delay, 0, kTimeMax)};
  }
  if (is_volume) return EradicateVolumePiece{id};
  return EradicateSnapshotPiece{id};
}

Result<Destroyed> Core::destroy_volume(const std::string& name, bool force, bool eradicate,
                                       const Once<Destroyed>& once) {
  const auto make = [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY_ASSIGN(const Target target, find_volume(name));
    if (!force) TRY(check_detached(*target.volume));
    pieces.push_back(destroying(target.volume->id, true, eradicate));
    info = [this, volume = target.volume] {
      return Destroyed{time_remaining(*volume).value_or(0)};
    };
    return {};
  };
  return change<Destroyed>(once, kRecordBytes, make, 0);
}

Result<Destroyed> Core::destroy_snapshot(const std::string& name, bool eradicate,
                                         const Once<Destroyed>& once) {
  const auto make = [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY_ASSIGN(const Target target, find_snapshot(name));
    pieces.push_back(destroying(target.snapshot->id, false, eradicate));
    info = [this, snapshot = target.snapshot] {
      return Destroyed{snapshot->gone ? 0 : time_remaining(*snapshot).value_or(0)};
    };
    return {};
  };
  return change<Destroyed>(once, kRecordBytes, make, 0);
}

Result<VolumeInfo> Core::recover_volume(const std::string& name, const Once<VolumeInfo>& once) {
  const auto make = [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY_ASSIGN(const Target target, find_even_destroyed_volume(name));
    if (!target.volume->eradicate_at) return not_destroyed(target);
    pieces.emplace_back(RecoverPiece{target.volume->id});
    info = [this, volume = target.volume] { return describe(*volume); };
    return {};
  };
  return change<VolumeInfo>(once, kRecordBytes, make, 0);
}

Result<SnapshotInfo> Core::recover_snapshot(const std::string& name,
                                            const Once<SnapshotInfo>& once) {
  const auto make = [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY_ASSIGN(const Target target, find_even_destroyed_snapshot(name));
    if (is_destroyed(*target.volume)) return destroyed_error(target);
    if (!target.snapshot->eradicate_at) return not_destroyed(target);
    pieces.emplace_back(RecoverPiece{target.snapshot->id});
    info = [this, snapshot = target.snapshot] { return describe(*snapshot); };
    return {};
  };
  return change<SnapshotInfo>(once, kRecordBytes, make, 0);
}

Result<Destroyed> Core::eradicate(const std::string& name, bool is_volume,
                                  const Once<Destroyed>& once) {
  const auto make = [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    TRY_ASSIGN(const Target target,
               is_volume ? find_even_destroyed_volume(name) : find_even_destroyed_snapshot(name));
    if (!target.is_destroyed()) {
      return Error{Errc::precondition,
                   quoted(target) +
                       " is not destroyed: destroy it first, or destroy it with "
                       "eradicate (--eradicate) to do both"};
    }
    pieces.push_back(
        destroying(is_volume ? target.volume->id : target.snapshot->id, is_volume, true));
    info = [] { return Destroyed(); };
    return {};
  };
  return change<Destroyed>(once, kRecordBytes, make, 0);
}

Result<StoreInfo> Core::set_eradication_delay(int64_t milliseconds, const Once<StoreInfo>& once) {
  if (milliseconds < 0 || milliseconds > kEradicationDelayMax) {
    return Error{Errc::invalid_argument, "the eradication delay must be 0 to ten years"};
  }
  const auto make = [&](Lock&, auto& pieces, auto& info) -> Result<void> {
    pieces.emplace_back(EradicationDelayPiece{milliseconds});
    info = [this] { return describe_store(); };
    return {};
  };
  return change<StoreInfo>(once, kRecordBytes, make, 0);
}

// One of what is due, if anything is. One record.
Result<bool> Core::eradicate_due(Lock& lock) {
  CHECK(lock.owns_lock());
  for (const auto& [at, id] : forest_.destroyed()) {
    if (at > now()) return false;
    const auto volume = forest_.volume(id);
    const auto snapshot = forest_.snapshot(id);
    if (time_left(at, volume ? volume->not_before : snapshot->not_before) > 0) continue;
    const Target target{volume ? volume : forest_.volume(snapshot->volume->id), snapshot};
    append(std::array<Piece, 1>{destroying(id, volume != nullptr, true)});
    log(1, quoted(target) + " was destroyed some time ago, and is eradicated now");
    return true;
  }
  return false;
}

}  // namespace vellum::store

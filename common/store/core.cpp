// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/core.hpp"

#include <algorithm>
#include <chrono>
#include <unordered_set>

namespace vellum::store {

Core::Core(disk::Disk& disk, const Options& options, const Superblock& superblock)
    : disk_(disk),
      options_(options),
      superblock_(superblock),
      nodes_(std::max<size_t>(options.cache_bytes / sizeof(Node), 64)),
      forest_(nodes_) {
  if (options.random_seed != 0) {
    random_.seed(options.random_seed);
  } else {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(),
                       device(), device(), device(), device()};
    random_.seed(seed);
  }
  note_opened();
}

Core::~Core() { stop_threads(); }

void Core::log(int level, const std::string& message) const {
  if (options_.log) options_.log(level, message);
}

int64_t Core::now() const {
  if (options_.clock) return options_.clock();
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

Uuid Core::new_uuid() {
  Uuid uuid;
  for (std::byte& byte : uuid) byte = static_cast<std::byte>(random_());
  uuid[6] = (uuid[6] & std::byte{0x0f}) | std::byte{0x40};  // RFC 4122, version 4
  uuid[8] = (uuid[8] & std::byte{0x3f}) | std::byte{0x80};
  return uuid;
}

void Core::fail(Lock& lock, const std::string& why) {
  CHECK(lock.owns_lock());
  set_failure(why);
}

void Core::set_failure(const std::string& why) {
  if (failure_) return;
  failure_ = why;
  log(3, "the store takes no changes any more: " + why);
  progress_.notify_all();
}

Error Core::failure_error() const {
  return {Errc::read_only, "the store " + disk_.name() +
                               " takes no changes any more until it is opened again: " + *failure_};
}

bool Core::can_execute(const Piece& piece, MissingNodes& missing) {
  if (const auto* write = std::get_if<WritePiece>(&piece)) {
    Version* head = forest_.version(write->version);
    return head == nullptr || tree_->can_write(*head, write->block, missing);
  }
  if (const auto* trim = std::get_if<TrimPiece>(&piece)) {
    Version* head = forest_.version(trim->version);
    return head == nullptr || tree_->can_trim(*head, trim->block, trim->count, missing);
  }
  return true;
}

namespace {

bool is_head(const Version* version) { return version != nullptr && version->state == State::head; }

}  // namespace

bool Core::execute(const Piece& piece, bool is_replay) {
  struct Executor {
    Core& core;
    bool is_replay;

    bool operator()(const WritePiece& piece) const {
      Version* head = core.forest_.version(piece.version);
      const uint64_t count = piece.crcs.size();
      if (!is_head(head) || piece.block >= kTreeBlocks ||
          slot_of(piece.block, 1) + count > kFanout) {
        return false;
      }
      for (const Run& run : piece.runs) {
        if (run.block < core.allocator_->first() || run.end() > core.allocator_->end()) {
          return false;
        }
        if (is_replay) {
          core.allocator_->record_unreserved(run);
        } else {
          core.allocator_->record(run);
        }
      }
      core.tree_->write(*head, piece.block, piece.runs, piece.crcs);
      return true;
    }
    bool operator()(const TrimPiece& piece) const {
      Version* head = core.forest_.version(piece.version);
      if (!is_head(head) || piece.count > kTreeBlocks || piece.block > kTreeBlocks - piece.count) {
        return false;
      }
      core.tree_->trim(*head, piece.block, piece.count);
      return true;
    }
    bool operator()(const CreateVolumePiece& piece) const {
      return core.forest_.create_volume(piece.volume, 0);
    }
    bool operator()(const RenamePiece& piece) const {
      return core.forest_.rename(piece.id, piece.name);
    }
    bool operator()(const ResizePiece& piece) const {
      return core.forest_.resize(piece.id, piece.size);
    }
    bool operator()(const SnapshotPiece& piece) const { return core.forest_.take_snapshot(piece); }
    bool operator()(const SplitPiece& piece) const {
      return core.forest_.split(piece.volume, piece.new_head);
    }
    bool operator()(const ClonePiece& piece) const {
      return core.forest_.create_volume(piece.volume, piece.parent);
    }
    bool operator()(const SwitchPiece& piece) const { return core.forest_.switch_head(piece); }
    bool operator()(const EradicateVolumePiece& piece) const {
      return core.forest_.eradicate_volume(piece.id);
    }
    bool operator()(const EradicateSnapshotPiece& piece) const {
      return core.forest_.eradicate_snapshot(piece.id);
    }
    bool operator()(const DestroyPiece& piece) const {
      std::optional<int64_t> not_before;
      if (!is_replay) not_before = core.steady_now() + core.forest_.eradication_delay;
      return core.forest_.destroy(piece.id, piece.eradicate_at, not_before);
    }
    bool operator()(const RecoverPiece& piece) const { return core.forest_.recover(piece.id); }
    bool operator()(const EradicationDelayPiece& piece) const {
      core.forest_.eradication_delay = piece.milliseconds;
      return true;
    }
    bool operator()(const AnswerPiece& piece) const { return core.answers_.execute(piece); }
    bool operator()(const BeginReclaimPiece& piece) const {
      Version* version = core.forest_.version(piece.version);
      if (version == nullptr || Forest::job_for(*version) != piece.job) return false;
      if (!core.forest_.can_begin(*version)) return false;
      core.forest_.begin_job(*version, piece.job);
      return true;
    }
    bool operator()(const ReclaimSkipPiece& piece) const {
      Version* version = core.forest_.version(piece.version);
      if (version == nullptr || version->job == Job::none) return false;
      if (piece.reached <= version->cursor) return false;
      core.forest_.set_cursor(*version, piece.reached);
      return true;
    }
    bool operator()(const ReclaimStepPiece& piece) const {
      Version* version = core.forest_.version(piece.version);
      if (version == nullptr || version->job == Job::none) return false;
      if (piece.given_up && version->job != Job::sweep) return false;
      const Cursor expected = piece.finished ? kCursorEnd : piece.reached;
      if (!piece.given_up && version->cursor != expected) return false;
      if (piece.finished || piece.given_up) core.forest_.finish_job(*version);
      return true;
    }
  };
  return std::visit(Executor{*this, is_replay}, piece);
}

void Core::execute_new(std::span<const Piece> pieces) {
  for (const Piece& piece : pieces) {
    const bool fits = execute(piece, false);
    CHECK(fits);
  }
}

void Core::append_executed(std::span<const Piece> pieces) {
  if (pieces.empty()) return;
  record_.clear();
  for (const Piece& piece : pieces) encode(piece, record_);
  journal_->append(record_);
  note_record();
}

Result<Target> Core::find_target(const std::string& name) {
  TRY_ASSIGN(Target target, find_even_destroyed(name));
  if (target.is_destroyed()) return destroyed_error(target);
  return target;
}

Result<Target> Core::find_even_destroyed(const std::string& name) {
  const size_t at = name.find('@');
  const std::string volume_name = name.substr(0, at);
  Target target{forest_.volume(volume_name), nullptr};
  if (!target.volume) {
    return Error{Errc::not_found, "there is no volume \"" + volume_name + "\""};
  }
  if (at == std::string::npos) return target;
  const auto snapshot = target.volume->snapshots.find(name.substr(at + 1));
  if (snapshot == target.volume->snapshots.end()) {
    return Error{Errc::not_found, "there is no snapshot \"" + name + "\""};
  }
  target.snapshot = snapshot->second;
  return target;
}

}  // namespace vellum::store

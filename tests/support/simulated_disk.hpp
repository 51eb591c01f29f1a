// SPDX-License-Identifier: BSD-2-Clause
//
// A disk in memory that counts every call, loses, tears and reorders what was not synced, and fails
// on command. Everything above common/disk is tested on it.
//
// 1. Each 4 KiB block of a write is a unit of its own. A unit is durable once a sync() that began
//    after its write had returned has succeeded; until then a crash may leave it absent, whole, or
//    torn at borders of 512 bytes, whatever happens to the others.
// 2. Several unsynced writes to one block: a crash may leave any of them, or a mixture of two.
// 3. After a sync() that failed, what it should have made durable stays visible, later sync() calls
//    succeed, and never make it durable: pages that failed to be written look clean.
// 4. What was discarded reads as garbage; what was never written reads as zeros.
// 5. From the call at which the power goes off, every call fails. If that call is a write, its
// units
//    are among the unsynced ones.
//
// Offsets and lengths are bytes, multiples of 4096 (else CHECK). All calls are thread-safe. Calls
// are numbered from 1; start_writeback() is a hint and has no number.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/disk/disk.hpp"
#include "tests/support/blocks.hpp"
#include "tests/support/random.hpp"

namespace vellum::support {

inline constexpr uint64_t kSectorBytes = 512;

enum class Call { read, write, sync, prepare, discard, writeback };
inline constexpr size_t kCallKinds = 6;

struct CallEntry {
  Call kind;
  uint64_t offset;
  uint64_t length_bytes;
};

struct CallCount {
  uint64_t calls = 0;
  uint64_t bytes = 0;
};
using CallCounts = std::array<CallCount, kCallKinds>;  // by Call

enum class Fault {
  io_error,     // the call fails; a write is half done, a sync is as in invariant 3
  no_space,     // the call fails and changes nothing
  lost,         // a write reports success and changes nothing
  misdirected,  // a write reports success and lands one mebibyte further
};

// What a crash leaves of the unsynced units; all_but_one: one block is as it was, wherever that is.
enum class Survival { nothing, everything, all_but_one, whole_units, torn_units };
inline constexpr Survival kSurvivals[] = {Survival::nothing, Survival::everything,
                                          Survival::all_but_one, Survival::whole_units,
                                          Survival::torn_units};

class SimulatedDisk final : public disk::Disk {
 public:
  // A disk that grows starts empty and gets as long as it is written; another has its size, and
  // access beyond it fails.
  SimulatedDisk(uint64_t size_bytes, bool grows) : size_bytes_(size_bytes), grows_(grows) {}
  SimulatedDisk() : SimulatedDisk(0, true) {}

  Result<void> read(uint64_t offset, std::span<std::byte> out,
                    disk::Wait wait = disk::Wait::allowed) override;
  Result<void> read(uint64_t offset, std::span<const iovec> parts, disk::Wait wait) override;
  using disk::Disk::write;
  Result<void> write(uint64_t offset, std::span<const iovec> parts) override;
  Result<void> sync() override;
  void start_writeback(uint64_t offset, uint64_t length) override;
  Result<void> prepare(uint64_t offset, uint64_t length) override;
  Result<void> discard(uint64_t offset, uint64_t length) override;
  uint64_t size_bytes() const override;
  bool can_grow() const override { return grows_; }
  std::optional<uint64_t> room_bytes() const override;
  Result<void> claim(uint64_t generation) override;
  std::string name() const override { return "simulated disk"; }

  // -- Counting -----------------------------------------------------------------------------------
  uint64_t call_number() const;  // of the last call
  CallCounts counts() const;
  void log_calls(bool on);  // entry i of the log is the i-th call since then
  std::vector<CallEntry> log() const;

  // -- Power --------------------------------------------------------------------------------------
  void power_off();                      // now: the next call fails
  void power_off_at(uint64_t in_calls);  // 1: the next call is the one at which it goes off
  bool power_is_off() const;
  bool has_failed() const;  // any call so far, by power or by a planned fault
  // A new disk, powered and without faults, that holds what a crash at this moment may leave.
  std::unique_ptr<SimulatedDisk> survivor(Survival how, Random& random) const;
  // For each block that was ever written all that a crash at this moment may leave there, except
  // torn ones.
  std::map<uint64_t, std::vector<BlockPointer>> possible() const;

  // -- Faults -------------------------------------------------------------------------------------
  void fail(Call kind, uint64_t nth, Fault fault);  // nth call of that kind from now on, from 1
  void flip_bit(uint64_t offset, unsigned bit);     // of the byte at `offset`, in every version
  // So many blocks more may be occupied by writing where nothing was written since the last
  // discard; then there is no space. Nothing: as many as you like.
  void limit_host(std::optional<uint64_t> blocks);
  void set_cold(bool cold);  // Wait::never reads answer would_block
  void set_sync_delay(std::chrono::microseconds delay);

  // Calls for which `matches` is true wait until release(): writes before they have any effect,
  // reads with what they have read. `parts` of a read are filled.
  using Matcher = std::function<bool(uint64_t offset, std::span<const iovec> parts)>;
  void stall_writes(Matcher matches);
  void stall_reads(Matcher matches);
  bool wait_until_stalled(size_t calls, std::chrono::milliseconds timeout);
  void release();

 private:
  struct Version {
    BlockPointer data;
    uint64_t sequence;
    bool lost;  // by a failed sync
  };
  struct PlannedFault {
    Call kind;
    uint64_t remaining;
    Fault fault;
  };
  enum class Verdict { proceed, power_goes, power_is_off, io_error, no_space, lost, misdirected };
  using Versions = std::vector<Version>;

  Verdict admit(Call kind, uint64_t offset, uint64_t length);
  std::optional<Fault> take_fault(Call kind);
  void count(Call kind, uint64_t offset, uint64_t length);
  Error failure(Verdict verdict, const char* what) const;
  bool inside(uint64_t offset, uint64_t length) const;
  bool has_room(uint64_t offset, uint64_t length) const;
  BlockPointer visible(uint64_t index) const;
  void store(uint64_t index, BlockPointer data);
  void store_parts(uint64_t offset, std::span<const iovec> parts, uint64_t blocks_max);
  void wait_while_stalled(std::unique_lock<std::mutex>& lock, const Matcher& matches,
                          uint64_t offset, std::span<const iovec> parts);
  void make_durable(uint64_t before_sequence);
  BlockPointer choose(uint64_t index, const Versions& versions, Survival how, Random& random) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t size_bytes_;
  const bool grows_;
  std::unordered_map<uint64_t, BlockPointer> durable_;  // by block index
  std::map<uint64_t, Versions> unsynced_;  // ordered: survivors depend on the seed alone
  uint64_t next_sequence_ = 1;

  uint64_t call_number_ = 0;
  CallCounts counts_{};
  bool logging_ = false;
  std::vector<CallEntry> log_;

  bool power_is_off_ = false;
  bool has_failed_ = false;
  std::optional<uint64_t> power_off_number_;
  std::vector<PlannedFault> faults_;
  std::unordered_set<uint64_t> occupied_;
  std::optional<uint64_t> host_limit_;
  bool cold_ = false;
  std::chrono::microseconds sync_delay_{0};
  Matcher write_stalls_, read_stalls_;
  size_t stalled_ = 0;
  uint64_t releases_ = 0;
};

// True if one of `parts` holds `text` at an offset that is a multiple of 4096 within the write.
bool holds_at_block_start(std::span<const iovec> parts, std::span<const std::byte> text);

}  // namespace vellum::support

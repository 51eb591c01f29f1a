// SPDX-License-Identifier: BSD-2-Clause
//
// The snapshot store: volumes and snapshots on one disk. This is the facade that the server, the
// plugin and the control protocol use; DESIGN terms: volumes and snapshots are names of versions, a
// version is a radix tree of 4 KiB nodes, and nothing is ever written in place.
//
// Threads: every call may be made from any thread at any time. Calls block for I/O unless they take
// Wait::never. Callbacks run on a thread of the store; they must be short and must not block.
//
// Durability: what returned is durable after the next flush() that succeeded. Calls that change
// volumes and snapshots (not their content) are durable when they return.
//
// Errors: a message names the object and what would help. After a failed sync every call that
// changes something, and every flush, fails with Errc::read_only until the store is opened again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.hpp"
#include "common/disk/disk.hpp"
#include "common/store/types.hpp"

namespace vellum::store {

using disk::Wait;

class Core;  // the implementation
struct TicketRange;
class Export;

// Where and how large the parts of a new store are. The defaults suit real disks; tests make all of
// it tiny. All are multiples of 4096.
struct Geometry {
  uint64_t capacity = uint64_t{1} << 50;  // bytes, superblocks and journal included
  uint64_t segment_size = 4 << 20;
  uint64_t region_size = 128 << 20;  // at most 32,768 blocks
  uint64_t journal_size = 64 << 20;
  int64_t eradication_delay = kEradicationDelayDefault;  // milliseconds
};

struct Options {
  uint64_t cache_bytes = 256 << 20;  // nodes and bitmaps, clean and dirty
  bool background = true;      // false: no threads; the owner calls the *_step() functions (tests)
  size_t reclaim_places = 16;  // leaves and nodes that one step of reclaim looks at
  std::function<int64_t()> clock;  // milliseconds since 1970; null: the system's
  // Milliseconds since any moment, never set; null: the system's, or `clock` if that is given.
  std::function<int64_t()> steady_clock;
  uint64_t random_seed = 0;  // for uuids in tests; 0: the system's randomness
  // Called for what an operator should know. Level: 0 debug, 1 info, 2 warning, 3 error.
  std::function<void(int level, const std::string& message)> log;
};

// The place of one change among all changes of its volume, taken when the header of the request is
// read (P13): changes that overlap take effect in the order of their tickets. A ticket is given up
// by being destroyed or used; it may outlive neither its Export nor the store.
class Ticket {
 public:
  Ticket() = default;
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&& other) noexcept;
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket();

  bool valid() const { return range_ != nullptr; }
  // True once no earlier ticket overlaps this one. Then it stays true.
  bool ready() const;
  // Runs `then` once ready: at once on this thread, or later on the thread that gave way.
  void when_ready(std::function<void()> then);

 private:
  friend class Core;
  friend class Export;
  explicit Ticket(TicketRange* range) : range_(range) {}
  void give_up();
  TicketRange* range_ = nullptr;
};

struct Write {
  uint64_t offset = 0;
  std::span<const std::byte> data;  // any length; kept alive by the caller
  Ticket ticket;                    // from enter() with the same range
  Result<void> result;              // filled in
};

// An opened volume or snapshot. While one exists, the version it reads is not reclaimed. Destroyed
// before the store is closed. A volume that is destroyed by force, or whose size changes, stays
// open: calls on what is gone fail with Errc::destroyed, also once it has been recovered.
//
// Ranges must lie inside size_bytes(), else Errc::out_of_range; they need no alignment.
class Export {
 public:
  ~Export();
  const std::string& name() const { return name_; }
  uint64_t size_bytes() const;  // now: a volume may be resized
  bool read_only() const { return read_only_; }
  const Uuid& uuid() const { return uuid_; }

  // For each change, in the order in which their headers were read. Ranges are widened to blocks.
  Ticket enter(uint64_t offset, uint64_t length);

  // Fills `out`. If `extents` is given it receives what was data (allocated) and what was zero,
  // covering the range completely, coalesced.
  Result<void> read(uint64_t offset, std::span<std::byte> out, Wait wait = Wait::allowed,
                    std::vector<Extent>* extents = nullptr);

  // Writes in the order of the span. With Wait::never an element whose ticket is not ready, or
  // whose map is not in memory, gets Errc::would_block, keeps its ticket, and has changed nothing;
  // the others are done. Otherwise the tickets are used up.
  void write(std::span<Write> writes, Wait wait = Wait::allowed);
  Result<void> write(uint64_t offset, std::span<const std::byte> data);  // takes its own ticket

  // The range reads as zeros from now on and holds no space, whole blocks at least. A trim may have
  // no effect, or one on a part, where there is no space for the map that it changes.
  Result<void> trim(Ticket& ticket, uint64_t offset, uint64_t length, Wait wait = Wait::allowed);
  Result<void> write_zeroes(Ticket& ticket, uint64_t offset, uint64_t length,
                            Wait wait = Wait::allowed);
  Result<void> trim(uint64_t offset, uint64_t length);
  Result<void> write_zeroes(uint64_t offset, uint64_t length);

  // Brings data and map of the range into memory as far as that is cheap.
  Result<void> cache(uint64_t offset, uint64_t length);

  // What is data and what is zero from `offset` on: ascending, contiguous, beginning at `offset`,
  // coalesced, not beyond offset + length. May end early, after at least one extent.
  Result<std::vector<Extent>> map(uint64_t offset, uint64_t length, size_t extents_max,
                                  Wait wait = Wait::allowed);

 private:
  friend class Core;
  Export() = default;
  Core* core_ = nullptr;
  std::string name_;
  Uuid uuid_{};
  bool read_only_ = false;
  struct State;
  std::shared_ptr<State> state_;
};

class Store {
 public:
  // Makes an empty store on `disk`, whatever it held. Durable when it returns.
  static Result<void> format(disk::Disk& disk, const Geometry& geometry, const Options& options);

  // Opens, and recovers if it was not closed. Says which: no store, a newer format, truncated,
  // damaged. `disk` must outlive the store and already be locked against other owners.
  static Result<std::unique_ptr<Store>> open(disk::Disk& disk, const Options& options);

  // close() was not called: everything stops as in a crash, without further I/O.
  ~Store();

  // Flushes, writes a checkpoint, and stops the threads. All exports must be gone.
  Result<void> close();

  // -- Volumes and snapshots. Names: see DESIGN "Names, sizes, defaults". -------------------------
  Result<VolumeInfo> create_volume(const std::string& name, uint64_t size, Provision provision,
                                   const Once<VolumeInfo>& once = {});
  // By name. Those that are destroyed, or those that are not.
  std::vector<VolumeInfo> list_volumes(bool destroyed = false);
  Result<VolumeInfo> get_volume(const std::string& name);
  Result<VolumeInfo> rename_volume(const std::string& name, const std::string& new_name,
                                   const Once<VolumeInfo>& once = {});
  // Shrinking needs `truncate`, unless what is cut off holds nothing.
  Result<VolumeInfo> resize_volume(const std::string& name, uint64_t size, bool truncate,
                                   const Once<VolumeInfo>& once = {});
  // With its snapshots. It can be recovered for the store's eradication delay, unless `eradicate`
  // says that it goes for good, now. An attached volume needs `force`. What is destroyed keeps its
  // name and its space; to all calls but these and get it is Errc::destroyed.
  Result<Destroyed> destroy_volume(const std::string& name, bool force, bool eradicate = false,
                                   const Once<Destroyed>& once = {});
  Result<VolumeInfo> recover_volume(const std::string& name, const Once<VolumeInfo>& once = {});
  // For good, before its time.
  Result<Destroyed> eradicate_volume(const std::string& name, const Once<Destroyed>& once = {});

  // One point in time for all `volumes` (P5). Without a suffix each gets its volume's next number.
  Result<std::vector<SnapshotInfo>> create_snapshots(
      const std::vector<std::string>& volumes, const std::optional<std::string>& suffix,
      const Once<std::vector<SnapshotInfo>>& once = {});
  // In the order of their creation.
  std::vector<SnapshotInfo> list_snapshots(const std::optional<std::string>& volume,
                                           bool destroyed = false);
  Result<SnapshotInfo> get_snapshot(const std::string& name);
  Result<Destroyed> destroy_snapshot(const std::string& name, bool eradicate = false,
                                     const Once<Destroyed>& once = {});
  Result<SnapshotInfo> recover_snapshot(const std::string& name,
                                        const Once<SnapshotInfo>& once = {});
  Result<Destroyed> eradicate_snapshot(const std::string& name, const Once<Destroyed>& once = {});
  // For what is destroyed from now on. Milliseconds, 0 to kEradicationDelayMax; 0: at once.
  Result<StoreInfo> set_eradication_delay(int64_t milliseconds, const Once<StoreInfo>& once = {});

  // `source` is a volume or VOLUME@SUFFIX.
  Result<VolumeInfo> clone(const std::string& source, const std::string& name,
                           const Once<VolumeInfo>& once = {});
  // The content and size of `source` become those of `target`, which is created if it is missing;
  // an existing one needs `overwrite`. With `undo` the old content stays as a snapshot of `target`.
  Result<CopyInfo> copy(const std::string& source, const std::string& target, bool overwrite,
                        bool undo, const Once<CopyInfo>& once = {});
  // `snapshot`: a suffix of this volume's own, or in full one of its own or of an ancestor.
  Result<CopyInfo> revert(const std::string& volume, const std::string& snapshot, bool undo,
                          const Once<CopyInfo>& once = {});

  // The first answer to this request_id within the last hour.
  std::optional<std::string> find_answer(const std::string& request_id);

  // -- What is where. `target` is a volume or VOLUME@SUFFIX. -------------------------------------
  // `offset` and `length` are multiples of `chunk`, or reach the end. chunk: a power of two from
  // 4096; 0: the smallest with which the answer has at most 8,192 bits, which is also the limit.
  Result<AllocatedMap> allocated(const std::string& target, uint64_t offset, uint64_t length,
                                 uint64_t chunk, bool hint);
  // Likewise the chunks in which `target` differs from `base`, whatever it has in common with
  // others.
  Result<AllocatedMap> unshared(const std::string& target, const std::string& base, uint64_t offset,
                                uint64_t length, uint64_t chunk, bool hint);
  // Extents that hold data. extents_max: 1 to 65,536.
  Result<ExtentList> extents(const std::string& target, uint64_t offset, size_t extents_max);
  // What differs from `base`: kind zero reads as zeros in target and did not in base.
  Result<ExtentList> diff(const std::string& target, const std::string& base, uint64_t offset,
                          size_t extents_max);

  // What these volumes and snapshots take; all of them if none is named.
  Result<std::vector<SpaceInfo>> space(const std::vector<std::string>& names);

  // -- I/O ----------------------------------------------------------------------------------------
  Result<std::shared_ptr<Export>> open_export(const std::string& name);
  // All that returned before this call is durable when it succeeds.
  Result<void> flush();
  void flush_async(std::function<void(Result<void>)> done);

  // -- The store ----------------------------------------------------------------------------------
  StoreInfo info();
  // To a larger capacity, in bytes, while all goes on; durable when it returns. A device's end is
  // the limit, and it may have grown since the store was opened.
  Result<StoreInfo> grow(std::optional<uint64_t> capacity);
  IoStats stats();
  Result<IoStats> stats(const std::string& volume);
  // Everything in use is read from the medium and compared with its checksum, in the background,
  // once. Started while it runs, it goes on. After a restart there is none.
  ScrubInfo start_scrub();
  ScrubInfo stop_scrub();
  ScrubInfo scrub_info();

  // -- For owners without background threads (Options::background = false) -----------------------
  // Each does a bounded piece of work and returns whether there was any to do.
  Result<bool> checkpoint_step();
  Result<bool> reclaim_step();
  Result<bool> figures_step();  // counts what space() tells
  Result<bool> scrub_step();
  // A whole checkpoint, now.
  Result<void> checkpoint();

 private:
  Store();
  std::unique_ptr<Core> core_;
};

// The result of check(): what an fsck prints. `errors` empty: the store is sound.
struct CheckReport {
  std::vector<std::string> errors;  // the first 100
  uint64_t errors_total = 0;
  std::vector<std::string> notes;  // that the next one to serve the store puts right by itself
  uint64_t versions = 0, volumes = 0, snapshots = 0;
  uint64_t nodes = 0, data_blocks = 0, system_blocks = 0;  // visited
  uint64_t allocated_blocks = 0;                           // in bitmaps that can be read
  uint64_t unreadable_nodes = 0, damaged_data_blocks = 0;  // the latter if the data was read
  uint64_t unreached_blocks = 0;                           // allocated, and nothing leads to them
  uint64_t unallocated_blocks = 0, doubly_reached_blocks = 0;
  uint64_t hidden_data_blocks = 0;  // that only zombies hold; counted if the data was read
  std::vector<SpaceInfo> space;     // of all volumes and snapshots, if asked for
};

struct CheckOptions {
  bool read_data = false;    // every data block is read and its checksum compared
  bool count_space = false;  // takes memory for every block there is
};

// Checks a store at rest, without changing it: replays the journal in memory, walks every version
// through pointers of its own, and compares with the bitmaps and `owned`. Goes on behind damage.
Result<CheckReport> check(disk::Disk& disk, const Options& options, const CheckOptions& what);

struct RepairReport {
  std::vector<std::string> done;  // empty: nothing was to be done, and nothing was written
  CheckReport after;
};

// Puts right what can be, in a store at rest: the superblocks, what the journal still holds, and
// bitmaps, counts and charges, all written anew from what the versions reach. What was lost stays
// lost, and is in `after`. Each step leaves a store that can be opened. Errors: no_space, where
// there is none to write the tables anew; those of opening a store and of the disk.
Result<RepairReport> repair(disk::Disk& disk, const Options& options, const CheckOptions& what);

}  // namespace vellum::store

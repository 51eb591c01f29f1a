// SPDX-License-Identifier: BSD-2-Clause
//
// The store behind its facade: one mutex over forest, trees, allocator and journal, never held over
// I/O. Each core_*.cpp is one concern.
//
// 1. Every change is a record: its pieces are executed and appended in one critical section, so the
//    journal's order is the order of all changes (P2). Recovery executes the same pieces.
// 2. The data of a write is on the disk's side before its record is appended.
// 3. Nodes that a change needs are read before it, outside the mutex; then it is tried again.
// 4. After a failed sync nothing is acknowledged any more (P9): failure_ is set for good.
// 5. Checkpoints, flush rounds and reclaim each run in one thread at a time, guarded by a mutex of
//    their own that is taken before mutex_.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "common/store/allocator.hpp"
#include "common/store/answers.hpp"
#include "common/store/cost.hpp"
#include "common/store/forest.hpp"
#include "common/store/journal.hpp"
#include "common/store/reclaim.hpp"
#include "common/store/store.hpp"
#include "common/store/superblock.hpp"
#include "common/store/system_tree.hpp"
#include "common/store/target.hpp"
#include "common/store/tree.hpp"
#include "common/store/walk.hpp"

namespace vellum::store {

class BlockSet;
class Checker;

using Lock = std::unique_lock<std::mutex>;

class Core {
 public:
  Core(disk::Disk& disk, const Options& options, const Superblock& superblock);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  static Result<void> format(disk::Disk& disk, const Geometry& geometry, const Options& options);
  // for_check: replays in memory only and writes nothing.
  static Result<std::unique_ptr<Core>> open(disk::Disk& disk, const Options& options,
                                            bool for_check);
  Result<void> close();
  void start_threads();

  // core_changes.cpp
  Result<VolumeInfo> create_volume(const std::string& name, uint64_t size, Provision provision,
                                   const Once<VolumeInfo>& once);
  std::vector<VolumeInfo> list_volumes(bool destroyed);
  Result<VolumeInfo> get_volume(const std::string& name);
  Result<VolumeInfo> rename_volume(const std::string& name, const std::string& new_name,
                                   const Once<VolumeInfo>& once);
  Result<VolumeInfo> resize_volume(const std::string& name, uint64_t size, bool truncate,
                                   const Once<VolumeInfo>& once);
  Result<Destroyed> destroy_volume(const std::string& name, bool force, bool eradicate,
                                   const Once<Destroyed>& once);
  Result<VolumeInfo> recover_volume(const std::string& name, const Once<VolumeInfo>& once);
  Result<std::vector<SnapshotInfo>> create_snapshots(const std::vector<std::string>& volumes,
                                                     const std::optional<std::string>& suffix,
                                                     const Once<std::vector<SnapshotInfo>>& once);
  std::vector<SnapshotInfo> list_snapshots(const std::optional<std::string>& volume,
                                           bool destroyed);
  Result<SnapshotInfo> get_snapshot(const std::string& name);
  Result<Destroyed> destroy_snapshot(const std::string& name, bool eradicate,
                                     const Once<Destroyed>& once);
  Result<SnapshotInfo> recover_snapshot(const std::string& name, const Once<SnapshotInfo>& once);
  Result<Destroyed> eradicate(const std::string& name, bool is_volume, const Once<Destroyed>& once);
  Result<StoreInfo> set_eradication_delay(int64_t milliseconds, const Once<StoreInfo>& once);
  Result<VolumeInfo> clone(const std::string& source, const std::string& name,
                           const Once<VolumeInfo>& once);
  Result<CopyInfo> copy(const std::string& source, const std::string& target, bool overwrite,
                        bool undo, const Once<CopyInfo>& once);
  Result<CopyInfo> revert(const std::string& name, const std::string& snapshot, bool undo,
                          const Once<CopyInfo>& once);
  std::optional<std::string> find_answer(const std::string& request_id);

  // core_queries.cpp
  Result<AllocatedMap> chunk_map(const std::string& target, const std::optional<std::string>& base,
                                 uint64_t offset, uint64_t length, uint64_t chunk, bool hint);
  Result<ExtentList> extents(const std::string& target, const std::optional<std::string>& base,
                             uint64_t offset, size_t extents_max);
  Result<std::vector<Extent>> map(Export& from, uint64_t offset, uint64_t length,
                                  size_t extents_max, Wait wait);
  StoreInfo info();
  Result<std::vector<SpaceInfo>> space(const std::vector<std::string>& names);  // core_figures.cpp
  Result<bool> figures_step();
  Result<StoreInfo> grow(std::optional<uint64_t> wanted);  // core_space.cpp
  IoStats stats();
  Result<IoStats> stats(const std::string& volume);

  // core_read.cpp, core_write.cpp
  Result<std::shared_ptr<Export>> open_export(const std::string& name, bool by_client = true);
  void close_export(Export& gone);
  Ticket enter(Export& to, uint64_t offset, uint64_t length);
  uint64_t size_of(Export& of);
  Result<void> read(Export& from, uint64_t offset, std::span<std::byte> out, Wait wait,
                    std::vector<Extent>* extents);
  void write(Export& to, std::span<Write> writes, Wait wait);
  Result<void> zero(Export& to, Ticket& ticket, uint64_t offset, uint64_t length, Wait wait,
                    bool is_trim);
  Result<void> cache(Export& from, uint64_t offset, uint64_t length);

  // core_commit.cpp
  Result<void> flush();
  void flush_async(std::function<void(Result<void>)> done);

  // core_checkpoint.cpp, core_reclaim.cpp
  Result<bool> checkpoint_step();
  Result<void> checkpoint();
  Result<bool> reclaim_step();

  ScrubInfo start_scrub();  // core_scrub.cpp
  ScrubInfo stop_scrub();
  ScrubInfo scrub_info();
  Result<bool> scrub_step();

  // check.cpp, core_repair.cpp: at rest. After a repair the store has to be opened again.
  Result<CheckReport> check(const CheckOptions& what);
  Result<std::vector<std::string>> repair();

 private:
  // Room in the journal and in the store for a change that is still to come.
  struct Admission {
    explicit Admission(Core& of) : core(of) {}
    ~Admission() { add(-1); }
    void admit(const Cost& admitted) {
      cost = admitted;
      add(1);
    }
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;
    Core& core;
    Cost cost;  // once admitted

   private:
    void add(int sign) {
      const auto by = static_cast<size_t>(sign);  // modulo 2^64
      core.admitted_bytes_ += by * cost.record_bytes;
      core.admitted_records_ += by * (cost.record_bytes > 0 ? cost.records : 0);
      core.admitted_blocks_ += by * cost.blocks;
      core.admitted_nodes_ += by * cost.nodes;
    }
  };
  // While it exists, no block that was in use is handed out again.
  struct ReaderGuard {
    explicit ReaderGuard(Core& of) : core(of) {
      const Lock lock(core.mutex_);
      interval = core.allocator_->enter_reader();
    }
    ~ReaderGuard() {
      const Lock lock(core.mutex_);
      core.allocator_->leave_reader(interval);
    }
    ReaderGuard(const ReaderGuard&) = delete;
    ReaderGuard& operator=(const ReaderGuard&) = delete;
    Core& core;
    uint64_t interval;
  };

  // -- core.cpp ----------------------------------------------------------------------------------
  void log(int level, const std::string& message) const;
  int64_t now() const;
  Uuid new_uuid();
  void fail(Lock& lock, const std::string& why);
  void set_failure(const std::string& why);
  Error failure_error() const;
  Error stopped() const;
  bool can_execute(const Piece& piece, MissingNodes& missing);
  bool execute(const Piece& piece, bool replay);
  void execute_new(std::span<const Piece> pieces);
  void append_executed(std::span<const Piece> pieces);
  void append(std::span<const Piece> pieces) {
    execute_new(pieces);
    append_executed(pieces);
  }
  Result<Target> find_target(const std::string& name);  // not what is destroyed
  Result<Target> find_even_destroyed(const std::string& name);

  // -- core_damage.cpp ---------------------------------------------------------------------------
  // For whom nodes are read: it is named where one cannot be.
  struct Asker {
    std::string_view name;             // of the export, or of the object asked for; or else
    const Version* version = nullptr;  // which cannot go meanwhile
    IoStats* stats = nullptr;          // of the volume
    bool goes_without = false;         // walks of which NodeCache::is_damaged() is no end
  };
  static Asker asker(const Export& of);
  static bool is_damage(const Error& error);
  // Counts it and logs it, if it is new. What to tell whoever asked. Offset, length: in the volume.
  Error damage(const Asker& asker, const Entry& pointer, uint64_t offset, uint64_t length,
               const Error& error);
  // Executes `attempt` until it misses no node, reading those that it names in between. If that
  // ends with damage, `unreadable` says where.
  using Attempt = std::function<bool(MissingNodes& missing)>;
  Result<void> with_nodes(Lock& lock, Wait wait, const Asker& asker, const Attempt& attempt,
                          std::optional<Missing>* unreadable = nullptr);
  Result<void> load_nodes(Lock& lock, const Asker& asker, MissingNodes& missing,
                          std::vector<Node*>& pinned);

  // -- core_open.cpp -----------------------------------------------------------------------------
  void find(const std::string& what);
  void forget_older(const Error& why);
  Result<void> hold_older();
  Result<void> check_length() const;
  Result<void> recover(bool use_older);
  Result<void> begin_generation();

  // -- core_recovery.cpp -------------------------------------------------------------------------
  Error damaged(const std::string& what) const;
  Result<void> load(const CheckpointRecord& checkpoint, const SystemTree& tree,
                    uint64_t regions_min);
  Result<void> replay();
  Result<void> load_answers(const SystemTree& tree);
  Result<bool> data_is_sound(std::span<const Piece> pieces);
  void leave_out(const Error& why);
  bool is_node_of(const Version& version, const Missing& unreadable);
  Result<void> replay_trim_around(Lock& lock, const TrimPiece& trim, const Missing& unreadable);
  Result<void> replay_piece(Lock& lock, const Piece& piece);
  Result<void> replay_step(Lock& lock, const ReclaimStepPiece& step);
  bool is_ahead_of(const Piece& piece);
  Result<void> replay_record(std::span<const Piece> pieces);
  JournalReader::Limits reader_limits() const;

  // -- check.cpp, core_repair.cpp ----------------------------------------------------------------
  Result<Checker> survey(bool read_data);
  Result<Entry> write_new_tables(const Checker& checker, BlockSet& used);
  Result<void> rebuild(const Checker& checker);

  // -- core_commit.cpp ---------------------------------------------------------------------------
  // Waits until there is room for a change, and slows down. The admission keeps the room until it
  // is destroyed, which is when the record has been appended.
  Result<void> admit(Lock& lock, const Cost& cost, Wait wait, Admission& admission);
  void note_record();  // after each append
  bool sectors_to_write() const;
  bool checkpoint_due() const;
  bool must_wait(size_t record_bytes, size_t records) const;
  uint64_t pressure_percent() const;
  Result<void> wait_for_checkpoint(Lock& lock, Wait wait);
  // Out of what was admitted; null: for a checkpoint, out of the reserve.
  Result<void> take_blocks(Lock& lock, uint64_t count, std::vector<Run>& runs,
                           Admission* admission);
  Result<void> open_region(Lock& lock, uint64_t region);
  void give_up_region(uint64_t region, const Error& why);
  Result<void> write_out(Lock& lock);  // sealed sectors to the disk
  Result<void> sync_all(Lock& lock);   // and everything written so far
  void flush_round();
  void note_appended(uint64_t offset, uint64_t length);

  // -- core_space.cpp ----------------------------------------------------------------------------
  uint64_t tables_max(bool all_regions) const;
  uint64_t reserve_blocks(bool all_regions = false) const;
  bool answers_must_wait(const Cost& cost) const;
  static uint64_t full_blocks(uint64_t size);
  static uint64_t promised_to(const Volume& volume);
  uint64_t working_space() const;
  uint64_t promised() const;
  bool has_promises() const { return !forest_.reserved_volumes().empty(); }
  uint64_t kept_blocks() const;  // the reserve, with working space where there are promises
  uint64_t free_blocks() const;  // that are neither kept nor promised
  bool has_room(const Cost& cost) const;
  // Whether space that is short now will come back by itself.
  bool space_comes_back(Lock& lock, uint64_t commits_at_start);
  Error full_error() const;
  using NewHeads = std::map<const Volume*, uint64_t>;  // and the size that the volume will have
  Result<void> check_promise(const Volume* volume, uint64_t promise, const std::string& name) const;
  Result<void> check_new_heads(const NewHeads& heads) const;
  Result<void> check_promises(const std::map<const Volume*, uint64_t>& promises,
                              const std::string& names) const;

  // -- core_warnings.cpp -------------------------------------------------------------------------
  std::vector<EradicationCandidate> eradication_candidates() const;
  std::string warning_text(unsigned level, unsigned percent) const;
  void warn(unsigned level, unsigned percent);
  StoreInfo describe_store();
  void look_at_space();
  void note_full();

  // -- core_destroyed.cpp ------------------------------------------------------------------------
  static Error destroyed_error(const Target& target);
  int64_t steady_now() const;
  void note_opened();
  int64_t time_left(int64_t eradicate_at, std::optional<int64_t> not_before) const;
  std::optional<int64_t> time_remaining(const Volume& volume) const;
  std::optional<int64_t> time_remaining(const Snapshot& snapshot) const;
  Piece destroying(ObjectId id, bool is_volume, bool eradicate) const;
  Result<bool> eradicate_due(Lock& lock);

  // -- core_host_space.cpp -----------------------------------------------------------------------
  Error host_full_error() const;
  void note_host_full();
  void note_write_error(const Error& error);
  void look_at_host();
  uint64_t available() const;
  void keep_spare();
  void take_spare(uint64_t count, std::vector<Run>& runs);
  void release_spare();
  bool exchange_for_spare(std::vector<Run>& runs);
  Result<void> take_for_checkpoint(Lock& lock, uint64_t count, std::vector<Run>& runs);
  Result<bool> postpone_checkpoint(const Error& error);

  // -- core_figures.cpp --------------------------------------------------------------------------
  struct Counting;
  bool begin_counting();
  void finish_counting();
  void give_up_counting();
  Result<bool> count_referenced(Lock& lock, Version& version);
  bool figures_are_final() const;
  SpaceInfo space_of(const Volume& volume) const;
  SpaceInfo space_of(const Snapshot& snapshot) const;

  Result<std::vector<SpaceInfo>> count_space() const;  // check_space.cpp

  // -- core_write.cpp ----------------------------------------------------------------------------
  // A block that is covered in part: its old content, and what it is to become.
  struct Edge {
    uint64_t block = 0;
    Entry old;
    Page page;
  };
  // Data that lies in reserved blocks, to become the content from `offset` on.
  struct Written {
    uint64_t offset, length;  // of the request, in bytes
    std::span<const Run> runs;
    std::span<const uint32_t> crcs;
  };
  Result<void> check_writable(Export& to, uint64_t offset, uint64_t length) const;
  void write_batch(Export& to, std::span<Write> writes, Wait wait);
  Result<void> write_pieces(Export& to, uint64_t offset, std::span<const std::byte> data,
                            Wait wait);
  // False: an edge has changed meanwhile, and nothing was done.
  Result<bool> record_write(Lock& lock, Export& to, const Written& written,
                            std::span<const Edge> edges, Wait wait);
  void count_write(Export& to, uint64_t length);
  Result<std::vector<Edge>> read_edges(Export& to, uint64_t offset, uint64_t length, Wait wait);
  bool edges_unchanged(const Version& head, std::span<const Edge> edges, MissingNodes& missing);
  Result<void> merge(Export& to, uint64_t offset, uint64_t length, std::span<const std::byte> data,
                     Wait wait);
  // Where the change ends that zeroes from `at` on.
  static uint64_t piece_end(uint64_t at, uint64_t end, bool may_detach);
  // Of all bytes, even beyond the end of the volume.
  Result<void> zero_all(Export& to, uint64_t offset, uint64_t end, Wait wait);
  // False, and nothing is done: so much cannot be done at once now.
  Result<bool> zero_piece(Export& to, uint64_t offset, uint64_t length, Wait wait);
  Result<void> read_whole_block(Export& from, uint64_t block, Page& page, Entry& entry, Wait wait);

  // -- core_read.cpp -----------------------------------------------------------------------------
  struct Piecewise;
  Result<void> current_version(Export& from, uint64_t end, Version*& version) const;

  // -- core_changes.cpp --------------------------------------------------------------------------
  // Tables, and nodes of the system tree, that a new volume or snapshot may add.
  static constexpr uint64_t kCatalogueBlocks = 16;
  // Ids that the pieces of one record give out, in order.
  struct Ids {
    VersionId version;
    ObjectId object;
  };
  Ids next_ids() const { return {forest_.next_version(), forest_.next_object()}; }
  VolumeInfo describe(const Volume& volume) const;
  SnapshotInfo describe(const Snapshot& snapshot) const;
  template <typename T, typename Make>
  Result<T> change(const Once<T>& once, size_t record_bytes, const Make& make,
                   uint64_t nodes = kCatalogueBlocks);
  Result<void> flush_quietly();
  static Result<void> check_names_volume(const std::string& name);
  static Result<void> check_names_snapshot(const std::string& name);
  Result<Target> find_volume(const std::string& name);
  Result<Target> find_snapshot(const std::string& name);
  Result<Target> find_even_destroyed_volume(const std::string& name);
  Result<Target> find_even_destroyed_snapshot(const std::string& name);
  Result<void> check_new_name(const std::string& name) const;
  Result<void> check_detached(const Volume& volume) const;
  static Error versions_exhausted();
  NewVolume new_volume(const std::string& name, uint64_t size, Provision provision,
                       VersionId version);
  Result<std::optional<uint64_t>> first_allocated(Lock& lock, const Export& of, uint64_t block);
  Result<void> cut_off(Export& all, uint64_t size, bool truncate);
  SnapshotPiece name_content(const Volume& volume, const std::optional<std::string>& suffix,
                             int64_t created, Ids& ids);
  void add_new_head(const Target& source, NewHeads& heads) const;
  VersionId freeze_source(const Target& source, std::vector<Piece>& pieces, Ids& ids);
  void add_clone(const Target& from, const std::string& name, std::vector<Piece>& pieces);
  VolumeInfo cloned(const std::string& name, uint64_t size);
  Result<void> replace_content(Volume& target, VersionId parent, uint64_t size, bool undo, Ids& ids,
                               std::vector<Piece>& pieces, std::optional<std::string>& undo_name);

  // -- core_scrub.cpp ----------------------------------------------------------------------------
  struct Scrub {
    ScrubInfo info;
    uint64_t run = 0;       // which
    VersionId version = 0;  // where it goes on; 0: at the system tree
    uint64_t block = 0;
  };
  using Damages = std::vector<std::pair<Missing, Error>>;
  void finish_scrub(ScrubState state);
  std::vector<std::string> readers_of(Lock& lock, VersionId owner, const Missing& held);
  void note_scrubbed_damage(Lock& lock, VersionId owner, const Missing& held, const Error& error);
  void scrub_rows(std::vector<Missing>& held, Damages& damaged);
  void scrub_row(std::span<const Missing> row, Damages& damaged);
  void scrub_system(Lock& lock);
  void scrubber();

  // -- core_checkpoint.cpp -----------------------------------------------------------------------
  struct Running;
  void begin_checkpoint(Lock& lock);
  Result<bool> write_nodes(size_t count);
  Result<void> finish_checkpoint();
  Result<void> plan_system_tree();
  Result<Entry> write_system_tree();
  Result<void> commit_checkpoint(const Entry& root);
  // Durable when it returns. The checkpoint's mutex is held.
  Result<void> write_next_superblock(Lock& lock, Superblock& next);

  // -- core_background.cpp -----------------------------------------------------------------------
  void committer();
  void checkpointer();
  void reclaimer();
  void pass_over(Version& version, const Missing& unreadable);
  Result<bool> punch_step();
  uint64_t requests() const;
  uint64_t requests_now();
  bool is_stopping();
  void count_figures(bool is_idle);
  void writer_back();
  void stop_threads();
  void prepare_ahead();

  disk::Disk& disk_;
  const Options options_;
  Superblock superblock_;  // as last written
  size_t superblock_slot_ = 0;
  std::vector<std::string> findings_;  // what opening it met
  std::vector<size_t> damaged_slots_;  // of superblocks
  bool leaves_out_ = false, has_left_out_ = false;

  std::mutex checkpoint_mutex_;  // one checkpoint at a time
  std::mutex reclaim_mutex_;     // one step of reclaim, of counting, of scrub at a time
  std::mutex write_mutex_;       // taking sealed sectors and writing them
  std::mutex sync_mutex_;        // one sync at a time

  mutable std::mutex mutex_;  // all that follows
  NodeCache nodes_;
  Forest forest_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<Tree> tree_;
  std::unique_ptr<Reclaim> reclaim_;
  std::unique_ptr<Journal> journal_;
  Answers answers_;
  std::unique_ptr<SystemTree> system_tree_, older_system_tree_;  // of the live checkpoints
  std::shared_ptr<Running> running_;
  uint64_t running_tables_ = 0;  // that it has still to write
  std::shared_ptr<Counting> counting_;
  Scrub scrub_;
  std::set<ObjectId> stale_volumes_;  // what comes back with them is to be counted
  std::vector<Run> spare_;            // reserved, and prepared
  uint64_t spare_blocks_ = 0;
  bool host_is_full_ = false, checkpoint_is_stuck_ = false;
  std::optional<SpaceWarning> warning_;
  std::chrono::steady_clock::time_point looked_at_space_, candidates_found_, host_full_since_;
  int64_t opened_at_ = 0, opened_at_steady_ = 0;
  std::optional<std::string> failure_;
  bool closing_ = false;
  uint64_t requests_when_punched_ = 0;
  unsigned unreadable_steps_ = 0;  // of reclaim, one after another
  uint64_t reclaim_skipped_ = 0;
  uint64_t freed_when_full_ = 0;  // freed_total() when checkpoints could not help any more
  uint64_t commits_ = 0, tables_freed_ = 0;  // the latter: blocks, by the last checkpoint
  IoStats stats_;
  std::mt19937_64 random_;
  uint32_t exports_ = 0;
  std::vector<std::byte> record_;  // scratch

  // Flushes: who waits for the next round, and how far the journal has been written.
  std::vector<std::function<void(Result<void>)>> waiters_;
  uint64_t written_sequence_ = 0;
  bool unsynced_ = false;
  std::condition_variable commit_wanted_, checkpoint_wanted_, progress_, reclaim_wanted_,
      writeback_wanted_, scrub_wanted_;
  bool checkpoint_requested_ = false;
  // That are still to come.
  std::atomic<size_t> admitted_bytes_{0}, admitted_records_{0};
  std::atomic<uint64_t> admitted_blocks_{0}, admitted_nodes_{0};
  std::vector<Run> writeback_;  // blocks written since their writeback was last started
  uint64_t writeback_blocks_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vellum::store

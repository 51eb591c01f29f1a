// SPDX-License-Identifier: BSD-2-Clause
#include "common/store/store.hpp"

#include "common/store/core.hpp"

namespace vellum::store {

std::string to_string(const Uuid& uuid) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < uuid.size(); i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[static_cast<unsigned>(uuid[i]) >> 4];
    text += kDigits[static_cast<unsigned>(uuid[i]) & 15];
  }
  return text;
}

Export::~Export() {
  if (core_ != nullptr) core_->close_export(*this);
}

uint64_t Export::size_bytes() const { return core_->size_of(const_cast<Export&>(*this)); }

Ticket Export::enter(uint64_t offset, uint64_t length) {
  return core_->enter(*this, offset, length);
}

Result<void> Export::read(uint64_t offset, std::span<std::byte> out, Wait wait,
                          std::vector<Extent>* extents) {
  return core_->read(*this, offset, out, wait, extents);
}

void Export::write(std::span<Write> writes, Wait wait) { core_->write(*this, writes, wait); }

Result<void> Export::write(uint64_t offset, std::span<const std::byte> data) {
  Write one{offset, data, enter(offset, data.size()), {}};
  write(std::span(&one, 1), Wait::allowed);
  return one.result;
}

Result<void> Export::trim(Ticket& ticket, uint64_t offset, uint64_t length, Wait wait) {
  return core_->zero(*this, ticket, offset, length, wait, true);
}

Result<void> Export::write_zeroes(Ticket& ticket, uint64_t offset, uint64_t length, Wait wait) {
  return core_->zero(*this, ticket, offset, length, wait, false);
}

Result<void> Export::trim(uint64_t offset, uint64_t length) {
  Ticket ticket = enter(offset, length);
  return trim(ticket, offset, length);
}

Result<void> Export::write_zeroes(uint64_t offset, uint64_t length) {
  Ticket ticket = enter(offset, length);
  return write_zeroes(ticket, offset, length);
}

Result<void> Export::cache(uint64_t offset, uint64_t length) {
  return core_->cache(*this, offset, length);
}

Result<std::vector<Extent>> Export::map(uint64_t offset, uint64_t length, size_t extents_max,
                                        Wait wait) {
  return core_->map(*this, offset, length, extents_max, wait);
}

Store::Store() = default;
Store::~Store() = default;

Result<void> Store::format(disk::Disk& disk, const Geometry& geometry, const Options& options) {
  return Core::format(disk, geometry, options);
}

Result<std::unique_ptr<Store>> Store::open(disk::Disk& disk, const Options& options) {
  TRY_ASSIGN(std::unique_ptr<Core> core, Core::open(disk, options, false));
  core->start_threads();
  std::unique_ptr<Store> store(new Store());
  store->core_ = std::move(core);
  return store;
}

Result<void> Store::close() { return core_->close(); }

Result<VolumeInfo> Store::create_volume(const std::string& name, uint64_t size, Provision provision,
                                        const Once<VolumeInfo>& once) {
  return core_->create_volume(name, size, provision, once);
}

std::vector<VolumeInfo> Store::list_volumes(bool destroyed) {
  return core_->list_volumes(destroyed);
}

Result<VolumeInfo> Store::get_volume(const std::string& name) { return core_->get_volume(name); }

Result<VolumeInfo> Store::rename_volume(const std::string& name, const std::string& new_name,
                                        const Once<VolumeInfo>& once) {
  return core_->rename_volume(name, new_name, once);
}

Result<VolumeInfo> Store::resize_volume(const std::string& name, uint64_t size, bool truncate,
                                        const Once<VolumeInfo>& once) {
  return core_->resize_volume(name, size, truncate, once);
}

Result<Destroyed> Store::destroy_volume(const std::string& name, bool force, bool eradicate,
                                        const Once<Destroyed>& once) {
  return core_->destroy_volume(name, force, eradicate, once);
}

Result<VolumeInfo> Store::recover_volume(const std::string& name, const Once<VolumeInfo>& once) {
  return core_->recover_volume(name, once);
}

Result<Destroyed> Store::eradicate_volume(const std::string& name, const Once<Destroyed>& once) {
  return core_->eradicate(name, true, once);
}

Result<std::vector<SnapshotInfo>> Store::create_snapshots(
    const std::vector<std::string>& volumes, const std::optional<std::string>& suffix,
    const Once<std::vector<SnapshotInfo>>& once) {
  return core_->create_snapshots(volumes, suffix, once);
}

std::vector<SnapshotInfo> Store::list_snapshots(const std::optional<std::string>& volume,
                                                bool destroyed) {
  return core_->list_snapshots(volume, destroyed);
}

Result<SnapshotInfo> Store::get_snapshot(const std::string& name) {
  return core_->get_snapshot(name);
}

Result<Destroyed> Store::destroy_snapshot(const std::string& name, bool eradicate,
                                          const Once<Destroyed>& once) {
  return core_->destroy_snapshot(name, eradicate, once);
}

Result<SnapshotInfo> Store::recover_snapshot(const std::string& name,
                                             const Once<SnapshotInfo>& once) {
  return core_->recover_snapshot(name, once);
}

Result<Destroyed> Store::eradicate_snapshot(const std::string& name, const Once<Destroyed>& once) {
  return core_->eradicate(name, false, once);
}

Result<StoreInfo> Store::set_eradication_delay(int64_t milliseconds, const Once<StoreInfo>& once) {
  return core_->set_eradication_delay(milliseconds, once);
}

Result<VolumeInfo> Store::clone(const std::string& source, const std::string& name,
                                const Once<VolumeInfo>& once) {
  return core_->clone(source, name, once);
}

Result<CopyInfo> Store::copy(const std::string& source, const std::string& target, bool overwrite,
                             bool undo, const Once<CopyInfo>& once) {
  return core_->copy(source, target, overwrite, undo, once);
}

Result<CopyInfo> Store::revert(const std::string& volume, const std::string& snapshot, bool undo,
                               const Once<CopyInfo>& once) {
  return core_->revert(volume, snapshot, undo, once);
}

std::optional<std::string> Store::find_answer(const std::string& request_id) {
  return core_->find_answer(request_id);
}

Result<AllocatedMap> Store::allocated(const std::string& target, uint64_t offset, uint64_t length,
                                      uint64_t chunk, bool hint) {
  return core_->chunk_map(target, std::nullopt, offset, length, chunk, hint);
}

Result<AllocatedMap> Store::unshared(const std::string& target, const std::string& base,
                                     uint64_t offset, uint64_t length, uint64_t chunk, bool hint) {
  return core_->chunk_map(target, base, offset, length, chunk, hint);
}

Result<ExtentList> Store::extents(const std::string& target, uint64_t offset, size_t extents_max) {
  return core_->extents(target, std::nullopt, offset, extents_max);
}

Result<ExtentList> Store::diff(const std::string& target, const std::string& base, uint64_t offset,
                               size_t extents_max) {
  return core_->extents(target, base, offset, extents_max);
}

Result<std::shared_ptr<Export>> Store::open_export(const std::string& name) {
  return core_->open_export(name);
}

Result<void> Store::flush() { return core_->flush(); }

void Store::flush_async(std::function<void(Result<void>)> done) {
  core_->flush_async(std::move(done));
}

StoreInfo Store::info() { return core_->info(); }

Result<StoreInfo> Store::grow(std::optional<uint64_t> capacity) { return core_->grow(capacity); }
IoStats Store::stats() { return core_->stats(); }
Result<IoStats> Store::stats(const std::string& volume) { return core_->stats(volume); }

Result<bool> Store::checkpoint_step() { return core_->checkpoint_step(); }
Result<bool> Store::figures_step() { return core_->figures_step(); }
Result<bool> Store::scrub_step() { return core_->scrub_step(); }
ScrubInfo Store::start_scrub() { return core_->start_scrub(); }
ScrubInfo Store::stop_scrub() { return core_->stop_scrub(); }
ScrubInfo Store::scrub_info() { return core_->scrub_info(); }

Result<std::vector<SpaceInfo>> Store::space(const std::vector<std::string>& names) {
  return core_->space(names);
}

Result<bool> Store::reclaim_step() { return core_->reclaim_step(); }
Result<void> Store::checkpoint() { return core_->checkpoint(); }

}  // namespace vellum::store

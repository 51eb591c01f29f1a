// SPDX-License-Identifier: BSD-2-Clause
//
// The targets that damage a whole store, and then use it: opened, read, checked, changed, closed.
//
// 1. Whatever is on the disk, each call ends, with an answer or an error.
// 2. Unless checksums were made to fit, a read gives what that block has held at some time, or an
//    error (P3).
// 3. A store that the checker calls sound stays so while it is used.
#include <algorithm>
#include <cstring>

#include "common/base/crc32c.hpp"
#include "common/base/endian.hpp"
#include "tests/fuzz/small_store.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/content.hpp"
#include "tests/support/failure.hpp"

namespace vellum::fuzz {

using namespace store;
using support::demand;

namespace {

constexpr size_t kEditsMax = 16;
constexpr uint64_t kRun = 16;  // blocks read in one place

enum class Edit { set, exclusive_or, add, zeros, copy_pointer, copy_block, zero_block, set_number };
constexpr uint64_t kEdits = 8;

void edit(Editor& editor, std::span<const uint64_t> blocks, Bytes& bytes) {
  Page& page = editor.page(blocks[bytes.number(2) % blocks.size()]);
  const size_t at = bytes.number(2) % kBlockSize;
  const auto kind = static_cast<Edit>(bytes.number(1) % kEdits);
  const uint64_t value = bytes.number(1);
  switch (kind) {
    case Edit::set:
      page[at] = static_cast<std::byte>(value);
      break;
    case Edit::exclusive_or:
      page[at] ^= static_cast<std::byte>(value);
      break;
    case Edit::add:
      page[at] = static_cast<std::byte>(static_cast<uint64_t>(page[at]) + value);
      break;
    case Edit::zeros:
      std::memset(page.data() + at, 0, std::min<size_t>(value + 1, kBlockSize - at));
      break;
    case Edit::copy_pointer: {  // to the places that follow
      const size_t from = at / 16 * 16;
      for (size_t to = from + 16; to < kBlockSize && to <= from + 16 * value; to += 16)
        std::memcpy(page.data() + to, page.data() + from, 16);
      break;
    }
    case Edit::copy_block:
      page = Page(editor.page(blocks[value % blocks.size()]));
      break;
    case Edit::zero_block:
      page.fill(std::byte{0});
      break;
    case Edit::set_number:
      store_le64(page.data() + at / 8 * 8, bytes.number(8));
      break;
  }
}

class Use {
 public:
  Use(support::SimulatedDisk& disk, bool is_forged) : disk_(disk), is_forged_(is_forged) {}

  void run() {
    const bool is_sound = check();
    auto opened = Store::open(disk_, small_options());
    if (!opened.ok()) return;
    store_ = std::move(opened).value();
    look();
    // What is wrong with itself, and has checksums that fit, is made by nobody but a forger: it can
    // be looked at, and no more is asked.
    if (is_forged_ && !is_sound) return store_.reset();
    change();
    look();
    const bool is_closed = store_->close().ok();
    store_.reset();
    if (!is_sound || !is_closed) return;
    const bool is_still_sound = check();
    demand(is_still_sound, "a sound store is no more: " + wrong_);
  }

 private:
  bool check() {
    const auto report =
        store::check(disk_, small_options(), {.read_data = true, .count_space = true});
    if (!report.ok()) wrong_ = report.error().message;
    if (report.ok() && !report->errors.empty()) wrong_ = report->errors[0];
    return report.ok() && report->errors.empty();
  }

  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const auto& info : store_->list_volumes()) names.push_back(info.name);
    for (const auto& info : store_->list_snapshots(std::nullopt)) names.push_back(info.name);
    return names;
  }

  void look() {
    const auto all = names();
    for (const std::string& name : all) {
      look_at(name);
      (void)store_->allocated(name, 0, 0, 0, true);
      (void)store_->diff(name, all[0], 0, 100);
    }
    (void)store_->space({});
    (void)store_->find_answer("request");
    (void)store_->info();
  }

  void look_at(const std::string& name) {
    const auto opened = store_->open_export(name);
    if (!opened.ok()) return;
    std::set<uint64_t> places;
    if (const auto extents = store_->extents(name, 0, 100); extents.ok()) {
      for (const Extent& extent : extents->extents)
        for (uint64_t i = 0; i < std::min(extent.length / kBlockSize, kRun); ++i)
          places.insert(extent.offset / kBlockSize + i);
    }
    const auto known = small_store().contents.find(name);
    if (known != small_store().contents.end())
      for (const auto& [place, unused] : known->second) places.insert(place);
    for (const uint64_t place : places) {
      Page page;
      const bool is_read = (*opened)->read(place * kBlockSize, page).ok();
      if (is_read && !is_forged_ && !is_changed_) compare(name, place, page);
    }
  }

  static void compare(const std::string& name, uint64_t place, const Page& page) {
    const auto& contents = small_store().contents;
    const auto known = contents.find(name);
    demand(known != contents.end(), name + " has never been");
    const auto held = known->second.find(place);
    demand(held != known->second.end() && held->second.contains(crc32c(page)),
           name + " has never held that in block " + std::to_string(place));
  }

  void change() {
    is_changed_ = true;
    const auto all = names();
    for (const std::string& name : all) {
      if (auto opened = store_->open_export(name); opened.ok()) {
        (void)(*opened)->write(100, support::pattern(1000, 100, 2 * kBlockSize));
        (void)(*opened)->trim(0, kBlockSize);
      }
      (void)store_->create_snapshots({name}, "new");
      (void)store_->clone(name, "clone-" + std::to_string(++made_));
    }
    (void)store_->checkpoint();
    (void)store_->flush();
    if (!all.empty()) (void)store_->destroy_volume(all[0], false);
    for (const auto& info : store_->list_snapshots(std::nullopt))
      (void)store_->destroy_snapshot(info.name);
    for (int i = 0; i < 300; ++i) {
      const auto more = store_->reclaim_step();
      if (!more.ok() || !*more) break;
    }
    for (int i = 0; i < 300; ++i) {
      const auto more = store_->figures_step();
      if (!more.ok() || !*more) break;
    }
    (void)store_->checkpoint();
    (void)store_->create_volume("last", 1 << 20, Provision::thin);
  }

  support::SimulatedDisk& disk_;
  const bool is_forged_;
  std::string wrong_;  // what the checker said last
  bool is_changed_ = false;
  int made_ = 0;
  std::unique_ptr<Store> store_;
};

void damage_and_use(Bytes& bytes, std::span<const uint64_t> blocks, bool is_forged) {
  support::Random random(1);
  const auto disk = small_store().disk->survivor(support::Survival::everything, random);
  Editor editor(*disk);
  for (size_t i = 0; i < kEditsMax && !bytes.empty(); ++i) edit(editor, blocks, bytes);
  if (is_forged) editor.fix_checksums();
  editor.write();
  Use(*disk, is_forged).run();
}

}  // namespace

void tables(Input input) {
  Bytes bytes(input);
  damage_and_use(bytes, small_store().tables, true);
}

void image(Input input) {
  Bytes bytes(input);
  const bool is_forged = bytes.number(1) & 1;
  damage_and_use(bytes, small_store().blocks, is_forged);
}

}  // namespace vellum::fuzz

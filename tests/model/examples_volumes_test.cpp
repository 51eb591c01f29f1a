// SPDX-License-Identifier: BSD-2-Clause
//
// Examples of the facade's calls on volumes and snapshots, and of each error that they give.
#include <set>

#include "tests/model/store_fixture.hpp"

namespace vellum::support {
namespace {

using store::Provision;
using Strings = std::vector<std::string>;

using Volumes = StoreTest;
using Snapshots = StoreTest;
using Copies = StoreTest;
using Requests = StoreTest;

TEST_F(Volumes, AreCreatedListedAndFoundAgain) {
  const store::VolumeInfo made = create("disk-1", 10 * kMib);
  create("Another.one_2");
  reopen();
  const auto all = store_->list_volumes();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "Another.one_2");
  const auto found = store_->get_volume("disk-1");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->id, made.id);
  EXPECT_EQ(found->uuid, made.uuid);
  EXPECT_EQ(found->created, made.created);
  EXPECT_EQ(found->size, 10 * kMib);
  EXPECT_EQ(found->snapshots, 0u);
  EXPECT_FALSE(found->parent.has_value());
  EXPECT_FALSE(found->attached);
}

TEST_F(Volumes, RefuseBadNames) {
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string(".a"), std::string("a/b"), std::string("a@b"),
        std::string("a b"), std::string("\xc3\xa4"), std::string(64, 'a'), std::string("a\0b", 3)})
    EXPECT_TRUE(
        fails_with(store_->create_volume(name, kMib, Provision::thin), Errc::invalid_argument))
        << name;
  create(std::string(63, 'a'));
  create("7");
}

TEST_F(Volumes, RefuseBadSizes) {
  for (uint64_t size : {uint64_t{511}, uint64_t{4097}, store::kVolumeSizeMax + 512})
    EXPECT_FALSE(store_->create_volume("v", size, Provision::thin).ok()) << size;
  create("smallest", 512);
  create("largest", store::kVolumeSizeMax);
  write("largest", 1, store::kVolumeSizeMax - 5000, 5000);
  EXPECT_EQ(read("largest", store::kVolumeSizeMax - 5000, 5000),
            pattern(1, store::kVolumeSizeMax - 5000, 5000));
}

TEST_F(Volumes, ExistOnce) {
  create("v");
  EXPECT_TRUE(fails_with(store_->create_volume("v", kMib, Provision::thin), Errc::exists));
  EXPECT_TRUE(fails_with(store_->clone("v", "v"), Errc::exists));
  create("w");
  EXPECT_TRUE(fails_with(store_->rename_volume("w", "v"), Errc::exists));
}

TEST_F(Volumes, AreNotFound) {
  EXPECT_TRUE(fails_with(store_->get_volume("v"), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->rename_volume("v", "w"), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->resize_volume("v", kMib, true), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->destroy_volume("v", true), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->create_snapshots({"v"}, std::nullopt), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->get_snapshot("v@1"), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->destroy_snapshot("v@1"), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->clone("v", "w"), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->copy("v", "w", true, true), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->revert("v", "1", true), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->open_export("v"), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->open_export("v@1"), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->allocated("v", 0, 4096, 4096, true), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->extents("v", 0, 1), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->diff("v", "w", 0, 1), Errc::not_found));
}

TEST_F(Volumes, AreRenamedWithTheirSnapshotsWhileAttached) {
  const auto before = create("old");
  write("old", 1, 0, 4096);
  snap("old", "s");
  auto opened = attach("old");
  const auto renamed = store_->rename_volume("old", "new");
  ASSERT_TRUE(renamed.ok());
  EXPECT_EQ(renamed->name, "new");
  EXPECT_EQ(renamed->id, before.id);
  EXPECT_TRUE(renamed->attached);
  ASSERT_TRUE(opened->write(4096, pattern(2, 4096, 4096)).ok());
  EXPECT_EQ(read("new@s", 0, 4096), pattern(1, 0, 4096));
  EXPECT_EQ(read("new", 4096, 4096), pattern(2, 4096, 4096));
  EXPECT_TRUE(fails_with(store_->get_snapshot("old@s"), Errc::not_found));
  EXPECT_TRUE(fails_with(store_->rename_volume("new", "-"), Errc::invalid_argument));
}

TEST_F(Volumes, ReadZerosWhereTheyWereCutOff) {
  create("v");
  write("v", 1, 0, kMib);
  EXPECT_TRUE(fails_with(store_->resize_volume("v", 5120, false), Errc::precondition));
  EXPECT_EQ(read("v", 0, kMib), pattern(1, 0, kMib));
  ASSERT_TRUE(store_->resize_volume("v", 5120, true).ok());
  ASSERT_TRUE(store_->resize_volume("v", 2 * kMib, false).ok());
  std::vector<std::byte> expected = pattern(1, 0, 5120);
  expected.resize(2 * kMib);
  EXPECT_EQ(read("v", 0, 2 * kMib), expected);
  ASSERT_TRUE(store_->resize_volume("v", kMib, false).ok()) << "what is cut off holds nothing";
  EXPECT_FALSE(store_->resize_volume("v", 100, true).ok());
  EXPECT_FALSE(store_->resize_volume("v", store::kVolumeSizeMax + 512, false).ok());
}

TEST_F(Volumes, ResizeUnderAnExport) {
  create("v");
  auto opened = attach("v");
  ASSERT_TRUE(store_->resize_volume("v", 2 * kMib, false).ok());
  EXPECT_EQ(opened->size_bytes(), 2 * kMib);
  EXPECT_TRUE(opened->write(2 * kMib - 4096, pattern(1, 2 * kMib - 4096, 4096)).ok());
  ASSERT_TRUE(store_->resize_volume("v", kMib, true).ok());
  std::vector<std::byte> out(4096);
  EXPECT_FALSE(opened->read(2 * kMib - 4096, out).ok());
}

TEST_F(Volumes, AreDestroyedWithTheirSnapshotsAndWithoutTheirClones) {
  create("v");
  write("v", 1, 0, 8192);
  snap("v", "s");
  ASSERT_TRUE(store_->clone("v@s", "c").ok());
  auto opened = attach("v");
  EXPECT_TRUE(fails_with(store_->destroy_volume("v", false), Errc::in_use));
  EXPECT_TRUE(store_->get_volume("v")->attached);
  ASSERT_TRUE(store_->destroy_volume("v", true).ok());
  std::vector<std::byte> out(4096);
  EXPECT_TRUE(fails_with(opened->read(0, out), Errc::destroyed));
  EXPECT_TRUE(fails_with(opened->write(0, out), Errc::destroyed));
  EXPECT_TRUE(fails_with(opened->trim(0, 4096), Errc::destroyed));
  EXPECT_TRUE(fails_with(opened->map(0, 4096, 10), Errc::destroyed));
  opened.reset();
  EXPECT_TRUE(fails_with(store_->get_snapshot("v@s"), Errc::not_found));
  EXPECT_FALSE(store_->get_volume("c")->parent.has_value());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(store_->reclaim_step().ok());
  EXPECT_EQ(read("c", 0, 8192), pattern(1, 0, 8192));
  create("v");
  EXPECT_EQ(read("v", 0, 4096), std::vector<std::byte>(4096));
}

TEST_F(Snapshots, KeepWhatTheySaw) {
  create("v");
  write("v", 1, 0, 8192);
  const std::string first = snap("v", "first");
  write("v", 2, 4096, 4096);
  ASSERT_TRUE(attach("v")->trim(0, 4096).ok());
  EXPECT_EQ(read(first, 0, 8192), pattern(1, 0, 8192));
  EXPECT_EQ(read("v", 0, 4096), std::vector<std::byte>(4096));
  auto opened = attach(first);
  EXPECT_TRUE(opened->read_only());
  EXPECT_TRUE(fails_with(opened->write(0, pattern(3, 0, 512)), Errc::read_only));
  EXPECT_TRUE(fails_with(opened->trim(0, 4096), Errc::read_only));
  EXPECT_TRUE(fails_with(opened->write_zeroes(0, 4096), Errc::read_only));
  opened.reset();
  reopen();
  EXPECT_EQ(read(first, 0, 8192), pattern(1, 0, 8192));
}

TEST_F(Snapshots, OfSeveralVolumesAreAllOrNothing) {
  create("a");
  create("b");
  const auto both = store_->create_snapshots({"b", "a"}, std::string("x"));
  ASSERT_TRUE(both.ok());
  ASSERT_EQ(both->size(), 2u);
  EXPECT_EQ((*both)[0].name, "b@x");
  EXPECT_EQ((*both)[1].volume, "a");
  EXPECT_EQ((*both)[0].created, (*both)[1].created);
  snap("a", "y");
  EXPECT_TRUE(fails_with(store_->create_snapshots({"b", "a"}, std::string("y")), Errc::exists));
  EXPECT_TRUE(fails_with(store_->create_snapshots({"b", "c"}, std::string("z")), Errc::not_found));
  EXPECT_FALSE(store_->create_snapshots({"a", "a"}, std::string("z")).ok());
  EXPECT_TRUE(fails_with(store_->create_snapshots({}, std::nullopt), Errc::invalid_argument));
  for (const std::string suffix : {"", "-", "a@b", "a/b"})
    EXPECT_TRUE(fails_with(store_->create_snapshots({"a"}, suffix), Errc::invalid_argument))
        << suffix;
  EXPECT_TRUE(fails_with(store_->create_snapshots(Strings(store::kGroupMax + 1, "a"), std::nullopt),
                         Errc::invalid_argument));
  EXPECT_EQ(store_->list_snapshots(std::nullopt).size(), 3u);
  EXPECT_EQ(store_->list_snapshots("b").size(), 1u);
}

// P4: so many that their record fills more than one sector of the journal.
TEST_F(Snapshots, OfManyVolumesAreAllOrNothingAfterACrash) {
  constexpr size_t kVolumes = 80;
  Strings names;
  for (size_t i = 0; i < kVolumes; ++i) create(names.emplace_back("v" + std::to_string(i)));
  ASSERT_TRUE(store_->close().ok());
  store_.reset();
  Random random(1);
  const auto before = disk_.survivor(Survival::everything, random);
  std::set<size_t> seen;
  for (uint64_t call = 1; call <= 4; ++call) {
    auto disk = before->survivor(Survival::everything, random);
    auto store = std::move(store::Store::open(*disk, options())).value();
    disk->power_off_at(call);
    (void)store->create_snapshots(names, "s");
    store.reset();
    for (int i = 0; i < 40; ++i) {
      auto left = disk->survivor(i % 2 ? Survival::all_but_one : Survival::whole_units, random);
      auto opened = store::Store::open(*left, options());
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      seen.insert((*opened)->list_snapshots(std::nullopt).size());
    }
  }
  EXPECT_EQ(seen, (std::set<size_t>{0, kVolumes}));
}

TEST_F(Snapshots, AreNumberedAndNumbersAreNotUsedAgain) {
  create("v");
  EXPECT_EQ((*store_->create_snapshots({"v"}, std::nullopt))[0].name, "v@1");
  EXPECT_EQ((*store_->create_snapshots({"v"}, std::nullopt))[0].name, "v@2");
  ASSERT_TRUE(store_->destroy_snapshot("v@2").ok());
  reopen();
  snap("v", "3");
  EXPECT_EQ((*store_->create_snapshots({"v"}, std::nullopt))[0].name, "v@4");
}

TEST_F(Snapshots, KnowTheirParentsAndChildrenAfterAnyDelete) {  // case 9
  create("v");
  write("v", 1, 0, 4096);
  snap("v", "a");
  write("v", 2, 0, 4096);
  snap("v", "b");
  write("v", 3, 0, 4096);
  snap("v", "c");
  write("v", 4, 0, 4096);
  ASSERT_TRUE(store_->clone("v@b", "k").ok());
  EXPECT_EQ(store_->get_snapshot("v@b")->parent, "v@a");
  EXPECT_EQ(store_->get_snapshot("v@a")->children, Strings{"v@b"});
  EXPECT_EQ(store_->get_volume("k")->parent, "v@b");
  ASSERT_TRUE(store_->destroy_snapshot("v@b").ok());
  EXPECT_EQ(store_->get_snapshot("v@c")->parent, "v@a");
  EXPECT_EQ(store_->get_volume("k")->parent, "v@a");
  EXPECT_EQ(store_->get_volume("v")->parent, "v@c");
  ASSERT_TRUE(store_->destroy_snapshot("v@a").ok());
  EXPECT_FALSE(store_->get_volume("k")->parent.has_value());
  EXPECT_FALSE(store_->get_snapshot("v@c")->parent.has_value());
  EXPECT_EQ(read("v@c", 0, 4096), pattern(3, 0, 4096));
  EXPECT_EQ(read("k", 0, 4096), pattern(2, 0, 4096));
}

TEST_F(Copies, OverwriteAndUndo) {
  create("source", kMib);
  create("target", 2 * kMib);
  write("source", 1, 0, 4096);
  write("target", 2, 0, 4096);
  EXPECT_TRUE(fails_with(store_->copy("source", "target", false, true), Errc::exists));
  const auto copied = store_->copy("source", "target", true, true);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->volume.name, "target");
  EXPECT_EQ(copied->volume.size, kMib);
  ASSERT_TRUE(copied->undo_snapshot.has_value());
  EXPECT_EQ(read("target", 0, 4096), pattern(1, 0, 4096));
  EXPECT_EQ(read(*copied->undo_snapshot, 0, 4096), pattern(2, 0, 4096));
  const auto undone = store_->revert("target", *copied->undo_snapshot, false);
  ASSERT_TRUE(undone.ok());
  EXPECT_FALSE(undone->undo_snapshot.has_value());
  EXPECT_EQ(undone->volume.size, 2 * kMib);
  EXPECT_EQ(read("target", 0, 4096), pattern(2, 0, 4096));
  const auto fresh = store_->copy("source", "fresh", false, true);
  ASSERT_TRUE(fresh.ok());
  EXPECT_FALSE(fresh->undo_snapshot.has_value());
  EXPECT_FALSE(store_->copy("source", "source", true, false).ok());
}

TEST_F(Copies, OntoAnAttachedVolumeUnlessItsSizeChanges) {
  create("source");
  create("other", 2 * kMib);
  create("target");
  write("source", 1, 0, 4096);
  snap("target", "s");
  auto opened = attach("target");
  EXPECT_TRUE(fails_with(store_->copy("other", "target", true, true), Errc::in_use));
  ASSERT_TRUE(store_->copy("source", "target", true, true).ok());
  std::vector<std::byte> out(4096);
  ASSERT_TRUE(opened->read(0, out).ok());
  EXPECT_EQ(out, pattern(1, 0, 4096));
  ASSERT_TRUE(store_->revert("target", "s", false).ok());
  ASSERT_TRUE(opened->read(0, out).ok());
  EXPECT_EQ(out, std::vector<std::byte>(4096));
}

TEST_F(Copies, RevertToAnAncestorButNotToAStranger) {
  create("v");
  write("v", 1, 0, 4096);
  snap("v", "s");
  ASSERT_TRUE(store_->clone("v@s", "c").ok());
  write("c", 2, 0, 4096);
  ASSERT_TRUE(store_->revert("c", "v@s", true).ok());
  EXPECT_EQ(read("c", 0, 4096), pattern(1, 0, 4096));
  EXPECT_TRUE(fails_with(store_->revert("c", "s", true), Errc::not_found));
  create("stranger");
  EXPECT_FALSE(store_->revert("stranger", "v@s", true).ok());
  EXPECT_EQ(store_->list_snapshots("stranger").size(), 0u);
}

TEST_F(Requests, AreAnsweredOnce) {
  const store::Once<store::VolumeInfo> once{
      "id-1", [](const store::VolumeInfo& info) { return "made " + info.name; }};
  ASSERT_TRUE(store_->create_volume("v", kMib, Provision::thin, once).ok());
  EXPECT_TRUE(fails_with(store_->create_volume("v", kMib, Provision::thin, once), Errc::answered));
  EXPECT_TRUE(fails_with(store_->clone("v", "w", once), Errc::answered));
  EXPECT_EQ(store_->find_answer("id-1"), "made v");
  EXPECT_FALSE(store_->find_answer("id-2").has_value());
  reopen();
  EXPECT_TRUE(fails_with(store_->create_volume("x", kMib, Provision::thin, once), Errc::answered));
  EXPECT_EQ(store_->find_answer("id-1"), "made v");
  EXPECT_EQ(store_->list_volumes().size(), 1u);
  now_ += 61 * 60 * 1000;
  EXPECT_FALSE(store_->find_answer("id-1").has_value());
  EXPECT_TRUE(store_->create_volume("x", kMib, Provision::thin, once).ok());
}

TEST_F(Requests, AreNotAnsweredFromWhatNeverBecameDurable) {  // P9
  const store::Once<store::VolumeInfo> once{"id-1", [](const auto&) { return "made"; }};
  disk_.fail(Call::sync, 1, Fault::io_error);
  EXPECT_FALSE(store_->create_volume("v", kMib, Provision::thin, once).ok());
  EXPECT_FALSE(store_->find_answer("id-1").has_value());
  EXPECT_FALSE(store_->create_volume("v", kMib, Provision::thin, once).ok());
  EXPECT_FALSE(store_->find_answer("id-1").has_value());
}

TEST_F(Requests, ThatFailAreNotKept) {
  const store::Once<store::VolumeInfo> once{"id-1", [](const auto&) { return "made"; }};
  EXPECT_TRUE(fails_with(store_->clone("nobody", "w", once), Errc::not_found));
  EXPECT_FALSE(store_->find_answer("id-1").has_value());
  ASSERT_TRUE(store_->create_volume("v", kMib, Provision::thin, once).ok());
  const store::Once<store::VolumeInfo> too_long{std::string(store::kRequestIdLengthMax + 1, 'i'),
                                                [](const auto&) { return "made"; }};
  EXPECT_TRUE(fails_with(store_->create_volume("w", kMib, Provision::thin, too_long),
                         Errc::invalid_argument));
}

}  // namespace
}  // namespace vellum::support

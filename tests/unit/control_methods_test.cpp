// SPDX-License-Identifier: BSD-2-Clause
//
// What each method of the control protocol does, and what it refuses.
#include "common/control/method.hpp"
#include "common/control/refusal.hpp"
#include "tests/unit/control_fixture.hpp"

namespace vellum::control {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

class ControlMethods : public ControlTest {
 protected:
  void make(const std::string& name, uint64_t size = kGiB) {
    result("volume.create", {{"name", name}, {"size", size}});
  }
  void snap(const std::string& volume, const std::string& suffix) {
    result("snapshot.create", {{"sources", {volume}}, {"suffix", suffix}});
  }
  void expect_refused(Code code, const std::string& method, const json& params,
                      const std::string& mentions) {
    const json before = state();
    const json refused = error(method, params);
    EXPECT_EQ(refused["code"], static_cast<int>(code)) << method << params << refused;
    EXPECT_EQ(refused["data"]["reason"], reason(code));
    EXPECT_NE(refused["message"].get<std::string>().find(mentions), std::string::npos) << refused;
    EXPECT_EQ(state(), before);
  }
};

TEST_F(ControlMethods, ServerInfoSaysWhatIsServedAndByWhom) {
  const json info = result("server.info");
  EXPECT_EQ(info["server"], "test");
  EXPECT_EQ(info["version"], "1.2.3");
  EXPECT_EQ(info["protocol_version"], kProtocolVersion);
  EXPECT_EQ(info["listeners"], json({"nbd+unix:///?socket=/tmp/nbd.sock"}));
  EXPECT_EQ(info["store"]["name"], folder_ + "/store");
  EXPECT_EQ(info["store"]["uuid"], result("store.get")["uuid"]);
  EXPECT_EQ(info["methods"].size(), methods().size());
  for (const Method& method : methods()) {
    EXPECT_EQ(std::count(info["methods"].begin(), info["methods"].end(), method.name), 1);
  }
}

TEST_F(ControlMethods, TheTableIsTheOneThatWasPromised) {
  EXPECT_EQ(result("server.info")["methods"],
            json({"bitmap.allocated", "bitmap.unshared",  "extents.diff",     "extents.list",
                  "server.info",      "snapshot.create",  "snapshot.destroy", "snapshot.eradicate",
                  "snapshot.get",     "snapshot.list",    "snapshot.recover", "space.get",
                  "stats.get",        "store.get",        "store.grow",       "store.scrub",
                  "store.set",        "volume.clone",     "volume.copy",      "volume.create",
                  "volume.destroy",   "volume.eradicate", "volume.get",       "volume.list",
                  "volume.recover",   "volume.rename",    "volume.resize",    "volume.revert"}));
}

TEST_F(ControlMethods, AVolumeIsShownInFull) {
  const json made = result("volume.create", {{"name", "db"}, {"size", 40ULL << 40}});
  EXPECT_EQ(made["name"], "db");
  EXPECT_EQ(made["size"], 40ULL << 40);
  EXPECT_EQ(made["provision"], "thin");
  EXPECT_EQ(made["snapshots"], 0);
  EXPECT_EQ(made["parent"], nullptr);
  EXPECT_EQ(made["attached"], false);
  EXPECT_TRUE(is_like(made["uuid"], kUuidForm)) << made;
  EXPECT_TRUE(is_like(made["created"], kTimeForm)) << made;
  EXPECT_EQ(result("volume.get", {{"name", "db"}}), made);
  EXPECT_EQ(result("volume.list"), json({made}));
}

TEST_F(ControlMethods, VolumesAreListedByName) {
  EXPECT_EQ(result("volume.list"), json::array());
  for (const char* name : {"c", "a", "b"}) make(name);
  const json list = result("volume.list");
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0]["name"], "a");
  EXPECT_EQ(list[2]["name"], "c");
}

TEST_F(ControlMethods, CreateRefusesATakenName) {
  make("db");
  expect_refused(Code::exists, "volume.create", {{"name", "db"}, {"size", kMiB}}, "db");
}

TEST_F(ControlMethods, AnAttachedVolumeSaysSoAndIsDestroyedOnlyByForce) {
  make("db");
  auto opened = store_->open_export("db");
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(result("volume.get", {{"name", "db"}})["attached"], true);
  expect_refused(Code::in_use, "volume.destroy", {{"name", "db"}}, "db");
  EXPECT_EQ(result("volume.destroy", {{"name", "db"}, {"force", true}}),
            json({{"time_remaining_ms", store::kEradicationDelayDefault}}));
  opened->reset();
  EXPECT_EQ(result("volume.list"), json::array());
}

TEST_F(ControlMethods, RenameKeepsTheVolume) {
  make("old");
  json before = result("volume.get", {{"name", "old"}});
  const json after = result("volume.rename", {{"name", "old"}, {"new_name", "new"}});
  before["name"] = "new";
  EXPECT_EQ(after, before);
  make("other");
  expect_refused(Code::exists, "volume.rename", {{"name", "new"}, {"new_name", "other"}}, "other");
  expect_refused(Code::not_found, "volume.rename", {{"name", "old"}, {"new_name", "x"}}, "old");
}

TEST_F(ControlMethods, ResizeShrinksDataOnlyWhenTold) {
  make("db", 8 * kMiB);
  write("db", 6 * kMiB, "data");
  EXPECT_EQ(result("volume.resize", {{"name", "db"}, {"size", 16 * kMiB}})["size"], 16 * kMiB);
  const json before = state();
  error("volume.resize", {{"name", "db"}, {"size", 4 * kMiB}});
  EXPECT_EQ(state(), before);
  const json shrink{{"name", "db"}, {"size", 4 * kMiB}, {"truncate", true}};
  EXPECT_EQ(result("volume.resize", shrink)["size"], 4 * kMiB);
  result("volume.resize", {{"name", "db"}, {"size", 8 * kMiB}});
  EXPECT_EQ(read("db", 6 * kMiB, 4), std::string(4, '\0'));
}

TEST_F(ControlMethods, DestroyTakesTheSnapshotsAndLeavesTheClones) {
  make("db");
  write("db", 0, "one");
  snap("db", "s");
  result("volume.clone", {{"source", "db@s"}, {"name", "copy"}});
  result("volume.destroy", {{"name", "db"}, {"eradicate", true}});
  EXPECT_EQ(result("snapshot.list"), json::array());
  EXPECT_EQ(read("copy", 0, 3), "one");
  expect_refused(Code::not_found, "volume.get", {{"name", "db"}}, "db");
}

TEST_F(ControlMethods, WhatIsDestroyedIsRecovered) {
  make("db");
  write("db", 0, "one");
  snap("db", "s");
  result("volume.destroy", {{"name", "db"}, {"request_id", "once"}});
  EXPECT_EQ(result("volume.list"), json::array());
  EXPECT_EQ(result("volume.list", {{"destroyed", true}})[0]["name"], "db");
  EXPECT_EQ(result("snapshot.list", {{"destroyed", true}})[0]["name"], "db@s");
  EXPECT_EQ(result("volume.get", {{"name", "db"}})["destroyed"], true);
  expect_refused(Code::destroyed, "volume.rename", {{"name", "db"}, {"new_name", "x"}}, "recover");
  expect_refused(Code::destroyed, "snapshot.recover", {{"name", "db@s"}}, "volume");
  EXPECT_EQ(result("volume.recover", {{"name", "db"}})["snapshots"], 1);
  // The answer to the first call, which is not carried out again.
  EXPECT_GT(result("volume.destroy", {{"name", "db"}, {"request_id", "once"}})["time_remaining_ms"],
            0);
  EXPECT_EQ(read("db", 0, 3), "one");
  expect_refused(Code::precondition, "volume.eradicate", {{"name", "db"}}, "destroy");
  result("volume.destroy", {{"name", "db"}});
  EXPECT_EQ(result("volume.eradicate", {{"name", "db"}})["time_remaining_ms"], 0);
  expect_refused(Code::not_found, "volume.get", {{"name", "db"}}, "db");
}

TEST_F(ControlMethods, CloneOfASnapshotAndOfAVolume) {
  make("db");
  write("db", 0, "one");
  snap("db", "s");
  write("db", 0, "two");
  const json of_snapshot = result("volume.clone", {{"source", "db@s"}, {"name", "a"}});
  EXPECT_EQ(of_snapshot["parent"], "db@s");
  EXPECT_EQ(of_snapshot["size"], kGiB);
  result("volume.clone", {{"source", "db"}, {"name", "b"}});
  EXPECT_EQ(read("a", 0, 3), "one");
  EXPECT_EQ(read("b", 0, 3), "two");
  expect_refused(Code::exists, "volume.clone", {{"source", "db"}, {"name", "a"}}, "a");
  expect_refused(Code::not_found, "volume.clone", {{"source", "db@x"}, {"name", "c"}}, "db@x");
  expect_refused(Code::not_found, "volume.clone", {{"source", "no"}, {"name", "c"}}, "no");
}

TEST_F(ControlMethods, CopyOverwritesOnlyWhenToldAndCanBeUndone) {
  make("from");
  make("to");
  write("from", 0, "new");
  write("to", 0, "old");
  expect_refused(Code::exists, "volume.copy", {{"source", "from"}, {"target", "to"}}, "to");
  const json copied =
      result("volume.copy", {{"source", "from"}, {"target", "to"}, {"overwrite", true}});
  EXPECT_EQ(copied["volume"]["name"], "to");
  EXPECT_EQ(read("to", 0, 3), "new");
  ASSERT_TRUE(copied["undo_snapshot"].is_string()) << copied;
  EXPECT_EQ(read(copied["undo_snapshot"], 0, 3), "old");
  const json made = result("volume.copy", {{"source", "from"}, {"target", "fresh"}});
  EXPECT_EQ(made["undo_snapshot"], nullptr);
  EXPECT_EQ(read("fresh", 0, 3), "new");
}

TEST_F(ControlMethods, RevertBringsBackASnapshotBySuffixOrInFull) {
  make("db");
  write("db", 0, "one");
  snap("db", "s");
  write("db", 0, "two");
  const json reverted = result("volume.revert", {{"name", "db"}, {"snapshot", "s"}});
  EXPECT_EQ(read("db", 0, 3), "one");
  ASSERT_TRUE(reverted["undo_snapshot"].is_string());
  EXPECT_EQ(read(reverted["undo_snapshot"], 0, 3), "two");
  write("db", 0, "six");
  const json again =
      result("volume.revert", {{"name", "db"}, {"snapshot", "db@s"}, {"undo", false}});
  EXPECT_EQ(again["undo_snapshot"], nullptr);
  EXPECT_EQ(read("db", 0, 3), "one");
  expect_refused(Code::not_found, "volume.revert", {{"name", "db"}, {"snapshot", "no"}}, "no");
}

TEST_F(ControlMethods, SnapshotsOfAGroupAreOnePointInTime) {
  make("a");
  make("b");
  const json made = result("snapshot.create", {{"sources", {"a", "b"}}, {"suffix", "daily"}});
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0]["name"], "a@daily");
  EXPECT_EQ(made[1]["name"], "b@daily");
  EXPECT_EQ(made[0]["created"], made[1]["created"]);
  EXPECT_TRUE(made[0]["id"].is_number_unsigned());
  const json numbered = result("snapshot.create", {{"sources", {"a"}}});
  EXPECT_EQ(numbered[0]["name"], "a@1");
  expect_refused(Code::exists, "snapshot.create", {{"sources", {"b", "a"}}, {"suffix", "1"}},
                 "a@1");
  expect_refused(Code::not_found, "snapshot.create", {{"sources", {"a", "no"}}}, "no");
}

TEST_F(ControlMethods, SnapshotsAreShownWithParentAndChildren) {
  make("db");
  make("other");
  snap("db", "one");
  write("db", 0, "x");
  snap("db", "two");
  snap("other", "one");
  result("volume.clone", {{"source", "db@one"}, {"name", "copy"}});
  const json one = result("snapshot.get", {{"name", "db@one"}});
  EXPECT_EQ(one["volume"], "db");
  EXPECT_EQ(one["size"], kGiB);
  EXPECT_EQ(one["parent"], nullptr);
  EXPECT_NE(std::count(one["children"].begin(), one["children"].end(), "db@two"), 0) << one;
  EXPECT_NE(std::count(one["children"].begin(), one["children"].end(), "copy"), 0) << one;
  EXPECT_EQ(result("snapshot.get", {{"name", "db@two"}})["parent"], "db@one");
  EXPECT_EQ(result("snapshot.list").size(), 3U);
  const json of_db = result("snapshot.list", {{"volume", "db"}});
  ASSERT_EQ(of_db.size(), 2U);
  EXPECT_EQ(of_db[0], one);
  expect_refused(Code::not_found, "snapshot.list", {{"volume", "no"}}, "no");
  expect_refused(Code::not_found, "snapshot.get", {{"name", "db@no"}}, "db@no");
}

TEST_F(ControlMethods, ADestroyedSnapshotKeepsItsNameUntilItIsEradicated) {
  make("db");
  snap("db", "s");
  EXPECT_EQ(result("snapshot.destroy", {{"name", "db@s"}}),
            json({{"time_remaining_ms", store::kEradicationDelayDefault}}));
  expect_refused(Code::destroyed, "snapshot.destroy", {{"name", "db@s"}}, "db@s");
  expect_refused(Code::exists, "snapshot.create", {{"sources", {"db"}}, {"suffix", "s"}},
                 "eradicate");
  result("snapshot.eradicate", {{"name", "db@s"}});
  expect_refused(Code::not_found, "snapshot.destroy", {{"name", "db@s"}}, "db@s");
  snap("db", "s");
}

TEST_F(ControlMethods, BitmapHasABitForEachChunkWithData) {
  make("db", 16 * kMiB);
  write("db", kMiB, "x");
  write("db", 9 * kMiB, "x");
  const json map = result("bitmap.allocated", {{"target", "db"}, {"chunk", kMiB}});
  EXPECT_EQ(map["chunk"], kMiB);
  EXPECT_EQ(map["scanned_length"], 16 * kMiB);
  EXPECT_EQ(map["bitmap"], "AgI=");  // 0x02 0x02: bits 1 and 9
  EXPECT_EQ(map["allocated_chunks"], 2);
  EXPECT_EQ(map["next_allocated"], nullptr);
}

TEST_F(ControlMethods, BitmapSaysWhereToGoOn) {
  make("db", 16 * kMiB);
  write("db", 9 * kMiB, "x");
  json params{{"target", "db"}, {"length", 4 * kMiB}, {"chunk", kMiB}};
  const json map = result("bitmap.allocated", params);
  EXPECT_EQ(map["bitmap"], "AA==");
  EXPECT_EQ(map["next_allocated"], 9 * kMiB);
  params["hint"] = false;
  EXPECT_EQ(result("bitmap.allocated", params)["next_allocated"], nullptr);
}

TEST_F(ControlMethods, BitmapChoosesAChunkAndStopsWhereAnAnswerIsFull) {
  make("db", 40ULL << 40);
  const json whole = result("bitmap.allocated", {{"target", "db"}});
  EXPECT_EQ(whole["chunk"], 8ULL << 30);  // 5,120 bits; half of it would give 10,240
  EXPECT_EQ(whole["scanned_length"], 40ULL << 40);
  const json part = result("bitmap.allocated", {{"target", "db"}, {"chunk", 4096}});
  EXPECT_EQ(part["scanned_length"], 8192 * 4096);
}

TEST_F(ControlMethods, BitmapRefusesWhatIsNoPartOfTheTarget) {
  make("db", 16 * kMiB);
  expect_refused(Code::out_of_range, "bitmap.allocated",
                 {{"target", "db"}, {"offset", 16 * kMiB}, {"chunk", kMiB}}, "db");
  expect_refused(Code::not_found, "bitmap.allocated", {{"target", "no"}}, "no");
  expect_refused(Code::not_found, "bitmap.allocated", {{"target", "db@no"}}, "db@no");
  expect_refused(Code::invalid_params, "bitmap.allocated",
                 {{"target", "db"}, {"offset", 4096}, {"length", kMiB}, {"chunk", kMiB}}, "offset");
}

TEST_F(ControlMethods, ExtentsListWhatHoldsData) {
  make("db", 16 * kMiB);
  write("db", kMiB, std::string(8192, 'x'));
  write("db", 9 * kMiB, "x");
  const json all = result("extents.list", {{"target", "db"}});
  EXPECT_EQ(all["size"], 16 * kMiB);
  const json first{{"offset", kMiB}, {"length", 8192}, {"kind", "data"}};
  const json second{{"offset", 9 * kMiB}, {"length", 4096}, {"kind", "data"}};
  EXPECT_EQ(all["extents"], json({first, second}));
  EXPECT_EQ(all["next_offset"], nullptr);
  const json one = result("extents.list", {{"target", "db"}, {"max", 1}});
  EXPECT_EQ(one["extents"], json::array({first}));
  ASSERT_TRUE(one["next_offset"].is_number_unsigned()) << one;
  const json rest = result("extents.list", {{"target", "db"}, {"offset", one["next_offset"]}});
  EXPECT_EQ(rest["extents"], json::array({second}));
  expect_refused(Code::not_found, "extents.list", {{"target", "no"}}, "no");
  expect_refused(Code::out_of_range, "extents.list", {{"target", "db"}, {"offset", kGiB}}, "db");
}

TEST_F(ControlMethods, DiffListsWhatDiffers) {
  make("db", 16 * kMiB);
  write("db", 0, std::string(4096, 'x'));
  snap("db", "s");
  write("db", kMiB, std::string(4096, 'x'));
  auto opened = store_->open_export("db");
  ASSERT_TRUE(opened.ok());
  ASSERT_TRUE((*opened)->trim(0, 4096).ok());
  opened->reset();
  const json diff = result("extents.diff", {{"target", "db"}, {"base", "db@s"}});
  EXPECT_EQ(diff["extents"], json({{{"offset", 0}, {"length", 4096}, {"kind", "zero"}},
                                   {{"offset", kMiB}, {"length", 4096}, {"kind", "data"}}}));
  EXPECT_EQ(result("extents.diff", {{"target", "db"}, {"base", "db"}})["extents"], json::array());
  expect_refused(Code::not_found, "extents.diff", {{"target", "db"}, {"base", "db@no"}}, "db@no");
}

TEST_F(ControlMethods, StatsCountWhatWasDone) {
  make("db", 16 * kMiB);
  make("idle", 16 * kMiB);
  write("db", 0, std::string(4096, 'x'));
  read("db", 0, 512);
  snap("db", "s");
  result("volume.clone", {{"source", "db@s"}, {"name", "copy"}});
  const json stats = result("stats.get", {{"volume", "db"}});
  EXPECT_EQ(stats["writes"], 1);
  EXPECT_EQ(stats["write_bytes"], 4096);
  EXPECT_EQ(stats["reads"], 1);
  EXPECT_EQ(stats["read_bytes"], 512);
  EXPECT_EQ(result("stats.get", {{"volume", "idle"}})["writes"], 0);
  const json all = result("stats.get");
  EXPECT_EQ(all["writes"], 1);
  EXPECT_EQ(all["snapshots"], 1);
  EXPECT_EQ(all["copies"], 1);
  EXPECT_EQ(all["copy_bytes"], 16 * kMiB);
  expect_refused(Code::not_found, "stats.get", {{"volume", "no"}}, "no");
}

TEST_F(ControlMethods, StoreGetCountsItsObjects) {
  make("db");
  snap("db", "s");
  const json info = result("store.get");
  EXPECT_EQ(info["name"], folder_ + "/store");
  EXPECT_EQ(info["volumes"], 1);
  EXPECT_EQ(info["snapshots"], 1);
  EXPECT_EQ(info["read_only"], nullptr);
  EXPECT_TRUE(info["reclaim"].is_array());
  EXPECT_GT(info["capacity"].get<uint64_t>(), 0U);
  EXPECT_LE(info["used"].get<uint64_t>(), info["capacity"].get<uint64_t>());
}

TEST_F(ControlMethods, WhatIsUnsharedIsWhatDiffers) {
  result("volume.create", {{"name", "db"}, {"size", 1 << 20}});
  write("db", 0, std::string(8192, 'a'));
  result("snapshot.create", {{"sources", {"db"}}, {"suffix", "s"}});
  write("db", 65536, std::string(4096, 'b'));
  const json map =
      result("bitmap.unshared", {{"target", "db"}, {"base", "db@s"}, {"chunk", 65536}});
  EXPECT_EQ(map["bitmap"], "AgA=");
  EXPECT_EQ(map["allocated_chunks"], 1);
  const json params{{"target", "db"}, {"base", "db@s"}, {"chunk", 4096}, {"length", 4096}};
  const json first = result("bitmap.unshared", params);
  EXPECT_EQ(first["allocated_chunks"], 0);
  EXPECT_EQ(first["next_allocated"], 65536);
  expect_refused(Code::not_found, "bitmap.unshared", {{"target", "db"}, {"base", "db@no"}},
                 "db@no");
}

TEST_F(ControlMethods, SpaceIsOfAllOrOfTheNamed) {
  result("volume.create", {{"name", "a"}, {"size", 1 << 20}});
  result("volume.create", {{"name", "b"}, {"size", 1 << 20}, {"provision", "reserved"}});
  result("snapshot.create", {{"sources", {"a"}}, {"suffix", "s"}});
  write("a", 0, std::string(8192, 'a'));
  EXPECT_EQ(result("space.get").size(), 3U);
  const json named = result("space.get", {{"names", {"b", "a"}}});
  EXPECT_EQ(named[0]["name"], "b");
  EXPECT_GT(named[0]["promised"], 1 << 20);
  EXPECT_EQ(named[1]["name"], "a");
  EXPECT_EQ(named[1]["referenced"], 8192);
  expect_refused(Code::not_found, "space.get", {{"names", {"a", "a@no"}}}, "a@no");
}

TEST_F(ControlMethods, AStoreGrowsAndDoesNotShrink) {
  EXPECT_EQ(result("store.grow", {{"capacity", uint64_t{2} << 30}})["capacity"], uint64_t{2} << 30);
  EXPECT_EQ(result("store.get")["capacity"], uint64_t{2} << 30);
  expect_refused(Code::invalid_params, "store.grow", {{"capacity", uint64_t{1} << 30}}, "shrink");
  expect_refused(Code::invalid_params, "store.grow", json::object(), "how large");
}

}  // namespace
}  // namespace vellum::control

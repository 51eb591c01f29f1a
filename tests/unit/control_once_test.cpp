// SPDX-License-Identifier: BSD-2-Clause
//
// request_id: a change that is asked for twice is carried out once (case 10).
#include <thread>

#include "common/control/method.hpp"
#include "common/control/refusal.hpp"
#include "tests/unit/control_fixture.hpp"

namespace vellum::control {
namespace {

class ControlOnce : public ControlTest {};

TEST_F(ControlOnce, EveryMethodThatChangesSomethingTakesARequestId) {
  for (const Method& method : methods()) {
    const bool takes = !method.parameters.empty() && method.parameters.back().name == "request_id";
    EXPECT_EQ(takes, method.changes) << method.name;
  }
}

TEST_F(ControlOnce, TheFirstAnswerIsGivenAgainWordForWord) {
  const json volume{{"name", "a"}, {"size", 1 << 20}};
  const std::vector<std::pair<std::string, json>> calls{
      {"volume.create", volume},
      {"snapshot.create", {{"sources", {"a"}}}},
      {"volume.clone", {{"source", "a@1"}, {"name", "b"}}},
      {"volume.copy", {{"source", "a"}, {"target", "b"}, {"overwrite", true}}},
      {"volume.revert", {{"name", "a"}, {"snapshot", "1"}}},
      {"volume.resize", {{"name", "a"}, {"size", 2 << 20}}},
      {"volume.rename", {{"name", "a"}, {"new_name", "c"}}},
      {"store.set", {{"eradication_delay_ms", 1000000}}},
      {"snapshot.destroy", {{"name", "c@1"}}},
      {"snapshot.recover", {{"name", "c@1"}}},
      {"volume.destroy", {{"name", "c"}}},
      {"volume.recover", {{"name", "c"}}},
  };
  std::vector<json> answers;
  for (const auto& [method, params] : calls) {
    json with_id = params;
    with_id["request_id"] = "the " + method;
    answers.push_back(result(method, with_id));
    const json before = state();
    EXPECT_EQ(result(method, with_id), answers.back()) << method;
    EXPECT_EQ(state(), before) << method;
  }
  for (size_t i = 0; i < calls.size(); ++i) {  // what it speaks of may be gone by now
    json with_id = calls[i].second;
    with_id["request_id"] = "the " + calls[i].first;
    EXPECT_EQ(result(calls[i].first, with_id), answers[i]) << calls[i].first;
  }
}

TEST_F(ControlOnce, AnswersOutliveARestart) {
  result("volume.create", {{"name", "a"}, {"size", 512}});
  const json snapshot{{"sources", {"a"}}, {"request_id", "r"}};
  const json first = result("snapshot.create", snapshot);
  const json before = state();
  dispatcher_.reset();
  ASSERT_TRUE(store_->close().ok());
  store_.reset();
  open_store();
  EXPECT_EQ(result("snapshot.create", snapshot), first);
  EXPECT_EQ(state(), before);
  EXPECT_EQ(error("volume.destroy", {{"name", "a"}, {"request_id", "r"}})["code"],
            static_cast<int>(Code::invalid_params));
}

TEST_F(ControlOnce, DefaultsThatAreSpelledOutAreTheSameCall) {
  const json first = result("volume.create", {{"name", "a"}, {"size", 512}, {"request_id", "r"}});
  const json again = result(
      "volume.create", {{"name", "a"}, {"size", 512}, {"provision", "thin"}, {"request_id", "r"}});
  EXPECT_EQ(again, first);
}

TEST_F(ControlOnce, AnIdThatWasUsedForSomethingElseIsRefused) {
  result("volume.create", {{"name", "a"}, {"size", 512}, {"request_id", "r"}});
  const json before = state();
  for (const json& refused :
       {error("volume.create", {{"name", "b"}, {"size", 512}, {"request_id", "r"}}),
        error("volume.create", {{"name", "a"}, {"size", 1024}, {"request_id", "r"}}),
        error("volume.destroy", {{"name", "a"}, {"request_id", "r"}})}) {
    EXPECT_EQ(refused["code"], static_cast<int>(Code::invalid_params));
    EXPECT_NE(refused["message"].get<std::string>().find("request_id"), std::string::npos);
  }
  EXPECT_EQ(state(), before);
}

TEST_F(ControlOnce, RefusalsAreNotKept) {
  const json clone{{"source", "a"}, {"name", "b"}, {"request_id", "r"}};
  EXPECT_EQ(error("volume.clone", clone)["code"], static_cast<int>(Code::not_found));
  result("volume.create", {{"name", "a"}, {"size", 512}});
  EXPECT_EQ(result("volume.clone", clone)["name"], "b");
}

TEST_F(ControlOnce, WithoutAnIdEachCallIsItsOwn) {
  result("volume.create", {{"name", "a"}, {"size", 512}});
  EXPECT_EQ(result("snapshot.create", {{"sources", {"a"}}})[0]["name"], "a@1");
  EXPECT_EQ(result("snapshot.create", {{"sources", {"a"}}})[0]["name"], "a@2");
}

TEST_F(ControlOnce, CallsAtTheSameTimeAreOneChange) {
  result("volume.create", {{"name", "a"}, {"size", 512}});
  const json request{{"jsonrpc", "2.0"},
                     {"id", 1},
                     {"method", "snapshot.create"},
                     {"params", {{"sources", {"a"}}, {"request_id", "r"}}}};
  std::vector<std::string> answers(8);
  std::vector<std::thread> threads;
  threads.reserve(answers.size());
  for (std::string& answer : answers) {
    threads.emplace_back([&] { answer = dispatcher_->handle(request.dump()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& answer : answers) EXPECT_EQ(answer, answers[0]);
  EXPECT_TRUE(json::parse(answers[0]).contains("result")) << answers[0];
  EXPECT_EQ(result("snapshot.list").size(), 1U);
}

TEST_F(ControlOnce, TheLargestGroupHasAnAnswerThatCanBeKept) {
  json names = json::array();
  for (size_t i = 0; i < store::kGroupMax; ++i) {
    std::string name = std::to_string(i);
    name += std::string(store::kNameLengthMax - name.size(), 'x');
    result("volume.create", {{"name", name}, {"size", 512}});
    names.push_back(name);
  }
  const json params{{"sources", names},
                    {"suffix", std::string(store::kNameLengthMax, 'y')},
                    {"request_id", std::string(store::kRequestIdLengthMax, 'z')}};
  const json first = result("snapshot.create", params);
  EXPECT_EQ(first.size(), store::kGroupMax);
  EXPECT_EQ(result("snapshot.create", params), first);
}

}  // namespace
}  // namespace vellum::control

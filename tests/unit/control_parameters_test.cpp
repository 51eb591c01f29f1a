// SPDX-License-Identifier: BSD-2-Clause
//
// Every parameter of every method, driven by the table of methods itself: what a parameter does not
// allow is refused by name, and nothing has changed.
#include <map>

#include "common/control/method.hpp"
#include "common/control/refusal.hpp"
#include "tests/unit/control_fixture.hpp"

namespace vellum::control {
namespace {

using json = nlohmann::json;

const json kNever = json::parse(R"([null, 1.0, 1.5, -1.5, 1e3, {}, {"a": 1}, [[]], [null], [{}]])");

std::vector<json> bad_names() {
  return {"",
          ".",
          "-a",
          "_a",
          ".a",
          "a b",
          "a/b",
          "a\n",
          "a@",
          "@a",
          "a@b@c",
          "a%40b",
          "a\xc3\xa9",
          "a:b",
          "a,b",
          "*",
          "../a",
          std::string("a\0", 2),
          std::string(64, 'a'),
          std::string(5000, 'a'),
          true,
          1};
}

std::vector<json> bad_integers() {
  return {-1, INT64_MIN, UINT64_MAX, uint64_t{1} << 63, 18446744073709551616.0, "1",
          "", true,      "0x10"};
}

std::vector<json> plus(std::vector<json> values, const std::vector<json>& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

std::vector<json> bad_groups(const std::vector<json>& bad_members) {
  json many = json::array();
  for (int i = 0; i < 257; ++i) many.push_back("v" + std::to_string(i));
  std::vector<json> groups{"a", 1, true, json::array(), {"a", "a"}, many};
  for (const json& name : bad_members) groups.push_back({"b", name});
  return groups;
}

std::vector<json> bad_values(const Parameter& parameter) {
  switch (parameter.kind) {
    case Kind::volume:
    case Kind::suffix:
      return plus(bad_names(), {"a@b"});
    case Kind::snapshot:
      return plus(bad_names(), {"a"});
    case Kind::reference:
    case Kind::target:
      return bad_names();
    case Kind::volumes:
      return bad_groups(plus(bad_names(), {"a@b"}));
    case Kind::targets:
      return bad_groups(bad_names());
    case Kind::integer:
      return bad_integers();
    case Kind::boolean:
      return {"true", 0, 1, ""};
    case Kind::choice:
      return {"", "Thin", "thick", 0, true};
    case Kind::request_id:
      return {"", std::string(129, 'x'), 1, true};
  }
  return {};
}

// Parameters with which each method, called on the fixture's objects, would succeed.
json good_params(std::string_view method) {
  static const std::map<std::string_view, json> all{
      {"volume.create", {{"name", "new"}, {"size", 4096}}},
      {"volume.get", {{"name", "a"}}},
      {"volume.rename", {{"name", "a"}, {"new_name", "new"}}},
      {"volume.resize", {{"name", "a"}, {"size", 1 << 30}}},
      {"volume.destroy", {{"name", "a"}}},
      {"volume.clone", {{"source", "a"}, {"name", "new"}}},
      {"volume.copy", {{"source", "a"}, {"target", "new"}}},
      {"volume.revert", {{"name", "a"}, {"snapshot", "s"}}},
      {"snapshot.create", {{"sources", {"a", "b"}}}},
      {"snapshot.get", {{"name", "a@s"}}},
      {"snapshot.destroy", {{"name", "a@s"}}},
      {"snapshot.recover", {{"name", "a@s"}}},
      {"snapshot.eradicate", {{"name", "a@s"}}},
      {"volume.recover", {{"name", "a"}}},
      {"volume.eradicate", {{"name", "a"}}},
      {"bitmap.allocated", {{"target", "a"}}},
      {"bitmap.unshared", {{"target", "a"}, {"base", "a@s"}}},
      {"store.grow", {{"capacity", 1 << 30}}},
      {"store.set", {{"eradication_delay_ms", 1000}}},
      {"extents.list", {{"target", "a"}}},
      {"extents.diff", {{"target", "a"}, {"base", "a@s"}}},
  };
  const auto found = all.find(method);
  return found == all.end() ? json::object() : found->second;
}

class ControlParameters : public ControlTest {
 protected:
  void SetUp() override {
    ControlTest::SetUp();
    result("volume.create", {{"name", "a"}, {"size", 1 << 20}});
    result("volume.create", {{"name", "b"}, {"size", 1 << 20}});
    result("snapshot.create", {{"sources", {"a", "b"}}, {"suffix", "s"}});
    before_ = state();
  }

  void expect_refused(const Method& method, const json& params, const std::string& parameter,
                      const std::string& mentions) {
    json refused = error(std::string(method.name), params);
    const std::string context = std::string(method.name) + params.dump() + " -> " + refused.dump();
    EXPECT_EQ(refused["code"], static_cast<int>(Code::invalid_params)) << context;
    EXPECT_EQ(refused["data"]["parameter"], parameter) << context;
    const std::string message = refused["message"];
    EXPECT_NE(message.find('"' + parameter + '"'), std::string::npos) << context;
    EXPECT_NE(message.find(mentions), std::string::npos) << context;
    EXPECT_LT(message.size(), 500U) << context;
    EXPECT_EQ(state(), before_) << context;
  }

  json before_;
};

TEST_F(ControlParameters, TheGoodOnesAreGood) {
  for (const Method& method : methods()) {
    if (method.changes) continue;
    result(std::string(method.name), good_params(method.name));
  }
  result("volume.create", good_params("volume.create"));
  result("snapshot.create", good_params("snapshot.create"));
  result("volume.revert", good_params("volume.revert"));
}

TEST_F(ControlParameters, BadValuesAreRefusedByName) {
  size_t tried = 0;
  for (const Method& method : methods()) {
    for (const Parameter& parameter : method.parameters) {
      std::vector<json> values = bad_values(parameter);
      ASSERT_FALSE(values.empty());
      for (const json& never : kNever) values.push_back(never);
      for (const json& value : values) {
        json params = good_params(method.name);
        params[std::string(parameter.name)] = value;
        expect_refused(method, params, std::string(parameter.name), "must be");
        ++tried;
      }
    }
  }
  EXPECT_GT(tried, 900U);
}

TEST_F(ControlParameters, UnknownOnesAreRefused) {
  for (const Method& method : methods()) {
    for (const char* name : {"unknown", "", "Name", "name "}) {
      json params = good_params(method.name);
      params[name] = 1;
      expect_refused(method, params, name, "takes");
    }
  }
}

TEST_F(ControlParameters, MissingOnesAreRefused) {
  for (const Method& method : methods()) {
    for (const Parameter& parameter : method.parameters) {
      if (!parameter.required) continue;
      json params = good_params(method.name);
      params.erase(std::string(parameter.name));
      expect_refused(method, params, std::string(parameter.name), "missing");
    }
  }
}

TEST_F(ControlParameters, OnesGivenTwiceAreRefused) {
  for (const Method& method : methods()) {
    for (const Parameter& parameter : method.parameters) {
      const std::string name(parameter.name);
      const std::string line = R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method.name) +
                               R"(","params":{")" + name + R"(":1,")" + name + R"(":1}})";
      const json received = answer(line);
      EXPECT_EQ(received["error"]["code"], static_cast<int>(Code::invalid_params)) << received;
      EXPECT_EQ(received["error"]["data"]["parameter"], name) << received;
      EXPECT_EQ(state(), before_);
    }
  }
}

TEST_F(ControlParameters, SizesAreMultiplesOfASectorUpToTheLimit) {
  const Method& create = *std::find_if(methods().begin(), methods().end(),
                                       [](const Method& m) { return m.name == "volume.create"; });
  for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{511}, uint64_t{513},
                              store::kVolumeSizeMax + 1, store::kVolumeSizeMax + 512}) {
    expect_refused(create, {{"name", "new"}, {"size", size}}, "size", "a multiple of 512");
  }
  result("volume.create", {{"name", "least"}, {"size", 512}});
  result("volume.create", {{"name", "most"}, {"size", store::kVolumeSizeMax}});
}

TEST_F(ControlParameters, ChunksArePowersOfTwo) {
  const Method& bitmap = methods().front();
  ASSERT_EQ(bitmap.name, "bitmap.allocated");
  for (const uint64_t chunk : {uint64_t{0}, uint64_t{1}, uint64_t{2048}, uint64_t{4097},
                               uint64_t{12288}, store::kVolumeSizeMax * 2}) {
    expect_refused(bitmap, {{"target", "a"}, {"chunk", chunk}}, "chunk", "a power of two");
  }
  for (const uint64_t chunk : {uint64_t{4096}, uint64_t{8192}, store::kVolumeSizeMax}) {
    EXPECT_EQ(result("bitmap.allocated", {{"target", "a"}, {"chunk", chunk}})["chunk"], chunk);
  }
}

TEST_F(ControlParameters, NamesMayUseAllThatIsAllowed) {
  const std::vector<std::string> names{"0", "A", "z.", "a-_.B9", std::string(63, 'x')};
  for (const std::string& name : names) {
    EXPECT_EQ(result("volume.create", {{"name", name}, {"size", 512}})["name"], name);
    EXPECT_EQ(result("snapshot.create", {{"sources", {name}}, {"suffix", name}})[0]["name"],
              name + "@" + name);
  }
}

}  // namespace
}  // namespace vellum::control

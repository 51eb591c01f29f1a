// SPDX-License-Identifier: BSD-2-Clause
//
// The envelope: what is a request, what is not, and how it is answered.
#include "common/control/refusal.hpp"
#include "tests/unit/control_fixture.hpp"

namespace vellum::control {
namespace {

class ControlMessage : public ControlTest {
 protected:
  // The refusal of a line that is no request; its id is null unless the line had a good one.
  void expect_line_refused(const std::string& line, Code code, const std::string& mentions,
                           const json& id = nullptr) {
    const json before = state();
    const json received = answer(line);
    ASSERT_TRUE(received.contains("error")) << line << " -> " << received;
    EXPECT_EQ(received["error"]["code"], static_cast<int>(code)) << line << " -> " << received;
    EXPECT_EQ(received["id"], id) << line;
    EXPECT_NE(received["error"]["message"].get<std::string>().find(mentions), std::string::npos)
        << line << " -> " << received;
    EXPECT_EQ(state(), before);
  }
};

TEST_F(ControlMessage, AnswersCarryTheIdOfTheRequest) {
  for (const char* id :
       {"0", "-3", "18446744073709551615", "\"a\"", "\"\"", "null", "\"\\u00e9\\n\""}) {
    const std::string line =
        std::string(R"({"jsonrpc":"2.0","method":"volume.list","id":)") + id + "}";
    const json received = answer(line);
    EXPECT_EQ(received["id"], json::parse(id));
    EXPECT_EQ(received["result"], json::array());
  }
}

TEST_F(ControlMessage, WhatIsNotJsonIsAParseError) {
  for (const std::string line :
       {"", " ", "{", "hello", R"({"jsonrpc":"2.0","id":1,"method":"volume.list"}})",
        R"({"jsonrpc":"2.0","id":1,"method":"volume.list",})", R"({'jsonrpc':'2.0'})",
        R"({"jsonrpc":"2.0","id":1,"method":"volume.get","params":{"name":NaN}})",
        R"({"jsonrpc":"2.0","id":1,"method":"volume.get","params":{"name":Infinity}})",
        R"({"jsonrpc":"2.0","id":1,"method":"volume.create","params":{"name":"a","size":1e999}})",
        R"({"jsonrpc":"2.0","id":1,"method":"volume.get","params":{"name":01}})",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"volume.get\",\"params\":{\"name\":\"\xff\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"v\",\"params\":{\"name\":\"\xc0\x80\"}}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"v\",\"params\":{\"name\":\"\xed\xa0\x80\"}}",
        R"({"jsonrpc":"2.0","id":1,"method":"volume.get","params":{"name":"\ud800"}})",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\tb\"}"}) {
    expect_line_refused(line, Code::parse_error, "JSON");
  }
  expect_line_refused(std::string("{\0}", 3), Code::parse_error, "JSON");
}

TEST_F(ControlMessage, WhatIsNoRequestIsInvalid) {
  const auto invalid = Code::invalid_request;
  expect_line_refused("1", invalid, "object");
  expect_line_refused("null", invalid, "object");
  expect_line_refused("\"volume.list\"", invalid, "object");
  expect_line_refused("{}", invalid, "jsonrpc");
  expect_line_refused(R"({"jsonrpc":"2.0"})", invalid, "method");
  expect_line_refused(R"({"id":4,"method":"volume.list"})", invalid, "jsonrpc", 4);
  expect_line_refused(R"({"jsonrpc":"1.0","id":4,"method":"volume.list"})", invalid, "2.0", 4);
  expect_line_refused(R"({"jsonrpc":2.0,"id":4,"method":"volume.list"})", invalid, "2.0", 4);
  expect_line_refused(R"({"jsonrpc":"2.0","id":4,"method":7})", invalid, "method", 4);
  expect_line_refused(R"({"jsonrpc":"2.0","id":4,"method":"volume.list","extra":1})", invalid,
                      "extra", 4);
}

TEST_F(ControlMessage, IdsOfOtherKindsAreRefused) {
  for (const char* id : {"1.5", "true", "[]", "{}", "1e3", "18446744073709551616"}) {
    expect_line_refused(std::string(R"({"jsonrpc":"2.0","method":"volume.list","id":)") + id + "}",
                        Code::invalid_request, "id");
  }
  expect_line_refused(
      R"({"jsonrpc":"2.0","method":"volume.list","id":")" + std::string(257, 'x') + "\"}",
      Code::invalid_request, "256");
}

TEST_F(ControlMessage, BatchesAreRefused) {
  expect_line_refused("[]", Code::invalid_request, "batches");
  expect_line_refused(R"([{"jsonrpc":"2.0","id":1,"method":"volume.create","params":)"
                      R"({"name":"a","size":512}}])",
                      Code::invalid_request, "batches");
}

TEST_F(ControlMessage, MembersGivenTwiceAreRefused) {
  expect_line_refused(R"({"jsonrpc":"2.0","id":1,"method":"volume.list","method":"store.get"})",
                      Code::invalid_request, "\"method\" stands twice", 1);
  expect_line_refused(R"({"jsonrpc":"2.0","id":1,"method":"volume.create",)"
                      R"("params":{"name":"a","size":512,"name":"b"}})",
                      Code::invalid_params, "\"name\" stands twice", 1);
  expect_line_refused(
      R"({"jsonrpc":"2.0","method":"volume.list","params":{"a":{"b":1,"b":2}},"id":1})",
      Code::invalid_params, "\"b\" stands twice", 1);
}

TEST_F(ControlMessage, DeepNestingIsRefusedWithoutDeepRecursion) {
  const std::string nine =
      R"({"jsonrpc":"2.0","method":"volume.get","params":{"name":[[[[[[[]]]]]]]},"id":1})";
  expect_line_refused(nine, Code::invalid_params, "\"name\"", 1);
  for (const size_t depth : {size_t{1000}, size_t{500'000}}) {
    std::string line(depth, '[');
    line += std::string(depth, ']');
    expect_line_refused(line, Code::invalid_request, "batches");
    expect_line_refused(
        R"({"jsonrpc":"2.0","method":"volume.get","params":{"name":)" + line + R"(},"id":1})",
        Code::invalid_params, "levels", 1);
    expect_line_refused(std::string(depth, '['), Code::parse_error, "JSON");
  }
}

TEST_F(ControlMessage, ALineMayBeLongButNotTooLong) {
  std::string line = R"({"jsonrpc":"2.0","id":1,"method":"volume.list"})";
  line += std::string(kLineLengthMax - line.size(), ' ');
  EXPECT_EQ(answer(line)["result"], json::array());
  line += ' ';
  expect_line_refused(line, Code::invalid_request, "1048576");
  EXPECT_EQ(dispatcher_->handle(line), Dispatcher::line_too_long());
}

TEST_F(ControlMessage, UnknownMethodsAreRefused) {
  for (const char* method :
       {"", "volume", "volume.", "Volume.list", "volume.list ", "rpc.discover"}) {
    const json line{{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}};
    expect_line_refused(line.dump(), Code::method_not_found, json(method).dump(), 1);
  }
}

TEST_F(ControlMessage, ParamsAreAnObject) {
  for (const char* params : {"[]", "[\"a\",512]", "null", "1", "\"a\""}) {
    expect_line_refused(
        std::string(R"({"jsonrpc":"2.0","id":1,"method":"volume.create","params":)") + params + "}",
        Code::invalid_params, "by name", 1);
  }
}

TEST_F(ControlMessage, NotificationsAreCarriedOutInSilence) {
  EXPECT_EQ(dispatcher_->handle(
                R"({"jsonrpc":"2.0","method":"volume.create","params":{"name":"a","size":512}})"),
            "");
  EXPECT_EQ(result("volume.list").size(), 1U);
  EXPECT_EQ(dispatcher_->handle(R"({"jsonrpc":"2.0","method":"volume.create"})"), "");
  EXPECT_EQ(dispatcher_->handle(R"({"jsonrpc":"2.0","method":"volume.create","params":[]})"), "");
  EXPECT_EQ(dispatcher_->handle(R"({"jsonrpc":"2.0","method":"no.such"})"), "");
}

TEST_F(ControlMessage, MessagesQuoteWhatWasSentSafely) {
  const json received = error("volume.get", {{"name", "a\n\x01\xc3\xa9" + std::string(200, 'x')}});
  const std::string message = received["message"];
  EXPECT_NE(message.find(R"(a\n\u0001\u00e9xxx)"), std::string::npos) << message;
  EXPECT_NE(message.find("..."), std::string::npos);
  EXPECT_LT(message.size(), 400U);
}

TEST_F(ControlMessage, NoPrefixOfARequestAndNoChangedByteEndsTheProcess) {
  const std::string line =
      R"({"jsonrpc":"2.0","id":1,"method":"extents.list","params":{"target":"a@1","offset":0,"max":10}})";
  for (size_t length = 0; length < line.size(); ++length) {
    EXPECT_TRUE(answer(line.substr(0, length)).contains("error"));
  }
  for (size_t place = 0; place < line.size(); ++place) {
    for (int byte = 0; byte < 256; byte += 5) {
      std::string changed = line;
      changed[place] = static_cast<char>(byte);
      const std::string text = dispatcher_->handle(changed);
      EXPECT_TRUE(text.empty() || json::parse(text).contains("error")) << changed;
    }
  }
}

}  // namespace
}  // namespace vellum::control

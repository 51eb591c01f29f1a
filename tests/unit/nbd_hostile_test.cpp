// SPDX-License-Identifier: BSD-2-Clause
//
// Handshakes that no honest client sends: lengths that lie, input that stops or was never NBD.
#include <random>

#include "tests/unit/nbd_fixture.hpp"

namespace vellum::server {
namespace {

using namespace nbd;
using State = Handshake::State;

constexpr uint32_t kInfoAndGo[] = {kOptInfo, kOptGo};

TEST_F(HandshakeTest, NamesAtTheLimitAreLookedUp) {
  begin();
  for (const uint32_t which : kInfoAndGo) {
    for (const size_t length : {4095, 4096}) {
      EXPECT_EQ(answer(which, info_data(std::string(length, 'n'))), kRepErrUnknown) << length;
    }
    EXPECT_EQ(answer(which, info_data(std::string(4097, 'n'))), kRepErrInvalid);
  }
  expect_in_step();
}

TEST_F(HandshakeTest, ANameAtTheLimitIsServed) {
  const std::string name(4096, 'n');
  catalog_.exports[name] = {4096, false, ""};
  begin();
  EXPECT_EQ(ask(kOptGo, info_data(name, {kInfoName})).size(), 3u);
  EXPECT_EQ(handshake_.state(), State::transmission);
}

TEST_F(HandshakeTest, NameLengthsThatLieAreInvalid) {
  begin();
  for (const uint32_t which : kInfoAndGo) {
    for (const uint32_t length : {2u, 4u, 5u, 6u, 4096u, 0x7fffffffu, 0xfffffffeu, 0xffffffffu}) {
      EXPECT_EQ(answer(which, be32(length) + "vol" + be16(0)), kRepErrInvalid) << length;
    }
  }
  EXPECT_TRUE(catalog_.opened.empty());
  expect_in_step();
}

TEST_F(HandshakeTest, TruncatedInfoIsInvalidAtEveryLength) {
  begin();
  const std::string whole = info_data("vol", {kInfoName});
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(answer(kOptGo, whole.substr(0, length)), kRepErrInvalid) << length;
  }
  EXPECT_EQ(answer(kOptGo, whole + "x"), kRepErrInvalid);
  EXPECT_TRUE(catalog_.opened.empty());
  expect_in_step();
}

TEST_F(HandshakeTest, NamesWithNulAreInvalid) {
  begin();
  EXPECT_EQ(answer(kOptGo, info_data(std::string_view("vo\0l", 4))), kRepErrInvalid);
  expect_in_step();
}

TEST_F(HandshakeTest, LongExportNamesCloseBeforeTheyArrive) {
  for (const uint32_t length : {4097u, 0x7fffffffu, 0xffffffffu}) {
    FakeCatalog catalog;
    Handshake handshake(catalog);
    OutBuffer out;
    const std::string bytes = be32(kClientFixedNewstyle) + option_header(kOptExportName, length);
    handshake.feed(std::as_bytes(std::span(bytes)), out);
    EXPECT_EQ(handshake.state(), State::close) << length;
  }
}

// An option of the largest size that is read, whose inner length is wrong by one.
TEST_F(HandshakeTest, ALargeOptionWithABadInnerLengthStaysInStep) {
  begin();
  const std::string filler(kOptionBytesMax - 4, 'n');
  for (const uint32_t which : {kOptInfo, kOptGo}) {
    EXPECT_EQ(answer(which, be32(kOptionBytesMax - 4) + filler), kRepErrInvalid);
    EXPECT_EQ(answer(which, be32(kOptionBytesMax - 3) + filler), kRepErrInvalid);
  }
  expect_in_step();
}

TEST_F(HandshakeTest, StoppingAtEveryByteHarmsNothing) {
  const std::string whole = be32(kClientFixedNewstyle) + option(kOptStructuredReply) +
                            option(kOptList) +
                            option(kOptSetMetaContext, context_data("vol", {"base:allocation"})) +
                            option(kOptGo, info_data("vol", {kInfoBlockSize}));
  for (size_t length = 0; length <= whole.size(); ++length) {
    FakeCatalog catalog;
    Handshake handshake(catalog);
    OutBuffer out;
    auto in = std::as_bytes(std::span(whole)).first(length);
    while (!in.empty()) in = in.subspan(handshake.feed(in, out));
    const bool complete = length == whole.size();
    EXPECT_EQ(handshake.state(), complete ? State::transmission : State::talking) << length;
    EXPECT_EQ(catalog.opened.size(), complete ? 1u : 0u) << length;
  }
}

TEST_F(HandshakeTest, AByteAtATimeIsTheSameConversation) {
  const std::string whole = be32(kClientFixedNewstyle) + option(kOptStructuredReply) +
                            option(99, std::string(100, 'x')) +
                            option(kOptSetMetaContext, context_data("vol", {"base:allocation"})) +
                            option(kOptGo, info_data("vol", {kInfoName}));
  const std::string at_once = send(whole);
  FakeCatalog catalog;
  Handshake handshake(catalog);
  OutBuffer out;
  for (const char c : whole) {
    EXPECT_EQ(handshake.feed(std::as_bytes(std::span(&c, 1)), out), 1u);
  }
  const auto bytes = out.bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), at_once);
  EXPECT_TRUE(handshake.negotiated().base_allocation);
}

// Random bytes behind random, mostly plausible headers. The seed of a failure is in its message.
TEST_F(HandshakeTest, GarbageEndsInAStateAndOpensNothing) {
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    FakeCatalog catalog;
    catalog.exports.clear();
    Handshake handshake(catalog);
    OutBuffer out;
    std::string bytes = be32(kClientFixedNewstyle | (random() % 2));
    for (int i = 0; i < 20; ++i) {
      const uint32_t length = random() % 64;
      bytes += random() % 16 != 0 ? option_header(random() % 12, length)
                                  : be64(random()) + be32(random()) + be32(random());
      for (uint32_t j = 0; j < length; ++j) bytes += static_cast<char>(random() % 3 ? 0 : random());
    }
    auto in = std::as_bytes(std::span(bytes));
    while (!in.empty() && handshake.state() == State::talking) {
      const size_t used = handshake.feed(in, out);
      ASSERT_GT(used, 0u) << "seed " << seed;
      in = in.subspan(used);
    }
    EXPECT_NE(handshake.state(), State::transmission) << "seed " << seed;
    EXPECT_TRUE(catalog.opened.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace vellum::server

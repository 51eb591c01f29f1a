// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit/nbd_fixture.hpp"

namespace vellum::server {
namespace {

using namespace nbd;
using State = Handshake::State;

TEST_F(HandshakeTest, GreetsAsFixedNewstyle) {
  EXPECT_EQ(greeting_, be64(kGreetingMagic) + be64(kOptionMagic) +
                           be16(kHandshakeFixedNewstyle | kHandshakeNoZeroes));
}

TEST_F(HandshakeTest, ClosesOnUnknownClientFlags) {
  send(be32(1 << 2));
  EXPECT_EQ(handshake_.state(), State::close);
}

TEST_F(HandshakeTest, ClosesOnABadOptionMagic) {
  begin();
  send(be64(kOptionMagic + 1) + be32(kOptList) + be32(0));
  EXPECT_EQ(handshake_.state(), State::close);
}

TEST_F(HandshakeTest, ExportNameSendsSizeFlagsAndPadding) {
  begin(kClientFixedNewstyle);
  const std::string reply = send(option(kOptExportName, "vol"));
  const uint16_t flags = transmission_flags({1 << 20, false, ""}, false);
  EXPECT_EQ(reply, be64(1 << 20) + be16(flags) + std::string(124, '\0'));
  EXPECT_EQ(handshake_.state(), State::transmission);
  EXPECT_EQ(handshake_.negotiated().export_name, "vol");
  EXPECT_EQ(catalog_.opened, std::vector<std::string>{"vol"});
}

TEST_F(HandshakeTest, ExportNameLeavesOutThePaddingWhenAsked) {
  begin();
  EXPECT_EQ(send(option(kOptExportName, "vol")).size(), 10u);
}

TEST_F(HandshakeTest, ExportNameClosesOnFailure) {
  for (const std::string& name : {std::string("other"), std::string(), std::string("vol\0", 4)}) {
    FakeCatalog catalog;
    Handshake handshake(catalog);
    OutBuffer out;
    const std::string bytes = be32(kClientFixedNewstyle) + option(kOptExportName, name);
    handshake.feed(std::as_bytes(std::span(bytes)), out);
    EXPECT_EQ(handshake.state(), State::close);
    EXPECT_TRUE(out.empty());
    EXPECT_TRUE(catalog.opened.empty());
  }
}

TEST_F(HandshakeTest, AbortIsAcknowledgedEvenWithData) {
  begin();
  EXPECT_EQ(answer(kOptAbort, "whatever"), kRepAck);
  EXPECT_EQ(handshake_.state(), State::close);
}

TEST_F(HandshakeTest, ListNamesAllExports) {
  begin();
  const auto replies = ask(kOptList);
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_EQ(replies[0].type, kRepServer);
  EXPECT_EQ(replies[0].payload, sized("vol"));
  EXPECT_EQ(replies[1].payload, sized("vol@1"));
  EXPECT_EQ(replies[2].type, kRepAck);
  EXPECT_TRUE(catalog_.opened.empty());
}

TEST_F(HandshakeTest, OptionsWithoutDataRefuseSome) {
  begin();
  EXPECT_EQ(answer(kOptList, "x"), kRepErrInvalid);
  EXPECT_EQ(answer(kOptStructuredReply, "x"), kRepErrInvalid);
  EXPECT_EQ(answer(kOptStartTls, "x"), kRepErrInvalid);
  EXPECT_EQ(answer(kOptStartTls), kRepErrUnsup);
  expect_in_step();
}

TEST_F(HandshakeTest, UnknownOptionsAreDrained) {
  begin();
  EXPECT_EQ(answer(4), kRepErrUnsup);
  EXPECT_EQ(answer(0xffff, std::string(1000, 'x')), kRepErrUnsup);
  EXPECT_EQ(answer(0xffffffff, std::string(kOptionBytesMax, 'x')), kRepErrUnsup);
  EXPECT_EQ(answer(77, std::string(kOptionBytesMax + 1, 'x')), kRepErrTooBig);
  EXPECT_EQ(answer(77, std::string(kOptionDrainMax, 'x')), kRepErrTooBig);
  expect_in_step();
}

TEST_F(HandshakeTest, AHugeOptionClosesAtOnce) {
  begin();
  const auto replies = replies_in(send(option_header(77, 0xffffffff)));
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].type, kRepErrTooBig);
  EXPECT_EQ(handshake_.state(), State::close);
}

TEST_F(HandshakeTest, InfoAndGoGiveTheSameAnswer) {
  begin();
  const std::string data = info_data("vol@1", {kInfoName, kInfoDescription, kInfoBlockSize, 999});
  const auto info = ask(kOptInfo, data);
  EXPECT_TRUE(catalog_.opened.empty());
  EXPECT_EQ(handshake_.state(), State::talking);
  const auto go = ask(kOptGo, data);
  ASSERT_EQ(info.size(), 5u);
  ASSERT_EQ(go.size(), 5u);
  for (size_t i = 0; i < info.size(); ++i) {
    EXPECT_EQ(info[i].type, go[i].type);
    EXPECT_EQ(info[i].payload, go[i].payload);
  }
  const uint16_t flags = transmission_flags({512 << 10, true, ""}, false);
  EXPECT_EQ(go[0].payload, be16(kInfoExport) + be64(512 << 10) + be16(flags));
  EXPECT_EQ(go[1].payload, be16(kInfoName) + "vol@1");
  EXPECT_EQ(go[2].payload, be16(kInfoDescription) + "a snapshot");
  EXPECT_EQ(go[3].payload, be16(kInfoBlockSize) + be32(1) + be32(4096) + be32(32 << 20));
  EXPECT_EQ(go[4].type, kRepAck);
  EXPECT_EQ(handshake_.state(), State::transmission);
  EXPECT_EQ(catalog_.opened, std::vector<std::string>{"vol@1"});
}

TEST_F(HandshakeTest, InfoIsSentOnceHoweverOftenAsked) {
  begin();
  const std::vector<uint16_t> requests(30'000, kInfoBlockSize);
  EXPECT_EQ(ask(kOptInfo, info_data("vol", requests)).size(), 3u);  // EXPORT, BLOCK_SIZE, ACK
}

TEST_F(HandshakeTest, GoToAnUnknownExportLeavesTheConversationOpen) {
  begin();
  EXPECT_EQ(answer(kOptGo, info_data("other")), kRepErrUnknown);
  EXPECT_TRUE(catalog_.opened.empty());
  expect_in_step();
}

TEST_F(HandshakeTest, StructuredRepliesBringDf) {
  begin();
  EXPECT_EQ(answer(kOptStructuredReply), kRepAck);
  const auto replies = ask(kOptGo, info_data("vol"));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_NE(load_be16(replies[0].payload.data() + 10) & kFlagSendDf, 0);
  EXPECT_TRUE(handshake_.negotiated().structured_replies);
}

TEST_F(HandshakeTest, RequestsBehindGoAreLeftAlone) {
  begin();
  send(option(kOptGo, info_data("vol")) + "request");
  EXPECT_EQ(handshake_.state(), State::transmission);
  EXPECT_EQ(left_, 7u);
}

TEST_F(HandshakeTest, ErrorTextsAreShortAndPrintable) {
  begin();
  const auto replies = ask(kOptInfo, info_data(std::string(kStringBytesMax, '\xff')));
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].type, kRepErrUnknown);
  EXPECT_EQ(replies[0].payload.size(), kErrorTextBytesMax);
  for (const char c : replies[0].payload) EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST_F(HandshakeTest, TransmissionFlagsFitTheExport) {
  const uint16_t writable = transmission_flags({1, false, ""}, false);
  const uint16_t snapshot = transmission_flags({1, true, ""}, false);
  EXPECT_EQ(writable, kFlagHasFlags | kFlagSendFlush | kFlagSendFua | kFlagSendTrim |
                          kFlagSendWriteZeroes | kFlagCanMultiConn | kFlagSendCache |
                          kFlagSendFastZero);
  EXPECT_EQ(snapshot, kFlagHasFlags | kFlagReadOnly | kFlagSendFlush | kFlagSendFua |
                          kFlagCanMultiConn | kFlagSendCache);
}

}  // namespace
}  // namespace vellum::server

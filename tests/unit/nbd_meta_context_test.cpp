// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit/nbd_fixture.hpp"

namespace vellum::server {
namespace {

using namespace nbd;

class MetaContextTest : public HandshakeTest {
 protected:
  void SetUp() override {
    begin();
    EXPECT_EQ(answer(kOptStructuredReply), kRepAck);
  }
  // Whether the context counts after GO to `name`.
  bool chosen_for(std::string_view name) {
    ask(kOptGo, info_data(name));
    EXPECT_EQ(handshake_.state(), Handshake::State::transmission);
    return handshake_.negotiated().base_allocation;
  }
};

TEST_F(HandshakeTest, SetNeedsStructuredReplies) {
  begin();
  EXPECT_EQ(answer(kOptSetMetaContext, context_data("vol", {"base:allocation"})), kRepErrInvalid);
  const auto listed = ask(kOptListMetaContext, context_data("vol", {}));
  EXPECT_EQ(listed.size(), 2u);  // LIST needs none
  ask(kOptGo, info_data("vol"));
  EXPECT_FALSE(handshake_.negotiated().base_allocation);
}

TEST_F(MetaContextTest, ListWithoutQueriesMeansAll) {
  const auto replies = ask(kOptListMetaContext, context_data("vol", {}));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].type, kRepMetaContext);
  EXPECT_EQ(replies[0].payload, be32(0) + "base:allocation");
  EXPECT_EQ(replies[1].type, kRepAck);
}

TEST_F(MetaContextTest, BaseIsAWildcardOfListOnly) {
  EXPECT_EQ(ask(kOptListMetaContext, context_data("vol", {"base:"})).size(), 2u);
  EXPECT_EQ(ask(kOptSetMetaContext, context_data("vol", {"base:"})).size(), 1u);
  EXPECT_FALSE(chosen_for("vol"));
}

TEST_F(MetaContextTest, SetChoosesOnceHoweverOftenAsked) {
  const auto replies = ask(kOptSetMetaContext,
                           context_data("vol", {"base:allocation", "other:x", "base:allocation"}));
  ASSERT_EQ(replies.size(), 2u);
  EXPECT_EQ(replies[0].payload, be32(kBaseAllocationId) + "base:allocation");
  EXPECT_TRUE(chosen_for("vol"));
}

TEST_F(MetaContextTest, UnknownNamespacesAreIgnored) {
  EXPECT_EQ(answer(kOptSetMetaContext, context_data("vol", {"qemu:dirty-bitmap:b", "", "x"})),
            kRepAck);
  EXPECT_FALSE(chosen_for("vol"));
}

TEST_F(MetaContextTest, TheChoiceIsForItsExportOnly) {
  ask(kOptSetMetaContext, context_data("vol", {"base:allocation"}));
  EXPECT_FALSE(chosen_for("vol@1"));
}

TEST_F(MetaContextTest, AFailedSetForgetsTheChoice) {
  ask(kOptSetMetaContext, context_data("vol", {"base:allocation"}));
  EXPECT_EQ(answer(kOptSetMetaContext, "x"), kRepErrInvalid);
  EXPECT_FALSE(chosen_for("vol"));
}

TEST_F(MetaContextTest, AnEmptySetForgetsTheChoice) {
  ask(kOptSetMetaContext, context_data("vol", {"base:allocation"}));
  EXPECT_EQ(answer(kOptSetMetaContext, context_data("vol", {})), kRepAck);
  EXPECT_FALSE(chosen_for("vol"));
}

TEST_F(MetaContextTest, UnknownExportsAreUnknown) {
  EXPECT_EQ(answer(kOptSetMetaContext, context_data("no", {"base:allocation"})), kRepErrUnknown);
  EXPECT_EQ(answer(kOptListMetaContext, context_data("no", {})), kRepErrUnknown);
  EXPECT_TRUE(catalog_.opened.empty());
}

TEST_F(MetaContextTest, CountsAndLengthsThatLieAreInvalid) {
  for (const uint32_t which : {kOptListMetaContext, kOptSetMetaContext}) {
    for (const uint32_t count : {1u, 2u, 0xffffu, 0xffffffffu}) {
      EXPECT_EQ(answer(which, sized("vol") + be32(count)), kRepErrInvalid) << count;
    }
    EXPECT_EQ(answer(which, sized("vol") + be32(1) + be32(0xffffffff) + "base:"), kRepErrInvalid);
    EXPECT_EQ(answer(which, sized("vol") + be32(0) + "x"), kRepErrInvalid);
    EXPECT_EQ(answer(which, be32(0xffffffff) + "vol" + be32(0)), kRepErrInvalid);
    EXPECT_EQ(answer(which, context_data("vol", {std::string(4097, 'q')})), kRepErrInvalid);
    EXPECT_EQ(answer(which, context_data(std::string(4097, 'n'), {})), kRepErrInvalid);
    EXPECT_EQ(ask(which, context_data("vol", {std::string(4096, 'q')})).size(), 1u);
  }
  expect_in_step();
}

TEST_F(MetaContextTest, ManyQueriesGetOneAnswer) {
  const std::vector<std::string> queries(3000, "base:allocation");
  EXPECT_EQ(ask(kOptSetMetaContext, context_data("vol", queries)).size(), 2u);
  EXPECT_TRUE(chosen_for("vol"));
}

}  // namespace
}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
//
// Values as text: base64, times, the longest answer that is kept, and the store's errors as codes.
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/control/encode.hpp"
#include "common/control/refusal.hpp"

namespace vellum::control {
namespace {

std::string base64_of(std::string_view text) { return base64(std::as_bytes(std::span(text))); }

TEST(ControlEncode, Base64HasTheStandardAlphabetAndPadding) {
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of("foob"), "Zm9vYg==");
  EXPECT_EQ(base64_of("\xfb\xff\xbf"), "+/+/");
}

TEST(ControlEncode, TimesAreRfc3339InUtcWithMilliseconds) {
  EXPECT_EQ(time_text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(time_text(951782399007), "2000-02-28T23:59:59.007Z");
  EXPECT_EQ(time_text(951782400000), "2000-02-29T00:00:00.000Z");
  EXPECT_EQ(time_text(-1), "1969-12-31T23:59:59.999Z");
  for (const int64_t odd : {INT64_MIN, INT64_MAX}) EXPECT_FALSE(time_text(odd).empty());
}

TEST(ControlEncode, IntegersAreExact) {
  store::ExtentList list;
  list.size = UINT64_MAX;
  list.extents = {{(uint64_t{1} << 53) + 1, 4096, store::ExtentKind::zero}};
  EXPECT_EQ(encode(list),
            R"({"size":18446744073709551615,"extents":[{"offset":9007199254740993,"length":4096,)"
            R"("kind":"zero"}],"next_offset":null})");
}

TEST(ControlEncode, TextThatIsNoUtf8IsStillAnswered) {
  store::StoreInfo info;
  info.name = "/tmp/\xff";
  const auto parsed = nlohmann::json::parse(encode(info), nullptr, false);
  EXPECT_FALSE(parsed.is_discarded());
  EXPECT_EQ(parsed["name"], "/tmp/\xef\xbf\xbd");
}

TEST(ControlEncode, TheAnswerForTheLargestGroupFitsWhatTheStoreKeeps) {
  store::SnapshotInfo snapshot;
  snapshot.name =
      std::string(store::kNameLengthMax, 'a') + "@" + std::string(store::kNameLengthMax, 'b');
  snapshot.id = UINT64_MAX;
  const std::vector<store::SnapshotInfo> group(store::kGroupMax, snapshot);
  EXPECT_LT(encode(group).size() + 17, size_t{64} << 10);
}

TEST(ControlEncode, EveryErrorHasItsCodeAndItsWord) {
  std::set<std::string> words;
  for (int i = 0; i <= static_cast<int>(Errc::timeout); ++i) {
    const Code code = code_of(static_cast<Errc>(i));
    EXPECT_NE(code, Code::internal_error) << i;
    EXPECT_STRNE(reason(code), "internal_error") << i;
    words.insert(reason(code));
  }
  EXPECT_EQ(words.size(), 17U);  // busy stands for three
}

}  // namespace
}  // namespace vellum::control

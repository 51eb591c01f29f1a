// SPDX-License-Identifier: BSD-2-Clause
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/check.hpp"
#include "common/base/crc32c.hpp"
#include "common/base/endian.hpp"
#include "common/base/result.hpp"
#include "common/base/units.hpp"

namespace vellum {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Check, EndsTheProcessAndSaysWhere) {
  CHECK(1 + 1 == 2);
  EXPECT_DEATH(CHECK(1 + 1 == 3), "base_test.cpp:[0-9]+: CHECK failed: 1 \\+ 1 == 3");
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> good = 7;
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 7);
  const Result<int> bad = Error{Errc::busy, "later"};
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, Errc::busy);
  EXPECT_EQ(bad.error().message, "later");
  EXPECT_DEATH((void)bad.value(), "CHECK failed");
  EXPECT_DEATH((void)good.error(), "CHECK failed");
}

Result<std::unique_ptr<int>> make(int value) {
  if (value < 0) return Error{Errc::out_of_range, "negative"};
  return std::make_unique<int>(value);
}

Result<int> add(int a, int b) {
  TRY_ASSIGN(std::unique_ptr<int> first, make(a));
  TRY_ASSIGN(const std::unique_ptr<int> second, make(b));
  return *first + *second;
}

Result<void> check_both(int a, int b) {
  TRY(make(a));
  TRY(make(b));
  return {};
}

TEST(Result, TryPassesErrorsOn) {
  EXPECT_EQ(*add(2, 3), 5);
  EXPECT_EQ(add(-2, 3).error().message, "negative");
  EXPECT_EQ(add(2, -3).error().code, Errc::out_of_range);
  EXPECT_TRUE(check_both(0, 1).ok());
  EXPECT_FALSE(check_both(0, -1).ok());
}

TEST(Endian, LoadsAndStoresAtAnyAlignment) {
  std::array<unsigned char, 16> buffer{};
  for (size_t shift = 0; shift < 8; ++shift) {
    store_le16(&buffer[shift], 0x0102);
    EXPECT_EQ(buffer[shift], 0x02);
    EXPECT_EQ(load_le16(&buffer[shift]), 0x0102);
    EXPECT_EQ(load_be16(&buffer[shift]), 0x0201);
    store_le32(&buffer[shift], 0x01020304);
    EXPECT_EQ(buffer[shift + 3], 0x01);
    EXPECT_EQ(load_le32(&buffer[shift]), 0x01020304U);
    EXPECT_EQ(load_be32(&buffer[shift]), 0x04030201U);
    store_be64(&buffer[shift], 0x0102030405060708);
    EXPECT_EQ(buffer[shift], 0x01);
    EXPECT_EQ(load_be64(&buffer[shift]), 0x0102030405060708U);
    EXPECT_EQ(load_le64(&buffer[shift]), 0x0807060504030201U);
  }
}

// The check value of the catalogues, and the examples of RFC 3720, B.4.
TEST(Crc32c, AgreesWithPublishedValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283U);
  EXPECT_EQ(crc32c({}), 0U);
  std::array<std::byte, 32> data{};
  EXPECT_EQ(crc32c(data), 0x8a9136aaU);
  data.fill(std::byte{0xff});
  EXPECT_EQ(crc32c(data), 0x62a8ab43U);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(data), 0x46dd794eU);
}

TEST(Crc32c, OfPiecesIsThatOfTheWhole) {
  std::vector<std::byte> data(4099);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + i / 256);
  const std::span<const std::byte> all(data);
  const uint32_t whole = crc32c(all);
  for (const size_t cut : {0UL, 1UL, 7UL, 64UL, 4096UL, data.size()}) {
    EXPECT_EQ(crc32c_extend(crc32c(all.first(cut)), all.subspan(cut)), whole) << cut;
  }
  data[2000] ^= std::byte{1};
  EXPECT_NE(crc32c(all), whole);
}

TEST(Units, ParsesWhatPeopleWrite) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const std::pair<const char*, uint64_t> cases[] = {
      {"0", 0},
      {"512", 512},
      {"512B", 512},
      {"64K", 64 << 10},
      {"64k", 64 << 10},
      {"1M", 1 << 20},
      {"10G", 10 * kGiB},
      {"10GiB", 10 * kGiB},
      {"10GB", 10 * kGiB},
      {"40T", 40 * 1024 * kGiB},
      {"4P", 4 * 1024 * 1024 * kGiB},
      {"18446744073709551615", UINT64_MAX},
      {"16383P", uint64_t{16383} << 50},
  };
  for (const auto& [text, bytes] : cases) {
    const Result<uint64_t> parsed = parse_size(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(Units, RefusesTheRestAndNamesIt) {
  for (const char* text :
       {"", "G", "-1", "+1", " 1", "1 ", "1.5T", "1X", "1KK", "1Gi", "0x10", "1e3", "10gib", "1BB",
        "18446744073709551616", "16384P", "99999999999999999999G"}) {
    const Result<uint64_t> parsed = parse_size(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code, Errc::invalid_argument);
    EXPECT_NE(parsed.error().message.find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST(Units, FormatsForPeople) {
  EXPECT_EQ(format_size(0), "0 B");
  EXPECT_EQ(format_size(1023), "1023 B");
  EXPECT_EQ(format_size(1024), "1 KiB");
  EXPECT_EQ(format_size(3 << 19), "1.5 MiB");
  EXPECT_EQ(format_size(1023 << 10), "0.999 MiB");
  EXPECT_EQ(format_size(uint64_t{40} << 40), "40 TiB");
  EXPECT_EQ(format_size(UINT64_MAX), "16384 PiB");
}

TEST(Units, ExactFormsParseBack) {
  EXPECT_EQ(format_size_exact(0), "0");
  EXPECT_EQ(format_size_exact(1536 << 20), "1536M");
  for (const uint64_t bytes : {uint64_t{1}, uint64_t{512}, uint64_t{1} << 10,
                               (uint64_t{1} << 40) + 512, uint64_t{3} << 60, UINT64_MAX}) {
    EXPECT_EQ(*parse_size(format_size_exact(bytes)), bytes);
  }
}

}  // namespace
}  // namespace vellum

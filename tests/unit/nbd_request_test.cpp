// SPDX-License-Identifier: BSD-2-Clause
#include "server/nbd_request.hpp"

#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "common/base/endian.hpp"
#include "server/nbd_errors.hpp"

namespace vellum::server {
namespace {

using namespace nbd;

constexpr uint64_t kSize = 1 << 20;
constexpr uint64_t kFar = std::numeric_limits<uint64_t>::max();
constexpr uint16_t kChanges[] = {kCmdWrite, kCmdTrim, kCmdWriteZeroes};
constexpr uint16_t kRanged[] = {kCmdRead,  kCmdWrite,       kCmdTrim,
                                kCmdCache, kCmdWriteZeroes, kCmdBlockStatus};

RequestLimits limits() {
  return {.size_bytes = kSize, .structured_replies = true, .base_allocation = true};
}

NbdError check(uint16_t type, uint64_t offset, uint32_t length, uint16_t flags = 0,
               const RequestLimits& allowed = limits()) {
  return check_request({.flags = flags, .type = type, .offset = offset, .length = length}, allowed);
}

TEST(NbdRequest, HeadersAreParsed) {
  std::array<std::byte, kRequestBytes> header{};
  store_be32(header.data(), kRequestMagic);
  store_be16(header.data() + 4, kCmdFlagFua);
  store_be16(header.data() + 6, kCmdTrim);
  store_be64(header.data() + 8, 0x0123456789abcdef);
  store_be64(header.data() + 16, 0xfedcba9876543210);
  store_be32(header.data() + 24, 0x89abcdef);
  const auto request = parse_request(header);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->flags, kCmdFlagFua);
  EXPECT_EQ(request->type, kCmdTrim);
  EXPECT_EQ(request->cookie, 0x0123456789abcdef);
  EXPECT_EQ(request->offset, 0xfedcba9876543210);
  EXPECT_EQ(request->length, 0x89abcdef);
}

TEST(NbdRequest, ABadMagicIsNoRequest) {
  std::array<std::byte, kRequestBytes> header{};
  for (const uint32_t magic : {0u, kRequestMagic - 1, kSimpleReplyMagic, 0xffffffffu}) {
    store_be32(header.data(), magic);
    EXPECT_FALSE(parse_request(header)) << magic;
  }
}

TEST(NbdRequest, RangesReachTheEndAndNoFurther) {
  for (const uint16_t type : kRanged) {
    const bool writes = type == kCmdWrite || type == kCmdWriteZeroes;
    const NbdError beyond = writes ? NbdError::enospc : NbdError::einval;
    EXPECT_EQ(check(type, 0, kSize), NbdError::none) << type;
    EXPECT_EQ(check(type, kSize - 1, 1), NbdError::none) << type;
    EXPECT_EQ(check(type, kSize - 1, 2), beyond) << type;
    EXPECT_EQ(check(type, kSize, 1), beyond) << type;
    EXPECT_EQ(check(type, 0, kSize + 1), beyond) << type;
    EXPECT_EQ(check(type, 0, 0xffffffff), beyond) << type;
  }
}

TEST(NbdRequest, OffsetAndLengthMayOverflow) {
  for (const uint16_t type : kRanged) {
    EXPECT_NE(check(type, kFar, 1), NbdError::none) << type;
    EXPECT_NE(check(type, kFar - 4095, 4096), NbdError::none) << type;
    EXPECT_NE(check(type, kFar - 0xfffffffe, 0xffffffff), NbdError::none) << type;
    EXPECT_NE(check(type, uint64_t{1} << 63, 4096), NbdError::none) << type;
  }
}

TEST(NbdRequest, LengthZeroIsFineButForBlockStatus) {
  for (const uint16_t type : {kCmdRead, kCmdWrite, kCmdTrim, kCmdCache, kCmdWriteZeroes}) {
    EXPECT_EQ(check(type, 0, 0), NbdError::none) << type;
    EXPECT_EQ(check(type, kSize, 0), NbdError::none) << type;
    EXPECT_NE(check(type, kSize + 1, 0), NbdError::none) << type;
  }
  EXPECT_EQ(check(kCmdBlockStatus, 0, 0), NbdError::einval);
}

TEST(NbdRequest, PayloadsAreLimitedOthersAreNot) {
  RequestLimits large = limits();
  large.size_bytes = uint64_t{1} << 50;
  EXPECT_EQ(check(kCmdRead, 0, kPayloadBytesMax, 0, large), NbdError::none);
  EXPECT_EQ(check(kCmdRead, 0, kPayloadBytesMax + 1, 0, large), NbdError::einval);
  EXPECT_EQ(check(kCmdWrite, 0, kPayloadBytesMax, 0, large), NbdError::none);
  EXPECT_EQ(check(kCmdWrite, 0, kPayloadBytesMax + 1, 0, large), NbdError::einval);
  for (const uint16_t type : {kCmdTrim, kCmdCache, kCmdWriteZeroes, kCmdBlockStatus}) {
    EXPECT_EQ(check(type, 1, 0xffffffff, 0, large), NbdError::none) << type;
  }
}

TEST(NbdRequest, ReadOnlyExportsTakeNoChanges) {
  RequestLimits snapshot = limits();
  snapshot.read_only = true;
  for (const uint16_t type : kChanges) {
    EXPECT_EQ(check(type, 0, 4096, 0, snapshot), NbdError::eperm) << type;
  }
  EXPECT_EQ(check(kCmdRead, 0, 4096, 0, snapshot), NbdError::none);
  EXPECT_EQ(check(kCmdFlush, 0, 0, 0, snapshot), NbdError::none);
}

TEST(NbdRequest, EachFlagBelongsToItsCommands) {
  const auto accepted = [](uint16_t type, uint16_t flag) {
    const uint32_t length = type == kCmdFlush ? 0 : 512;
    return check(type, 0, length, flag) == NbdError::none;
  };
  for (uint16_t type = kCmdRead; type <= kCmdBlockStatus; ++type) {
    if (type == kCmdDisc) continue;
    EXPECT_TRUE(accepted(type, kCmdFlagFua)) << type;
    EXPECT_EQ(accepted(type, kCmdFlagNoHole), type == kCmdWriteZeroes) << type;
    EXPECT_EQ(accepted(type, kCmdFlagFastZero), type == kCmdWriteZeroes) << type;
    EXPECT_EQ(accepted(type, kCmdFlagDf), type == kCmdRead) << type;
    EXPECT_EQ(accepted(type, kCmdFlagReqOne), type == kCmdBlockStatus) << type;
    for (int bit = 5; bit < 16; ++bit) {
      EXPECT_FALSE(accepted(type, static_cast<uint16_t>(1u << bit))) << type << " " << bit;
    }
  }
}

TEST(NbdRequest, WhatWasNotNegotiatedIsInvalid) {
  const RequestLimits plain{.size_bytes = kSize};
  EXPECT_EQ(check(kCmdRead, 0, 512, kCmdFlagDf, plain), NbdError::einval);
  EXPECT_EQ(check(kCmdBlockStatus, 0, 512, 0, plain), NbdError::einval);
}

TEST(NbdRequest, UnknownCommandsAreInvalid) {
  for (const uint16_t type : {8, 9, 255, 0x8000, 0xffff}) {
    EXPECT_EQ(check(type, 0, 0), NbdError::einval) << type;
  }
}

TEST(NbdRequest, FlushHasNoRange) {
  EXPECT_EQ(check(kCmdFlush, 0, 0), NbdError::none);
  EXPECT_EQ(check(kCmdFlush, 1, 0), NbdError::einval);
  EXPECT_EQ(check(kCmdFlush, 0, 1), NbdError::einval);
}

TEST(NbdErrors, StoreErrorsKeepTheirMeaning) {
  EXPECT_EQ(nbd_error_of(Errc::out_of_range, true), NbdError::enospc);
  EXPECT_EQ(nbd_error_of(Errc::out_of_range, false), NbdError::einval);
  EXPECT_EQ(nbd_error_of(Errc::no_space, true), NbdError::enospc);
  EXPECT_EQ(nbd_error_of(Errc::io_error, false), NbdError::eio);
  EXPECT_EQ(nbd_error_of(Errc::corrupt, false), NbdError::eio);
  EXPECT_EQ(nbd_error_of(Errc::read_only, true), NbdError::eio);
  EXPECT_EQ(nbd_error_of(Errc::shut_down, false), NbdError::eshutdown);
}

}  // namespace
}  // namespace vellum::server

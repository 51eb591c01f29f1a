// SPDX-License-Identifier: BSD-2-Clause
#include "server/nbd_reply.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/endian.hpp"

namespace vellum::server {
namespace {

using namespace nbd;
using store::Extent;
using store::ExtentKind;

struct Chunk {
  uint16_t flags = 0;
  uint16_t type = 0;
  std::string payload;
};

std::string bytes_of(OutBuffer& out) {
  const auto bytes = out.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<Chunk> chunks_in(OutBuffer& out, uint64_t cookie) {
  const std::string all = bytes_of(out);
  std::vector<Chunk> chunks;
  for (size_t at = 0; at < all.size();) {
    EXPECT_EQ(load_be32(all.data() + at), kStructuredReplyMagic);
    EXPECT_EQ(load_be64(all.data() + at + 8), cookie);
    const uint32_t length = load_be32(all.data() + at + 16);
    EXPECT_LE(at + kChunkHeaderBytes + length, all.size());
    chunks.push_back({load_be16(all.data() + at + 4), load_be16(all.data() + at + 6),
                      all.substr(at + kChunkHeaderBytes, length)});
    at += kChunkHeaderBytes + length;
  }
  for (size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i].flags, i + 1 == chunks.size() ? kReplyFlagDone : 0);
  }
  return chunks;
}

// A READ whose data is the letters a, b, c ..., one for each 512 bytes.
struct ReadCase {
  explicit ReadCase(Request its_request) : request(its_request) {}
  void run(bool structured, const std::vector<Extent>& extents) {
    ReadReply reply(out, request, structured);
    const auto data = reply.data();
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(letter(i));
    reply.finish(extents);
  }
  static char letter(size_t position) { return static_cast<char>('a' + position / 512); }

  Request request;
  OutBuffer out;
};

Request read_request(uint32_t length, uint16_t flags = 0) {
  return {.flags = flags, .type = kCmdRead, .cookie = 7, .offset = 8192, .length = length};
}

TEST(NbdReply, SimpleRepliesAreSixteenBytes) {
  OutBuffer out;
  put_success(out, {.cookie = 0x1122334455667788});
  put_error(out, {.cookie = 5}, false, NbdError::enospc, "not sent");
  const std::string all = bytes_of(out);
  ASSERT_EQ(all.size(), 32u);
  EXPECT_EQ(load_be32(all.data()), kSimpleReplyMagic);
  EXPECT_EQ(load_be32(all.data() + 4), 0u);
  EXPECT_EQ(load_be64(all.data() + 8), 0x1122334455667788u);
  EXPECT_EQ(load_be32(all.data() + 20), 28u);
}

TEST(NbdReply, ErrorChunksCarryAShortText) {
  OutBuffer out;
  put_error(out, {.cookie = 5}, true, NbdError::eio, std::string(5000, 'x'));
  const auto chunks = chunks_in(out, 5);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].type, kReplyError);
  EXPECT_EQ(load_be32(chunks[0].payload.data()), 5u);
  EXPECT_EQ(load_be16(chunks[0].payload.data() + 4), chunks[0].payload.size() - 6);
  EXPECT_LT(chunks[0].payload.size(), 1000u);
}

TEST(NbdReply, ASimpleReadIsHeaderAndData) {
  ReadCase read(read_request(1024));
  read.run(false, {});
  const std::string all = bytes_of(read.out);
  ASSERT_EQ(all.size(), kSimpleReplyBytes + 1024);
  EXPECT_EQ(load_be32(all.data()), kSimpleReplyMagic);
  EXPECT_EQ(all.substr(kSimpleReplyBytes), std::string(512, 'a') + std::string(512, 'b'));
}

TEST(NbdReply, DataIsOneChunk) {
  ReadCase read(read_request(1024));
  read.run(true, {{8192, 1024, ExtentKind::data}});
  const auto chunks = chunks_in(read.out, 7);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].type, kReplyOffsetData);
  EXPECT_EQ(load_be64(chunks[0].payload.data()), 8192u);
  EXPECT_EQ(chunks[0].payload.substr(8), std::string(512, 'a') + std::string(512, 'b'));
}

TEST(NbdReply, AHoleCarriesNoData) {
  ReadCase read(read_request(kPayloadBytesMax));
  read.run(true, {{8192, kPayloadBytesMax, ExtentKind::zero}});
  const auto chunks = chunks_in(read.out, 7);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].type, kReplyOffsetHole);
  EXPECT_EQ(load_be64(chunks[0].payload.data()), 8192u);
  EXPECT_EQ(load_be32(chunks[0].payload.data() + 8), kPayloadBytesMax);
}

TEST(NbdReply, DataAndHolesAreChunksInOrder) {
  ReadCase read(read_request(2048));
  read.run(true, {{8192, 512, ExtentKind::zero},
                  {8704, 1024, ExtentKind::data},
                  {9728, 512, ExtentKind::zero}});
  const auto chunks = chunks_in(read.out, 7);
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[0].type, kReplyOffsetHole);
  EXPECT_EQ(chunks[1].type, kReplyOffsetData);
  EXPECT_EQ(load_be64(chunks[1].payload.data()), 8704u);
  EXPECT_EQ(chunks[1].payload.substr(8), std::string(512, 'b') + std::string(512, 'c'));
  EXPECT_EQ(load_be64(chunks[2].payload.data()), 9728u);
}

TEST(NbdReply, DfMeansOneContentChunk) {
  ReadCase read(read_request(1024, kCmdFlagDf));
  read.run(true, {{8192, 512, ExtentKind::zero}, {8704, 512, ExtentKind::data}});
  const auto chunks = chunks_in(read.out, 7);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].type, kReplyOffsetData);
  EXPECT_EQ(chunks[0].payload.size(), 8u + 1024u);
}

TEST(NbdReply, AnEmptyReadIsDone) {
  ReadCase read(read_request(0));
  read.run(true, {});
  const auto chunks = chunks_in(read.out, 7);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].type, kReplyNone);
}

TEST(NbdReply, ACancelledReadLeavesNothing) {
  OutBuffer out;
  put_success(out, {.cookie = 1});
  const Request request = read_request(4096);
  ReadReply reply(out, request, true);
  reply.cancel();
  EXPECT_EQ(out.size(), kSimpleReplyBytes);
}

// -- BLOCK_STATUS ---------------------------------------------------------------------------------

Request status_request(uint64_t offset, uint32_t length, uint16_t flags = 0) {
  return {.flags = flags, .type = kCmdBlockStatus, .cookie = 9, .offset = offset, .length = length};
}

std::vector<std::pair<uint32_t, uint32_t>> descriptors(const StatusReply& status) {
  OutBuffer out;
  status.put(out);
  const auto chunks = chunks_in(out, 9);
  EXPECT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].type, kReplyBlockStatus);
  const std::string& payload = chunks[0].payload;
  EXPECT_EQ(load_be32(payload.data()), kBaseAllocationId);
  std::vector<std::pair<uint32_t, uint32_t>> found;
  for (size_t at = 4; at < payload.size(); at += 8) {
    found.emplace_back(load_be32(payload.data() + at), load_be32(payload.data() + at + 4));
  }
  return found;
}

TEST(NbdStatus, ExtentsAreCoalescedOverPieces) {
  const Request request = status_request(0, 16384);
  StatusReply status(request);
  EXPECT_TRUE(status.add(std::vector<Extent>{{0, 4096, ExtentKind::data}}));
  EXPECT_TRUE(status.add(std::vector<Extent>{{4096, 4096, ExtentKind::data}}));
  EXPECT_EQ(status.next_offset(), 8192u);
  EXPECT_FALSE(status.add(std::vector<Extent>{{8192, 8192, ExtentKind::zero}}));
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{8192, 0}, {8192, 3}};
  EXPECT_EQ(descriptors(status), expected);
}

TEST(NbdStatus, ReqOneIsOneWholeExtent) {
  const Request request = status_request(0, 16384, kCmdFlagReqOne);
  StatusReply status(request);
  EXPECT_TRUE(status.add(std::vector<Extent>{{0, 4096, ExtentKind::zero}}));
  EXPECT_FALSE(status.add(
      std::vector<Extent>{{4096, 4096, ExtentKind::zero}, {8192, 4096, ExtentKind::data}}));
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{8192, 3}};
  EXPECT_EQ(descriptors(status), expected);
}

TEST(NbdStatus, NothingReachesBeyondTheRequest) {
  for (const uint16_t flags : {uint16_t{0}, kCmdFlagReqOne}) {
    const Request request = status_request(512, 1024, flags);
    StatusReply status(request);
    EXPECT_FALSE(status.add(std::vector<Extent>{{512, uint64_t{1} << 50, ExtentKind::data}}));
    const std::vector<std::pair<uint32_t, uint32_t>> expected = {{1024, 0}};
    EXPECT_EQ(descriptors(status), expected);
  }
}

TEST(NbdStatus, TheLargestLengthFits) {
  const Request request = status_request(1, 0xffffffff);
  StatusReply status(request);
  EXPECT_TRUE(status.add(std::vector<Extent>{{1, 0xfffffffe, ExtentKind::zero}}));
  EXPECT_FALSE(status.add(std::vector<Extent>{{0xffffffff, uint64_t{5} << 30, ExtentKind::zero}}));
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{0xffffffff, 3}};
  EXPECT_EQ(descriptors(status), expected);
}

TEST(NbdStatus, TheNumberOfExtentsIsBounded) {
  const Request request = status_request(0, 0xffffffff);
  StatusReply status(request);
  std::vector<Extent> extents;
  for (uint64_t i = 0; i <= kStatusExtentsMax; ++i) {
    extents.push_back({i * 512, 512, i % 2 == 0 ? ExtentKind::data : ExtentKind::zero});
  }
  EXPECT_FALSE(status.add(extents));
  EXPECT_EQ(descriptors(status).size(), kStatusExtentsMax);
}

TEST(OutBuffer, GrowsAndIsConsumedInOrder) {
  OutBuffer out;
  std::string expected, got;
  for (int i = 0; i < 2000; ++i) {
    const std::string text(static_cast<size_t>(i % 97), static_cast<char>('a' + i % 26));
    out.put(text);
    expected += text;
    if (i % 3 == 0) {
      const size_t count = out.size() / 2;
      got.append(reinterpret_cast<const char*>(out.bytes().data()), count);
      out.consume(count);
    }
  }
  got += bytes_of(out);
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace vellum::server

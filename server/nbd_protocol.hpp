// SPDX-License-Identifier: BSD-2-Clause
//
// The numbers of the NBD protocol. Source: the NBD project's doc/proto.md, whose section names head
// the groups below; CACHE, FAST_ZERO and the flag bits beside them are from the same document's
// later editions. All integers on the wire are big-endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vellum::server::nbd {

// "Newstyle negotiation", "Fixed newstyle negotiation"
inline constexpr uint64_t kGreetingMagic = 0x4e42444d41474943;  // "NBDMAGIC"
inline constexpr uint64_t kOptionMagic = 0x49484156454f5054;    // "IHAVEOPT"
inline constexpr uint64_t kOptionReplyMagic = 0x0003e889045565a9;
inline constexpr size_t kOptionHeaderBytes = 16;
inline constexpr size_t kExportNamePaddingBytes = 124;

// "Handshake flags", "Client flags"
inline constexpr uint16_t kHandshakeFixedNewstyle = 1 << 0;
inline constexpr uint16_t kHandshakeNoZeroes = 1 << 1;
inline constexpr uint32_t kClientFixedNewstyle = 1 << 0;
inline constexpr uint32_t kClientNoZeroes = 1 << 1;

// "Option types"
inline constexpr uint32_t kOptExportName = 1;
inline constexpr uint32_t kOptAbort = 2;
inline constexpr uint32_t kOptList = 3;
inline constexpr uint32_t kOptStartTls = 5;
inline constexpr uint32_t kOptInfo = 6;
inline constexpr uint32_t kOptGo = 7;
inline constexpr uint32_t kOptStructuredReply = 8;
inline constexpr uint32_t kOptListMetaContext = 9;
inline constexpr uint32_t kOptSetMetaContext = 10;

// "Option reply types"
inline constexpr uint32_t kRepAck = 1;
inline constexpr uint32_t kRepServer = 2;
inline constexpr uint32_t kRepInfo = 3;
inline constexpr uint32_t kRepMetaContext = 4;
inline constexpr uint32_t kRepError = uint32_t{1} << 31;
inline constexpr uint32_t kRepErrUnsup = kRepError + 1;
inline constexpr uint32_t kRepErrPolicy = kRepError + 2;
inline constexpr uint32_t kRepErrInvalid = kRepError + 3;
inline constexpr uint32_t kRepErrUnknown = kRepError + 6;
inline constexpr uint32_t kRepErrShutdown = kRepError + 7;
inline constexpr uint32_t kRepErrTooBig = kRepError + 9;

// Information types of NBD_OPT_INFO and NBD_OPT_GO
inline constexpr uint16_t kInfoExport = 0;
inline constexpr uint16_t kInfoName = 1;
inline constexpr uint16_t kInfoDescription = 2;
inline constexpr uint16_t kInfoBlockSize = 3;

// "Transmission flags"
inline constexpr uint16_t kFlagHasFlags = 1 << 0;
inline constexpr uint16_t kFlagReadOnly = 1 << 1;
inline constexpr uint16_t kFlagSendFlush = 1 << 2;
inline constexpr uint16_t kFlagSendFua = 1 << 3;
inline constexpr uint16_t kFlagSendTrim = 1 << 5;
inline constexpr uint16_t kFlagSendWriteZeroes = 1 << 6;
inline constexpr uint16_t kFlagSendDf = 1 << 7;
inline constexpr uint16_t kFlagCanMultiConn = 1 << 8;
inline constexpr uint16_t kFlagSendCache = 1 << 10;
inline constexpr uint16_t kFlagSendFastZero = 1 << 11;

// "Request message", "Request types", "Command flags"
inline constexpr uint32_t kRequestMagic = 0x25609513;
inline constexpr size_t kRequestBytes = 28;
inline constexpr uint16_t kCmdRead = 0;
inline constexpr uint16_t kCmdWrite = 1;
inline constexpr uint16_t kCmdDisc = 2;
inline constexpr uint16_t kCmdFlush = 3;
inline constexpr uint16_t kCmdTrim = 4;
inline constexpr uint16_t kCmdCache = 5;
inline constexpr uint16_t kCmdWriteZeroes = 6;
inline constexpr uint16_t kCmdBlockStatus = 7;
inline constexpr uint16_t kCmdFlagFua = 1 << 0;
inline constexpr uint16_t kCmdFlagNoHole = 1 << 1;
inline constexpr uint16_t kCmdFlagDf = 1 << 2;
inline constexpr uint16_t kCmdFlagReqOne = 1 << 3;
inline constexpr uint16_t kCmdFlagFastZero = 1 << 4;

// "Simple reply message", "Structured reply chunk message", "Structured reply types"
inline constexpr uint32_t kSimpleReplyMagic = 0x67446698;
inline constexpr size_t kSimpleReplyBytes = 16;
inline constexpr uint32_t kStructuredReplyMagic = 0x668e33ef;
inline constexpr size_t kChunkHeaderBytes = 20;
inline constexpr uint16_t kReplyFlagDone = 1 << 0;
inline constexpr uint16_t kReplyNone = 0;
inline constexpr uint16_t kReplyOffsetData = 1;
inline constexpr uint16_t kReplyOffsetHole = 2;
inline constexpr uint16_t kReplyBlockStatus = 5;
inline constexpr uint16_t kReplyError = (1 << 15) + 1;

// The states of the context base:allocation
inline constexpr uint32_t kStateHole = 1 << 0;
inline constexpr uint32_t kStateZero = 1 << 1;

// "Error values"
enum class NbdError : uint32_t {
  none = 0,
  eperm = 1,
  eio = 5,
  enomem = 12,
  einval = 22,
  enospc = 28,
  eoverflow = 75,
  enotsup = 95,
  eshutdown = 108,
};

// Bounds. The first is the protocol's ("Values"); the rest are this server's.
inline constexpr size_t kStringBytesMax = 4096;        // names, queries
inline constexpr size_t kErrorTextBytesMax = 512;      // qemu drops the connection beyond 1,000
inline constexpr uint32_t kOptionBytesMax = 64 << 10;  // read and looked at
inline constexpr uint32_t kOptionDrainMax = 1 << 20;   // skipped; beyond, the connection closes
inline constexpr size_t kListedExportsMax = 10'000;
inline constexpr uint32_t kPayloadBytesMax = 32 << 20;  // of one READ or WRITE
inline constexpr uint32_t kPreferredBlockBytes = 4096;
inline constexpr size_t kStatusExtentsMax = 65'536;  // in one answer to BLOCK_STATUS
inline constexpr uint32_t kBaseAllocationId = 1;     // the context's id on every connection

}  // namespace vellum::server::nbd

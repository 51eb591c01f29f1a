// SPDX-License-Identifier: BSD-2-Clause
//
// A client's side of the NBD handshake, in bytes: builds options, feeds them to a Handshake, and
// takes its answers apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/endian.hpp"
#include "server/nbd_handshake.hpp"
#include "server/nbd_protocol.hpp"

namespace vellum::server {

inline std::string be16(uint16_t value) {
  std::string bytes(2, '\0');
  store_be16(bytes.data(), value);
  return bytes;
}
inline std::string be32(uint32_t value) {
  std::string bytes(4, '\0');
  store_be32(bytes.data(), value);
  return bytes;
}
inline std::string be64(uint64_t value) {
  std::string bytes(8, '\0');
  store_be64(bytes.data(), value);
  return bytes;
}

inline std::string option_header(uint32_t option, uint32_t length_bytes) {
  return be64(nbd::kOptionMagic) + be32(option) + be32(length_bytes);
}
inline std::string option(uint32_t option, std::string_view data = {}) {
  return option_header(option, static_cast<uint32_t>(data.size())).append(data);
}
inline std::string sized(std::string_view text) {
  return be32(static_cast<uint32_t>(text.size())).append(text);
}
inline std::string info_data(std::string_view name, const std::vector<uint16_t>& requests = {}) {
  std::string data = sized(name) + be16(static_cast<uint16_t>(requests.size()));
  for (const uint16_t request : requests) data += be16(request);
  return data;
}
inline std::string context_data(std::string_view name, const std::vector<std::string>& queries) {
  std::string data = sized(name) + be32(static_cast<uint32_t>(queries.size()));
  for (const std::string& query : queries) data += sized(query);
  return data;
}

// Exports "vol" (1 MiB) and "vol@1" (512 KiB, read-only); counts what is asked of it.
class FakeCatalog : public ExportCatalog {
 public:
  std::vector<std::string> names(size_t names_max) override {
    std::vector<std::string> names;
    for (const auto& [name, info] : exports) {
      if (names.size() < names_max) names.push_back(name);
    }
    return names;
  }
  Result<ExportInfo> describe(const std::string& name) override {
    const auto found = exports.find(name);
    if (found != exports.end()) return found->second;
    return Error{Errc::not_found, "no export '" + name + "'"};
  }
  Result<ExportInfo> open(const std::string& name) override {
    Result<ExportInfo> info = describe(name);
    if (info.ok()) opened.push_back(name);
    return info;
  }

  std::map<std::string, ExportInfo> exports = {{"vol", {1 << 20, false, "a volume"}},
                                               {"vol@1", {512 << 10, true, "a snapshot"}}};
  std::vector<std::string> opened;
};

struct OptionReply {
  uint32_t option = 0;
  uint32_t type = 0;
  std::string payload;
};

class HandshakeTest : public ::testing::Test {
 protected:
  HandshakeTest() : handshake_(catalog_) {
    handshake_.greet(out_);
    greeting_ = take_output();
  }

  std::string take_output() {
    const auto bytes = out_.bytes();
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    out_.consume(bytes.size());
    return text;
  }

  // Feeds all of it, as far as the handshake takes it; returns what the server said.
  std::string send(std::string_view bytes) {
    auto in = std::as_bytes(std::span(bytes));
    while (!in.empty() && handshake_.state() == Handshake::State::talking) {
      const size_t used = handshake_.feed(in, out_);
      if (used == 0) break;
      in = in.subspan(used);
    }
    left_ = in.size();
    return take_output();
  }

  void begin(uint32_t flags = nbd::kClientFixedNewstyle | nbd::kClientNoZeroes) {
    EXPECT_EQ(send(be32(flags)), "");
  }

  static std::vector<OptionReply> replies_in(std::string_view bytes) {
    std::vector<OptionReply> replies;
    while (!bytes.empty()) {
      constexpr size_t kHeader = 20;
      if (bytes.size() < kHeader) {
        ADD_FAILURE() << "half a reply";
        break;
      }
      EXPECT_EQ(load_be64(bytes.data()), nbd::kOptionReplyMagic);
      const uint32_t length = load_be32(bytes.data() + 16);
      if (bytes.size() < kHeader + length) {
        ADD_FAILURE() << "half a payload";
        break;
      }
      replies.push_back({load_be32(bytes.data() + 8), load_be32(bytes.data() + 12),
                         std::string(bytes.substr(kHeader, length))});
      bytes.remove_prefix(kHeader + length);
    }
    return replies;
  }

  std::vector<OptionReply> ask(uint32_t which, std::string_view data = {}) {
    auto replies = replies_in(send(option(which, data)));
    for (const OptionReply& reply : replies) EXPECT_EQ(reply.option, which);
    return replies;
  }

  // The type of the only reply.
  uint32_t answer(uint32_t which, std::string_view data = {}) {
    const auto replies = ask(which, data);
    EXPECT_EQ(replies.size(), 1u);
    if (replies.size() != 1) return 0;
    if ((replies[0].type & nbd::kRepError) != 0) {
      EXPECT_LE(replies[0].payload.size(), nbd::kErrorTextBytesMax);
    }
    return replies[0].type;
  }

  // The handshake still understands the next option.
  void expect_in_step() {
    EXPECT_EQ(handshake_.state(), Handshake::State::talking);
    const auto replies = ask(nbd::kOptList);
    ASSERT_FALSE(replies.empty());
    EXPECT_EQ(replies.back().type, nbd::kRepAck);
  }

  FakeCatalog catalog_;
  Handshake handshake_;
  OutBuffer out_;
  std::string greeting_;
  size_t left_ = 0;  // of the last send(): not consumed
};

}  // namespace vellum::server

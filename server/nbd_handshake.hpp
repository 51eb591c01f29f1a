// SPDX-License-Identifier: BSD-2-Clause
//
// The server's side of the NBD handshake (fixed newstyle), apart from sockets: bytes go in, bytes
// for the client and a state come out.
//
// 1. Exactly the announced length of an option is consumed, whether it succeeds or fails.
// 2. Nothing is opened before GO or EXPORT_NAME succeeds, and then once.
// 3. Memory is bounded: an option beyond kOptionBytesMax is skipped, one beyond kOptionDrainMax
// ends
//    the connection; feed() stops after each option so that its answer can be sent first.
// 4. Every text for the client is printable and at most kErrorTextBytesMax long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/export_catalog.hpp"
#include "server/out_buffer.hpp"

namespace vellum::server {

// What was agreed on when the handshake has ended well.
struct Negotiated {
  std::string export_name;
  ExportInfo info;
  bool structured_replies = false;
  bool base_allocation = false;  // the metadata context was chosen for this export
};

class Handshake {
 public:
  enum class State {
    talking,       // wants more bytes
    transmission,  // the next byte is the first request's
    close,         // send what is in `out`, then close
  };

  explicit Handshake(ExportCatalog& catalog) : catalog_(catalog) {}

  // What the server says first.
  void greet(OutBuffer& out);

  // Returns how many bytes of `in` were consumed: all, or up to the end of an option.
  size_t feed(std::span<const std::byte> in, OutBuffer& out);

  State state() const { return state_; }
  const Negotiated& negotiated() const { return negotiated_; }

 private:
  enum class Phase { client_flags, option_header, option_data, option_drain };

  void expect(Phase phase, size_t length_bytes);
  void on_client_flags();
  void on_option_header(OutBuffer& out);
  void on_option(OutBuffer& out);
  void export_name(OutBuffer& out);
  void abort(OutBuffer& out);
  void list(OutBuffer& out);
  void info_or_go(OutBuffer& out);
  void structured_reply(OutBuffer& out);
  void meta_context(OutBuffer& out);

  void reply(OutBuffer& out, uint32_t type, std::string_view payload = {});
  void refuse(OutBuffer& out, uint32_t type, std::string_view text);
  void refuse(OutBuffer& out, const Error& error);
  void reply_info(OutBuffer& out, const std::string& name, const ExportInfo& info,
                  std::span<const std::byte> requests);
  void enter_transmission(const std::string& name, ExportInfo info);
  std::string_view data() const;

  ExportCatalog& catalog_;
  State state_ = State::talking;
  Phase phase_ = Phase::client_flags;
  size_t expected_ = 4;  // bytes of this phase
  size_t drained_ = 0;
  std::vector<std::byte> data_;
  uint32_t option_ = 0;
  bool no_zeroes_ = false;
  bool structured_replies_ = false;
  // The choice of SET_META_CONTEXT counts only for the export it named.
  bool base_allocation_ = false;
  std::string context_export_;
  Negotiated negotiated_;
};

uint16_t transmission_flags(const ExportInfo& info, bool structured_replies);

// `text` as far as a client may see it: printable ASCII, cut to kErrorTextBytesMax.
std::string wire_text(std::string_view text);

}  // namespace vellum::server

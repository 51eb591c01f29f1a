// SPDX-License-Identifier: BSD-2-Clause
#include "server/nbd_handshake.hpp"

#include <algorithm>
#include <utility>

#include "server/nbd_protocol.hpp"
#include "server/option_reader.hpp"

namespace vellum::server {

using namespace nbd;

namespace {

constexpr std::string_view kBaseNamespace = "base:";
constexpr std::string_view kBaseAllocation = "base:allocation";

bool is_valid_name(std::string_view name) {
  return name.size() <= kStringBytesMax && name.find('\0') == std::string_view::npos;
}

uint32_t reply_type_of(Errc code) {
  switch (code) {
    case Errc::shut_down:
      return kRepErrShutdown;
    case Errc::not_found:
    case Errc::invalid_argument:
    case Errc::destroyed:
      return kRepErrUnknown;
    default:
      return kRepErrPolicy;
  }
}

}  // namespace

std::string wire_text(std::string_view text) {
  std::string printable(text.substr(0, kErrorTextBytesMax));
  for (char& c : printable) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return printable;
}

uint16_t transmission_flags(const ExportInfo& info, bool structured_replies) {
  uint16_t flags =
      kFlagHasFlags | kFlagSendFlush | kFlagSendFua | kFlagCanMultiConn | kFlagSendCache;
  if (structured_replies) flags |= kFlagSendDf;
  if (info.read_only) return flags | kFlagReadOnly;
  return flags | kFlagSendTrim | kFlagSendWriteZeroes | kFlagSendFastZero;
}

std::string_view Handshake::data() const {
  return {reinterpret_cast<const char*>(data_.data()), data_.size()};
}

void Handshake::expect(Phase phase, size_t length_bytes) {
  phase_ = phase;
  expected_ = length_bytes;
  drained_ = 0;
  data_.clear();
}

void Handshake::greet(OutBuffer& out) {
  out.put64(kGreetingMagic);
  out.put64(kOptionMagic);
  out.put16(kHandshakeFixedNewstyle | kHandshakeNoZeroes);
}

size_t Handshake::feed(std::span<const std::byte> in, OutBuffer& out) {
  size_t consumed = 0;
  while (state_ == State::talking) {
    const size_t have = phase_ == Phase::option_drain ? drained_ : data_.size();
    const size_t taken = std::min(expected_ - have, in.size() - consumed);
    const auto part = in.subspan(consumed, taken);
    if (phase_ == Phase::option_drain) {
      drained_ += taken;
    } else {
      data_.insert(data_.end(), part.begin(), part.end());
    }
    consumed += taken;
    if (have + taken < expected_) break;
    switch (phase_) {
      case Phase::client_flags:
        on_client_flags();
        break;
      case Phase::option_header:
        on_option_header(out);
        break;
      case Phase::option_data:
        on_option(out);
        expect(Phase::option_header, kOptionHeaderBytes);
        return consumed;
      case Phase::option_drain:
        refuse(out, kRepErrTooBig, "the option is too long");
        expect(Phase::option_header, kOptionHeaderBytes);
        return consumed;
    }
  }
  return consumed;
}

void Handshake::on_client_flags() {
  const uint32_t flags = load_be32(data_.data());
  if ((flags & ~(kClientFixedNewstyle | kClientNoZeroes)) != 0) {
    state_ = State::close;
    return;
  }
  no_zeroes_ = (flags & kClientNoZeroes) != 0;
  expect(Phase::option_header, kOptionHeaderBytes);
}

void Handshake::on_option_header(OutBuffer& out) {
  const uint64_t magic = load_be64(data_.data());
  option_ = load_be32(data_.data() + 8);
  const uint32_t length = load_be32(data_.data() + 12);
  // EXPORT_NAME has no reply that could say why.
  if (magic != kOptionMagic || (option_ == kOptExportName && length > kStringBytesMax)) {
    state_ = State::close;
  } else if (length > kOptionDrainMax) {
    refuse(out, kRepErrTooBig, "the option is too long");
    state_ = State::close;
  } else {
    expect(length > kOptionBytesMax ? Phase::option_drain : Phase::option_data, length);
  }
}

void Handshake::on_option(OutBuffer& out) {
  switch (option_) {
    case kOptExportName:
      return export_name(out);
    case kOptAbort:
      return abort(out);
    case kOptList:
      return list(out);
    case kOptStartTls:
      if (!data_.empty()) return refuse(out, kRepErrInvalid, "STARTTLS has no data");
      return refuse(out, kRepErrUnsup, "this server does not offer TLS");
    case kOptInfo:
    case kOptGo:
      return info_or_go(out);
    case kOptStructuredReply:
      return structured_reply(out);
    case kOptListMetaContext:
    case kOptSetMetaContext:
      return meta_context(out);
    default:
      return refuse(out, kRepErrUnsup, "unknown option");
  }
}

void Handshake::export_name(OutBuffer& out) {
  const std::string name(data());
  state_ = State::close;  // unless all goes well: there is no way to report an error
  if (!is_valid_name(name)) return;
  Result<ExportInfo> info = catalog_.open(name);
  if (!info.ok()) return;
  out.put64(info->size_bytes);
  out.put16(transmission_flags(*info, structured_replies_));
  if (!no_zeroes_) out.put_zeros(kExportNamePaddingBytes);
  enter_transmission(name, *std::move(info));
}

void Handshake::abort(OutBuffer& out) {
  reply(out, kRepAck);
  state_ = State::close;
}

void Handshake::list(OutBuffer& out) {
  if (!data_.empty()) return refuse(out, kRepErrInvalid, "LIST has no data");
  std::string payload;
  for (const std::string& name : catalog_.names(kListedExportsMax)) {
    payload.resize(sizeof(uint32_t));
    store_be32(payload.data(), static_cast<uint32_t>(name.size()));
    payload += name;
    reply(out, kRepServer, payload);
  }
  reply(out, kRepAck);
}

void Handshake::info_or_go(OutBuffer& out) {
  OptionReader reader(data());
  const uint32_t name_bytes = reader.u32();
  const std::string name(reader.bytes(name_bytes));
  const uint16_t request_count = reader.u16();
  const std::string_view requests = reader.bytes(size_t{2} * request_count);
  if (!reader.complete()) return refuse(out, kRepErrInvalid, "the option's lengths do not fit");
  if (!is_valid_name(name)) {
    return refuse(out, kRepErrInvalid, "an export's name has at most 4096 bytes and no NUL");
  }
  const bool go = option_ == kOptGo;
  Result<ExportInfo> info = go ? catalog_.open(name) : catalog_.describe(name);
  if (!info.ok()) return refuse(out, info.error());
  reply_info(out, name, *info, std::as_bytes(std::span(requests)));
  reply(out, kRepAck);
  if (go) enter_transmission(name, *std::move(info));
}

void Handshake::reply_info(OutBuffer& out, const std::string& name, const ExportInfo& info,
                           std::span<const std::byte> requests) {
  OutBuffer payload;
  const auto send = [&] {
    const auto bytes = payload.bytes();
    reply(out, kRepInfo, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    payload.truncate(0);
  };
  payload.put16(kInfoExport);
  payload.put64(info.size_bytes);
  payload.put16(transmission_flags(info, structured_replies_));
  send();
  // Each kind once, however often it was asked for: the answer stays short.
  bool wanted[kInfoBlockSize + 1] = {};
  for (size_t i = 0; i + 1 < requests.size(); i += 2) {
    const uint16_t kind = load_be16(requests.data() + i);
    if (kind <= kInfoBlockSize) wanted[kind] = true;
  }
  if (wanted[kInfoName]) {
    payload.put16(kInfoName);
    payload.put(name);
    send();
  }
  if (wanted[kInfoDescription]) {
    payload.put16(kInfoDescription);
    payload.put(wire_text(info.description));
    send();
  }
  if (wanted[kInfoBlockSize]) {
    payload.put16(kInfoBlockSize);
    payload.put32(1);
    payload.put32(kPreferredBlockBytes);
    payload.put32(kPayloadBytesMax);
    send();
  }
}

void Handshake::structured_reply(OutBuffer& out) {
  if (!data_.empty()) return refuse(out, kRepErrInvalid, "STRUCTURED_REPLY has no data");
  structured_replies_ = true;
  reply(out, kRepAck);
}

void Handshake::meta_context(OutBuffer& out) {
  const bool set = option_ == kOptSetMetaContext;
  if (set) base_allocation_ = false;  // whatever comes of this one
  if (set && !structured_replies_) {
    return refuse(out, kRepErrInvalid, "metadata contexts need structured replies");
  }
  OptionReader reader(data());
  const uint32_t name_bytes = reader.u32();
  const std::string name(reader.bytes(name_bytes));
  const uint32_t query_count = reader.u32();
  bool matched = !set && query_count == 0;  // LIST without a query means all
  for (uint32_t i = 0; i < query_count && !reader.bad(); ++i) {
    const uint32_t query_bytes = reader.u32();
    if (query_bytes > kStringBytesMax) {
      return refuse(out, kRepErrInvalid, "a query has at most 4096 bytes");
    }
    const std::string_view query = reader.bytes(query_bytes);
    matched |= query == kBaseAllocation || (!set && query == kBaseNamespace);
  }
  if (!reader.complete()) return refuse(out, kRepErrInvalid, "the option's lengths do not fit");
  if (!is_valid_name(name)) {
    return refuse(out, kRepErrInvalid, "an export's name has at most 4096 bytes and no NUL");
  }
  const Result<ExportInfo> info = catalog_.describe(name);
  if (!info.ok()) return refuse(out, info.error());
  if (matched) {
    std::string payload(sizeof(uint32_t), '\0');
    store_be32(payload.data(), set ? kBaseAllocationId : 0);
    reply(out, kRepMetaContext, payload.append(kBaseAllocation));
  }
  if (set) {
    base_allocation_ = matched;
    context_export_ = name;
  }
  reply(out, kRepAck);
}

void Handshake::enter_transmission(const std::string& name, ExportInfo info) {
  negotiated_.export_name = name;
  negotiated_.info = std::move(info);
  negotiated_.structured_replies = structured_replies_;
  negotiated_.base_allocation = base_allocation_ && context_export_ == name;
  state_ = State::transmission;
}

void Handshake::reply(OutBuffer& out, uint32_t type, std::string_view payload) {
  out.put64(kOptionReplyMagic);
  out.put32(option_);
  out.put32(type);
  out.put32(static_cast<uint32_t>(payload.size()));
  out.put(payload);
}

void Handshake::refuse(OutBuffer& out, uint32_t type, std::string_view text) {
  reply(out, type, wire_text(text));
}

void Handshake::refuse(OutBuffer& out, const Error& error) {
  refuse(out, reply_type_of(error.code), error.message);
}

}  // namespace vellum::server

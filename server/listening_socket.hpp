// SPDX-License-Identifier: BSD-2-Clause
//
// Sockets that listen: Unix and TCP. Errors name the path or address and what would help.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.hpp"

namespace vellum::server {

// Who may connect to a Unix socket.
struct SocketAccess {
  mode_t mode = 0600;
  std::optional<gid_t> group;
};

struct TcpAddress {
  std::string host;  // numeric, IPv4 or IPv6
  uint16_t port = 0;
};

// "10809" (on loopback), "192.0.2.1:10809", "[::1]:10809".
Result<TcpAddress> parse_tcp_address(const std::string& text);
std::string to_string(const TcpAddress& address);

// A descriptor in the listening state, non-blocking, closed and, for a path, unlinked with the
// object.
class ListeningSocket {
 public:
  // A socket that nobody answers at is replaced; one that answers is Errc::in_use, as is any other
  // kind of file.
  static Result<ListeningSocket> open_unix(const std::string& path, const SocketAccess& access);
  static Result<ListeningSocket> open_tcp(const TcpAddress& address);

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  // The caller closes the descriptor.
  int release();
  int family() const { return family_; }
  // An NBD URI without an export's name.
  const std::string& uri() const { return uri_; }

 private:
  ListeningSocket() = default;
  Result<void> listen_unix(const std::string& path, const SocketAccess& access);

  int descriptor_ = -1;
  int family_ = 0;
  std::string path_;  // unlinked at the end, if it is still ours
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::string uri_;
};

}  // namespace vellum::server

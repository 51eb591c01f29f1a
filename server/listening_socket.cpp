// SPDX-License-Identifier: BSD-2-Clause
#include "server/listening_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace vellum::server {

namespace {

constexpr int kBacklog = 1024;

std::string reason() { return std::strerror(errno); }

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{Errc::invalid_argument, "the socket path '" + path + "' is " +
                                             (path.empty() ? "empty" : "too long") +
                                             ": it may have 1 to 107 bytes"};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Makes room at `path` for a new socket.
Result<void> replace_stale(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return {};  // bind() will say more
  if (!S_ISSOCK(status.st_mode)) {
    return Error{Errc::in_use, "'" + path + "' exists and is no socket: choose another path"};
  }
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return Error{Errc::io_error, "cannot make a socket: " + reason()};
  const int connected = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int failure = connected == 0 ? 0 : errno;
  close(probe);
  if (failure != ECONNREFUSED) {
    return Error{Errc::in_use, "another process answers at the socket '" + path +
                                   "': stop it, or choose another path"};
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error{Errc::in_use, "cannot remove the stale socket '" + path + "': " + reason()};
  }
  return {};
}

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (failure != std::errc() || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

bool is_ipv6(const std::string& host) { return host.find(':') != std::string::npos; }

}  // namespace

std::string to_string(const TcpAddress& address) {
  const std::string host = is_ipv6(address.host) ? "[" + address.host + "]" : address.host;
  return host + ":" + std::to_string(address.port);
}

Result<TcpAddress> parse_tcp_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  TcpAddress address;
  address.host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  const auto port = parse_port(colon == std::string::npos ? text : text.substr(colon + 1));
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (is_ipv6(address.host)) {
    address.host.clear();
  }
  in6_addr binary{};
  const int family = is_ipv6(address.host) ? AF_INET6 : AF_INET;
  if (!port || inet_pton(family, address.host.c_str(), &binary) != 1) {
    return Error{Errc::invalid_argument,
                 "'" + text +
                     "' is no address to listen on: give PORT (1 to 65535, on loopback), "
                     "IPV4:PORT or [IPV6]:PORT"};
  }
  address.port = *port;
  return address;
}

ListeningSocket::ListeningSocket(ListeningSocket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      family_(other.family_),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_),
      uri_(std::move(other.uri_)) {}

ListeningSocket::~ListeningSocket() {
  if (descriptor_ >= 0) close(descriptor_);
  struct stat status {};
  if (!path_.empty() && lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
      status.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

int ListeningSocket::release() { return std::exchange(descriptor_, -1); }

Result<ListeningSocket> ListeningSocket::open_unix(const std::string& path,
                                                   const SocketAccess& access) {
  ListeningSocket listening;
  TRY(listening.listen_unix(path, access));
  return listening;
}

Result<void> ListeningSocket::listen_unix(const std::string& path, const SocketAccess& access) {
  TRY_ASSIGN(const sockaddr_un address, unix_address(path));
  TRY(replace_stale(path, address));
  family_ = AF_UNIX;
  descriptor_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor_ < 0) return Error{Errc::io_error, "cannot make a socket: " + reason()};
  if (bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Error{Errc::io_error, "cannot make the socket '" + path + "': " + reason() +
                                     ". Its folder must exist and be writable"};
  }
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0) {
    path_ = path;
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  // Nobody can connect before listen(), so nobody slips in while the mode is another.
  if (access.group && chown(path.c_str(), static_cast<uid_t>(-1), *access.group) != 0) {
    return Error{Errc::io_error, "cannot give the socket '" + path + "' to the group: " + reason()};
  }
  if (chmod(path.c_str(), access.mode) != 0) {
    return Error{Errc::io_error, "cannot set the mode of the socket '" + path + "': " + reason()};
  }
  if (listen(descriptor_, kBacklog) != 0) {
    return Error{Errc::io_error, "cannot listen at '" + path + "': " + reason()};
  }
  uri_ = "nbd+unix:///?socket=" + path;
  return {};
}

Result<ListeningSocket> ListeningSocket::open_tcp(const TcpAddress& address) {
  ListeningSocket listening;
  const std::string name = to_string(address);
  sockaddr_in6 v6{};
  sockaddr_in v4{};
  v6.sin6_family = AF_INET6;
  v4.sin_family = AF_INET;
  v6.sin6_port = v4.sin_port = htons(address.port);
  const bool six = is_ipv6(address.host);
  CHECK(inet_pton(six ? AF_INET6 : AF_INET, address.host.c_str(),
                  six ? static_cast<void*>(&v6.sin6_addr) : &v4.sin_addr) == 1);
  const auto* to =
      six ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  listening.family_ = six ? AF_INET6 : AF_INET;
  listening.descriptor_ = socket(listening.family_, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening.descriptor_ < 0) {
    return Error{Errc::io_error, "cannot make a socket for " + name + ": " + reason()};
  }
  const int on = 1;
  setsockopt(listening.descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (six) setsockopt(listening.descriptor_, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(listening.descriptor_, to, six ? sizeof v6 : sizeof v4) != 0 ||
      listen(listening.descriptor_, kBacklog) != 0) {
    const Errc code = errno == EADDRINUSE ? Errc::in_use : Errc::io_error;
    return Error{code, "cannot listen on " + name + ": " + reason() +
                           ". Choose another port or address with --listen"};
  }
  listening.uri_ = "nbd://" + name;
  return listening;
}

}  // namespace vellum::server

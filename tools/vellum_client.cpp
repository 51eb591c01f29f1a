// SPDX-License-Identifier: BSD-2-Clause
#include "tools/vellum_client.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace vellum::tools {
namespace {

constexpr size_t kAnswerLengthMax = size_t{256} << 20;  // lists of very many objects are long

Error refused(const std::string& path, int error) {
  const std::string start =
      "start vellumd, or name the control socket of a running one with "
      "--control or VELLUM_CONTROL";
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return {Errc::not_found, "no server: there is no socket " + path + "; " + start};
    case ECONNREFUSED:
      return {Errc::not_found, "no server: nobody answers on " + path + " any more; " + start};
    case EACCES:
    case EPERM:
      return {Errc::precondition, "not permitted to use " + path +
                                      ": run this as the user who runs vellumd, or start vellumd "
                                      "with --socket-group and --socket-mode"};
    default:
      return {Errc::io_error, "cannot connect to " + path + ": " + std::strerror(error)};
  }
}

Error broken(const std::string& path, int error) {
  return {Errc::io_error, "the connection to " + path + " broke: " + std::strerror(error) +
                              "; the log of vellumd may say why"};
}

Error no_protocol(const std::string& path) {
  return {Errc::incompatible,
          path + " does not speak the control protocol: is it the socket for NBD?"};
}

}  // namespace

Result<std::string> control_path(const std::string& option) {
  if (!option.empty()) return option;
  if (const char* path = std::getenv("VELLUM_CONTROL"); path != nullptr && *path != '\0') {
    return std::string(path);
  }
  if (geteuid() == 0) return std::string("/run/vellum/control.sock");
  if (const char* folder = std::getenv("XDG_RUNTIME_DIR"); folder != nullptr && *folder != '\0') {
    return std::string(folder) + "/vellum/control.sock";
  }
  return Error{Errc::invalid_argument,
               "no control socket: XDG_RUNTIME_DIR is not set; give --control or VELLUM_CONTROL"};
}

Result<Client> Client::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Error{Errc::invalid_argument,
                 "the path " + path + " is too long for a socket: at most " +
                     std::to_string(sizeof(address.sun_path) - 1) + " bytes"};
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  Client client(path, ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (client.socket_ < 0) return refused(path, errno);
  if (::connect(client.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    return refused(path, errno);
  }
  return client;
}

Client::Client(Client&& other) noexcept
    : path_(std::move(other.path_)),
      socket_(std::exchange(other.socket_, -1)),
      received_(std::move(other.received_)),
      last_id_(other.last_id_) {}

Client::~Client() {
  if (socket_ >= 0) ::close(socket_);
}

Result<json> Client::call(const std::string& method, const std::string& params) {
  const uint64_t id = ++last_id_;
  std::string line = R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":)" +
                     json(method).dump(-1, ' ', true, json::error_handler_t::replace) +
                     R"(,"params":)" + params + "}";
  // Between its tokens JSON may hold line ends; a line of the protocol may not.
  std::replace(line.begin(), line.end(), '\n', ' ');
  TRY(send(line + '\n'));
  TRY_ASSIGN(const std::string text, receive_line());
  json answer = json::parse(text, nullptr, false);
  if (!answer.is_object() || answer.value("jsonrpc", json()) != "2.0") return no_protocol(path_);
  if (const auto error = answer.find("error"); error != answer.end() && error->is_object()) {
    return Error{Errc::precondition, error->value("message", "the server gave no reason")};
  }
  if (answer.value("id", json()) != id || !answer.contains("result")) return no_protocol(path_);
  return std::move(answer["result"]);
}

Result<void> Client::send(std::string_view line) {
  while (!line.empty()) {
    const ssize_t sent = ::send(socket_, line.data(), line.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    // The server may have refused the line before it took all of it: its answer says more.
    if (sent < 0 && errno == EPIPE) return {};
    if (sent < 0) return broken(path_, errno);
    line.remove_prefix(static_cast<size_t>(sent));
  }
  return {};
}

Result<std::string> Client::receive_line() {
  std::array<char, 65536> buffer;
  size_t searched = 0;
  for (;;) {
    const size_t end = received_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    searched = received_.size();
    if (searched > kAnswerLengthMax) return no_protocol(path_);
    const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return broken(path_, errno);
    if (got == 0 && received_.empty()) {
      return Error{Errc::io_error, "the server on " + path_ +
                                       " closed the connection before it answered; its log may "
                                       "say why"};
    }
    if (got == 0) return no_protocol(path_);
    received_.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace vellum::tools

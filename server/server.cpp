// SPDX-License-Identifier: BSD-2-Clause
#include "server/server.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "server/log.hpp"

namespace vellum::server {

namespace {

constexpr size_t kControlSessionsMax = 256;
constexpr size_t kControlWorkers = 4;
constexpr size_t kWorkersMin = 8;

size_t worker_count(size_t threads) { return std::max(kWorkersMin, 2 * threads); }

std::vector<std::string> uris(const ServerSockets& sockets) {
  std::vector<std::string> uris;
  for (const ListeningSocket& socket : sockets.nbd) uris.push_back(socket.uri());
  return uris;
}

}  // namespace

Result<ServerSockets> open_sockets(const Options& options) {
  const std::string& directory = options.runtime_directory;
  if (!directory.empty() && mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return Error{Errc::io_error, "cannot make the folder '" + directory +
                                     "' for sockets: " + std::strerror(errno) +
                                     ". Give --control, and --unix or --listen"};
  }
  ServerSockets sockets;
  for (const std::string& path : options.unix_paths) {
    TRY_ASSIGN(ListeningSocket socket, ListeningSocket::open_unix(path, options.access));
    sockets.nbd.push_back(std::move(socket));
  }
  for (const TcpAddress& address : options.tcp_addresses) {
    TRY_ASSIGN(ListeningSocket socket, ListeningSocket::open_tcp(address));
    sockets.nbd.push_back(std::move(socket));
  }
  TRY_ASSIGN(ListeningSocket control,
             ListeningSocket::open_unix(options.control_path, options.access));
  sockets.control.push_back(std::move(control));
  return sockets;
}

Server::Server(store::Store& store, const Options& options, ServerSockets sockets)
    : signals_(context_, SIGTERM, SIGINT, SIGHUP),
      workers_(worker_count(options.threads)),
      control_workers_(kControlWorkers),
      environment_{store, workers_, registry_},
      reactors_(options.threads),
      dispatcher_(store, {.version = VELLUM_VERSION, .listeners = uris(sockets)}) {
  signals_.async_wait([this](const asio::error_code& error, int signal) {
    if (!error) stop(signal);
  });
  for (ListeningSocket& socket : sockets.nbd) listen_nbd(std::move(socket));
  for (ListeningSocket& socket : sockets.control) listen_control(std::move(socket));
}

Server::~Server() = default;

void Server::run() {
  context_.run();
  registry_.wait_until_empty();
  control_workers_.join();
  workers_.join();
}

void Server::listen_nbd(ListeningSocket socket) {
  auto reactor = std::make_shared<Reactor*>(nullptr);  // of the connection to come
  listeners_.push_back(std::make_unique<Listener>(
      context_, std::move(socket),
      [this, reactor]() -> asio::io_context& {
        *reactor = &reactors_.least_loaded();
        return (*reactor)->context();
      },
      [this, reactor](StreamSocket accepted) { accept_nbd(std::move(accepted), **reactor); }));
  log_info("serving NBD at " + listeners_.back()->uri());
}

void Server::listen_control(ListeningSocket socket) {
  listeners_.push_back(std::make_unique<Listener>(
      context_, std::move(socket), [this]() -> asio::io_context& { return context_; },
      [this](StreamSocket accepted) { accept_control(std::move(accepted)); }));
}

void Server::accept_nbd(StreamSocket socket, Reactor& reactor) {
  auto session = std::make_shared<NbdSession>(std::move(socket), reactor, environment_);
  if (registry_.admit(session)) {
    NbdSession::start(session);
  } else {
    log_debug("a connection was refused: too many are open");
  }
}

void Server::accept_control(StreamSocket socket) {
  std::erase_if(control_sessions_, [](const auto& weak) { return weak.expired(); });
  if (control_sessions_.size() >= kControlSessionsMax) {
    log_warning("a control connection was refused: too many are open");
    return;
  }
  auto session = std::make_shared<ControlSession>(std::move(socket), dispatcher_, control_workers_);
  control_sessions_.insert(session);
  session->start();
}

void Server::stop(int signal) {
  const char* name = signal == SIGINT ? "SIGINT" : signal == SIGHUP ? "SIGHUP" : "SIGTERM";
  log_info(std::string("stopping on ") + name);
  for (const auto& listener : listeners_) listener->stop();
  for (const auto& weak : control_sessions_) {
    if (const auto session = weak.lock()) session->stop();
  }
  registry_.stop_all();
}

}  // namespace vellum::server

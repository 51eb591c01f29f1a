// SPDX-License-Identifier: BSD-2-Clause
#include "server/nbd_session.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include "server/log.hpp"
#include "server/on_worker.hpp"
#include "server/store_catalog.hpp"

namespace vellum::server {

// Here and in other coroutines co_await stands in statements of its own: g++ 12 makes wrong code of
// some conditions that contain it.

using asio::use_awaitable;

namespace {

constexpr size_t kReceiveBytes = 256 << 10;
constexpr std::chrono::seconds kHandshakeDeadline{10};
constexpr std::chrono::seconds kFinishDeadline{30};  // for a client that does not fetch its replies
constexpr std::chrono::seconds kStopDeadline{5};

static_assert(kReceiveBytes >= 4 * Commands::kLeftoverBytesMax);

}  // namespace

NbdSession::NbdSession(StreamSocket socket, Reactor& reactor, const Environment& environment)
    : socket_(std::move(socket)),
      reactor_(reactor),
      environment_(environment),
      writer_(socket_, [this] { progressed(); }),
      deadline_(reactor.context()),
      wakeup_(reactor.context(), asio::steady_timer::time_point::max()) {
  ++reactor_.connections();
}

NbdSession::~NbdSession() {
  commands_.reset();  // the export goes before the registry forgets this session
  --reactor_.connections();
  environment_.registry.remove(this);
}

void NbdSession::start(const std::shared_ptr<NbdSession>& session) {
  auto& context = session->reactor_.context();
  asio::co_spawn(
      context, [session]() -> asio::awaitable<void> { co_await session->run(); },
      [session](const std::exception_ptr& failure) {
        try {
          if (failure) std::rethrow_exception(failure);
        } catch (const std::exception& error) {
          log_warning("a connection ended: " + std::string(error.what()));
        }
        session->close();
      });
}

void NbdSession::stop(std::shared_ptr<NbdSession> session) {
  auto& context = session->reactor_.context();
  asio::post(context, [session = std::move(session)] { session->on_stop(); });
}

void NbdSession::on_stop() {
  if (in_handshake_) return close();
  if (stopping_) return;
  stopping_ = true;
  set_deadline(kStopDeadline);
  if (commands_) commands_->refuse_new();
  asio::error_code ignored;
  socket_.cancel(ignored);  // wakes the reader
  progressed();
}

asio::awaitable<void> NbdSession::run() {
  prepare_socket();
  set_deadline(kHandshakeDeadline);
  const bool agreed = co_await handshake();
  in_handshake_ = false;
  environment_.registry.handshake_ended(this);
  clear_deadline();
  if (agreed) {
    co_await transmission();
    co_await finish();
  }
  clear_deadline();
  close();
}

void NbdSession::prepare_socket() {
  socket_.non_blocking(true);
  received_ = std::make_unique_for_overwrite<std::byte[]>(kReceiveBytes);
  writer_.set_owner(weak_from_this());
  asio::error_code ignored;
  if (socket_.local_endpoint(ignored).protocol().family() == AF_UNIX) return;
  const auto set = [this](int level, int name, int value) {
    setsockopt(socket_.native_handle(), level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A peer that is gone is noticed within a minute, since its last write may hold up others.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
}

// -- The handshake --------------------------------------------------------------------------------

// True when the transmission phase may begin.
asio::awaitable<bool> NbdSession::handshake() {
  StoreCatalog catalog(environment_.store);
  Handshake handshake(catalog);
  handshake.greet(writer_.buffer());
  bool sent = co_await send_all();
  while (sent && handshake.state() == Handshake::State::talking) {
    if (begin_ == end_) {
      const size_t received = co_await receive();
      if (received == 0) co_return false;
    }
    size_t used = 0;
    OutBuffer answer;
    co_await on_worker(environment_.workers, reactor_.context().get_executor(), [&] {
      used = handshake.feed({received_.get() + begin_, end_ - begin_}, answer);
    });
    consumed(used);
    writer_.append(std::move(answer));
    sent = co_await send_all();
  }
  if (!sent || handshake.state() != Handshake::State::transmission) co_return false;
  commands_.emplace(Commands::Environment{environment_.store, environment_.workers,
                                          reactor_.context().get_executor(), writer_,
                                          weak_from_this(), [this] { progressed(); }},
                    catalog.take_opened(), handshake.negotiated());
  co_return socket_.is_open();
}

// False when the connection has failed.
asio::awaitable<bool> NbdSession::send_all() {
  writer_.flush();
  while (!writer_.failed() && writer_.pending_bytes() > 0) co_await wait_for_progress();
  co_return !writer_.failed();
}

// -- Transmission ---------------------------------------------------------------------------------

asio::awaitable<void> NbdSession::transmission() {
  bool more = true;
  while (more) {
    consumed(commands_->feed({received_.get() + begin_, end_ - begin_}));
    writer_.flush();
    more = !commands_->disconnected() && !writer_.failed();
    if (more && commands_->throttled()) {
      if (commands_->over_limits()) co_await wait_for_progress();
    } else if (more) {
      const size_t received = co_await receive();
      more = received > 0;
    }
  }
}

// Everything in flight is answered, and the answers are sent.
asio::awaitable<void> NbdSession::finish() {
  set_deadline(stopping_ ? kStopDeadline : kFinishDeadline);
  while (!writer_.failed() && (!commands_->idle() || writer_.pending_bytes() > 0)) {
    co_await wait_for_progress();
  }
}

void NbdSession::consumed(size_t count) {
  begin_ += count;
  if (begin_ == end_) begin_ = end_ = 0;
}

// Zero at the end of the stream, after an error, and when there is nothing more to read while the
// server stops.
asio::awaitable<size_t> NbdSession::receive() {
  if (kReceiveBytes - end_ < kReceiveBytes / 2) {
    std::memmove(received_.get(), received_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const auto payload = commands_ ? commands_->payload_wanted() : std::span<std::byte>();
  const std::array<asio::mutable_buffer, 2> buffers = {
      asio::buffer(payload.data(), payload.size()),
      asio::buffer(received_.get() + end_, kReceiveBytes - end_)};
  asio::error_code error;
  size_t count = 0;
  if (!stopping_) {
    count = co_await socket_.async_read_some(buffers, asio::redirect_error(use_awaitable, error));
  }
  if (stopping_ && count == 0) count = socket_.read_some(buffers, error);
  const size_t into_payload = std::min(count, payload.size());
  if (into_payload > 0) commands_->payload_received(into_payload);
  end_ += count - into_payload;
  co_return count;
}

asio::awaitable<void> NbdSession::wait_for_progress() {
  waiting_ = true;
  asio::error_code ignored;
  co_await wakeup_.async_wait(asio::redirect_error(use_awaitable, ignored));
  waiting_ = false;
}

void NbdSession::progressed() {
  if (waiting_) wakeup_.cancel();
}

// -- Ends -----------------------------------------------------------------------------------------

void NbdSession::set_deadline(std::chrono::seconds from_now) {
  deadline_.expires_after(from_now);
  deadline_.async_wait([weak = weak_from_this()](const asio::error_code& error) {
    if (error) return;
    if (const auto session = weak.lock()) session->close();
  });
}

void NbdSession::clear_deadline() { deadline_.cancel(); }

void NbdSession::close() {
  asio::error_code ignored;
  if (socket_.is_open()) {
    socket_.shutdown(StreamSocket::shutdown_both, ignored);
    socket_.close(ignored);
  }
  writer_.flush();  // finds the socket closed
  progressed();
}

}  // namespace vellum::server

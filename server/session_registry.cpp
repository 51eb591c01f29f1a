// SPDX-License-Identifier: BSD-2-Clause
#include "server/session_registry.hpp"

#include <vector>

#include "server/nbd_session.hpp"

namespace vellum::server {

bool SessionRegistry::admit(const std::shared_ptr<NbdSession>& session) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || sessions_.size() >= kConnectionsMax || handshakes_ >= kHandshakesMax) {
    return false;
  }
  sessions_.emplace(session.get(), Entry{session});
  ++handshakes_;
  return true;
}

void SessionRegistry::end_handshake(Entry& entry) {
  if (entry.in_handshake) --handshakes_;
  entry.in_handshake = false;
}

void SessionRegistry::handshake_ended(NbdSession* session) {
  const std::lock_guard lock(mutex_);
  end_handshake(sessions_.at(session));
}

void SessionRegistry::remove(NbdSession* session) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  end_handshake(found->second);
  sessions_.erase(found);
  if (sessions_.empty()) empty_.notify_all();
}

void SessionRegistry::stop_all() {
  std::vector<std::shared_ptr<NbdSession>> sessions;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [key, entry] : sessions_) {
      if (auto alive = entry.session.lock()) sessions.push_back(std::move(alive));
    }
  }
  for (auto& session : sessions) NbdSession::stop(std::move(session));
}

void SessionRegistry::wait_until_empty() {
  std::unique_lock lock(mutex_);
  empty_.wait(lock, [this] { return sessions_.empty(); });
}

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
//
// All NBD connections: how many there may be, and how they are stopped together.
//
// 1. At most kConnectionsMax connections, of which kHandshakesMax may not have chosen an export
// yet.
// 2. A session is counted until its object is gone, and with it its export: after
// wait_until_empty()
//    the store can be closed.
// Threads: any.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace vellum::server {

class NbdSession;

class SessionRegistry {
 public:
  static constexpr size_t kConnectionsMax = 4096;
  static constexpr size_t kHandshakesMax = 512;

  // False: a limit is reached, or all is being stopped. The session must not be run.
  bool admit(const std::shared_ptr<NbdSession>& session);
  void handshake_ended(NbdSession* session);
  void remove(NbdSession* session);  // harmless if it was never admitted

  // Tells every session to answer what is in flight and to end. No new ones are admitted.
  void stop_all();
  void wait_until_empty();

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  struct Entry {
    std::weak_ptr<NbdSession> session;
    bool in_handshake = true;
  };
  void end_handshake(Entry& entry);

  std::unordered_map<NbdSession*, Entry> sessions_;
  size_t handshakes_ = 0;
  bool stopping_ = false;
};

}  // namespace vellum::server

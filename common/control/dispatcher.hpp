// SPDX-License-Identifier: BSD-2-Clause
//
// The control protocol without its socket: one line of JSON-RPC in, one line out. PROTOCOL.md says
// what the lines are. A front (vellumd, the nbdkit plugin) reads lines and hands them to handle().
//
// 1. handle() never throws, and never ends the process, whatever the line holds.
// 2. An answer is one line of UTF-8 without a newline; a notification has an empty one.
// 3. A request that is refused leaves the store as it was.
//
// Threads: handle() may be called from any thread at any time. It blocks for the store's I/O, so a
// front calls it from a thread that may wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vellum::store {
class Store;
}

namespace vellum::control {

// The longest request line in bytes, without its newline. A front MUST stop reading a line there,
// and answer line_too_long().
inline constexpr size_t kLineLengthMax = size_t{1} << 20;
inline constexpr int kProtocolVersion = 1;

// What server.info says about the process in front of the store.
struct ServerFacts {
  std::string version;
  std::string server = "vellumd";      // the program
  std::vector<std::string> listeners;  // NBD URIs without an export name
};

class Dispatcher {
 public:
  // `store` must outlive the dispatcher.
  Dispatcher(store::Store& store, ServerFacts facts);

  std::string handle(std::string_view line);

  // The answer to a line of more than kLineLengthMax bytes. The rest of it is to be skipped.
  static std::string line_too_long();

 private:
  store::Store& store_;
  const ServerFacts facts_;
  const int64_t started_;  // milliseconds since 1970
};

}  // namespace vellum::control

// SPDX-License-Identifier: BSD-2-Clause
//
// The control socket from the client's side: one request, one answer, one after the other. Plain
// blocking sockets. What goes wrong comes back as an Error whose message says what would help.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/base/result.hpp"

namespace vellum::tools {

using json = nlohmann::ordered_json;

// --control, else $VELLUM_CONTROL, else the default for this user.
Result<std::string> control_path(const std::string& option);

class Client {
 public:
  static Result<Client> connect(const std::string& path);
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) = delete;
  ~Client();

  // The result of one call. `params` is JSON text.
  Result<json> call(const std::string& method, const std::string& params);
  Result<json> call(const std::string& method, const json& params) {
    return call(method, params.dump());
  }

 private:
  Client(std::string path, int socket) : path_(std::move(path)), socket_(socket) {}
  Result<void> send(std::string_view line);
  Result<std::string> receive_line();

  std::string path_;
  int socket_;
  std::string received_;  // what came after the last line
  uint64_t last_id_ = 0;
};

}  // namespace vellum::tools

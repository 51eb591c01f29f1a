// SPDX-License-Identifier: BSD-2-Clause
//
// A file that holds the process id while the process runs. It is information for scripts: what
// keeps a second owner away is the lock on the store.
#pragma once

#include <string>

#include "common/base/result.hpp"

namespace vellum::server {

class PidFile {
 public:
  // Writes it, replacing an old one. Refused if the file holds anything but a process id, or that
  // of another vellumd that runs. An empty path: there is none.
  static Result<PidFile> write(const std::string& path);

  PidFile(PidFile&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  PidFile& operator=(PidFile&&) = delete;
  ~PidFile();  // removes it, unless it is somebody else's by now

 private:
  explicit PidFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace vellum::server

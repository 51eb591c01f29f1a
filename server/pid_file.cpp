// SPDX-License-Identifier: BSD-2-Clause
#include "server/pid_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace vellum::server {

Result<PidFile> PidFile::write(const std::string& path) {
  if (path.empty()) return PidFile("");
  // Complete or not there: whoever waits for the file reads a whole number.
  const std::string temporary = path + "." + std::to_string(getpid());
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << getpid() << "\n";
    file.flush();
    if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return PidFile(path);
  }
  const std::string reason = std::strerror(errno);
  std::remove(temporary.c_str());
  return Error{Errc::io_error, "--pid-file '" + path + "': cannot be written: " + reason +
                                   ". Its folder must exist and be writable"};
}

PidFile::~PidFile() {
  if (!path_.empty()) std::remove(path_.c_str());
}

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
#include "server/pid_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

namespace vellum::server {

namespace {

constexpr size_t kPidDigitsMax = 10;

// What a file holds, if that is a process id and nothing else: 0 if it is empty or not there.
std::optional<long> read_pid(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kPidDigitsMax + 2, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty()) return 0;
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || text.size() > kPidDigitsMax) return std::nullopt;
  return std::strtol(text.c_str(), nullptr, 10);
}

bool is_vellumd(long pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  return std::getline(file, name) && name == "vellumd";
}

}  // namespace

Result<PidFile> PidFile::write(const std::string& path) {
  if (path.empty()) return PidFile("");
  const std::optional<long> old = read_pid(path);
  if (!old) {
    return Error{Errc::exists, "--pid-file '" + path +
                                   "': it is there and holds no process id: name another file"};
  }
  if (*old != 0 && *old != getpid() && is_vellumd(*old)) {
    return Error{Errc::in_use, "--pid-file '" + path + "': it is that of process " +
                                   std::to_string(*old) + ", which runs: name another file"};
  }
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
  if (!path_.empty() && read_pid(path_) == getpid()) std::remove(path_.c_str());
}

}  // namespace vellum::server

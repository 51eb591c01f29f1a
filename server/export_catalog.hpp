// SPDX-License-Identifier: BSD-2-Clause
//
// What a handshake asks about exports. An export is a volume, or VOLUME@SNAPSHOT, read-only.
//
// 1. names() and describe() open nothing; open() is called at most once with success, when GO or
//    EXPORT_NAME is about to succeed.
// 2. Calls may block, and are made from one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/result.hpp"

namespace vellum::server {

struct ExportInfo {
  uint64_t size_bytes = 0;
  bool read_only = false;
  std::string description;
};

class ExportCatalog {
 public:
  virtual ~ExportCatalog() = default;
  virtual std::vector<std::string> names(size_t names_max) = 0;
  virtual Result<ExportInfo> describe(const std::string& name) = 0;
  virtual Result<ExportInfo> open(const std::string& name) = 0;
};

}  // namespace vellum::server

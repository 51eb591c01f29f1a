// SPDX-License-Identifier: BSD-2-Clause
//
// The store's volumes and snapshots as exports.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/store/store.hpp"
#include "server/export_catalog.hpp"

namespace vellum::server {

class StoreCatalog : public ExportCatalog {
 public:
  explicit StoreCatalog(store::Store& store) : store_(store) {}

  // Volumes first, so that they are there when the list is cut.
  std::vector<std::string> names(size_t names_max) override;
  Result<ExportInfo> describe(const std::string& name) override;
  Result<ExportInfo> open(const std::string& name) override;

  // What open() opened.
  std::shared_ptr<store::Export> take_opened() { return std::move(opened_); }

 private:
  store::Store& store_;
  std::shared_ptr<store::Export> opened_;
};

}  // namespace vellum::server

// SPDX-License-Identifier: BSD-2-Clause
//
// Reads the data of an NBD option. A field beyond the end makes the reader bad and reads as zero or
// empty; the caller asks complete() once, at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/endian.hpp"

namespace vellum::server {

class OptionReader {
 public:
  explicit OptionReader(std::string_view data) : rest_(data) {}

  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }

  std::string_view bytes(size_t count) {
    if (count > rest_.size()) {
      bad_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  bool bad() const { return bad_; }
  // All fields were there, and nothing was left over.
  bool complete() const { return !bad_ && rest_.empty(); }

 private:
  template <typename T>
  T number() {
    const std::string_view field = bytes(sizeof(T));
    return field.empty() ? T{0} : load_be<T>(field.data());
  }

  std::string_view rest_;
  bool bad_ = false;
};

}  // namespace vellum::server

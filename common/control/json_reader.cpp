// SPDX-License-Identifier: BSD-2-Clause
#include "common/control/json_reader.hpp"

#include <cstdint>
#include <utility>

namespace vellum::control {
namespace {

using nlohmann::json;

// Receives the parser's events and builds the value. `open_` holds the containers that are open and
// kept: only the innermost grows, so pointers to the others stay valid.
class Builder {
 public:
  explicit Builder(Reading& reading) : reading_(reading) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(int64_t value) { return put(value); }
  bool number_unsigned(uint64_t value) { return put(value); }
  bool number_float(double value, const std::string& /*text*/) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(json::binary_t& /*value*/) { return false; }  // no JSON text has one

  bool start_object(size_t /*members*/) { return open(json::object()); }
  bool end_object() { return close(); }
  bool start_array(size_t /*elements*/) { return open(json::array()); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (skipped_ > 0) return true;
    path_.back() = name;
    if (open_.back()->contains(name)) note(Flaw::Kind::duplicate);
    return true;
  }

  bool parse_error(size_t position, const std::string& /*token*/, const json::exception& /*why*/) {
    reading_.error_position = position;
    return false;
  }

 private:
  bool put(json value) {
    if (skipped_ == 0) place(std::move(value));
    return true;
  }

  json* place(json value) {
    if (open_.empty()) {
      reading_.value = std::move(value);
      return &reading_.value;
    }
    json& container = *open_.back();
    if (container.is_object()) return &(container[path_.back()] = std::move(value));
    container.push_back(std::move(value));
    return &container.back();
  }

  bool open(json container) {
    if (skipped_ > 0 || open_.size() == kDepthMax) {
      if (skipped_++ == 0) note(Flaw::Kind::too_deep);
      return true;
    }
    open_.push_back(place(std::move(container)));
    path_.emplace_back();
    return true;
  }

  bool close() {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      open_.pop_back();
      path_.pop_back();
    }
    return true;
  }

  void note(Flaw::Kind kind) {
    if (!reading_.flaw) reading_.flaw = Flaw{kind, path_};
  }

  Reading& reading_;
  std::vector<json*> open_;
  std::vector<std::string> path_;  // for each open container the member being read
  size_t skipped_ = 0;             // containers open beyond kDepthMax
};

}  // namespace

Reading read_json(std::string_view text) {
  Reading reading;
  Builder builder(reading);
  json::sax_parse(text.begin(), text.end(), &builder);
  return reading;
}

}  // namespace vellum::control

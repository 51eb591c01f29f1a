// SPDX-License-Identifier: BSD-2-Clause
//
// What people read: aligned tables and lists of properties, on standard output.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace vellum::tools {

using json = nlohmann::ordered_json;

class Table {
 public:
  enum class Align { left, right };
  explicit Table(std::vector<std::pair<std::string, Align>> columns);
  void add(std::vector<std::string> row);  // as many as there are columns
  void print() const;

 private:
  std::vector<std::pair<std::string, Align>> columns_;
  std::vector<std::vector<std::string>> rows_;
};

using Properties = std::vector<std::pair<std::string, std::string>>;
void print(const Properties& properties);

void print_line(const std::string& text);
// Exactly one document, on one line.
void print_json(const json& document);

// Members of an answer as text. What is missing or null, or of another kind than expected, is "-":
// a server of another version must not end this program.
std::string text_of(const json& object, const char* member);
std::string size_of(const json& object, const char* member);      // "10 GiB"
std::string duration_of(const json& object, const char* member);  // "23 h 59 min"
uint64_t number_of(const json& object, const char* member);       // 0 if there is none
// How long an object can still be recovered, or "-".
std::string destruction_of(const json& object);
// What destroying the object of that kind has answered.
void print_destruction(const json& answer, const std::string& kind, const std::string& name);
void print_destroyed(const json& objects);  // a table
std::string percent(uint64_t part, uint64_t whole);
std::string counted(uint64_t count, const std::string& noun);  // "1 volume", "2 volumes"

}  // namespace vellum::tools

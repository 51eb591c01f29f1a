// SPDX-License-Identifier: BSD-2-Clause
#include "tools/vellum_print.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>

#include "common/base/check.hpp"
#include "common/base/units.hpp"

namespace vellum::tools {

Table::Table(std::vector<std::pair<std::string, Align>> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> row) {
  CHECK(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

void Table::print() const {
  std::vector<std::string> header;
  std::vector<size_t> widths;
  for (const auto& column : columns_) {
    header.push_back(column.first);
    widths.push_back(column.first.size());
  }
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  const auto print_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      if (i > 0) line += "  ";
      line += columns_[i].second == Align::right ? padding + row[i] : row[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    print_line(line);
  };
  print_row(header);
  for (const auto& row : rows_) print_row(row);
}

void print(const Properties& properties) {
  size_t width = 0;
  for (const auto& property : properties) width = std::max(width, property.first.size());
  for (const auto& [name, value] : properties) {
    std::string line = name;
    line.append(width - name.size() + 2, ' ').append(value);
    print_line(line);
  }
}

void print_line(const std::string& text) { std::cout << text << '\n'; }

void print_json(const json& document) {
  print_line(document.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string text_of(const json& object, const char* member) {
  const auto value = object.is_object() ? object.find(member) : object.end();
  if (value == object.end() || value->is_null()) return "-";
  if (value->is_string()) return value->get<std::string>();
  if (value->is_boolean()) return value->get<bool>() ? "yes" : "no";
  if (!value->is_array()) return value->dump();
  std::string text;
  for (const json& element : *value) {
    if (!text.empty()) text += ' ';
    text += element.is_string() ? element.get<std::string>() : element.dump();
  }
  return text.empty() ? "-" : text;
}

uint64_t number_of(const json& object, const char* member) {
  const auto value = object.is_object() ? object.find(member) : object.end();
  return value != object.end() && value->is_number_unsigned() ? value->get<uint64_t>() : 0;
}

std::string size_of(const json& object, const char* member) {
  const std::string text = text_of(object, member);
  return text == "-" ? text : format_size(number_of(object, member));
}

std::string percent(uint64_t part, uint64_t whole) {
  std::array<char, 32> text{};
  const double share =
      whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  std::snprintf(text.data(), text.size(), "%.1f %%", share);
  return text.data();
}

std::string counted(uint64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string duration_of(const json& object, const char* member) {
  const std::string text = text_of(object, member);
  return text == "-" ? text : format_duration(static_cast<int64_t>(number_of(object, member)));
}

std::string destruction_of(const json& object) {
  const std::string left = duration_of(object, "time_remaining_ms");
  return left == "-" ? left : "can be recovered for " + left;
}

void print_destruction(const json& answer, const std::string& kind, const std::string& name) {
  if (number_of(answer, "time_remaining_ms") == 0) return print_line("eradicated " + name);
  print_line("destroyed " + name + "; for " + duration_of(answer, "time_remaining_ms") +
             " vellum " + kind + " recover " + name + " brings it back");
}

void print_destroyed(const json& objects) {
  using Align = Table::Align;
  Table table(
      {{"NAME", Align::left}, {"SIZE", Align::right}, {"CAN BE RECOVERED FOR", Align::left}});
  for (const json& object : objects) {
    table.add({text_of(object, "name"), size_of(object, "size"),
               duration_of(object, "time_remaining_ms")});
  }
  table.print();
}

}  // namespace vellum::tools

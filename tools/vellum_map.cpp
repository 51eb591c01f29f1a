// SPDX-License-Identifier: BSD-2-Clause
//
// vellum bitmap, vellum extents: what is where.
#include <algorithm>
#include <array>
#include <memory>

#include "common/base/units.hpp"
#include "tools/vellum_command.hpp"
#include "tools/vellum_print.hpp"

namespace vellum::tools {
namespace {

struct Options {
  std::string target;
  std::optional<std::string> offset, length, chunk;
  bool no_hint = false;
  std::optional<std::string> base;
};

// The bits of base64 text, least significant first; what is not base64 ends it.
std::vector<bool> bits_of(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<bool> bits;
  uint32_t pending = 0;
  size_t pending_bits = 0;
  for (const char c : base64) {
    const size_t digit = digits.find(c);
    if (digit == std::string::npos) break;
    pending = pending << 6 | static_cast<uint32_t>(digit);
    pending_bits += 6;
    if (pending_bits < 8) continue;
    pending_bits -= 8;
    const uint32_t byte = pending >> pending_bits & 0xff;
    for (size_t bit = 0; bit < 8; ++bit) bits.push_back((byte >> bit & 1) != 0);
  }
  return bits;
}

// A line for 64 chunks, # for one that holds data; lines like the one before become one *.
void print_bits(const std::vector<bool>& bits, uint64_t offset, uint64_t chunk, uint64_t chunks) {
  constexpr uint64_t kPerLine = 64;
  constexpr size_t kPlaceWidth = 16;  // holds every offset
  std::string before;
  bool starred = false;
  for (uint64_t first = 0; first < chunks; first += kPerLine) {
    std::string line;
    for (uint64_t i = first; i < std::min(first + kPerLine, chunks); ++i) {
      line += i < bits.size() && bits[i] ? '#' : '.';
    }
    if (line != before) {
      std::string text = std::to_string(offset + first * chunk);
      if (text.size() < kPlaceWidth) text.insert(0, kPlaceWidth - text.size(), ' ');
      print_line(text.append("  ").append(line));
    } else if (!starred) {
      print_line(std::string(kPlaceWidth - 1, ' ').append("*"));
    }
    starred = line == before;
    before = line;
  }
}

void print_bitmap(const json& map, uint64_t offset, bool has_base) {
  const uint64_t chunk = std::max<uint64_t>(number_of(map, "chunk"), 1);
  const uint64_t scanned = number_of(map, "scanned_length");
  const uint64_t chunks = (scanned + chunk - 1) / chunk;
  print_bits(bits_of(text_of(map, "bitmap")), offset, chunk, chunks);
  print_line(text_of(map, "allocated_chunks") + " of " + counted(chunks, "chunk") + " of " +
             format_size(chunk) +
             (has_base ? " differ; next that differs beyond: " : " hold data; next data beyond: ") +
             text_of(map, "next_allocated"));
}

Result<void> bitmap(const Program& program, const Options& options) {
  json params{{"target", options.target}, {"hint", !options.no_hint}};
  const std::array<std::pair<const char*, const std::optional<std::string>*>, 3> sizes{
      {{"offset", &options.offset}, {"length", &options.length}, {"chunk", &options.chunk}}};
  for (const auto& [name, text] : sizes) {
    if (!*text) continue;
    TRY_ASSIGN(params[name], size_argument(std::string("--") + name, **text));
  }
  if (options.base) params["base"] = *options.base;
  return program.show(options.base ? "bitmap.unshared" : "bitmap.allocated", params,
                      [&](const json& map) {
                        print_bitmap(map, number_of(params, "offset"), options.base.has_value());
                      });
}

// Appends `part` to `extents`; what was cut in two by the end of an answer becomes one again.
void append(json& extents, const json& part) {
  for (const json& extent : part) {
    if (!extents.empty()) {
      json& last = extents.back();
      const uint64_t end = number_of(last, "offset") + number_of(last, "length");
      if (end == number_of(extent, "offset") && text_of(last, "kind") == text_of(extent, "kind")) {
        last["length"] = number_of(last, "length") + number_of(extent, "length");
        continue;
      }
    }
    extents.push_back(extent);
  }
}

Result<json> all_extents(const Program& program, const Options& options) {
  TRY_ASSIGN(const std::string path, control_path(program.control));
  TRY_ASSIGN(Client client, Client::connect(path));
  json params{{"target", options.target}, {"offset", 0}};
  if (options.base) params["base"] = *options.base;
  json all{{"size", 0}, {"extents", json::array()}, {"next_offset", nullptr}};
  for (;;) {
    TRY_ASSIGN(const json part,
               client.call(options.base ? "extents.diff" : "extents.list", params));
    all["size"] = number_of(part, "size");
    append(all["extents"], part.value("extents", json::array()));
    const uint64_t next = number_of(part, "next_offset");
    // A server that does not go forward must not hold this program for ever.
    if (next <= number_of(params, "offset")) return all;
    params["offset"] = next;
  }
}

void print_extents(const json& all) {
  using Align = Table::Align;
  Table table({{"OFFSET", Align::right},
               {"LENGTH", Align::right},
               {"", Align::right},
               {"KIND", Align::left}});
  uint64_t data = 0;
  for (const json& extent : all["extents"]) {
    table.add({text_of(extent, "offset"), text_of(extent, "length"), size_of(extent, "length"),
               text_of(extent, "kind")});
    if (text_of(extent, "kind") == "data") data += number_of(extent, "length");
  }
  table.print();
  print_line(counted(all["extents"].size(), "extent") + ", " + format_size(data) + " of data in " +
             size_of(all, "size"));
}

Result<void> extents(const Program& program, const Options& options) {
  TRY_ASSIGN(const json all, all_extents(program, options));
  if (program.json) {
    print_json(all);
  } else {
    print_extents(all);
  }
  return {};
}

}  // namespace

void add_map_commands(CLI::App& app, Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App& map = *app.add_subcommand("bitmap", "Which chunks hold data, or differ");
  map.add_option("TARGET", options->target, "VOLUME or VOLUME@SNAPSHOT")->required();
  map.add_option("--base", options->base, "Which differ from this VOLUME[@SNAPSHOT] instead");
  map.add_option("--offset", options->offset, "Where to begin; a multiple of the chunk");
  map.add_option("--length", options->length, "How far to look (else to the end)");
  map.add_option("--chunk", options->chunk, "What a bit stands for, a power of two from 4K");
  map.add_flag("--no-hint", options->no_hint, "Do not look for the next data beyond");
  on_parsed(map, program, options, bitmap);

  options = std::make_shared<Options>();
  CLI::App& list = *app.add_subcommand("extents", "The extents that hold data, or that differ");
  list.add_option("TARGET", options->target, "VOLUME or VOLUME@SNAPSHOT")->required();
  list.add_option("--base", options->base, "Only what differs from this VOLUME[@SNAPSHOT]");
  on_parsed(list, program, options, extents);
}

}  // namespace vellum::tools

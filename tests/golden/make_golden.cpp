// SPDX-License-Identifier: BSD-2-Clause
//
// Writes the small store as an image, and what it holds as JSON:
//
//   make_golden IMAGE JSON
#include <cstdio>
#include <exception>
#include <fstream>

#include "tests/fuzz/small_store.hpp"
#include "tests/golden/description.hpp"
#include "tests/support/failure.hpp"

namespace {

using namespace vellum;

void make(const char* image_path, const char* json_path) {
  const support::SimulatedDisk& made = *fuzz::small_store().disk;
  support::Random random(1);
  const auto disk = made.survivor(support::Survival::everything, random);
  std::vector<std::byte> image(disk->size_bytes());
  support::demand_ok(disk->read(0, std::span(image)), "read");
  std::ofstream image_file(image_path, std::ios::binary);
  image_file.write(reinterpret_cast<const char*>(image.data()),
                   static_cast<std::streamsize>(image.size()));
  const auto store = support::demand_ok(store::Store::open(*disk, fuzz::small_options()), "open");
  std::ofstream json_file(json_path);
  json_file << golden::describe(*store);
  support::demand(image_file.flush().good() && json_file.flush().good(),
                  "the files are not written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: make_golden IMAGE JSON\n", stderr);
    return 2;
  }
  try {
    make(argv[1], argv[2]);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "make_golden: %s\n", failure.what());
    return 1;
  }
  return 0;
}

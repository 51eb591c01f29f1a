// SPDX-License-Identifier: BSD-2-Clause
//
// A small store that holds something of everything, made once, and edits of it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/store/block_io.hpp"
#include "common/store/store.hpp"
#include "tests/support/simulated_disk.hpp"

namespace vellum::fuzz {

// Where the checksum of a block stands: in another one.
struct Link {
  uint64_t parent = 0;  // a block number, as all here
  size_t crc_at = 0;    // in it; the pointer begins twelve bytes before
};

struct SmallStore {
  std::unique_ptr<support::SimulatedDisk> disk;
  std::vector<uint64_t> blocks;  // in use: superblocks, journal, nodes, tables, data
  std::vector<uint64_t> tables;  // the table blocks of both checkpoints
  std::multimap<uint64_t, Link> links;
  // CRCs of what each block of a volume or snapshot has held at any time.
  std::map<std::string, std::map<uint64_t, std::set<uint32_t>>> contents;
};

SmallStore make_small_store();    // always alike
const SmallStore& small_store();  // that of this process, made at the first call

store::Options small_options();

// Of the journal of `small_store`.
inline constexpr uint64_t kJournalSectors = 16;

// Edits a copy of the small store.
class Editor {
 public:
  explicit Editor(support::SimulatedDisk& disk) : disk_(disk) {}
  store::Page& page(uint64_t block);
  // Makes the checksums fit that cover these blocks, up to the superblocks. Data is left alone:
  // what covers it would have to say that other data was written.
  void fix_checksums();
  void write();

 private:
  void fix(uint64_t block);
  void fix_sector(uint64_t block);

  support::SimulatedDisk& disk_;
  std::map<uint64_t, store::Page> pages_;
};

}  // namespace vellum::fuzz

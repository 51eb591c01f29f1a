// SPDX-License-Identifier: BSD-2-Clause
//
// Makes a store of which so much is mapped that its data would not fit on this machine: the map,
// the tables and the journal are in the file; data leaves holes. For whoever does not read data, as
// `vellum check` without --data, it is like any other.
//
//   mapped_store FILE GIB [SPARSE]    GIB of data; or, one block of 4 KiB in each MiB, SPARSE
//   blocks
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/disk/file_disk.hpp"
#include "common/store/store.hpp"

namespace vellum {
namespace {

constexpr std::byte kData{0x5a};  // no node and no table begins with eight of these
constexpr size_t kBlock = 4096;

class DiskWithoutData final : public disk::Disk {
 public:
  explicit DiskWithoutData(disk::Disk& under) : under_(under) {}

  using disk::Disk::write;
  Result<void> read(uint64_t offset, std::span<std::byte> out, disk::Wait wait) override {
    return under_.read(offset, out, wait);
  }
  Result<void> read(uint64_t offset, std::span<const iovec> parts, disk::Wait wait) override {
    return under_.read(offset, parts, wait);
  }
  Result<void> write(uint64_t offset, std::span<const iovec> parts) override {
    uint64_t length = 0;
    for (const iovec& part : parts) length += part.iov_len;
    const auto* first = static_cast<const std::byte*>(parts[0].iov_base);
    for (size_t i = 0; i < 8; ++i) {
      if (first[i] != kData) return under_.write(offset, parts);
    }
    if (offset + length <= under_.size_bytes()) return {};
    return under_.write(offset + length - kBlock, std::span(first, kBlock));  // as long as it was
  }
  Result<void> sync() override { return under_.sync(); }
  void start_writeback(uint64_t /*offset*/, uint64_t /*length*/) override {}
  Result<void> prepare(uint64_t /*offset*/, uint64_t /*length*/) override { return {}; }
  Result<void> discard(uint64_t offset, uint64_t length) override {
    return under_.discard(offset, length);
  }
  uint64_t size_bytes() const override { return under_.size_bytes(); }
  bool can_grow() const override { return true; }
  Result<void> claim(uint64_t generation) override { return under_.claim(generation); }
  std::string name() const override { return under_.name(); }

 private:
  disk::Disk& under_;
};

Result<void> fill(disk::Disk& disk, uint64_t bytes, uint64_t stride, size_t piece) {
  store::Geometry geometry;
  geometry.capacity = (bytes + bytes / 50) / kBlock * kBlock + (uint64_t{4} << 30);
  if (stride > piece) geometry.capacity += bytes * 2;  // a leaf for each block
  store::Options options;
  options.cache_bytes = size_t{1} << 30;
  TRY(store::Store::format(disk, geometry, options));
  TRY_ASSIGN(const auto store, store::Store::open(disk, options));
  const uint64_t pieces = bytes / piece;
  TRY(store->create_volume("v", pieces * stride, store::Provision::thin));
  {
    TRY_ASSIGN(const auto volume, store->open_export("v"));
    const std::vector<std::byte> data(piece, kData);
    for (uint64_t i = 0; i < pieces; ++i) TRY(volume->write(i * stride, data));
  }
  return store->close();
}

int run(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: mapped_store FILE GIB [SPARSE]\n");
    return 2;
  }
  auto file = disk::FileDisk::open(argv[1], disk::OpenMode::create);
  if (!file.ok()) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return 1;
  }
  DiskWithoutData disk(**file);
  constexpr size_t kMib = size_t{1} << 20;
  const auto filled = argc > 3 ? fill(disk, std::stoull(argv[3]) * kBlock, kMib, kBlock)
                               : fill(disk, std::stoull(argv[2]) << 30, 16 * kMib, 16 * kMib);
  if (!filled.ok()) std::fprintf(stderr, "%s\n", filled.error().message.c_str());
  return filled.ok() ? 0 : 1;
}

}  // namespace
}  // namespace vellum

int main(int argc, char** argv) { return vellum::run(argc, argv); }

// SPDX-License-Identifier: BSD-2-Clause
#include "common/disk/signature.hpp"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace vellum::disk {
namespace {

using Bytes = std::vector<std::byte>;

void put(Bytes& bytes, size_t offset, std::string_view what) {
  std::memcpy(&bytes[offset], what.data(), what.size());
}

TEST(Signature, ZerosAreNothing) {
  const Bytes zeros(kSignatureBytes);
  EXPECT_FALSE(describe_content(zeros, zeros));
  EXPECT_FALSE(describe_content({}, {}));
}

TEST(Signature, NamesWhatIsThere) {
  const Bytes zeros(kSignatureBytes);
  Bytes head = zeros;
  put(head, 510, "\x55\xaa");
  EXPECT_EQ(describe_content(head, zeros), "a boot sector or MBR partition table");
  put(head, 512, "EFI PART");
  EXPECT_EQ(describe_content(head, zeros), "a GPT partition table");
  put(head, 0x438, "\x53\xef");
  EXPECT_EQ(describe_content(head, zeros), "an ext2, ext3 or ext4 file system");
  put(head, 4096, "VLMOWNER");
  EXPECT_EQ(describe_content(head, zeros), "a Vellum store");
}

TEST(Signature, AnyByteCounts) {
  const Bytes zeros(kSignatureBytes);
  Bytes bytes = zeros;
  bytes[kSignatureBytes - 1] = std::byte{1};
  EXPECT_EQ(describe_content(bytes, zeros), "data (first at offset 1048575)");
  EXPECT_EQ(describe_content(zeros, bytes), "data (1 bytes before its end)");
}

TEST(Signature, SmallDevicesAreNotReadBeyondTheirEnd) {
  Bytes head(512);
  EXPECT_FALSE(describe_content(head, head));
  put(head, 0, "XFSB");
  EXPECT_EQ(describe_content(head, {}), "an XFS file system");
}

}  // namespace
}  // namespace vellum::disk

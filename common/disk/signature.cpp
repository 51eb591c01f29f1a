// SPDX-License-Identifier: BSD-2-Clause
#include "common/disk/signature.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace vellum::disk {
namespace {

using namespace std::string_view_literals;

struct Signature {
  size_t offset;
  std::string_view magic;
  std::string_view what;
};

// The first that matches is named, so the outermost structures come last.
constexpr Signature kSignatures[] = {
    {4096, "VLMOWNER"sv, "a Vellum store"},
    {0x438, "\x53\xef"sv, "an ext2, ext3 or ext4 file system"},
    {0, "XFSB"sv, "an XFS file system"},
    {0x10040, "_BHRfS_M"sv, "a btrfs file system"},
    {3, "NTFS    "sv, "an NTFS file system"},
    {82, "FAT32   "sv, "a FAT file system"},
    {54, "FAT16   "sv, "a FAT file system"},
    {0x8001, "CD001"sv, "an ISO 9660 file system"},
    {4086, "SWAPSPACE2"sv, "swap space"},
    {0, "LUKS\xba\xbe"sv, "a LUKS encrypted volume"},
    {512, "LABELONE"sv, "an LVM physical volume"},
    {4096, "\xfc\x4e\x2b\xa9"sv, "a member of a RAID array"},
    {0, "QFI\xfb"sv, "a qcow2 image"},
    {512, "EFI PART"sv, "a GPT partition table"},
    {510, "\x55\xaa"sv, "a boot sector or MBR partition table"},
};

bool matches(std::span<const std::byte> head, const Signature& signature) {
  return signature.offset + signature.magic.size() <= head.size() &&
         std::memcmp(&head[signature.offset], signature.magic.data(), signature.magic.size()) == 0;
}

// The index of the first byte that is not zero, or the size.
size_t first_byte_set(std::span<const std::byte> bytes) {
  const auto found =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
  return static_cast<size_t>(found - bytes.begin());
}

}  // namespace

std::optional<std::string> describe_content(std::span<const std::byte> head,
                                            std::span<const std::byte> tail) {
  for (const Signature& signature : kSignatures) {
    if (matches(head, signature)) return std::string(signature.what);
  }
  if (const size_t at = first_byte_set(head); at < head.size()) {
    return "data (first at offset " + std::to_string(at) + ")";
  }
  if (const size_t at = first_byte_set(tail); at < tail.size()) {
    return "data (" + std::to_string(tail.size() - at) + " bytes before its end)";
  }
  return std::nullopt;
}

}  // namespace vellum::disk

// SPDX-License-Identifier: BSD-2-Clause
//
// Recognises what is on a device before a new store would replace it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace vellum::disk {

// How much of either end of a device is looked at.
inline constexpr size_t kSignatureBytes = size_t{1} << 20;

// Nothing if `head`, the first bytes of a device, and `tail`, its last, are all zeros. Else what is
// seen, to go on after "holds": "an ext2, ext3 or ext4 file system".
std::optional<std::string> describe_content(std::span<const std::byte> head,
                                            std::span<const std::byte> tail);

}  // namespace vellum::disk

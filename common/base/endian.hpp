// SPDX-License-Identifier: BSD-2-Clause
//
// Unsigned integers in buffers, at any alignment. Little-endian is the order of everything on disk,
// big-endian that of the network.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vellum {

static_assert(std::endian::native == std::endian::little,
              "the code assumes a little-endian machine");

constexpr uint16_t swap_bytes(uint16_t value) { return __builtin_bswap16(value); }
constexpr uint32_t swap_bytes(uint32_t value) { return __builtin_bswap32(value); }
constexpr uint64_t swap_bytes(uint64_t value) { return __builtin_bswap64(value); }

template <std::unsigned_integral T>
T load_le(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <std::unsigned_integral T>
void store_le(void* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

template <std::unsigned_integral T>
T load_be(const void* from) {
  return swap_bytes(load_le<T>(from));
}

template <std::unsigned_integral T>
void store_be(void* to, T value) {
  store_le<T>(to, swap_bytes(value));
}

inline uint16_t load_le16(const void* from) { return load_le<uint16_t>(from); }
inline uint32_t load_le32(const void* from) { return load_le<uint32_t>(from); }
inline uint64_t load_le64(const void* from) { return load_le<uint64_t>(from); }
inline void store_le16(void* to, uint16_t value) { store_le(to, value); }
inline void store_le32(void* to, uint32_t value) { store_le(to, value); }
inline void store_le64(void* to, uint64_t value) { store_le(to, value); }

inline uint16_t load_be16(const void* from) { return load_be<uint16_t>(from); }
inline uint32_t load_be32(const void* from) { return load_be<uint32_t>(from); }
inline uint64_t load_be64(const void* from) { return load_be<uint64_t>(from); }
inline void store_be16(void* to, uint16_t value) { store_be(to, value); }
inline void store_be32(void* to, uint32_t value) { store_be(to, value); }
inline void store_be64(void* to, uint64_t value) { store_be(to, value); }

}  // namespace vellum

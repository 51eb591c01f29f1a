// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/map_checks.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "tests/support/failure.hpp"

namespace vellum::support {

namespace {

using store::Extent;
using store::ExtentKind;

constexpr uint64_t kBlock = kContentBlockBytes;
constexpr uint64_t kReadWindow = 64 * kBlock;
constexpr uint64_t kWholeReadMax = 4 << 20;

std::string at_offset(const std::string& name, uint64_t offset) {
  return name + " at offset " + std::to_string(offset);
}

uint64_t block_after(uint64_t offset) { return (offset + kBlock - 1) / kBlock; }

// [offset, end) holds no block that must be data.
void demand_no_data(const Content& content, uint64_t offset, uint64_t end,
                    const std::string& what) {
  if (offset >= end) return;
  const auto* next = content.next_block(offset / kBlock);
  while (next && next->first * kBlock < end) {
    demand(content.held(next->first) != Held::data,
           at_offset(what, next->first * kBlock) + ": acknowledged data is said to be a hole");
    next = content.next_block(next->first + 1);
  }
}

// Every block of [offset, end) may be data.
void demand_data(const Content& content, uint64_t offset, uint64_t end, const std::string& what) {
  for (uint64_t index = offset / kBlock; index < block_after(end); ++index)
    demand(content.held(index) != Held::nothing,
           at_offset(what, index * kBlock) + ": what holds nothing is said to be data");
}

// A list that covers [offset, offset + length) completely, as read() and map() give it.
void demand_covering(const std::vector<Extent>& extents, const Content& content, uint64_t offset,
                     uint64_t length, const std::string& what) {
  uint64_t at = offset;
  for (size_t i = 0; i < extents.size(); ++i) {
    const Extent& extent = extents[i];
    demand(extent.offset == at && extent.length > 0, at_offset(what, at) + ": extents have a gap");
    demand(i == 0 || extent.kind != extents[i - 1].kind,
           at_offset(what, at) + ": neighbours of one kind are not coalesced");
    at += extent.length;
    if (extent.kind == ExtentKind::data)
      demand_data(content, extent.offset, at, what);
    else
      demand_no_data(content, extent.offset, at, what);
  }
  demand(at <= offset + length, what + ": extents go beyond the range");
}

// A list of what holds something, ascending and in whole blocks or up to the end.
void demand_ascending(const std::vector<Extent>& extents, uint64_t from, uint64_t size,
                      const std::string& what) {
  for (size_t i = 0; i < extents.size(); ++i) {
    const Extent& extent = extents[i];
    const uint64_t end = extent.offset + extent.length;
    demand(extent.length > 0 && end > extent.offset && end <= size,
           at_offset(what, extent.offset) + ": an extent is empty or beyond the end");
    demand((extent.offset % kBlock == 0 || extent.offset == from) &&
               (end % kBlock == 0 || end == size),
           at_offset(what, extent.offset) + ": an extent is not made of blocks");
    demand(extent.offset >= from, at_offset(what, extent.offset) + ": extents do not ascend");
    if (i > 0) {
      const uint64_t before = extents[i - 1].offset + extents[i - 1].length;
      demand(extent.offset >= before, at_offset(what, extent.offset) + ": extents overlap");
      demand(extent.offset > before || extent.kind != extents[i - 1].kind,
             at_offset(what, extent.offset) + ": neighbours of one kind are not coalesced");
    }
  }
}

void check_places(store::Export& opened, const Content& content, Random& random) {
  uint64_t done = 0;
  for (const auto* at = content.next_block(0); at; at = content.next_block(at->first + 1)) {
    const uint64_t begin = std::max(done, (at->first - std::min<uint64_t>(at->first, 1)) * kBlock);
    const uint64_t end = std::min(content.size_bytes(), (at->first + 2) * kBlock);
    if (begin >= end) continue;
    check_read(opened, content, begin, end - begin, random.chance(10));
    done = end;
  }
  for (int i = 0; i < 4; ++i) {
    const uint64_t offset = random.below(content.size_bytes());
    check_read(opened, content, offset, std::min(kBlock, content.size_bytes() - offset), true);
  }
}

}  // namespace

void check_read(store::Export& opened, const Content& content, uint64_t offset, uint64_t length,
                bool want_extents) {
  std::vector<std::byte> got(length, std::byte{0xcd});
  std::vector<Extent> extents;
  Result<void> read =
      opened.read(offset, got, disk::Wait::never, want_extents ? &extents : nullptr);
  if (!read.ok() && read.error().code == Errc::would_block) {
    extents.clear();
    read = opened.read(offset, got, disk::Wait::allowed, want_extents ? &extents : nullptr);
  }
  demand_ok(std::move(read), "reading " + at_offset(opened.name(), offset));
  const std::string wrong = content.difference(offset, got);
  demand(wrong.empty(), opened.name() + " " + wrong);
  if (!want_extents) return;
  demand_covering(extents, content, offset, length, "extents of a read of " + opened.name());
  const uint64_t end = extents.empty() ? offset : extents.back().offset + extents.back().length;
  demand(end == offset + length, "extents of a read of " + opened.name() + " end early");
}

void check_content(store::Export& opened, const Content& content, Random& random) {
  demand(opened.size_bytes() == content.size_bytes(), opened.name() + " has another size");
  if (content.size_bytes() > kWholeReadMax) return check_places(opened, content, random);
  for (uint64_t at = 0; at < content.size_bytes(); at += kReadWindow)
    check_read(opened, content, at, std::min(kReadWindow, content.size_bytes() - at),
               random.chance(20));
}

void check_map(store::Export& opened, const Content& content, Random& random) {
  const std::string what = "map of " + opened.name();
  uint64_t at = random.chance(50) ? 0 : random.below(content.size_bytes());
  while (at < content.size_bytes()) {
    uint64_t length = content.size_bytes() - at;
    if (random.chance(20)) length = random.between(1, length);
    const size_t extents_max = random.chance(30) ? random.between(1, 4) : 1000;
    const auto extents = demand_ok(opened.map(at, length, extents_max), what);
    demand(!extents.empty() && extents.size() <= extents_max, what + ": none, or too many");
    demand_covering(extents, content, at, length, what);
    at = extents.back().offset + extents.back().length;
  }
}

namespace {

bool bit_of(const store::AllocatedMap& map, uint64_t number) {
  return (std::to_integer<unsigned>(map.bitmap[number / 8]) >> (number % 8) & 1) != 0;
}

uint64_t any_chunk(Random& random) { return random.chance(30) ? 0 : kBlock << random.below(12); }

}  // namespace

void check_allocated(store::Store& store, const std::string& name, const Content& content,
                     Random& random) {
  const std::string what = "allocated map of " + name;
  const uint64_t size = content.size_bytes();
  uint64_t chunk = any_chunk(random);
  uint64_t offset = 0;
  for (int calls = 0; offset < size && calls < 50; ++calls) {
    uint64_t length = size - offset;
    if (chunk > 0 && length > 3 * chunk && random.chance(30))
      length = std::min(chunk * random.between(1, 64), length / chunk * chunk);
    const bool hint = random.chance(90);
    const auto map = demand_ok(store.allocated(name, offset, length, chunk, hint), what);
    chunk = map.chunk;
    demand(std::has_single_bit(chunk) && chunk >= kBlock, what + ": chunk");
    demand(map.scanned_length > 0 && map.scanned_length <= length, what + ": scanned_length");
    const uint64_t end = offset + map.scanned_length;
    const uint64_t bits = (map.scanned_length + chunk - 1) / chunk;
    demand(bits <= 8192 && map.bitmap.size() == (bits + 7) / 8, what + ": length of the bitmap");
    uint64_t set = 0;
    for (uint64_t i = 0; i < bits; ++i) {
      const uint64_t from = offset + i * chunk, to = std::min(from + chunk, end);
      const bool is_set = bit_of(map, i);
      set += is_set;
      const auto* next = content.next_block(from / kBlock);
      if (!is_set)
        demand_no_data(content, from, to, what);
      else
        demand(next && next->first * kBlock < to, at_offset(what, from) + ": it holds nothing");
    }
    demand(map.allocated_chunks == set, what + ": allocated_chunks");
    demand(hint || !map.next_allocated, what + ": a hint that was not asked for");
    const uint64_t next = map.next_allocated.value_or(hint ? size : end);
    demand(next >= end && (next % chunk == 0 || next == size), what + ": next_allocated");
    demand_no_data(content, end, next, what + ", skipped by next_allocated");
    if (map.next_allocated) {
      const auto* block = content.next_block(next / kBlock);
      demand(block && block->first * kBlock < next + chunk, what + ": next_allocated is empty");
    }
    offset = next;
  }
}

namespace {

// Follows next_offset to the end, and has each answer judged, which says all of [from, end).
using Fetch = std::function<Result<store::ExtentList>(uint64_t from, size_t extents_max)>;
using Judge = std::function<void(const std::vector<Extent>& extents, uint64_t from, uint64_t end)>;

void follow(uint64_t size, const std::string& what, Random& random, const Fetch& fetch,
            const Judge& judge) {
  std::optional<uint64_t> next = 0;
  for (int calls = 0; next && calls < 200; ++calls) {
    const uint64_t from = *next;
    const size_t extents_max = random.chance(30) ? random.between(1, 3) : 4096;
    const auto list = demand_ok(fetch(from, extents_max), what);
    demand(list.size == size, what + ": size");
    demand(list.extents.size() <= extents_max, what + ": too many");
    demand_ascending(list.extents, from, list.size, what);
    next = list.next_offset;
    demand(!next || (*next > from && *next < list.size), what + ": next_offset does not advance");
    judge(list.extents, from, next.value_or(list.size));
  }
}

}  // namespace

void check_extents(store::Store& store, const std::string& name, const Content& content,
                   Random& random) {
  const std::string what = "extents of " + name;
  const auto fetch = [&](uint64_t from, size_t extents_max) {
    return store.extents(name, from, extents_max);
  };
  follow(content.size_bytes(), what, random, fetch,
         [&](const std::vector<Extent>& extents, uint64_t at, uint64_t end) {
           for (const Extent& extent : extents) {
             demand(extent.kind == ExtentKind::data, what + ": a kind that is not data");
             demand_no_data(content, at, extent.offset, what);
             at = extent.offset + extent.length;
             demand_data(content, extent.offset, at, what);
           }
           demand_no_data(content, at, end, what);
         });
}

namespace {

// What the difference must say of a block: any of these bits.
constexpr unsigned kMaySkip = 1, kMayBeData = 2, kMayBeZero = 4;

unsigned difference_of(const Content& target, const Content& base, uint64_t index) {
  const ContentPointer here = target.block(index), there = base.block(index);
  if (here == there) return kMaySkip;
  const bool here_zero = !here || is_zero(*here), there_zero = !there || is_zero(*there);
  if (!here) return there_zero ? kMaySkip | kMayBeZero : kMayBeZero;
  const bool same = there ? *here == *there : here_zero;
  unsigned allowed = kMayBeData;
  if (same) allowed |= kMaySkip;
  if (here_zero) allowed |= kMayBeZero;
  return allowed;
}

void demand_skippable(const Content& target, const Content& base, uint64_t from, uint64_t to,
                      const std::string& what) {
  if (from >= to) return;
  for (const Content* side : {&target, &base})
    for (const auto* at = side->next_block(from / kBlock); at && at->first * kBlock < to;
         at = side->next_block(at->first + 1))
      demand((difference_of(target, base, at->first) & kMaySkip) != 0,
             at_offset(what, at->first * kBlock) + ": a change is missing");
}

}  // namespace

void check_diff(store::Store& store, const std::string& name, const Content& target,
                const std::string& base_name, const Content& base, Random& random) {
  const std::string what = "difference of " + name + " from " + base_name;
  const auto fetch = [&](uint64_t from, size_t extents_max) {
    return store.diff(name, base_name, from, extents_max);
  };
  follow(target.size_bytes(), what, random, fetch,
         [&](const std::vector<Extent>& extents, uint64_t at, uint64_t end) {
           for (const Extent& extent : extents) {
             demand_skippable(target, base, at, extent.offset, what);
             at = extent.offset + extent.length;
             const unsigned bit = extent.kind == ExtentKind::data ? kMayBeData : kMayBeZero;
             for (uint64_t index = extent.offset / kBlock; index < block_after(at); ++index)
               demand((difference_of(target, base, index) & bit) != 0,
                      at_offset(what, index * kBlock) + ": unchanged, or of the other kind");
           }
           demand_skippable(target, base, at, end, what);
         });
}

void check_unshared(store::Store& store, const std::string& name, const std::string& base,
                    uint64_t size, Random& random) {
  const std::string what = "what " + name + " does not share with " + base;
  const auto list = demand_ok(store.diff(name, base, 0, 65536), what);
  if (list.next_offset) return;
  // The first byte at or after `from` that differs.
  const auto next_difference = [&](uint64_t from) {
    for (const Extent& extent : list.extents) {
      if (extent.offset + extent.length > from) return std::max(from, extent.offset);
    }
    return size;
  };
  uint64_t chunk = any_chunk(random);
  for (uint64_t offset = 0; offset < size;) {
    const auto map =
        demand_ok(store.unshared(name, base, offset, size - offset, chunk, true), what);
    chunk = map.chunk;
    const uint64_t end = offset + map.scanned_length;
    uint64_t set = 0;
    for (uint64_t at = offset; at < end; at += chunk) {
      const bool differs = next_difference(at) < std::min(at + chunk, end);
      demand(bit_of(map, (at - offset) / chunk) == differs, at_offset(what, at));
      set += differs;
    }
    demand(map.allocated_chunks == set, what + ": allocated_chunks");
    const uint64_t next = next_difference(end) / chunk * chunk;
    demand(map.next_allocated.value_or(size) == (next_difference(end) < size ? next : size),
           what + ": next_allocated");
    offset = map.next_allocated.value_or(size);
  }
}

}  // namespace vellum::support

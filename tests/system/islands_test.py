#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is allocated on 40 TiB is found by following next_allocated, not by scanning."""

import random

import harness
from harness import BLOCK, GIB, MIB, TIB, case

SIZE = 40 * TIB
SEGMENT = 128 * GIB
ISLANDS = 64


def make_islands(seed):
    """(offset, length) of islands, block-aligned, some across the border of a segment."""
    dice = random.Random(seed)
    islands = []
    for i in range(ISLANDS):
        slot = SIZE // ISLANDS * i  # each island has a slot of its own: they never touch
        length = dice.randrange(1, 64) * BLOCK
        if i % 8 == 0:
            at = slot + SEGMENT - dice.randrange(1, length // BLOCK + 1) * BLOCK
        else:
            at = slot + dice.randrange(SIZE // ISLANDS // BLOCK - 64) * BLOCK
        islands.append((at, length))
    return islands


def borders_inside(islands):
    return sum((at + length - 1) // SEGMENT - at // SEGMENT for at, length in islands)


def scan(daemon, hint):
    """All allocated chunks by number, the chunk's size, and the count of calls."""
    found, calls, offset, chunk = set(), 0, 0, None
    while offset is not None and offset < SIZE:
        # From an offset inside a segment the next question goes to the segment's end.
        length = min(SEGMENT - offset % SEGMENT, SIZE - offset)
        answer = daemon.call("bitmap.allocated", target="v", offset=offset, length=length,
                             chunk=16 * MIB, hint=hint)
        calls += 1
        chunk = answer["chunk"]
        bits = harness.set_bits(answer)
        assert answer["scanned_length"] == length, answer["scanned_length"]
        assert answer["allocated_chunks"] == len(bits)
        found.update(offset // chunk + bit for bit in bits)
        offset = answer["next_allocated"] if hint else offset + answer["scanned_length"]
        assert hint or answer["next_allocated"] is None
    return found, chunk, calls


@case
def follow_the_hint():
    """64 islands on 40 TiB: one call an island and border with the hint, 320 without, equal maps."""
    islands = make_islands(seed=40)
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=SIZE)
        handle = daemon.connect("v")
        for at, length in islands:
            handle.pwrite(b"\x5a" * length, at)
        handle.flush()
        handle.shutdown()

        hinted, chunk, few = scan(daemon, hint=True)
        scanned, _, many = scan(daemon, hint=False)
        limit = ISLANDS + borders_inside(islands) + 1
        print(f"# {few} calls with the hint (at most {limit}), {many} without")
        assert few <= limit, (few, limit)
        assert many == SIZE // SEGMENT == 320, many
        expected = {c for at, length in islands
                    for c in range(at // chunk, (at + length - 1) // chunk + 1)}
        assert hinted == scanned == expected

        listed = daemon.call("extents.list", target="v")
        assert [(e["offset"], e["length"]) for e in listed["extents"]] == islands
        assert listed["next_offset"] is None


@case
def nothing_there():
    """An empty volume of 40 TiB answers in one call that there is nothing."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=SIZE)
        answer = daemon.call("bitmap.allocated", target="v")
        assert answer["allocated_chunks"] == 0 and answer["next_allocated"] is None, answer
        assert daemon.call("extents.list", target="v")["extents"] == []


if __name__ == "__main__":
    harness.run_cases()

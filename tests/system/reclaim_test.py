#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is destroyed comes back: in the store, and in the file that the store is in."""

import os
import random
import time

import harness
from harness import BLOCK, GIB, MIB, case

FILLED = 128 * MIB
ROUNDS = 1000
SPARSE = 40_000


def occupied(daemon):
    return os.stat(daemon.store).st_blocks * 512


def settle(daemon):
    """Waits until reclaim is idle and nothing waits for checkpoints any more."""
    seen = []

    def is_still():
        time.sleep(0.5)
        store = daemon.call("store.get")
        seen.append((store["used"], occupied(daemon)))
        busy = store["reclaim"] or store["waiting_for_reuse"] >= 4 * MIB
        return not busy and len(seen) > 12 and len(set(seen[-12:])) == 1

    harness.wait_for(is_still, "reclaim to be idle", seconds=60)


@case(seconds=300)
def the_file_does_not_grow():
    """1,000 rounds of write, snapshot, write, destroy leave a filled volume as large as it was."""
    dice = random.Random(7)
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=GIB)
        handle = daemon.connect("v")
        for at in range(0, FILLED, MIB):
            handle.pwrite(dice.randbytes(MIB), at)
        handle.flush()
        settle(daemon)
        before = occupied(daemon)
        for number in range(ROUNDS):
            for _ in range(4):
                handle.pwrite(dice.randbytes(4 * BLOCK),
                              dice.randrange(FILLED // BLOCK - 4) * BLOCK)
            name = daemon.call("snapshot.create", sources=["v"])[0]["name"]
            for _ in range(4):
                handle.pwrite(dice.randbytes(4 * BLOCK),
                              dice.randrange(FILLED // BLOCK - 4) * BLOCK)
            daemon.call("snapshot.destroy", name=name)
        handle.flush()
        settle(daemon)
        after = occupied(daemon)
        store = daemon.call("store.get")
        print(f"# {before} bytes of the file were occupied, then {after}; in use: {store['used']}")
        assert store["versions"] == 1 and store["zombies"] == 0, store
        assert abs(after - before) <= before // 50, (before, after)
        handle.shutdown()


@case
def io_goes_on_beside_reclaim():
    """Case 4: under steady 4 KiB writes no second without one, while a large snapshot is reclaimed."""
    dice = random.Random(4)
    # One block in each MiB: a leaf to read for each, so that the reclaim takes seconds.
    places = [number * MIB for number in range(SPARSE)]
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=SPARSE * MIB)
        handle = daemon.connect("v")
        for name in ["s", None]:
            for at in places:
                handle.pwrite(dice.randbytes(BLOCK), at)
            if name:
                daemon.call("snapshot.create", sources=["v"], suffix=name)
        daemon.call("snapshot.destroy", name="v@s")
        waiting = [daemon.call("store.get")["waiting_for_reclaim"]]
        last, longest, writes = time.monotonic(), 0.0, 0
        end = last + 60
        while time.monotonic() < end:
            handle.pwrite(dice.randbytes(BLOCK), dice.choice(places))
            now = time.monotonic()
            longest, last, writes = max(longest, now - last), now, writes + 1
            if writes % 100 == 0:
                waiting.append(daemon.call("store.get")["waiting_for_reclaim"])
                last = time.monotonic()
                if waiting[-1] == 0:
                    break
        print(f"# {writes} writes, the longest in {longest * 1000:.0f} ms; "
              f"waiting for reclaim: {waiting[0]}, {waiting[len(waiting) // 2]}, {waiting[-1]} bytes")
        assert waiting[0] > 0, "reclaim was over before it was looked at"
        assert waiting[-1] == 0, "reclaim does not end"
        assert longest < 1, longest
        handle.shutdown()


@case
def all_comes_back():
    """A file that held gigabytes of versions is nearly empty once they are gone."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        settle(daemon)
        empty = occupied(daemon)
        daemon.call("volume.create", name="v", size=GIB)
        handle = daemon.connect("v")
        for number in range(3):
            for at in range(0, FILLED, MIB):
                handle.pwrite(os.urandom(MIB), at)
            daemon.call("snapshot.create", sources=["v"])
            daemon.call("volume.clone", source=f"v@{number + 1}", name=f"c{number}")
        handle.shutdown()
        full = occupied(daemon)
        assert full >= empty + 3 * FILLED, (empty, full)
        for name in ["c1", "v", "c2", "c0"]:
            daemon.call("volume.destroy", name=name, force=True)
        settle(daemon)
        store = daemon.call("store.get")
        assert store["versions"] == 0, store
        # What is written ahead of its use stays.
        assert occupied(daemon) <= empty + 24 * MIB, (empty, full, occupied(daemon))


if __name__ == "__main__":
    harness.run_cases()

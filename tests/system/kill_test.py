#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""kill -9 of the daemon under load: what was promised is there, and the store is sound (P1, P2).

    kill_test.py [SEED] [ROUNDS]
"""

import random
import sys
import time

import nbd

import harness
from harness import MIB, case
from load import BLOCK, Writer

ROUNDS = 5
TICKS = 12  # of a round: a snapshot each, and one destroyed, which reclaim then works on
SIZE = 16 * MIB


def load_and_kill(daemon, writer, dice, snapshots, gone, number):
    """Keeps the queue full for a while; snapshots come and go. Then kills the daemon."""
    seconds = dice.uniform(0.5, 2.5)
    end = time.monotonic() + seconds
    next_tick = time.monotonic() + seconds / TICKS
    while time.monotonic() < end:
        writer.step()
        if time.monotonic() < next_tick:
            continue
        next_tick += seconds / TICKS
        promised = writer.snapshot_of_promises()
        made = daemon.call("snapshot.create", sources=[f"v{number}"])
        snapshots.append((made[0]["name"], promised, writer))
        if len(snapshots) > 4:
            name = snapshots.pop(dice.randrange(len(snapshots)))[0]
            daemon.call("snapshot.destroy", name=name)
            gone.append(name)
    daemon.process.kill()
    try:  # what is in flight may still have been answered
        while writer.handle.aio_in_flight():
            writer.handle.poll(1000)
    except nbd.Error:
        pass
    daemon.kill()


def blocks_that_differ(daemon, target, base):
    """As extents.diff tells it."""
    differing, offset = set(), 0
    while offset is not None:
        answer = daemon.call("extents.diff", target=target, base=base, offset=offset, max=1000)
        for extent in answer["extents"]:
            first = extent["offset"] // BLOCK
            differing.update(range(first, first + extent["length"] // BLOCK))
        offset = answer["next_offset"]
    return differing


def content(daemon, name):
    handle = daemon.connect(name)
    whole = handle.pread(SIZE, 0)
    handle.shutdown()
    return [whole[at:at + BLOCK] for at in range(0, SIZE, BLOCK)]


def check_diffs(daemon, names):
    """Case 16: each is exact, though the daemon was killed. Every write has its own content."""
    contents = {name: content(daemon, name) for name in names}
    for base, target in zip(names, names[1:]):
        told = blocks_that_differ(daemon, target, base)
        pairs = enumerate(zip(contents[base], contents[target]))
        differing = {at for at, (before, after) in pairs if before != after}
        assert told == differing, f"{target} against {base}: {sorted(told ^ differing)[:10]}"


def check_round(folder, number, writer, snapshots, gone):
    harness.check_store(f"{folder}/store")
    with harness.Daemon(folder) as daemon:
        handle = daemon.connect(f"v{number}")
        held = writer.verify(lambda at, length: handle.pread(length, at))
        handle.shutdown()
        names = {s["name"] for s in daemon.call("snapshot.list")}
        assert not names & set(gone), f"destroyed, and there again: {names & set(gone)}"
        for name, promised, its_writer in snapshots:
            assert name in names, f"snapshot {name} was acknowledged and is gone"
            handle = daemon.connect(name)
            its_writer.verify(lambda at, length: handle.pread(length, at), at_least=promised)
            handle.shutdown()
        own = [name for name, _, its_writer in snapshots if its_writer is writer]
        check_diffs(daemon, [*own, f"v{number}"])
    return held


@case(seconds=1200)
def killed_under_load():
    """Killed under load and reclaim: flushed and FUA writes, the order of all, and snapshots stay."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(1 << 32)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    print(f"# seed {seed}: repeat with {sys.argv[0]} {seed} {rounds}")
    dice = random.Random(seed)
    snapshots, gone = [], []
    with harness.folder() as folder:
        for number in range(rounds):
            with harness.Daemon(folder) as daemon:
                daemon.call("volume.create", name=f"v{number}", size=SIZE)
                writer = Writer(daemon.connect(f"v{number}"), SIZE // BLOCK, seed + number)
                load_and_kill(daemon, writer, dice, snapshots, gone, number)
            held = check_round(folder, number, writer, snapshots, gone)
            print(f"# round {number}: {len(writer.acknowledged)} writes and {writer.flushes} "
                  f"flushes acknowledged, {held} blocks found, {len(snapshots)} snapshots, "
                  f"{len(gone)} destroyed")
            assert writer.flushes > 0 and writer.acknowledged, "no load: nothing was tested"


if __name__ == "__main__":
    harness.run_cases()

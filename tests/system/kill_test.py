#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""kill -9 of the daemon under load: what was promised is there, and the store is sound (P1, P2)."""

import random
import sys
import time

import nbd

import harness
from harness import MIB, case
from load import BLOCK, Writer

ROUNDS = 5
SIZE = 16 * MIB


def load_and_kill(daemon, writer, seconds, snapshots, number):
    """Keeps the queue full for a while, with a snapshot now and then; then kills the daemon."""
    end = time.monotonic() + seconds
    next_snapshot = time.monotonic() + seconds / 4
    while time.monotonic() < end:
        writer.step()
        if time.monotonic() >= next_snapshot:
            next_snapshot += seconds / 4
            promised = writer.snapshot_of_promises()
            made = daemon.call("snapshot.create", sources=[f"v{number}"])
            snapshots.append((made[0]["name"], promised, writer))
    daemon.process.kill()
    try:  # what is in flight may still have been answered
        while writer.handle.aio_in_flight():
            writer.handle.poll(1000)
    except nbd.Error:
        pass
    daemon.kill()


def check_round(folder, number, writer, snapshots):
    harness.check_store(f"{folder}/store")
    with harness.Daemon(folder) as daemon:
        handle = daemon.connect(f"v{number}")
        held = writer.verify(lambda at, length: handle.pread(length, at))
        handle.shutdown()
        names = {s["name"] for s in daemon.call("snapshot.list")}
        for name, promised, its_writer in snapshots:
            assert name in names, f"snapshot {name} was acknowledged and is gone"
            handle = daemon.connect(name)
            its_writer.verify(lambda at, length: handle.pread(length, at), at_least=promised)
            handle.shutdown()
    return held


@case(seconds=300)
def killed_under_load():
    """Killed five times under load: flushed and FUA writes, the order of all, and snapshots stay."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(1 << 32)
    print(f"# seed {seed}: repeat with {sys.argv[0]} {seed}")
    dice = random.Random(seed)
    snapshots = []
    with harness.folder() as folder:
        for number in range(ROUNDS):
            with harness.Daemon(folder) as daemon:
                daemon.call("volume.create", name=f"v{number}", size=SIZE)
                writer = Writer(daemon.connect(f"v{number}"), SIZE // BLOCK, seed + number)
                load_and_kill(daemon, writer, dice.uniform(0.5, 2.5), snapshots, number)
            held = check_round(folder, number, writer, snapshots)
            print(f"# round {number}: {len(writer.acknowledged)} writes and {writer.flushes} "
                  f"flushes acknowledged, {held} blocks found, {len(snapshots)} snapshots")
            assert writer.flushes > 0 and writer.acknowledged, "no load: nothing was tested"


if __name__ == "__main__":
    harness.run_cases()

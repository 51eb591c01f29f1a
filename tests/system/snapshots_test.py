#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Snapshots under load: one point in time, of one volume and of several; diffs that add up."""

import random
import threading
import time

import nbd

import harness
from harness import BLOCK, GIB, MIB, case
from load import Writer

SIZE = 16 * MIB


def number_at(handle):
    return int.from_bytes(handle.pread(8, 0), "little")


@case
def groups():
    """A write on one volume, then one on another: no group snapshot has the second alone (P5, case 11)."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        for name in ["first", "second"]:
            daemon.call("volume.create", name=name, size=MIB)
        stop = threading.Event()

        def write():
            first, second = daemon.connect("first"), daemon.connect("second")
            number = 0
            while not stop.is_set():
                number += 1
                first.pwrite(number.to_bytes(8, "little") * 512, 0)
                second.pwrite(number.to_bytes(8, "little") * 512, 0)
            first.shutdown()
            second.shutdown()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for i in range(200):
                daemon.call("snapshot.create", sources=["second", "first"], suffix=f"group-{i}")
        finally:
            stop.set()
            writer.join(30)
        seen = []
        for i in range(200):
            first = daemon.connect(f"first@group-{i}")
            second = daemon.connect(f"second@group-{i}")
            before, after = number_at(first), number_at(second)
            assert after <= before <= after + 1, (i, before, after)
            seen.append(before)
            first.shutdown()
            second.shutdown()
        assert seen == sorted(seen) and seen[-1] > seen[0], "the writer did not write"


@case(seconds=180)
def prefixes():
    """1,000 snapshots under random writes: each has all that was acknowledged before it (P2, P4, case 8)."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=SIZE)
        writer = Writer(daemon.connect("v"), SIZE // BLOCK, seed=8, depth=128)
        promises = {}
        for i in range(1000):
            for _ in range(3):
                writer.step()
            if i % 50 == 0:
                promises[f"v@{i}"] = writer.snapshot_of_promises()
            daemon.call("snapshot.create", sources=["v"], suffix=str(i))
        while writer.handle.aio_in_flight():
            writer.handle.poll(1000)
        writer.handle.shutdown()
        for name, promised in promises.items():
            handle = daemon.connect(name)
            writer.verify(lambda at, length: handle.pread(length, at), at_least=promised)
            handle.shutdown()
        assert len(daemon.call("snapshot.list", volume="v")) == 1000


def apply_diff(daemon, target, base, onto):
    """Brings volume `onto`, which equals `base`, to what `target` is, by the diff alone."""
    source, sink = daemon.connect(target), daemon.connect(onto)
    offset = 0
    while offset is not None:
        answer = daemon.call("extents.diff", target=target, base=base, offset=offset, max=100)
        for extent in answer["extents"]:
            at, length = extent["offset"], extent["length"]
            if extent["kind"] == "zero":
                sink.zero(length, at)
            else:
                sink.pwrite(source.pread(length, at), at)
        offset = answer["next_offset"]
    source.shutdown()
    sink.shutdown()


@case
def chain_of_diffs():
    """Replaying a chain of diffs gives each snapshot, also where one in the middle is gone (case 12)."""
    dice = random.Random(12)
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=SIZE)
        daemon.call("volume.create", name="replica", size=SIZE)
        handle = daemon.connect("v")
        names = []
        for i in range(12):
            for _ in range(20):
                length = dice.randrange(1, 40) * 512
                offset = dice.randrange((SIZE - length) // 512) * 512
                if dice.random() < 0.3:
                    handle.trim(length, offset)
                else:
                    handle.pwrite(dice.randbytes(length), offset)
            names.append(daemon.call("snapshot.create", sources=["v"])[0]["name"])
        handle.shutdown()
        for name in names[3], names[7], names[8]:
            daemon.call("snapshot.destroy", name=name)
            names.remove(name)
        daemon.call("volume.clone", source="replica", name="empty")
        for base, target in zip(["empty", *names], names):
            apply_diff(daemon, target, base, "replica")
            handle, copy = daemon.connect(target), daemon.connect("replica")
            assert handle.pread(SIZE, 0) == copy.pread(SIZE, 0), f"the diff to {target} is not exact"
            handle.shutdown()
            copy.shutdown()


@case
def request_ids():
    """A repeated request_id gets the first answer, also after SIGTERM and SIGKILL (case 10)."""
    with harness.folder() as folder:
        with harness.Daemon(folder) as daemon:
            daemon.call("volume.create", name="v", size=MIB, request_id="make-v")
            first = daemon.call("snapshot.create", sources=["v"], request_id="once")
            assert daemon.call("snapshot.create", sources=["v"], request_id="once") == first
            daemon.kill()
        with harness.Daemon(folder) as daemon:
            assert daemon.call("snapshot.create", sources=["v"], request_id="once") == first
        with harness.Daemon(folder) as daemon:
            assert daemon.call("snapshot.create", sources=["v"], request_id="once") == first
            assert len(daemon.call("snapshot.list")) == 1
            other = daemon.call("snapshot.create", sources=["v"], request_id="another")
            assert other != first and len(daemon.call("snapshot.list")) == 2


@case
def trim_on_clone():
    """Trim on a clone: zeros there, the parent as it was; so with zeroes of any length (case 20)."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=8 * GIB)
        handle = daemon.connect("v")
        for at in [0, 128 * MIB, 4 * GIB - MIB, 4 * GIB]:
            handle.pwrite(b"\x77" * MIB, at)
        daemon.call("volume.clone", source="v", name="clone")
        clone = daemon.connect("clone")
        clone.trim(MIB // 2, 0)
        assert clone.pread(MIB, 0) == bytes(MIB // 2) + b"\x77" * (MIB // 2)
        clone.zero(2**32 - 512, 512, nbd.CMD_FLAG_FUA)
        for at in [0, 128 * MIB, 4 * GIB - MIB]:
            assert clone.pread(MIB, at) == bytes(MIB), at
        assert clone.pread(MIB, 4 * GIB) == b"\x77" * MIB
        for at in [0, 128 * MIB, 4 * GIB - MIB, 4 * GIB]:
            assert handle.pread(MIB, at) == b"\x77" * MIB, at
        handle.shutdown()
        clone.shutdown()


@case
def same_milliseconds():
    """Deleting and reverting reply as fast after 1 MiB of changes as after 256 MiB (case 1)."""
    took = {}
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        for name, changed in [("little", 1), ("much", 256)]:
            daemon.call("volume.create", name=name, size=GIB)
            daemon.call("snapshot.create", sources=[name], suffix="empty")
            handle = daemon.connect(name)
            for i in range(changed):
                handle.pwrite(b"\x99" * MIB, i * MIB)
            handle.flush()
            handle.shutdown()
            daemon.call("snapshot.create", sources=[name], suffix="full")
            started = time.monotonic()
            daemon.call("volume.revert", name=name, snapshot="empty", undo=False)
            daemon.call("snapshot.destroy", name=f"{name}@full")
            took[name] = time.monotonic() - started
            handle = daemon.connect(name)
            assert handle.pread(MIB, 0) == bytes(MIB)
            handle.shutdown()
    print(f"# {took['little'] * 1000:.1f} ms after 1 MiB, {took['much'] * 1000:.1f} ms after 256 MiB")
    assert took["much"] < took["little"] + 0.1, took


if __name__ == "__main__":
    harness.run_cases()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A long random walk over NBD and the control socket, against arrays in memory.

usage: random_test.py [--seconds N] [--seed N] [--no-restarts]

Everything is decided by the seed, which is printed. Volumes are small, so that changes overlap;
offsets and lengths are of any alignment (case 25). Every few hundred steps, after each restart and at the
end, all volumes and snapshots are compared byte for byte.
"""

import argparse
import random
import time

import nbd

import harness
from harness import BLOCK, KIB, MIB, case

VOLUMES_MAX = 6
SNAPSHOTS_MAX = 16
SIZES = [2 * MIB, 3 * MIB + 512, MIB + 7 * 512, 4 * MIB, 100 * KIB]


class Walk:
    def __init__(self, folder, seed, restarts):
        self.dice = random.Random(seed)
        self.folder = folder
        self.restarts = restarts
        self.daemon = harness.Daemon(folder)
        self.handles = {}
        self.volumes = {}  # name -> bytearray
        self.snapshots = {}  # full name -> bytes
        self.made = 0
        self.steps = 0
        self.create()

    # -- choosing ---------------------------------------------------------------------------------
    def a_volume(self):
        return self.dice.choice(sorted(self.volumes))

    def a_source(self):
        return self.dice.choice(sorted(self.volumes) + sorted(self.snapshots))

    def content(self, name):
        return self.volumes[name] if name in self.volumes else self.snapshots[name]

    def a_range(self, size):
        """Any alignment, mostly short, often around the borders of blocks and of leaves."""
        dice = self.dice
        length = dice.choice([1, 511, 512, BLOCK, dice.randrange(1, 3 * BLOCK),
                              dice.randrange(1, 300 * KIB), dice.randrange(1, 2 * MIB)])
        length = min(length, size)
        offset = dice.randrange(size - length + 1)
        align = dice.choice([1, 1, 512, BLOCK, BLOCK, MIB])
        return offset // align * align, length

    def fresh_name(self):
        self.made += 1
        return f"vol-{self.made}"

    def handle(self, name):
        if name not in self.handles:
            self.handles[name] = self.daemon.connect(name, structured=self.dice.random() < 0.8)
        return self.handles[name]

    def let_go(self, name):
        handle = self.handles.pop(name, None)
        if handle:
            handle.shutdown()

    # -- what a client may do ---------------------------------------------------------------------
    def write(self):
        name = self.a_volume()
        offset, length = self.a_range(len(self.volumes[name]))
        data = self.dice.randbytes(length)
        flags = nbd.CMD_FLAG_FUA if self.dice.random() < 0.1 else 0
        self.handle(name).pwrite(data, offset, flags)
        self.volumes[name][offset:offset + length] = data

    def trim(self):
        name = self.a_volume()
        offset, length = self.a_range(len(self.volumes[name]))
        self.handle(name).trim(length, offset, self.dice.choice([0, nbd.CMD_FLAG_FUA]))
        # What a trim reads as afterwards is for the server to say, and this one says zeros.
        self.volumes[name][offset:offset + length] = bytes(length)

    def zero(self):
        name = self.a_volume()
        offset, length = self.a_range(len(self.volumes[name]))
        flags = self.dice.choice([0, nbd.CMD_FLAG_FUA, nbd.CMD_FLAG_FAST_ZERO, nbd.CMD_FLAG_NO_HOLE])
        self.handle(name).zero(length, offset, flags)
        self.volumes[name][offset:offset + length] = bytes(length)

    def read(self):
        name = self.a_source()
        offset, length = self.a_range(len(self.content(name)))
        found = self.handle(name).pread(length, offset)
        assert found == self.content(name)[offset:offset + length], (name, offset, length)

    def flush(self):
        self.handle(self.a_volume()).flush()

    def map(self):
        """No hole where there is data, and the whole range is covered."""
        name = self.a_source()
        self.let_go(name)
        handle = self.daemon.connect(name)
        content = self.content(name)
        offset, length = self.a_range(len(content))
        at = offset

        def extent(_context, where, entries, _error):
            nonlocal at
            assert where == at, (where, at)
            for size, flags in zip(entries[::2], entries[1::2]):
                if flags & nbd.STATE_ZERO:
                    part = content[at:min(at + size, len(content))]
                    assert not any(part), f"a hole in {name} at {at}, where data is"
                at += size

        while at < offset + length:
            handle.block_status(offset + length - at, at, extent)
        handle.shutdown()

    # -- what the control socket may do -----------------------------------------------------------
    def create(self):
        if len(self.volumes) >= VOLUMES_MAX:
            return
        name = self.fresh_name()
        size = self.dice.choice(SIZES)
        self.daemon.call("volume.create", name=name, size=size)
        self.volumes[name] = bytearray(size)

    def snapshot(self):
        names = self.dice.sample(sorted(self.volumes), self.dice.randrange(1, 3)
                                 if len(self.volumes) > 1 else 1)
        if len(self.snapshots) + len(names) > SNAPSHOTS_MAX:
            return self.destroy_snapshot()
        for made in self.daemon.call("snapshot.create", sources=names):
            self.snapshots[made["name"]] = bytes(self.volumes[made["name"].split("@")[0]])
        return None

    def call_once_detached(self, method, **params):
        """The server sees that a client has gone a moment after it went."""
        end = time.monotonic() + 30
        while True:
            try:
                return self.daemon.call(method, **params)
            except harness.RpcError as error:
                if error.code != harness.IN_USE or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def destroy_snapshot(self):
        if self.snapshots:
            name = self.dice.choice(sorted(self.snapshots))
            self.let_go(name)
            self.call_once_detached("snapshot.destroy", name=name)
            del self.snapshots[name]

    def destroy_volume(self):
        if len(self.volumes) < 3:
            return
        name = self.a_volume()
        for full in [s for s in self.snapshots if s.split("@")[0] == name]:
            self.let_go(full)
            del self.snapshots[full]
        self.let_go(name)
        self.call_once_detached("volume.destroy", name=name)
        del self.volumes[name]

    def clone(self):
        if len(self.volumes) >= VOLUMES_MAX:
            return self.destroy_volume()
        source, name = self.a_source(), self.fresh_name()
        self.daemon.call("volume.clone", source=source, name=name)
        self.volumes[name] = bytearray(self.content(source))
        return None

    def replaced(self, name, content, answer, undo):
        if undo:
            self.snapshots[answer["undo_snapshot"]] = bytes(self.volumes[name])
        else:
            assert answer.get("undo_snapshot") is None, answer
        self.volumes[name] = bytearray(content)

    def copy(self):
        source, target = self.a_source(), self.a_volume()
        if source == target:
            return
        content = bytes(self.content(source))
        if len(content) != len(self.volumes[target]):
            self.let_go(target)
        undo = self.dice.random() < 0.5 and len(self.snapshots) < SNAPSHOTS_MAX
        answer = self.call_once_detached("volume.copy", source=source, target=target, overwrite=True,
                                         undo=undo)
        self.replaced(target, content, answer, undo)

    def revert(self):
        name = self.a_volume()
        own = sorted(s for s in self.snapshots if s.split("@")[0] == name)
        if not own:
            return
        snapshot = self.dice.choice(own)
        content = self.snapshots[snapshot]
        if len(content) != len(self.volumes[name]):
            self.let_go(name)
        undo = self.dice.random() < 0.5 and len(self.snapshots) < SNAPSHOTS_MAX
        answer = self.call_once_detached("volume.revert", name=name,
                                         snapshot=snapshot.split("@")[1], undo=undo)
        self.replaced(name, content, answer, undo)

    def resize(self):
        name = self.a_volume()
        self.let_go(name)
        old, size = len(self.volumes[name]), self.dice.choice(SIZES)
        self.call_once_detached("volume.resize", name=name, size=size, truncate=size < old)
        self.volumes[name] = self.volumes[name][:size] + bytearray(max(0, size - old))

    def rename(self):
        name, new_name = self.a_volume(), self.fresh_name()
        moved = [s for s in self.snapshots if s.split("@")[0] == name]
        for old in [name, *moved]:
            self.let_go(old)
        self.daemon.call("volume.rename", name=name, new_name=new_name)
        self.volumes[new_name] = self.volumes.pop(name)
        for old in moved:
            self.snapshots[f"{new_name}@{old.split('@')[1]}"] = self.snapshots.pop(old)

    def diff(self):
        """Applying a diff to its base gives its target."""
        base, target = self.a_source(), self.a_source()
        patched = bytearray(self.content(base))
        content = self.content(target)
        patched = patched[:len(content)] + bytearray(max(0, len(content) - len(patched)))
        offset = 0
        while offset is not None:
            answer = self.daemon.call("extents.diff", target=target, base=base, offset=offset,
                                      max=self.dice.choice([1, 7, 4096]))
            for extent in answer["extents"]:
                begin, end = extent["offset"], extent["offset"] + extent["length"]
                patched[begin:end] = (content[begin:end] if extent["kind"] == "data"
                                      else bytes(end - begin))
            offset = answer["next_offset"]
        assert patched == content, f"the diff of {target} to {base} is not all that differs"

    def restart(self):
        """By SIGTERM, or after a flush by SIGKILL: either way nothing may be missing."""
        if not self.restarts:
            return
        if self.dice.random() < 0.5:
            for name in list(self.handles):
                self.let_go(name)
            assert self.daemon.stop() == 0
        else:
            self.flush()
            self.daemon.kill()
        self.handles = {}
        harness.check_store(self.daemon.store)
        self.daemon = harness.Daemon(self.folder)
        self.compare()

    # -- judging ----------------------------------------------------------------------------------
    def compare(self):
        assert {v["name"] for v in self.daemon.call("volume.list")} == set(self.volumes)
        assert {s["name"] for s in self.daemon.call("snapshot.list")} == set(self.snapshots)
        for name in [*self.volumes, *self.snapshots]:
            content = self.content(name)
            handle = self.daemon.connect(name)
            assert handle.get_size() == len(content), name
            found = handle.pread(len(content), 0)
            if found != content:
                at = next(i for i in range(len(content)) if found[i] != content[i])
                raise AssertionError(f"{name} differs at byte {at}, in step {self.steps}")
            handle.shutdown()

    ACTIONS = {write: 40, read: 20, trim: 8, zero: 8, flush: 3, map: 4, snapshot: 4, clone: 3,
               destroy_snapshot: 3, destroy_volume: 1, copy: 2, revert: 2, resize: 1, rename: 1,
               create: 1, diff: 3, restart: 0.15}

    def step(self):
        self.steps += 1
        actions = list(self.ACTIONS)
        action = self.dice.choices(actions, weights=list(self.ACTIONS.values()))[0]
        action(self)
        if self.steps % 400 == 0:
            self.compare()


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--no-restarts", action="store_true")
    return parser.parse_args()


OPTIONS = parse_arguments()


@case(seconds=OPTIONS.seconds + 120)
def random_walk():
    """A random walk of I/O, snapshots, clones, reverts, copies and restarts agrees with the model."""
    print(f"# seed {OPTIONS.seed}: repeat with --seed {OPTIONS.seed}", flush=True)
    end = time.monotonic() + OPTIONS.seconds
    with harness.folder() as folder:
        walk = Walk(folder, OPTIONS.seed, not OPTIONS.no_restarts)
        try:
            while time.monotonic() < end:
                walk.step()
            walk.compare()
        except Exception as error:
            raise AssertionError(f"in step {walk.steps} of seed {OPTIONS.seed}") from error
        finally:
            if walk.daemon.process.poll() is None:
                code = walk.daemon.stop()
        assert code == 0, walk.daemon.log()
        print(f"# {walk.steps} steps")
        if walk.restarts:
            harness.check_store(walk.daemon.store)


if __name__ == "__main__":
    harness.run_cases()

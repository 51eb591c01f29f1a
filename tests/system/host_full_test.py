#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The file system that holds the store's file gets full: nothing is lost, and it goes on later."""

import contextlib
import errno
import os
import random
import resource

import harness
from harness import GIB, KIB, MIB, case

PIECE = 64 * KIB


@contextlib.contextmanager
def small_file_system(size):
    """An ext4 file system of its own, in a file, mounted at the folder that is returned."""
    with harness.folder() as folder:
        image, mount = os.path.join(folder, "image"), os.path.join(folder, "mount")
        with open(image, "wb") as file:
            file.truncate(size)
        os.mkdir(mount)
        harness.run("mkfs.ext4", "-q", "-m", "0", image)
        harness.run("mount", "-o", "loop", image, mount)
        try:
            yield mount
        finally:
            harness.run("umount", mount)


def content(tag):
    return random.Random(tag).randbytes(PIECE)


class Writer:
    """Writes at random places of a volume, and knows what each must hold."""

    def __init__(self, daemon, volume):
        self.daemon, self.volume, self.held, self.tag = daemon, volume, {}, 0
        self.dice = random.Random(3)
        self.handle = daemon.connect(volume)

    def write(self, place):
        """0, or the errno."""
        import nbd
        self.tag += 1
        try:
            self.handle.pwrite(content(self.tag), place)
        except nbd.Error as error:
            return error.errnum
        self.held[place] = self.tag
        return 0

    def until_refused(self):
        for _ in range(20000):
            refused = self.write(self.dice.randrange(GIB // PIECE) * PIECE)
            if refused:
                return refused
        raise AssertionError("it never gets full")

    def check(self):
        for place, tag in self.held.items():
            assert self.handle.pread(PIECE, place) == content(tag), place

    def again(self, daemon):
        self.daemon, self.handle = daemon, daemon.connect(self.volume)


@case(seconds=200)
def a_small_file_system():
    """ENOSPC for writes alone, a clear line in the log; what is eradicated makes room again."""
    with small_file_system(300 * MIB) as mount, harness.Daemon(mount) as daemon:
        daemon.call("volume.create", name="v", size=GIB)
        daemon.call("volume.create", name="w", size=GIB)
        other = Writer(daemon, "w")
        for place in range(0, 64 * MIB, PIECE):
            assert other.write(place) == 0
        writer = Writer(daemon, "v")
        assert writer.until_refused() == errno.ENOSPC
        writer.handle.flush()
        writer.check()
        state = daemon.call("store.get")
        assert state["read_only"] is None and state["warning"]["level"] == 100, state
        assert "file system" in state["warning"]["message"], state
        assert [line for line in daemon.log().splitlines()
                if "error" in line and "file system that holds" in line], daemon.log()
        # What needs no space is done.
        assert daemon.call("volume.destroy", name="w", force=True)["time_remaining_ms"] == 0
        writer.handle.trim(PIECE, 0)
        writer.held.pop(0, None)
        writer.handle.flush()
        place = next(iter(writer.held))
        harness.wait_for(lambda: writer.write(place) == 0, "room for writes", seconds=60)
        for _ in range(100):
            assert writer.write(writer.dice.randrange(GIB // PIECE) * PIECE) == 0
        assert "there is room again" in daemon.log()
        assert daemon.call("store.get")["warning"] is None
        writer.check()
        writer.handle.shutdown()
        assert daemon.stop() == 0
        harness.check_store(daemon.store)


@case(seconds=200)
def killed_while_it_is_full():
    """kill -9 in a full file system loses nothing that was flushed, and the store opens there."""
    with small_file_system(300 * MIB) as mount:
        with harness.Daemon(mount) as daemon:
            daemon.call("volume.create", name="v", size=GIB)
            writer = Writer(daemon, "v")
            assert writer.until_refused() == errno.ENOSPC
            writer.handle.flush()
            for _ in range(50):
                writer.write(writer.dice.randrange(GIB // PIECE) * PIECE)
            writer.handle.flush()
            daemon.kill()
        harness.check_store(daemon.store)
        with harness.Daemon(mount) as daemon:
            writer.again(daemon)
            writer.check()
            writer.handle.shutdown()
            daemon.stop()
        harness.check_store(daemon.store)


@case
def a_limit_on_the_size_of_files():
    """RLIMIT_FSIZE is a lack of space, and no end of the server."""
    limit = 128 * MIB
    wrapper = ["prlimit", f"--fsize={limit}"]
    with harness.folder() as folder, harness.Daemon(folder, wrapper=wrapper) as daemon:
        assert resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE)[0] == limit
        daemon.call("volume.create", name="v", size=GIB)
        writer = Writer(daemon, "v")
        assert writer.until_refused() == errno.ENOSPC
        writer.handle.flush()
        writer.check()
        assert daemon.call("store.get")["read_only"] is None
        writer.handle.shutdown()
        daemon.kill()
        harness.check_store(daemon.store)


harness.run_cases()

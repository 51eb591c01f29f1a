# SPDX-License-Identifier: BSD-2-Clause
"""The servers that are measured side by side, each with a volume full of random data.

A Contender is started once and serves until it is stopped; only those that have to take a fresh
snapshot before a timed part are restarted in prepare(). Everything lies in one folder.
"""

import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import harness  # noqa: E402
from harness import BLOCK, MIB, run  # noqa: E402


def fill_with_random(write, size):
    """The same kind of data for everyone: nothing that compresses, nothing that is zero."""
    for offset in range(0, size, MIB):
        write(offset, os.urandom(min(MIB, size - offset)))


class Contender:
    def __init__(self, name, folder, size):
        self.name = name
        self.folder = os.path.join(folder, name)
        self.size = size
        self.socket = os.path.join(self.folder, "nbd.sock")
        self.process = None
        os.makedirs(self.folder)

    def set_up(self):
        """Makes the volume and starts the server."""
        raise NotImplementedError

    def prepare(self):
        """What has to be done right before each timed part."""

    def uri(self):
        return f"nbd+unix:///?socket={self.socket}"

    def serve(self, *command):
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        def answers():
            assert self.process.poll() is None, f"{self.name} ended at its start"
            return self._answers()
        harness.wait_for(answers, f"{self.name} answers")

    def _answers(self):
        import nbd
        with contextlib.suppress(nbd.Error):
            handle = nbd.NBD()
            handle.connect_uri(self.uri())
            handle.shutdown()
            return True
        return False

    def stop(self):
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(60)
        self.process = None

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self):
        """Resident set, shared libraries included."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        return 0

    def flush(self):
        import nbd
        handle = nbd.NBD()
        handle.connect_uri(self.uri())
        started = time.monotonic()
        handle.flush()
        seconds = time.monotonic() - started
        handle.shutdown()
        return seconds


class RawFile(Contender):
    def make_file(self):
        path = os.path.join(self.folder, "raw")
        with open(path, "wb") as file:
            fill_with_random(lambda _offset, data: file.write(data), self.size)
        return path


class NbdkitRaw(RawFile):
    def set_up(self):
        self.serve("nbdkit", "--foreground", "--unix", self.socket, "file", self.make_file())


class QemuRaw(RawFile):
    def set_up(self):
        self.serve("qemu-nbd", "--persistent", "--shared=0", "--socket", self.socket,
                   "--format=raw", self.make_file())


class Qcow2(RawFile):
    """qcow2, with a snapshot taken right before each timed part, or with none."""

    def __init__(self, name, folder, size, snapshot):
        super().__init__(name, folder, size)
        self.snapshot = snapshot
        self.image = os.path.join(self.folder, "qcow2")

    def start(self):
        self.serve("qemu-nbd", "--persistent", "--shared=0", "--socket", self.socket,
                   "--format=qcow2", self.image)

    def set_up(self):
        raw = self.make_file()
        run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, self.image)
        os.unlink(raw)
        self.start()

    def prepare(self):
        if not self.snapshot:
            return
        self.stop()
        if "just-taken" in run("qemu-img", "snapshot", "-l", self.image):
            run("qemu-img", "snapshot", "-d", "just-taken", self.image)
        run("qemu-img", "snapshot", "-c", "just-taken", self.image)
        self.start()


class Vellum(Contender):
    """Vellum with a number of snapshots, each of which followed `between` random writes."""

    def __init__(self, name, folder, size, snapshots, between, arguments=()):
        super().__init__(name, folder, size)
        self.snapshots = snapshots
        self.between = between
        self.arguments = arguments
        self.daemon = None

    def uri(self):
        return self.daemon.uri("v")

    def set_up(self):
        self.daemon = harness.Daemon(self.folder, *self.arguments)
        self.process = self.daemon.process
        self.daemon.call("volume.create", name="v", size=self.size)
        handle = self.daemon.connect("v")
        fill_with_random(lambda offset, data: handle.pwrite(data, offset), self.size)
        handle.flush()
        for _ in range(self.snapshots):
            self._random_writes(handle)
            self.daemon.call("snapshot.create", sources=["v"])
        handle.flush()
        handle.shutdown()
        self._use_memory()

    def _use_memory(self):
        """Pages that nobody has used yet cost many times a write on a virtual machine. A raw file got
        its pages when it was filled; here new writes go elsewhere, so as much again is used once."""
        self.daemon.call("volume.create", name="before", size=3 * self.size)
        handle = self.daemon.connect("before")
        fill_with_random(lambda offset, data: handle.pwrite(data, offset), 3 * self.size)
        handle.flush()
        handle.shutdown()
        self.daemon.call("volume.destroy", name="before", eradicate=True)
        harness.wait_for(lambda: self.daemon.call("store.get")["zombies"] == 0,
                         "the space is given back")

    def _random_writes(self, handle):
        import nbd
        buffers = nbd.Buffer.from_bytearray(bytearray(os.urandom(BLOCK)))
        blocks = self.size // BLOCK
        picks = os.urandom(4 * self.between)
        for i in range(0, len(picks), 4):
            block = int.from_bytes(picks[i:i + 4], "little") % blocks
            handle.aio_pwrite(buffers, block * BLOCK, lambda error: 1)
            while handle.aio_in_flight() >= 64:
                handle.poll(-1)
        while handle.aio_in_flight():
            handle.poll(-1)

    def stop(self):
        if self.daemon is not None:
            assert self.daemon.stop() == 0, self.daemon.log()
            self.daemon = None


def make_contenders(folder, size, snapshots, between):
    return [
        NbdkitRaw("nbdkit-raw", folder, size),
        NbdkitRaw("nbdkit-raw-again", folder, size),
        QemuRaw("qemu-nbd-raw", folder, size),
        Qcow2("qcow2", folder, size, snapshot=False),
        Qcow2("qcow2-snapshot", folder, size, snapshot=True),
        Vellum("vellum", folder, size, 0, between),
        Vellum(f"vellum-{snapshots}", folder, size, snapshots, between),
    ]

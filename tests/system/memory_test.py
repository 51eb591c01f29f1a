#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""How much memory the daemon takes, whatever it is given (P12)."""

import nbd

import harness
from harness import BLOCK, GIB, MIB, case

WRITTEN = 10 * GIB
VOLUME = GIB
CACHE = 64 * MIB
PIECE = 4 * MIB
BESIDE = 64 * MIB  # what it may take besides the cache of the map


def resident(daemon, what="VmRSS"):
    with open(f"/proc/{daemon.pid}/status") as status:
        line = next(line for line in status if line.startswith(what))
    return int(line.split()[1]) * 1024


@case(seconds=300)
def writing_without_a_flush():
    """Case 27: 10 GiB written and never flushed, many requests in flight, leave memory bounded."""
    with harness.folder() as folder, harness.Daemon(folder, "--cache", "64M") as daemon:
        daemon.call("volume.create", name="v", size=VOLUME)
        handle = daemon.connect("v")
        before = resident(daemon)
        data = memoryview(bytes(range(256)) * (PIECE // 256 + BLOCK))
        for number in range(WRITTEN // PIECE):
            while handle.aio_in_flight() >= 8:
                handle.poll(1000)
            piece = bytearray(data[number % BLOCK:][:PIECE])
            buffer = nbd.Buffer.from_bytearray(piece)
            handle.aio_pwrite(buffer, number * PIECE % VOLUME, lambda _error: 1)
        while handle.aio_in_flight():
            handle.poll(1000)
        peak = resident(daemon, "VmHWM")
        written = daemon.call("stats.get")["write_bytes"]
        print(f"# {before // MIB} MiB before, at most {peak // MIB} MiB while {written // MIB} MiB "
              f"were written")
        assert written >= WRITTEN, written
        assert peak <= CACHE + BESIDE + 8 * PIECE, peak
        handle.shutdown()


if __name__ == "__main__":
    harness.run_cases()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Bytes of a store's file are changed behind its back: what clients, the log, the command and the
maps say then, and that all else goes on (P3)."""

import errno
import json
import os
import struct
import subprocess

import nbd

import harness
from harness import BLOCK, GIB, MIB, VELLUM, case


def find_block(store, data):
    """The offset in the file of a block with this content."""
    with open(store, "rb") as file:
        content = file.read()
    at = content.find(data)
    while at % BLOCK:
        assert at >= 0, "there is no such block"
        at = content.find(data, at + 1)
    return at


def find_leaves(store, block):
    """The offsets of the map's nodes with a pointer to the block at this offset: its address in
    sectors, with a length of 8 and the kind of data (FORMAT.md)."""
    pointer = struct.pack("<Q", block // 512 | 8 << 48 | 1 << 56)
    with open(store, "rb") as file:
        content = file.read()
    leaves, at = set(), content.find(pointer)
    while at >= 0:
        if at % 16 == 0:
            leaves.add(at // BLOCK * BLOCK)
        at = content.find(pointer, at + 1)
    assert leaves
    return sorted(leaves)


def spoil(store, offset):
    with open(store, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))


def make(folder, length=8 * MIB):
    """A store with the volume v, its snapshot v@s and the clone c, and what they hold."""
    data = os.urandom(length)
    with harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=GIB)
        handle = daemon.connect("v")
        for at in range(0, length, 8 * MIB):
            handle.pwrite(data[at:at + 8 * MIB], at)
        handle.flush()
        handle.shutdown()
        daemon.call("snapshot.create", sources=["v"], suffix="s")
        daemon.call("volume.clone", source="v@s", name="c")
    return os.path.join(folder, "store"), data


def read_error(handle, length, offset):
    """The errno of a read; None if it succeeds."""
    try:
        handle.pread(length, offset)
    except nbd.Error as error:
        return error.errnum
    return None


def scrub(daemon, *arguments):
    done = subprocess.run([VELLUM, "--control", daemon.control_socket, *arguments],
                          capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@case
def one_block():
    """A damaged block gives EIO for itself alone, and is named; a write over it heals it."""
    with harness.folder() as folder:
        store, data = make(folder)
        bad = 5 * BLOCK
        address = find_block(store, data[bad:bad + BLOCK])
        spoil(store, address + 100)
        with harness.Daemon(folder, create=False) as daemon:
            for name in ["v", "v@s", "c"]:
                handle = daemon.connect(name)
                assert read_error(handle, 512, bad) == errno.EIO
                assert read_error(handle, MIB, 0) == errno.EIO
                assert handle.pread(bad, 0) == data[:bad]
                assert handle.pread(MIB, bad + BLOCK) == data[bad + BLOCK:][:MIB]
                handle.shutdown()
            lines = [line for line in daemon.log().splitlines() if "is damaged" in line]
            assert len(lines) == 1, lines
            assert f'"v" is damaged at offset {bad}' in lines[0], lines
            assert f"at byte {address} of {store}" in lines[0], lines
            assert daemon.call("stats.get")["checksum_errors"] == 6
            assert daemon.call("stats.get", volume="c")["checksum_errors"] == 2
            handle = daemon.connect("c")
            handle.pwrite(data[:BLOCK], bad)
            assert handle.pread(BLOCK, bad) == data[:BLOCK]
            handle.shutdown()


@case
def part_of_the_map():
    """A damaged node gives EIO where it maps, and counts as data in maps; all else is served."""
    with harness.folder() as folder:
        store, data = make(folder)
        address = find_block(store, data[2 * MIB:2 * MIB + BLOCK])
        for leaf in find_leaves(store, address):
            spoil(store, leaf + 2000)
        with harness.Daemon(folder, create=False) as daemon:
            handle = daemon.connect("v")
            assert read_error(handle, BLOCK, 2 * MIB) == errno.EIO
            assert read_error(handle, BLOCK, 3 * MIB - BLOCK) == errno.EIO
            assert handle.pread(2 * MIB, 0) == data[:2 * MIB]
            assert handle.pread(5 * MIB, 3 * MIB) == data[3 * MIB:]
            handle.pwrite(data[:BLOCK], 100 * MIB)
            handle.shutdown()
            assert 'is damaged at offset 2097152 (1 MiB)' in daemon.log(), daemon.log()
            extents = daemon.call("extents.list", target="v@s")["extents"]
            assert extents == [{"offset": 0, "length": 8 * MIB, "kind": "data"}], extents
            shown = json.loads(harness.run("nbdinfo", "--map", "--json", daemon.uri("v@s")))
            assert [(e["offset"], e["length"], e["type"]) for e in shown] == [
                (0, 8 * MIB, 0), (8 * MIB, GIB - 8 * MIB, 3)], shown


@case
def eradicating_what_is_damaged():
    """Reclaim passes over a damaged node, says so, and gives the rest back."""
    with harness.folder() as folder:
        store, data = make(folder)
        address = find_block(store, data[2 * MIB:2 * MIB + BLOCK])
        for leaf in find_leaves(store, address):
            spoil(store, leaf)
        with harness.Daemon(folder, create=False) as daemon:
            for name in ["v", "c"]:
                daemon.call("volume.destroy", name=name)
            harness.wait_for(lambda: daemon.call("store.get")["versions"] == 0, "it goes on")
            state = daemon.call("store.get")
            assert state["reclaim_skipped"] == 1, state
            assert MIB <= state["used"] < 2 * MIB, state
            assert "vellum check --repair" in daemon.log()


@case
def scrubbing():
    """A scrub reads everything beside clients, and reports whom the damage concerns."""
    with harness.folder() as folder:
        store, data = make(folder, 64 * MIB)
        with harness.Daemon(folder, create=False) as daemon:
            code, output, error = scrub(daemon, "store", "scrub", "--status")
            assert code == 0 and "never" in output, (output, error)
            code, output, error = scrub(daemon, "store", "scrub", "--wait")
            assert code == 0 and "finished" in output, (code, output, error)
            state = daemon.call("store.scrub")
            assert state["checked_bytes"] >= 64 * MIB and state["errors"] == 0, state
            handle = daemon.connect("v")
            handle.pwrite(data[:MIB], 0)
            handle.shutdown()
        spoil(store, find_block(store, data[40 * MIB:40 * MIB + BLOCK]) + BLOCK - 1)
        with harness.Daemon(folder, create=False) as daemon:
            code, output, error = scrub(daemon, "store", "scrub", "--wait")
            assert code == 1 and "1 damaged block" in error, (code, output, error)
            assert "(read by c, v, v@s)" in output and f"offset {40 * MIB}" in output, output
            assert f"offset {40 * MIB}" in daemon.log()
            report = daemon.cli("store", "scrub", "--status")
            assert report["damages"][0]["names"] == ["c", "v", "v@s"], report
            code, output, error = scrub(daemon, "store", "scrub")
            assert code == 0 and "running" in output, (output, error)
            code, output, error = scrub(daemon, "store", "scrub", "--stop")
            assert code == 0 and ("stopped" in output or "finished" in output), (output, error)
            code, output, error = scrub(daemon, "store", "scrub", "--stop", "--wait")
            assert code != 0 and "--wait" in error, (output, error)


if __name__ == "__main__":
    harness.run_cases()

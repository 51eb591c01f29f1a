#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Superblocks, bitmaps and checkpoints of a store's file are damaged: what vellumd still serves, and
what `vellum check --repair` makes of it, by the real programs."""

import json
import os
import shutil
import struct
import subprocess

import harness
from harness import BLOCK, MIB, VELLUM, case

SLOTS = [slot * 16384 for slot in range(4)]
BITMAPS = 2  # area of the system tree


def overwrite(store, offset, data=b"\xa5" * BLOCK):
    with open(store, "r+b") as file:
        file.seek(offset)
        file.write(data)


def read(store, offset, length=BLOCK):
    with open(store, "rb") as file:
        file.seek(offset)
        return file.read(length)


def newest_slot(store):
    return max(SLOTS, key=lambda slot: struct.unpack_from("<Q", read(store, slot), 56))


def target(pointer):
    """The offset in the file of what a pointer leads to (FORMAT.md)."""
    return (struct.unpack("<Q", pointer[:8])[0] & (1 << 48) - 1) * 512


def system_root(store, checkpoint):
    """Of the `older` or the `newer` checkpoint."""
    at = {"older": 256, "newer": 384}[checkpoint] + 32
    return target(read(store, newest_slot(store))[at:at + 16])


def table(store, checkpoint, area):
    """The offset of the first table block of an area."""
    at = system_root(store, checkpoint)
    for slot in [area, 0, 0, 0, 0]:
        at = target(read(store, at + slot * 16, 16))
    return at


def make(folder):
    """A store with the volume v and its snapshot v@s, at rest; and what they hold."""
    data = os.urandom(4 * MIB)
    with harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=64 * MIB)
        handle = daemon.connect("v")
        handle.pwrite(data[:2 * MIB], 0)
        daemon.call("snapshot.create", sources=["v"], suffix="s")
        handle.pwrite(data[2 * MIB:], 0)
        handle.flush()
        handle.shutdown()
    return os.path.join(folder, "store"), data


def demand_content(folder, data):
    """Everything is served as it was, and can be written."""
    with harness.Daemon(folder, create=False) as daemon:
        for name, content in [("v", data[2 * MIB:]), ("v@s", data[:2 * MIB])]:
            handle = daemon.connect(name)
            assert handle.pread(2 * MIB, 0) == content, name
            handle.shutdown()
        handle = daemon.connect("v")
        handle.pwrite(data[:MIB], 8 * MIB)
        handle.flush()
        assert handle.pread(MIB, 8 * MIB) == data[:MIB]
        handle.shutdown()
        return daemon.log()


def check(store, *options, expect=0):
    """What it says, errors included."""
    return harness.run(VELLUM, "check", "--data", store, *options, expect=expect,
                       stderr=subprocess.STDOUT)


@case
def any_superblock():
    """One good superblock is enough; a repair writes the others anew."""
    with harness.folder() as folder:
        store, data = make(folder)
        for kept in range(4):
            copy = os.path.join(folder, "copy")
            shutil.copy(store, copy)
            good = read(store, newest_slot(store))
            overwrite(copy, SLOTS[kept], good)
            for slot in SLOTS[:kept] + SLOTS[kept + 1:]:
                overwrite(copy, slot)
            assert "note: superblock" in check(copy)
            printed = check(copy, "--repair")
            for slot in range(4):
                told = f"repaired: superblock {slot} is written anew" in printed
                assert told == (slot != kept), printed
            assert "nothing to repair" in check(copy, "--repair")
        overwrite(store, newest_slot(store))
        demand_content(folder, data)
        check(store)


@case
def the_newest_checkpoint():
    """With the root of the newest checkpoint gone, the older one and the journal give the same."""
    with harness.folder() as folder:
        store, data = make(folder)
        overwrite(store, system_root(store, "newer"))
        assert "the newest checkpoint is damaged" in check(store, expect=1)
        log = demand_content(folder, data)
        assert "the newest checkpoint is damaged, the older one is used" in log, log
        assert "nothing to repair" in check(store, "--repair")


@case
def a_bitmap():
    """With the only bitmap gone all is served but new space; a repair makes it anew."""
    with harness.folder() as folder:
        store, data = make(folder)
        for _ in range(2):  # so that both checkpoints have one
            demand_content(folder, data)
        places = {table(store, which, BITMAPS) for which in ["older", "newer"]}
        for place in places:
            overwrite(store, place)
        damaged = os.path.join(folder, "damaged")
        shutil.copy(store, damaged)
        told = check(store, expect=1)
        assert "bitmap" in told and "vellum check --repair" in told, told
        with harness.Daemon(folder, create=False) as daemon:
            handle = daemon.connect("v@s")
            assert handle.pread(2 * MIB, 0) == data[:2 * MIB]
            handle.shutdown()
            assert "bitmap" in daemon.log()
        shutil.copy(damaged, store)
        answer = json.loads(harness.run(VELLUM, "--json", "check", "--repair", store))
        assert answer["sound"] and answer["errors"] == [], answer
        assert any("bitmaps are made anew" in step for step in answer["repaired"]), answer
        demand_content(folder, data)
        check(store)


@case
def not_while_it_is_served():
    """A repair of a store in use is refused, names who has it, and changes nothing."""
    with harness.folder() as folder:
        store, data = make(folder)
        with harness.Daemon(folder, create=False) as daemon:
            before = read(store, 0, 65536)
            told = check(store, "--repair", expect=1)
            assert "in use" in told and str(daemon.pid) in told, told
            assert read(store, 0, 65536) == before
        demand_content(folder, data)


@case
def what_is_no_store():
    """A file that is no store is named, and left as it is."""
    with harness.folder() as folder:
        path = os.path.join(folder, "picture")
        with open(path, "wb") as file:
            file.write(b"\x89PNG" * 65536)
        told = check(path, "--repair", expect=1)
        assert path in told and "no Vellum store" in told, told
        with open(path, "rb") as file:
            assert file.read() == b"\x89PNG" * 65536


harness.run_cases()

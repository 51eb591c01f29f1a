#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A file system image of more than 1 GiB goes through the clients people use, and comes back equal."""

import json
import os
import shutil

import harness
from harness import BLOCK, GIB, MIB, case, run

IMAGE_BYTES = GIB + 64 * MIB
CONTENT_BYTES = 400 * MIB  # of files from /usr: enough to be real, little enough to be quick


def stage_files(target):
    """Hard links to (or copies of) files below /usr, CONTENT_BYTES of them."""
    total = 0
    for place, folders, files in os.walk("/usr"):
        folders.sort()
        there = target + place
        os.makedirs(there, exist_ok=True)
        for name in sorted(files):
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            try:
                os.link(path, os.path.join(there, name))
            except OSError:
                shutil.copyfile(path, os.path.join(there, name))
            total += os.path.getsize(path)
            if total >= CONTENT_BYTES:
                return


def make_image(folder):
    image = os.path.join(folder, "image")
    staged = os.path.join(folder, "staged")
    stage_files(staged)
    run("mkfs.ext4", "-q", "-d", staged, image, str(IMAGE_BYTES // 1024))
    shutil.rmtree(staged)
    assert os.path.getsize(image) == IMAGE_BYTES
    return image


def nonzero_bytes(path):
    zeros = bytes(BLOCK)
    total = 0
    with open(path, "rb") as file:
        while chunk := file.read(MIB):
            total += sum(BLOCK for i in range(0, len(chunk), BLOCK) if chunk[i:i + BLOCK] != zeros)
    return total


def data_bytes(uri):
    extents = json.loads(run("nbdinfo", "--map", "--json", uri))
    return sum(e["length"] for e in extents if e["type"] == 0)


def check_holes(uri, image):
    """What is data in the volume: all that is not zero, and no more than what the file holds."""
    data = data_bytes(uri)
    assert data >= nonzero_bytes(image), f"{data} bytes of data are too few"
    assert data <= os.stat(image).st_blocks * 512, f"{data} bytes of data are too many"


@case(seconds=400)
def file_system_image():
    """A file system image makes the round trip by qemu-img convert and by nbdcopy, with its holes."""
    with harness.folder() as folder:
        image = make_image(folder)
        back = os.path.join(folder, "back")
        with harness.Daemon(folder) as daemon:
            for name, there, home in [
                ("q", ["qemu-img", "convert", "-n", "-f", "raw", "-O", "raw"],
                      ["qemu-img", "convert", "-f", "raw", "-O", "raw"]),
                ("n", ["nbdcopy", "--flush"], ["nbdcopy"]),
            ]:
                daemon.call("volume.create", name=name, size=IMAGE_BYTES)
                uri = daemon.uri(name)
                run(*there, image, uri)
                run("qemu-img", "compare", "-f", "raw", "-F", "raw", image, uri)
                run(*home, uri, back)
                run("cmp", image, back)
                os.unlink(back)
                check_holes(uri, image)
            diff = daemon.call("extents.diff", target="q", base="n")
            assert diff["extents"], "two unrelated volumes differ by address"
        harness.check_store(daemon.store)


def islands_written(daemon, name, islands):
    handle = daemon.connect(name)
    for offset, length in islands:
        handle.pwrite(os.urandom(length), offset)
    handle.flush()
    handle.shutdown()


@case
def known_map():
    """nbdinfo --map, its totals and qemu-img map show exactly the holes that there are."""
    size = 3 * GIB
    islands = [(0, BLOCK), (MIB, 3 * BLOCK), (GIB - BLOCK, 2 * BLOCK), (size - BLOCK, BLOCK)]
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=size)
        islands_written(daemon, "v", islands)
        uri = daemon.uri("v")
        found = [(e["offset"], e["length"])
                 for e in json.loads(run("nbdinfo", "--map", "--json", uri)) if e["type"] == 0]
        assert found == islands, found
        totals = json.loads(run("nbdinfo", "--map", "--totals", "--json", uri))
        data = sum(length for _, length in islands)
        assert {t["type"]: t["size"] for t in totals} == {0: data, 3: size - data}, totals
        mapped = json.loads(run("qemu-img", "map", "--output=json", "-f", "raw", uri))
        found = [(e["start"], e["length"]) for e in mapped if e["data"]]
        assert found == islands, found
        listed = daemon.call("extents.list", target="v")
        assert [(e["offset"], e["length"]) for e in listed["extents"]] == islands, listed


@case
def exports_listed():
    """nbdinfo lists the volume and its snapshot, which is read-only; a snapshot keeps its content."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=8 * MIB)
        islands_written(daemon, "v", [(0, MIB)])
        daemon.call("snapshot.create", sources=["v"], suffix="first")
        before = run("nbdcopy", daemon.uri("v@first"), "-", text=False)
        islands_written(daemon, "v", [(0, 2 * MIB)])
        assert run("nbdcopy", daemon.uri("v@first"), "-", text=False) == before
        assert run("nbdcopy", daemon.uri("v"), "-", text=False) != before
        listed = json.loads(run("nbdinfo", "--list", "--json", daemon.uri("")))["exports"]
        exports = {e["export-name"]: e for e in listed}
        assert set(exports) == {"v", "v@first"}, set(exports)
        for name, export in exports.items():
            assert export["is_read_only"] == (name == "v@first"), export
            assert export["export-size"] == 8 * MIB, export
            assert export["can_flush"] and export["can_multi_conn"], export
            assert export["can_fua"] or export["is_read_only"], export
        one = json.loads(run("nbdinfo", "--json", daemon.uri("v@first")))["exports"][0]
        assert one["is_read_only"] and "base:allocation" in one["contexts"], one


if __name__ == "__main__":
    harness.run_cases()

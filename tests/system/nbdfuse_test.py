#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A file system that is changed on a clone, through nbdfuse, leaves the parent intact."""

import contextlib
import hashlib
import os
import subprocess

import harness
from harness import MIB, case, run

SIZE = 128 * MIB


@contextlib.contextmanager
def mounted(daemon, folder, export):
    """The export as a file, by nbdfuse."""
    where = os.path.join(folder, "mounted")
    os.makedirs(where, exist_ok=True)
    pid_file = os.path.join(folder, "nbdfuse.pid")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(pid_file)
    fuse = subprocess.Popen(["nbdfuse", "-P", pid_file, where, daemon.uri(export)],
                            stdin=subprocess.DEVNULL)
    file = os.path.join(where, "nbd")
    try:
        harness.wait_for(lambda: fuse.poll() is not None or os.path.exists(file), "nbdfuse mounts")
        assert fuse.poll() is None, "nbdfuse ended; is /dev/fuse there?"
        yield file
    finally:
        subprocess.run(["fusermount3", "-u", where], check=False, timeout=30)
        try:
            fuse.wait(30)
        except subprocess.TimeoutExpired:
            fuse.kill()
            fuse.wait(30)


def digest(daemon, export):
    return hashlib.sha256(run("nbdcopy", daemon.uri(export), "-", text=False)).hexdigest()


def debugfs(file, *requests):
    for request in requests:
        run("debugfs", "-w", "-R", request, file)


def read_file(file, path):
    return run("debugfs", "-R", f"cat {path}", file)


def put_file_system(daemon, folder, name):
    image = os.path.join(folder, "image")
    content = os.path.join(folder, "content")
    os.makedirs(os.path.join(content, "docs"))
    for i in range(50):
        with open(os.path.join(content, "docs", f"{i}.txt"), "w", encoding="ascii") as file:
            file.write(f"original {i}\n" * 400)
    run("mkfs.ext4", "-q", "-d", content, image, str(SIZE // 1024))
    daemon.call("volume.create", name=name, size=SIZE)
    run("nbdcopy", "--flush", image, daemon.uri(name))


@case(seconds=180)
def clone_changed_through_nbdfuse():
    """A file system changed through nbdfuse on a clone leaves the parent intact, both e2fsck-clean."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        put_file_system(daemon, folder, "parent")
        daemon.call("volume.clone", source="parent", name="child")
        before = digest(daemon, "parent")
        assert digest(daemon, "child") == before

        added = os.path.join(folder, "added")
        with open(added, "wb") as file:
            file.write(os.urandom(3 * MIB))
        with mounted(daemon, folder, "child") as file:
            debugfs(file, f"write {added} docs/added", "rm docs/7.txt", "mkdir fresh",
                    f"write {added} fresh/again", "rm docs/8.txt")
        assert digest(daemon, "parent") == before, "the parent changed"
        assert digest(daemon, "child") != before, "the clone did not change"

        with mounted(daemon, folder, "child") as file:
            run("e2fsck", "-fn", file)
            run("debugfs", "-R", f"dump fresh/again {folder}/out", file)
            run("cmp", added, f"{folder}/out")
            assert read_file(file, "docs/9.txt") == "original 9\n" * 400
            assert "original" not in read_file(file, "docs/7.txt")
        with mounted(daemon, folder, "parent") as file:
            run("e2fsck", "-fn", file)
            assert read_file(file, "docs/7.txt") == "original 7\n" * 400
        assert digest(daemon, "parent") == before


if __name__ == "__main__":
    harness.run_cases()

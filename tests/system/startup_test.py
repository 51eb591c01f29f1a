#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""How vellumd starts, refuses to start, and stops."""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import time

import harness
from harness import BLOCK, GIB, MIB, TIB, VELLUM, VELLUMD, case

SUPERBLOCK_SLOTS = [0, 16 << 10, 32 << 10, 48 << 10]  # common/store/FORMAT.md


def attempt(*arguments, program=VELLUMD, **more):
    """A start that is expected to end by itself: (exit code, stdout, stderr)."""
    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, text=True,
                          capture_output=True, timeout=harness.START_SECONDS, **more)
    return done.returncode, done.stdout, done.stderr


def refused(folder, *words, store="store", arguments=()):
    """Expects a refusal: exit code not 0, and a message with all the words. Makes no socket."""
    nbd_socket, control_socket = os.path.join(folder, "no.sock"), os.path.join(folder, "no.control")
    code, _, error = attempt("--store", os.path.join(folder, store), "--unix", nbd_socket,
                             "--control", control_socket, *arguments)
    assert code > 0, f"exit code {code} with {arguments}: {error}"
    for word in words:
        assert word.lower() in error.lower(), f"'{word}' is not in: {error}"
    assert not os.path.exists(nbd_socket) and not os.path.exists(control_socket)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def patch_superblocks(store, offset, value):
    """Overwrites bytes of every valid superblock, with a CRC that is right."""
    with open(store, "r+b") as file:
        for slot in SUPERBLOCK_SLOTS:
            file.seek(slot)
            block = bytearray(file.read(BLOCK))
            if block[:8] != b"VELLUMSB":
                continue
            block[offset:offset + len(value)] = value
            block[8:12] = bytes(4)
            block[8:12] = struct.pack("<I", crc32c(block))
            file.seek(slot)
            file.write(block)


def make_store(folder):
    """A store with a volume that holds something."""
    with harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=64 * MIB)
        handle = daemon.connect("v")
        handle.pwrite(b"\x11" * MIB, 0)
        handle.flush()
        handle.shutdown()
    return daemon.store


@case
def help_and_version():
    """--help and --version answer on stdout, exit 0, and name every option."""
    code, out, _ = attempt("--help")
    assert code == 0
    for option in ["--store", "--create", "--capacity", "--unix", "--listen", "--control", "--cache",
                   "--threads", "--pid-file", "--log-level", "--socket-mode", "--socket-group"]:
        assert option in out, f"--help does not speak of {option}"
    code, out, _ = attempt("--version")
    assert code == 0 and "vellum" in out.lower() and any(c.isdigit() for c in out), out
    code, out, _ = attempt("--help", program=VELLUM)
    assert code == 0 and "volume" in out and "snapshot" in out


@case
def bad_arguments():
    """Each bad argument of vellumd is refused with a message that names it, and makes no store."""
    with harness.folder() as folder:
        for arguments in [["--bogus"], ["--cache", "0"], ["--cache", "lots"], ["--cache", "-1"],
                          ["--cache", "99999999T"], ["--threads", "0"], ["--threads", "x"],
                          ["--threads", "100000"], ["--capacity", "x"], ["--capacity", "1K"],
                          ["--capacity", "99999P"], ["--log-level", "loud"],
                          ["--socket-mode", "999"], ["--socket-mode", "x"],
                          ["--socket-group", "no-such-group-here"], ["--listen", "70000"],
                          ["--listen", "here:there"], ["--listen", "256.1.1.1:10809"],
                          ["--listen", ":"], ["--threads"], ["stray"]]:
            refused(folder, arguments[0].lstrip("-"), arguments=["--create", *arguments])
            assert not os.path.exists(os.path.join(folder, "store")), f"{arguments} made a store"
        code, _, error = attempt("--unix", os.path.join(folder, "a.sock"))
        assert code > 0 and "store" in error, error
        long_path = os.path.join(folder, "x" * 120)
        code, _, error = attempt("--store", f"{folder}/s", "--create", "--unix", long_path)
        assert code > 0 and "xxx" in error, error


@case
def no_store():
    """What is missing, is no store, or must not be overwritten is refused, and left as it was."""
    with harness.folder() as folder:
        refused(folder, "store", "--create")
        for name, content in [("zeros", bytes(MIB)), ("text", b"Dear diary\n" * 9999), ("empty", b"")]:
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(content)
            refused(folder, name, store=name)
            if content:
                refused(folder, name, store=name, arguments=["--create"])
            with open(path, "rb") as file:
                assert file.read() == content, f"{name} was changed"
        os.mkdir(os.path.join(folder, "directory"))
        refused(folder, "directory", store="directory")
        refused(folder, "nowhere", store="nowhere/store", arguments=["--create"])


@case
def newer_and_damaged():
    """A store of a newer format, with unknown features, truncated or without superblocks is refused."""
    with harness.folder() as folder:
        store = make_store(folder)
        with open(store, "rb") as file:
            original = file.read()

        def restored():
            with open(store, "wb") as file:
                file.write(original)

        patch_superblocks(store, 12, struct.pack("<I", 7))
        refused(folder, "another format", "version")
        restored()
        patch_superblocks(store, 32, struct.pack("<Q", 1 << 40))
        refused(folder, "feature")
        restored()
        with open(store, "r+b") as file:
            for slot in SUPERBLOCK_SLOTS:
                file.seek(slot)
                file.write(b"\xff" * BLOCK)
        refused(folder, "store")
        for size in [2 * BLOCK, 64 * 1024, MIB]:
            restored()
            os.truncate(store, size)
            refused(folder, "store", str(size) if size < 64 * 1024 else "truncated")
        restored()
        harness.check_store(store)
        with harness.Daemon(folder) as daemon:
            handle = daemon.connect("v")
            assert handle.pread(MIB, 0) == b"\x11" * MIB
            handle.shutdown()


@case
def in_use():
    """A store that is served is refused to others, with its owner's pid; vellum check as well."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        refused(folder, "in use", str(daemon.pid))
        refused(folder, "in use", str(daemon.pid), arguments=["--create"])
        code, _, error = attempt("check", daemon.store, program=VELLUM)
        assert code == 1 and str(daemon.pid) in error, (code, error)
        daemon.call("volume.create", name="still-alive", size=MIB)


@case
def sockets():
    """A stale socket is replaced, one that answers is refused and goes on, other files are kept."""
    with harness.folder() as folder, contextlib.ExitStack() as stack:
        for name in ["nbd.sock", "control.sock"]:
            stale = socket.socket(socket.AF_UNIX)
            stale.bind(os.path.join(folder, name))
            stale.close()
        daemon = stack.enter_context(harness.Daemon(folder, "--socket-mode", "600"))
        assert os.stat(daemon.nbd_socket).st_mode & 0o777 == 0o600
        assert os.stat(daemon.control_socket).st_mode & 0o777 == 0o600
        for option, path, other in [("--unix", daemon.nbd_socket, "--control"),
                                    ("--control", daemon.control_socket, "--unix")]:
            code, _, error = attempt("--store", f"{folder}/other", "--create", option, path, other,
                                     f"{folder}/other.sock")
            assert code > 0 and path in error, error
        daemon.call("server.info")
        precious = os.path.join(folder, "precious")
        with open(precious, "w", encoding="ascii") as file:
            file.write("no socket")
        code, _, error = attempt("--store", f"{folder}/third", "--create", "--unix", precious,
                                 "--control", f"{folder}/third.sock")
        assert code > 0 and "precious" in error, error
        with open(precious, encoding="ascii") as file:
            assert file.read() == "no socket"


@case
def sockets_gone_after_stop():
    """After a stop no socket and no pid file is left, and the pid file had the pid."""
    with harness.folder() as folder:
        pid_file = os.path.join(folder, "pid")
        with harness.Daemon(folder, "--pid-file", pid_file) as daemon:
            with open(pid_file, encoding="ascii") as file:
                assert int(file.read()) == daemon.pid
        left = set(os.listdir(folder))
        assert left == {"store", "log"}, left


@case
def pid_files_of_others():
    """--pid-file gives up nothing: no store, no other file, no pid file of a server that runs."""
    with harness.folder() as folder, harness.folder() as elsewhere:
        store = os.path.join(folder, "store")
        text = os.path.join(folder, "text")
        with open(text, "w", encoding="ascii") as file:
            file.write("precious")
        pid_file = os.path.join(folder, "pid")
        with harness.Daemon(folder, "--pid-file", pid_file) as daemon:
            refused(elsewhere, "pid-file", str(daemon.pid), arguments=["--create", "--pid-file", pid_file])
            with open(pid_file, encoding="ascii") as file:
                assert int(file.read()) == daemon.pid
            os.unlink(pid_file)
            with open(pid_file, "w", encoding="ascii") as file:
                file.write("1\n")
        assert os.path.exists(pid_file), "it was somebody else's by then"
        size = os.path.getsize(store)
        refused(folder, "pid-file", "no process id", arguments=["--pid-file", store])
        refused(folder, "pid-file", "no process id", arguments=["--pid-file", text])
        assert os.path.getsize(store) >= size
        with open(text, encoding="ascii") as file:
            assert file.read() == "precious"
        harness.check_store(store)


@case
def creation_over_a_store():
    """--create on a store that is there says so, and how to serve it; a pipe is no store."""
    with harness.folder() as folder:
        with harness.Daemon(folder):
            pass
        refused(folder, "Vellum store already", "without creating", arguments=["--create"])
        os.mkfifo(os.path.join(folder, "pipe"))
        refused(folder, "neither", store="pipe")
        code, _, error = attempt("check", os.path.join(folder, "pipe"), program=harness.VELLUM)
        assert code == 1 and "neither" in error, (code, error)


@case
def signals():
    """SIGTERM, SIGINT and SIGHUP stop it with exit code 0, with clients connected; a second one is harmless."""
    with harness.folder() as folder:
        for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
            with harness.Daemon(folder) as daemon, socket.socket(socket.AF_UNIX) as idle:
                if number == signal.SIGTERM:
                    daemon.call("volume.create", name="v", size=64 * MIB)
                handle = daemon.connect("v")
                handle.pwrite(bytes([number]) * MIB, 0)
                idle.connect(daemon.nbd_socket)
                daemon.process.send_signal(number)
                with contextlib.suppress(ProcessLookupError):
                    daemon.process.send_signal(number)
                started = time.monotonic()
                assert daemon.stop(number) == 0, daemon.log()
                assert time.monotonic() - started < 15, "the stop took too long"
            with harness.Daemon(folder) as daemon:
                handle = daemon.connect("v")
                assert handle.pread(MIB, 0) == bytes([number]) * MIB, "written, lost by the stop"
                handle.shutdown()
        harness.check_store(daemon.store)


@case
def capacity_and_tcp():
    """--capacity 40T is taken, thinly; --listen serves on loopback; both sockets may be several."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with harness.folder() as folder:
        second = os.path.join(folder, "second.sock")
        with harness.Daemon(folder, "--capacity", "40T", "--listen", f"127.0.0.1:{port}",
                            "--unix", second, "--cache", "32M", "--threads", "2") as daemon:
            store = daemon.call("store.get")
            assert store["capacity"] == 40 * TIB, store
            assert os.stat(daemon.store).st_blocks * 512 < GIB
            daemon.call("volume.create", name="v", size=80 * TIB)
            for uri in [f"nbd://127.0.0.1:{port}/v", f"nbd+unix:///v?socket={second}"]:
                assert int(harness.run("nbdinfo", "--size", uri)) == 80 * TIB
        with harness.Daemon(folder) as daemon:
            assert daemon.call("store.get")["capacity"] == 40 * TIB


if __name__ == "__main__":
    harness.run_cases()

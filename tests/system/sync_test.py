#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Durability as the kernel sees it, by strace: kill -9 cannot show it, since the page cache survives.

1. Between the acknowledgement of a write and the reply to the flush (or FUA write, or snapshot)
   after it, an fdatasync of the store begins and ends.
2. P9: once an fdatasync has failed, nothing is acknowledged as durable any more, although later
   ones would succeed; reads go on; the log and store.get say why.
"""

import contextlib
import os
import re
import subprocess
import time

import nbd

import harness
from harness import BLOCK, MIB, RpcError, case

SIZE = 64 * MIB
_CALL = re.compile(
    r"^(?P<thread>\d+) +(?P<time>\d+\.\d+) "
    r"(?:(?P<call>f(?:data)?sync)\(\d+<(?P<path>[^>]*)>(?P<cut> <unfinished \.\.\.>)?"
    r"|<\.\.\. (?P<resumed>f(?:data)?sync) resumed>)"
    r"(?:.*= (?P<result>-?\d+).*<(?P<seconds>[\d.]+)>)?")


@contextlib.contextmanager
def traced(daemon, trace_path, *more):
    """strace on all threads of a running daemon; it goes before the daemon is stopped."""
    strace = subprocess.Popen(
        ["strace", "-f", "-ttt", "-T", "-y", "-o", trace_path, "-e", "trace=fdatasync,fsync", *more,
         "-p", str(daemon.pid)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert "attached" in strace.stderr.readline(), "strace cannot attach"
        harness.wait_for(lambda: all_traced(daemon.pid), "strace attaches to all threads")
        yield
    finally:
        strace.terminate()
        strace.wait(30)
        strace.stderr.close()


def all_traced(pid):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as status:
            if "TracerPid:\t0\n" in status.read():
                return False
    return True


def successful_syncs(trace_path, store):
    """(begin, end) of each fdatasync or fsync of the store that succeeded, in seconds since 1970."""
    syncs, begun = [], {}
    with open(trace_path, encoding="utf-8") as trace:
        for line in trace:
            found = _CALL.match(line)
            if not found:
                continue
            if found["call"]:
                begun[found["thread"]] = (float(found["time"]), found["path"])
            if found["result"] == "0":
                began, path = begun.pop(found["thread"])
                if os.path.realpath(path) == os.path.realpath(store):
                    syncs.append((began, began + float(found["seconds"])))
    return syncs


def durable_requests(daemon, handle):
    """Does one of each kind again and again; gives (kind, when its write was there, reply)."""
    moments = []
    for i in range(20):
        handle.pwrite(bytes([i + 1]) * BLOCK, i * BLOCK)
        written = time.time()
        handle.flush()
        moments.append(("flush", written, time.time()))

        sent = time.time()
        handle.pwrite(bytes([i + 1]) * 512, i * BLOCK + 512, nbd.CMD_FLAG_FUA)
        moments.append(("FUA write", sent, time.time()))

        handle.pwrite(bytes([i + 2]) * BLOCK, i * BLOCK)
        written = time.time()
        daemon.call("snapshot.create", sources=["v"])
        moments.append(("snapshot.create", written, time.time()))
    sent = time.time()
    handle.trim(MIB, 0, nbd.CMD_FLAG_FUA)
    moments.append(("FUA trim", sent, time.time()))
    return moments


@case
def sync_before_reply():
    """An fdatasync of the store lies between every durable request's arrival and its reply."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=SIZE)
        trace_path = os.path.join(folder, "trace")
        handle = daemon.connect("v")
        with traced(daemon, trace_path):
            moments = durable_requests(daemon, handle)
        handle.shutdown()
        syncs = successful_syncs(trace_path, daemon.store)
        assert syncs, "no fdatasync was seen at all"
        for kind, written, replied in moments:
            # strace reads its clock before the call begins and after it ended, so this is strict.
            assert any(written <= begin and end <= replied for begin, end in syncs), (
                f"{kind}: no fdatasync between {written} and {replied}")
        print(f"# {len(moments)} durable requests, {len(syncs)} syncs")


def fails(action):
    try:
        action()
    except (nbd.Error, RpcError):
        return True
    return False


def check_refusals(daemon, handle):
    """What may not be acknowledged any more, and what still has to work."""
    snapshots = len(daemon.call("snapshot.list"))
    with contextlib.suppress(nbd.Error):
        handle.pwrite(b"\xbb" * BLOCK, 8 * BLOCK)  # may be refused, and is not durable if it is not
    assert fails(handle.flush), "a flush was acknowledged after a failed sync"
    assert fails(lambda: handle.pwrite(b"\xcc" * BLOCK, 9 * BLOCK, nbd.CMD_FLAG_FUA))
    assert fails(lambda: handle.zero(BLOCK, 10 * BLOCK, nbd.CMD_FLAG_FUA))
    assert fails(lambda: daemon.call("snapshot.create", sources=["v"]))
    assert fails(lambda: daemon.call("volume.create", name="w", size=MIB))
    assert fails(lambda: daemon.call("volume.clone", source="v", name="x"))
    assert len(daemon.call("snapshot.list")) == snapshots
    assert handle.pread(BLOCK, 0) == b"\xaa" * BLOCK, "reads have to go on"
    other = daemon.connect("v@safe")
    assert other.pread(BLOCK, 0) == b"\xaa" * BLOCK
    other.shutdown()


@case
def failed_sync():
    """After an EIO from fdatasync nothing is acknowledged as durable, and the store says why (P9)."""
    with harness.folder() as folder:
        with harness.Daemon(folder) as daemon:
            daemon.call("volume.create", name="v", size=SIZE)
            handle = daemon.connect("v")
            handle.pwrite(b"\xaa" * BLOCK, 0)
            handle.flush()
            daemon.call("snapshot.create", sources=["v"], suffix="safe")
            with traced(daemon, os.path.join(folder, "trace"),
                        "-e", "inject=fdatasync,fsync:error=EIO"):
                handle.pwrite(b"\xbb" * BLOCK, 4 * BLOCK)
                assert fails(handle.flush), "a flush was acknowledged whose sync failed"
                check_refusals(daemon, handle)
            # From here on a sync would succeed again. It proves nothing, and is never tried.
            check_refusals(daemon, handle)
            reason = daemon.call("store.get")["read_only"]
            assert reason, "store.get does not say why the store takes no changes"
            assert re.search("sync", daemon.log(), re.IGNORECASE), daemon.log()
            print(f"# store.get says: {reason}")
            daemon.stop()
        harness.check_store(daemon.store)
        with harness.Daemon(folder) as daemon:
            assert not daemon.call("store.get")["read_only"]
            for name in ["v", "v@safe"]:
                handle = daemon.connect(name)
                assert handle.pread(BLOCK, 0) == b"\xaa" * BLOCK
                handle.shutdown()
            handle = daemon.connect("v")
            handle.pwrite(b"\xdd" * BLOCK, 0)
            handle.flush()
            handle.shutdown()


if __name__ == "__main__":
    harness.run_cases()

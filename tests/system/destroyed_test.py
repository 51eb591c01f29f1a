#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What is destroyed, as its clients see it: cut off at once, whole when it is recovered, and gone
when its time has come, but not before."""

import contextlib
import os
import time

import nbd

import harness
from harness import BLOCK, GIB, MIB, RpcError, case

DELAY = 6  # seconds
DESTROYED, NOT_FOUND = -32009, -32001  # common/control/PROTOCOL.md


def refusal(daemon, method, **params):
    """The code with which a call is refused; None if it is not."""
    try:
        daemon.call(method, **params)
    except RpcError as error:
        return error.code
    return None


def refused(action):
    """Whether libnbd raises an error."""
    try:
        action()
    except nbd.Error:
        return True
    return False


def fill(daemon, name, data):
    handle = daemon.connect(name)
    handle.pwrite(data, 0)
    handle.flush()
    handle.shutdown()


def content(daemon, name, length):
    handle = daemon.connect(name)
    data = handle.pread(length, 0)
    handle.shutdown()
    return data


@case
def when_its_time_has_come():
    """It is eradicated by itself when its time has come, not before, also over a kill -9."""
    data = os.urandom(8 * MIB)
    with harness.folder() as folder:
        with harness.Daemon(folder, f"--eradication-delay={DELAY}s") as daemon:
            for name in ["kept", "gone"]:
                daemon.call("volume.create", name=name, size=GIB)
                fill(daemon, name, data)
            daemon.call("snapshot.create", sources=["gone"], suffix="s")
            full = daemon.call("store.get")["used"]
            began = time.time()
            for name in ["kept", "gone"]:
                left = daemon.call("volume.destroy", name=name)["time_remaining_ms"]
                assert 0 < left <= DELAY * 1000, left
            daemon.kill()
        with harness.Daemon(folder) as daemon:
            daemon.call("volume.recover", name="kept")
            polls = 0
            while refusal(daemon, "volume.get", name="gone") is None:
                assert refusal(daemon, "snapshot.get", name="gone@s") in (None, NOT_FOUND)
                polls += 1
                assert time.time() < began + DELAY + 15, "it does not go"
                time.sleep(0.05)
            passed = time.time() - began
            # The store counts in milliseconds.
            assert polls > 0 and passed >= DELAY - 0.001, (polls, passed)
            assert refusal(daemon, "volume.recover", name="gone") == NOT_FOUND
            assert "\"gone\" was destroyed" in daemon.log(), daemon.log()
            harness.wait_for(lambda: daemon.call("store.get")["used"] < full - 7 * MIB,
                             "the space to come back")
            assert content(daemon, "kept", len(data)) == data
            store = daemon.store
            assert daemon.stop() == 0
        harness.check_store(store)


@case
def cut_off():
    """Clients of a destroyed volume get errors, also once it is back; new ones get its content."""
    data = os.urandom(4 * BLOCK)
    with harness.folder() as folder, \
            harness.Daemon(folder, "--eradication-delay=1h") as daemon:
        daemon.call("volume.create", name="v", size=MIB)
        fill(daemon, "v", data)
        daemon.call("snapshot.create", sources=["v"], suffix="s")
        handle = daemon.connect("v")
        daemon.call("volume.destroy", name="v", force=True)
        assert refused(lambda: handle.pread(BLOCK, 0))
        for name in ["v", "v@s"]:
            assert refused(lambda name=name: daemon.connect(name)), name
            asking = nbd.NBD()
            asking.set_opt_mode(True)
            asking.connect_unix(daemon.nbd_socket)
            asking.set_export_name(name)
            assert refused(asking.opt_info), name
            asking.opt_abort()
            assert refusal(daemon, "extents.list", target=name) == DESTROYED
        listing = nbd.NBD()
        listing.set_opt_mode(True)
        listing.connect_unix(daemon.nbd_socket)
        exports = []
        listing.opt_list(lambda name, _description: exports.append(name))
        listing.opt_abort()
        assert not exports, exports
        daemon.call("volume.recover", name="v")
        assert refused(lambda: handle.pread(BLOCK, 0))
        assert refused(lambda: handle.pwrite(bytes(BLOCK), 0))
        with contextlib.suppress(nbd.Error):
            handle.shutdown()
        for name in ["v", "v@s"]:
            assert content(daemon, name, len(data)) == data, name


if __name__ == "__main__":
    harness.run_cases()

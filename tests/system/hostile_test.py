#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Clients that lie, vanish, or pile up: each harms nobody but itself (P14)."""

import contextlib
import random
import resource
import socket
import time

import harness
from harness import BLOCK, GIB, MIB, case
from nbd_wire import (CLIENT_FLAGS, FLUSH, LIST, READ, STRUCTURED_REPLY, WRITE, Wire, go, option,
                      request, set_context)

SIZE = 1 * GIB
CONNECTIONS_MAX, HANDSHAKES_MAX = 4096, 512  # server/session_registry.hpp
HANDSHAKE_SECONDS = 10


@contextlib.contextmanager
def daemon_with_volume():
    with harness.folder("/dev/shm") as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=SIZE)
        yield daemon
        wire = Wire(daemon.nbd_socket).enter(b"v")  # it still serves
        assert wire.ask(WRITE, 0, BLOCK, payload=b"x" * BLOCK) == 0
        assert wire.read(0, BLOCK) == b"x" * BLOCK


def raw(daemon):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(30)
    connection.connect(daemon.nbd_socket)
    return connection


@case
def vanishing_at_every_byte():
    """A conversation cut off at every byte of the handshake, and all along the transmission."""
    whole = b"".join([
        CLIENT_FLAGS, option(STRUCTURED_REPLY), option(LIST), set_context(b"v", b"base:allocation"),
        go(b"v"), request(WRITE, 1, 0, 5000), b"x" * 5000, request(READ, 2, 0, 300_000),
        request(WRITE, 3, 0, 100_000), b"y" * 100_000, request(FLUSH, 4, 0, 0)])
    with daemon_with_volume() as daemon:
        for length in [*range(260), *range(260, len(whole), 997)]:
            connection = raw(daemon)
            connection.sendall(whole[:length])
            connection.close()


@case
def garbage():
    """Random bytes instead of a handshake, and random requests after one."""
    source = random.Random(1)
    with daemon_with_volume() as daemon:
        for _ in range(200):
            connection = raw(daemon)
            with contextlib.suppress(OSError):
                connection.sendall(source.randbytes(source.randrange(1, 3000)))
            connection.close()
        for _ in range(200):
            wire = Wire(daemon.nbd_socket).enter(b"v")
            with contextlib.suppress(OSError):
                for cookie in range(20):
                    wire.send(request(source.randrange(12), cookie, source.randrange(2 * SIZE),
                                      source.randrange(1 << 17), source.randrange(32)),
                              source.randbytes(source.randrange(100)))
            wire.close()


@case
def replies_that_nobody_fetches():
    """A client that asks for far more than it reads costs bounded memory."""
    def resident():
        with open(f"/proc/{daemon.pid}/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    with daemon_with_volume() as daemon:
        writer = Wire(daemon.nbd_socket).enter(b"v")
        for offset in range(0, 64 * MIB, 32 * MIB):
            assert writer.ask(WRITE, offset, 32 * MIB, payload=b"d" * 32 * MIB) == 0
        before = resident()
        wires = [Wire(daemon.nbd_socket).enter(b"v") for _ in range(4)]
        for wire in wires:
            wire.send(*(request(READ, cookie, 0, 32 * MIB) for cookie in range(500)))
        time.sleep(2)
        assert resident() - before < len(wires) * 130 * MIB, (before, resident())
        for wire in wires:
            wire.close()


@case
def silent_clients():
    """No more handshakes than the limit, none longer than the deadline, and control answers."""
    with daemon_with_volume() as daemon:
        silent = [raw(daemon) for _ in range(HANDSHAKES_MAX + 50)]
        greeted = sum(len(connection.recv(18)) == 18 for connection in silent)
        assert greeted == HANDSHAKES_MAX, greeted
        assert daemon.call("server.info")["server"] == "vellumd"
        started = time.monotonic()
        assert all(connection.recv(1) == b"" for connection in silent)
        assert time.monotonic() - started < HANDSHAKE_SECONDS + 5
        # A client that was let in stays, however long it is silent.
        wire = Wire(daemon.nbd_socket).enter(b"v")
        time.sleep(HANDSHAKE_SECONDS + 2)
        assert wire.ask(FLUSH, 0, 0) == 0


@case
def connections_at_their_limit():
    """The limit refuses, and every place is free again after its client has gone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + 200
    assert hard == resource.RLIM_INFINITY or hard >= wanted, "too few descriptors for this test"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with daemon_with_volume() as daemon:
        for _ in range(2):
            wires = [Wire(daemon.nbd_socket).enter(b"v") for _ in range(CONNECTIONS_MAX)]
            with raw(daemon) as refused:
                assert refused.recv(18) == b""
            for wire in wires:
                wire.close()
            harness.wait_for(lambda: not daemon.call("volume.get", name="v")["attached"],
                             "the connections end")
        for _ in range(5000):
            Wire(daemon.nbd_socket).enter(b"v").close()


if __name__ == "__main__":
    harness.run_cases()

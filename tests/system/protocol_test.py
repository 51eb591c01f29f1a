#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What vellumd answers to each command, byte for byte, and in which order changes take effect."""

import contextlib
import socket
import struct
import time

import harness
from harness import BLOCK, GIB, KIB, MIB, case
from nbd_wire import (BLOCK_STATUS, CACHE, DF, EINVAL, ENOSPC, EPERM, ERROR, ESHUTDOWN, FAST_ZERO,
                      FLUSH, FUA, NONE, NO_HOLE, OFFSET_DATA, OFFSET_HOLE, READ, REQ_ONE, STATUS,
                      TRIM, WRITE, WRITE_ZEROES, DISC, Wire, request)

SIZE = 1 * GIB
PAYLOAD_MAX = 32 * MIB


@contextlib.contextmanager
def daemon_with_volume(size=SIZE):
    with harness.folder("/dev/shm") as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="v", size=size)
        yield daemon


def descriptors(chunks):
    assert [kind for kind, _ in chunks] == [STATUS], chunks
    payload = chunks[0][1]
    numbers = struct.unpack(f">{len(payload) // 4}I", payload)
    return list(zip(numbers[1::2], numbers[2::2]))


@case
def ranges_and_flags():
    """What reaches beyond the end, or is unknown, gets its error and leaves the stream in step."""
    with daemon_with_volume() as daemon:
        wire = Wire(daemon.nbd_socket).enter(b"v")
        assert wire.ask(WRITE, SIZE, BLOCK, payload=b"x" * BLOCK) == ENOSPC
        assert wire.ask(WRITE, SIZE - 1, 2, payload=b"xx") == ENOSPC
        assert wire.ask(WRITE, 2**64 - BLOCK, 2 * BLOCK, payload=b"x" * 2 * BLOCK) == ENOSPC
        assert wire.ask(WRITE_ZEROES, SIZE - 1, 2) == ENOSPC
        for command in (READ, TRIM, CACHE):
            assert wire.ask(command, SIZE, 1) == EINVAL
            assert wire.ask(command, 2**64 - 1, 1) == EINVAL
        assert wire.ask(9, 0, 0) == EINVAL
        assert wire.ask(BLOCK_STATUS, 0, BLOCK) == EINVAL  # not negotiated
        assert wire.ask(READ, 0, 512, DF) == EINVAL
        assert wire.ask(WRITE, 0, 3, NO_HOLE, b"abc") == EINVAL
        assert wire.ask(FLUSH, 1, 0) == EINVAL
        assert wire.ask(READ, 0, PAYLOAD_MAX + 1) == EINVAL
        too_long = PAYLOAD_MAX + MIB
        assert wire.ask(WRITE, 0, too_long, payload=b"z" * too_long) == EINVAL
        for command in (READ, WRITE, TRIM, CACHE, WRITE_ZEROES, FLUSH):
            assert wire.ask(command, 0, 0, FUA) == 0
        assert wire.read(0, BLOCK) == bytes(BLOCK)


@case
def long_payloads():
    """The longest payload, at odd offsets, and zeroes and trim over everything."""
    with daemon_with_volume() as daemon:
        wire = Wire(daemon.nbd_socket).enter(b"v")
        assert wire.ask(WRITE, 5, PAYLOAD_MAX, payload=b"z" * PAYLOAD_MAX) == 0
        assert wire.ask(WRITE, 12345, PAYLOAD_MAX, FUA, b"y" * PAYLOAD_MAX) == 0
        assert wire.read(5, PAYLOAD_MAX) == b"z" * 12340 + b"y" * (PAYLOAD_MAX - 12340)
        assert wire.ask(WRITE_ZEROES, 0, SIZE, FUA | NO_HOLE | FAST_ZERO) == 0
        assert wire.read(0, PAYLOAD_MAX) == bytes(PAYLOAD_MAX)
        assert wire.ask(WRITE, 0, BLOCK, payload=b"t" * BLOCK) == 0
        assert wire.ask(TRIM, 0, SIZE, FUA) == 0
        assert wire.ask(CACHE, 0, SIZE) == 0
        assert wire.read(0, BLOCK) == bytes(BLOCK)


@case
def snapshots_are_read_only():
    """Changes to a snapshot get EPERM, and the payload of a write is drained."""
    with daemon_with_volume(MIB) as daemon:
        writer = Wire(daemon.nbd_socket).enter(b"v")
        assert writer.ask(WRITE, 0, BLOCK, payload=b"1" * BLOCK) == 0
        daemon.call("snapshot.create", sources=["v"], suffix="s")
        assert writer.ask(WRITE, 0, BLOCK, payload=b"2" * BLOCK) == 0
        wire = Wire(daemon.nbd_socket).enter(b"v@s")
        assert wire.ask(WRITE, 0, BLOCK, payload=b"3" * BLOCK) == EPERM
        assert wire.ask(TRIM, 0, BLOCK) == EPERM
        assert wire.ask(WRITE_ZEROES, 0, BLOCK) == EPERM
        assert wire.ask(FLUSH, 0, 0) == 0
        assert wire.read(0, BLOCK) == b"1" * BLOCK


@case
def structured_reads():
    """Holes are hole chunks, DF makes one chunk of all, errors carry a text."""
    with daemon_with_volume() as daemon:
        wire = Wire(daemon.nbd_socket).enter(b"v", structured=True)
        assert wire.ask_chunks(READ, 0, MIB) == [(OFFSET_HOLE, struct.pack(">QI", 0, MIB))]
        assert wire.ask(WRITE, 3 * BLOCK, 2 * BLOCK, payload=b"a" * 2 * BLOCK) == 0
        chunks = wire.ask_chunks(READ, 0, MIB)
        assert [kind for kind, _ in chunks] == [OFFSET_HOLE, OFFSET_DATA, OFFSET_HOLE]
        assert chunks[1][1] == struct.pack(">Q", 3 * BLOCK) + b"a" * 2 * BLOCK
        [(kind, payload)] = wire.ask_chunks(READ, 0, MIB, DF)
        content = bytes(3 * BLOCK) + b"a" * 2 * BLOCK + bytes(MIB - 5 * BLOCK)
        assert kind == OFFSET_DATA and payload[8:] == content
        assert wire.ask_chunks(READ, 0, 0) == [(NONE, b"")]
        [(kind, payload)] = wire.ask_chunks(READ, SIZE, 1)
        assert kind == ERROR and payload[:4] == struct.pack(">I", EINVAL)
        assert len(payload) < 1000


@case
def block_status():
    """base:allocation is coalesced, clipped, complete, and the same when asked again (case 17)."""
    with daemon_with_volume(8 * GIB) as daemon:
        wire = Wire(daemon.nbd_socket).enter(b"v", structured=True)
        longest = 0xFFFFFFFF
        assert descriptors(wire.ask_chunks(BLOCK_STATUS, 1, longest)) == [(longest, 3)]
        assert descriptors(wire.ask_chunks(BLOCK_STATUS, 1, longest, REQ_ONE)) == [(longest, 3)]
        for index in range(64):
            assert wire.ask(WRITE, index * 2 * BLOCK, BLOCK, payload=b"b" * BLOCK) == 0
        expected = [(BLOCK, 0), (BLOCK, 3)] * 63 + [(BLOCK, 0), (MIB - 127 * BLOCK, 3)]
        for _ in range(2):
            assert descriptors(wire.ask_chunks(BLOCK_STATUS, 0, MIB)) == expected
        assert descriptors(wire.ask_chunks(BLOCK_STATUS, 0, MIB, REQ_ONE)) == [(BLOCK, 0)]
        assert descriptors(wire.ask_chunks(BLOCK_STATUS, 100, 50)) == [(50, 0)]
        assert wire.ask_chunks(BLOCK_STATUS, 0, 0)[0][0] == ERROR


@case
def disconnecting_finishes_what_is_in_flight():
    """Replies come before the end, after DISC and when the client just stops sending."""
    with daemon_with_volume() as daemon:
        for with_disc in (True, False):
            wire = Wire(daemon.nbd_socket).enter(b"v")
            wire.send(request(WRITE, 1, 0, MIB, FUA), b"q" * MIB, request(FLUSH, 2, 0, 0),
                      request(WRITE_ZEROES, 3, MIB, 64 * MIB))
            if with_disc:
                wire.send(request(DISC, 4, 0, 0))
            else:
                wire.socket.shutdown(socket.SHUT_WR)
            assert {wire.simple() for _ in range(3)} == {(0, 1), (0, 2), (0, 3)}
            assert wire.closed()
        wire = Wire(daemon.nbd_socket).enter(b"v")
        wire.send(request(READ, 1, 0, 512), request(READ, 2, 0, 512, magic=1))
        assert wire.simple() == (0, 1) and wire.receive(512) and wire.closed()


@case
def overlapping_writes_keep_the_order_of_their_headers():
    """P13: over connections, whichever payload comes first, also when a connection dies."""
    with daemon_with_volume() as daemon:
        reader = Wire(daemon.nbd_socket).enter(b"v")
        later = Wire(daemon.nbd_socket).enter(b"v")
        for length in (BLOCK, 100_000, 20 * MIB):
            for dies in (False, True):
                early = Wire(daemon.nbd_socket).enter(b"v")
                early.send(request(WRITE, 1, 0, length), b"E" * (length // 2))
                # Something behind it on the same connection would prove that the header was read;
                # there is nothing behind half a payload, so time has to do.
                time.sleep(0.1)
                later.send(request(WRITE, 2, 0, length), b"L" * length)
                # What does not overlap is not held up.
                assert reader.ask(WRITE, 512 * MIB, BLOCK, payload=b"x" * BLOCK) == 0
                if dies:
                    early.close()
                else:
                    early.send(b"E" * (length - length // 2))
                    assert early.simple() == (0, 1)
                assert later.simple() == (0, 2)
                assert reader.read(0, length) == b"L" * length
        writes = [request(WRITE, n, 0, 5000) + bytes([n]) * 5000 for n in range(1, 201)]
        later.send(*writes)
        assert {later.simple() for _ in writes} == {(0, n) for n in range(1, 201)}
        assert reader.read(0, 5000) == bytes([200]) * 5000


@case
def requests_during_the_stop():
    """SIGTERM with half a payload, unfetched replies and idle clients: ESHUTDOWN, then exit 0."""
    with daemon_with_volume() as daemon:
        waiting = [Wire(daemon.nbd_socket) for _ in range(100)]
        halves = [Wire(daemon.nbd_socket).enter(b"v") for _ in range(5)]
        for wire in halves:
            wire.send(request(WRITE, 1, 0, MIB), b"h" * (512 * KIB))
        unfetched = Wire(daemon.nbd_socket).enter(b"v")
        unfetched.send(*(request(READ, n, 0, PAYLOAD_MAX) for n in range(3)))
        busy = Wire(daemon.nbd_socket).enter(b"v")
        errors = []
        daemon.process.terminate()
        with contextlib.suppress(EOFError, OSError):
            while True:
                errors.append(busy.ask(FLUSH, 0, 0))
        assert set(errors) <= {0, ESHUTDOWN} and errors == sorted(errors), errors
        assert daemon.stop() == 0
        assert all(wire.closed() for wire in waiting + halves)


if __name__ == "__main__":
    harness.run_cases()

# SPDX-License-Identifier: BSD-2-Clause
"""A writer that knows what must be there after a crash.

Each block it writes says which write it is. The writer notes, in one order of moments, when a write
was sent and acknowledged, and what a flush had promised. At most one write to a block is in flight,
so the newest write that a block may and must hold is known. verify() then checks, of what is found
after the crash:
1. every block is whole: one write's stamp, or zeros if nothing needed to be there;
2. P1: no block is older than what was acknowledged before the last successful flush was sent;
3. P2: if any found write was sent at moment t, everything acknowledged before t is there too.
"""

import random
import struct

import nbd

BLOCK = 4096
_STAMP = struct.Struct("<QQ")


def stamped(block, number):
    return _STAMP.pack(block, number) * (BLOCK // _STAMP.size)


class Writer:
    def __init__(self, handle, blocks, seed, depth=16):
        self.handle = handle
        self.blocks = blocks
        self.depth = depth
        self.dice = random.Random(seed)
        self.moment = 0
        self.sent = {}  # number of a write -> (block, moment it was sent, FUA)
        self.acknowledged = {}  # number -> moment
        self.newest = {}  # block -> number of its newest acknowledged write
        self.durable = {}  # block -> number of the newest write that a flush covers
        self.busy = set()  # blocks with a write in flight
        self.flushing = False
        self.flushes = 0

    def _tick(self):
        self.moment += 1
        return self.moment

    def _send_write(self):
        block = self.dice.randrange(self.blocks)
        if block in self.busy:
            return
        number = len(self.sent) + 1
        fua = self.dice.random() < 0.02
        self.sent[number] = (block, self._tick(), fua)
        self.busy.add(block)

        def done(error):
            if error.value == 0:
                self.busy.discard(block)
                self.acknowledged[number] = self._tick()
                self.newest[block] = number
                if fua:
                    self.durable[block] = number
            return 1

        buffer = nbd.Buffer.from_bytearray(bytearray(stamped(block, number)))
        self.handle.aio_pwrite(buffer, block * BLOCK, done, nbd.CMD_FLAG_FUA if fua else 0)

    def _send_flush(self):
        covered = dict(self.newest)
        self.flushing = True

        def done(error):
            self.flushing = False
            if error.value == 0:
                self.flushes += 1
                for block, number in covered.items():
                    self.durable[block] = max(number, self.durable.get(block, 0))
            return 1

        self.handle.aio_flush(done)

    def step(self):
        """Sends what fits into the queue, and looks for replies."""
        while self.handle.aio_in_flight() < self.depth:
            if not self.flushing and self.dice.random() < 0.005:
                self._send_flush()
            else:
                self._send_write()
        self.handle.poll(100)

    def snapshot_of_promises(self):
        """What a snapshot that is taken now has to hold at least: block -> number."""
        return dict(self.newest)

    def _found_number(self, block, data):
        if data == bytes(BLOCK):
            return 0
        found_block, number = _STAMP.unpack_from(data)
        assert data == stamped(block, number), f"block {block} is torn or of another place"
        assert found_block == block and self.sent[number][0] == block, (block, number)
        return number

    def verify(self, read, at_least=None):
        """`read(offset, length)` gives what is there now. `at_least`: instead of the flushes."""
        at_least = self.durable if at_least is None else at_least
        found = {b: self._found_number(b, read(b * BLOCK, BLOCK)) for b in range(self.blocks)}
        for block, number in at_least.items():
            assert found[block] >= number, f"block {block}: {found[block]}, promised {number}"
        last_sent = max((self.sent[n][1] for n in found.values() if n), default=0)
        for number, moment in self.acknowledged.items():
            if moment < last_sent:
                block = self.sent[number][0]
                assert found[block] >= number, (
                    f"block {block}: write {number} was acknowledged before a write was sent "
                    f"that is there, and is not there itself")
        return sum(1 for n in found.values() if n)

# SPDX-License-Identifier: BSD-2-Clause
"""NBD by hand, for what no client library would send: the bytes of options and requests."""

import socket
import struct

OPTION_MAGIC, OPTION_REPLY_MAGIC = 0x49484156454F5054, 0x3E889045565A9
REQUEST_MAGIC, SIMPLE_MAGIC, CHUNK_MAGIC = 0x25609513, 0x67446698, 0x668E33EF
EXPORT_NAME, ABORT, LIST, STARTTLS, INFO, GO, STRUCTURED_REPLY = 1, 2, 3, 5, 6, 7, 8
SET_META_CONTEXT = 10
ACK = 1
READ, WRITE, DISC, FLUSH, TRIM, CACHE, WRITE_ZEROES, BLOCK_STATUS = range(8)
FUA, NO_HOLE, DF, REQ_ONE, FAST_ZERO = 1, 2, 4, 8, 16
DONE, NONE, OFFSET_DATA, OFFSET_HOLE, STATUS, ERROR = 1, 0, 1, 2, 5, 0x8001
EPERM, EIO, EINVAL, ENOSPC, ESHUTDOWN = 1, 5, 22, 28, 108
CLIENT_FLAGS = struct.pack(">I", 3)


def option(number, data=b""):
    return struct.pack(">QII", OPTION_MAGIC, number, len(data)) + data


def sized(text):
    return struct.pack(">I", len(text)) + text


def go(name):
    return option(GO, sized(name) + b"\0\0")


def set_context(name, *queries):
    data = sized(name) + struct.pack(">I", len(queries)) + b"".join(map(sized, queries))
    return option(SET_META_CONTEXT, data)


def request(command, cookie, offset, length, flags=0, magic=REQUEST_MAGIC):
    return struct.pack(">IHHQQI", magic, flags, command, cookie, offset, length)


class Wire:
    """A connection that has received the greeting, and sent nothing."""

    def __init__(self, path, timeout=30):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        assert self.receive(18)[:8] == b"NBDMAGIC"

    def send(self, *parts):
        self.socket.sendall(b"".join(parts))

    def receive(self, length):
        data = bytearray()
        while len(data) < length:
            part = self.socket.recv(min(length - len(data), 1 << 20))
            if not part:
                raise EOFError(f"the server closed after {len(data)} of {length} bytes")
            data += part
        return bytes(data)

    def closed(self):
        """Whether the server has ended the connection, with nothing left to read."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self):
        self.socket.close()

    def option_reply(self):
        magic, number, kind, length = struct.unpack(">QIII", self.receive(20))
        assert magic == OPTION_REPLY_MAGIC
        return number, kind, self.receive(length)

    def enter(self, name, structured=False):
        """Goes to the transmission phase, and returns itself."""
        self.send(CLIENT_FLAGS)
        if structured:
            self.send(option(STRUCTURED_REPLY), set_context(name, b"base:allocation"))
            kinds = [self.option_reply()[1] for _ in range(3)]
            assert kinds == [ACK, 4, ACK], kinds
        self.send(go(name))
        while (kind := self.option_reply()[1]) != ACK:
            assert kind == 3, f"GO was answered with {kind:#x}"
        return self

    def simple(self):
        """(error, cookie) of a simple reply."""
        magic, error, cookie = struct.unpack(">IIQ", self.receive(16))
        assert magic == SIMPLE_MAGIC, hex(magic)
        return error, cookie

    def chunks(self, cookie):
        """[(type, payload)] of one structured reply."""
        found, flags = [], 0
        while not flags & DONE:
            magic, flags, kind, its_cookie, length = struct.unpack(">IHHQI", self.receive(20))
            assert magic == CHUNK_MAGIC and its_cookie == cookie, (hex(magic), its_cookie)
            found.append((kind, self.receive(length)))
        return found

    def ask(self, command, offset, length, flags=0, payload=b""):
        """The error of one command whose reply is simple."""
        self.send(request(command, 77, offset, length, flags), payload)
        error, cookie = self.simple()
        assert cookie == 77
        return error

    def ask_chunks(self, command, offset, length, flags=0, payload=b""):
        self.send(request(command, 78, offset, length, flags), payload)
        return self.chunks(78)

    def read(self, offset, length):
        assert self.ask(READ, offset, length) == 0
        return self.receive(length)

# SPDX-License-Identifier: BSD-2-Clause
"""What the system tests share: a daemon on a fresh store, its two sockets, and TAP.

1. A Daemon has its own folder, store and sockets, and is ended by its own pid. Leaving its `with`
   block stops it by SIGTERM and asserts exit code 0, unless the test ended it itself.
2. Everything that waits has a limit; a limit that is reached fails the case and says what waited.
3. A case is a function marked @case. run_cases() runs them in order, prints TAP, and goes on after
   a failure. A missing program or module is a failure too, never a skip.
"""

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD_ROOT = os.environ.get("VELLUM_BUILD_ROOT", os.path.join(SOURCE_ROOT, "build"))
VELLUMD = os.environ.get("VELLUMD", os.path.join(BUILD_ROOT, "server", "vellumd"))
VELLUM = os.environ.get("VELLUM", os.path.join(BUILD_ROOT, "tools", "vellum"))

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40
BLOCK = 4 * KIB
IN_USE = -32003  # common/control/PROTOCOL.md
START_SECONDS = 30
STOP_SECONDS = 60


class RpcError(Exception):
    """The error member of a JSON-RPC answer."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.message = error["message"]


class Control:
    """One connection to a control socket: control.call("volume.get", name="v")."""

    def __init__(self, path, timeout=60):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")
        self.next_id = 0

    def call(self, method, **params):
        self.next_id += 1
        request = {"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        line = self.lines.readline()
        if not line:
            raise ConnectionError(f"the control connection ended during {method}")
        answer = json.loads(line)
        if "error" in answer:
            raise RpcError(answer["error"])
        assert answer["id"] == self.next_id, answer
        return answer["result"]

    def close(self):
        self.lines.close()
        self.socket.close()


class Daemon:
    """A vellumd. `folder` is kept by the caller, so that a store can be served again."""

    def __init__(self, folder, *arguments, store=None, create=True, wrapper=()):
        self.folder = folder
        self.store = store or os.path.join(folder, "store")
        self.nbd_socket = os.path.join(folder, "nbd.sock")
        self.control_socket = os.path.join(folder, "control.sock")
        self.log_path = os.path.join(folder, "log")
        command = [*wrapper, VELLUMD, "--store", self.store, "--unix", self.nbd_socket,
                   "--control", self.control_socket, *arguments]
        if create and not os.path.exists(self.store):
            command.append("--create")
            # What is destroyed gives its space back at once, unless a test is about that.
            if not any(one.startswith("--eradication-delay") for one in arguments):
                command.append("--eradication-delay=0")
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=folder)
        self.pid = self.process.pid
        self._control = None
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.kill()
            raise

    def _wait_until_it_answers(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            code = self.process.poll()
            assert code is None, f"vellumd ended with {code} at its start:\n{self.log()}"
            with contextlib.suppress(OSError):
                self.control.call("server.info")
                return
            self._control = None
            assert time.monotonic() < deadline, f"vellumd does not answer:\n{self.log()}"
            time.sleep(0.02)

    @property
    def control(self):
        if self._control is None:
            self._control = Control(self.control_socket)
        return self._control

    def call(self, method, **params):
        return self.control.call(method, **params)

    def uri(self, export):
        return f"nbd+unix:///{export.replace('@', '%40')}?socket={self.nbd_socket}"

    def connect(self, export, structured=True):
        """A libnbd handle, connected to `export`, with base:allocation if possible."""
        import nbd
        handle = nbd.NBD()
        handle.set_request_structured_replies(structured)
        if structured:
            handle.add_meta_context("base:allocation")
        handle.connect_uri(self.uri(export))
        return handle

    def cli(self, *arguments):
        """The answer of the command-line client, parsed from its JSON."""
        return json.loads(run(VELLUM, "--control", self.control_socket, "--json", *arguments))

    def log(self):
        with open(self.log_path, errors="replace") as log:
            return log.read()

    def _forget_control(self):
        if self._control is not None:
            self._control.close()
            self._control = None

    def stop(self, signal_number=signal.SIGTERM):
        """Ends it by a signal and returns its exit code."""
        self._forget_control()
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"vellumd does not stop:\n{self.log()}") from None

    def kill(self):
        self._forget_control()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(STOP_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            if self.process.poll() is not None:
                print(f"# vellumd had ended with {self.process.returncode}")
            self.kill()
            sys.stdout.write("".join(f"# log: {line}\n" for line in self.log().splitlines()[-30:]))
        elif self.process.returncode is None:
            code = self.stop()
            assert code == 0, f"vellumd ended with {code}:\n{self.log()}"


def run(*command, timeout=300, expect=0, text=True, stderr=subprocess.PIPE, **more):
    """Runs a command to its end and returns its stdout; any other exit code fails the case."""
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, text=text,
                          stdout=subprocess.PIPE, stderr=stderr, timeout=timeout, **more)
    assert done.returncode == expect, (
        f"{' '.join(map(str, command))}: exit code {done.returncode}, not {expect}\n"
        f"{done.stdout}\n{done.stderr}")
    return done.stdout


def check_store(store):
    """The fsck of a store at rest; fails the case if it finds anything."""
    run(VELLUM, "check", store)


def set_bits(answer):
    """The chunk numbers that a bitmap.allocated answer marks, relative to its offset."""
    raw = base64.b64decode(answer["bitmap"])
    return [i for i in range(len(raw) * 8) if raw[i // 8] >> (i % 8) & 1]


@contextlib.contextmanager
def folder(where=None):
    """A folder of this test alone, gone afterwards."""
    path = tempfile.mkdtemp(prefix="vellum-", dir=where)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def wait_for(condition, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain: {what}"
        time.sleep(0.02)


_cases = []


def case(function=None, *, seconds=120):
    """Marks a test case, which may last so many seconds. Its docstring is its name."""
    def mark(f):
        _cases.append((f, seconds))
        return f
    return mark(function) if function else mark


def _too_long(_signal, _frame):
    raise AssertionError("the case lasted too long")


def run_cases():
    signal.signal(signal.SIGALRM, _too_long)
    print(f"1..{len(_cases)}", flush=True)
    failed = 0
    for number, (function, seconds) in enumerate(_cases, 1):
        name = " ".join((function.__doc__ or function.__name__).split()).rstrip(".")
        started = time.monotonic()
        signal.alarm(seconds)
        try:
            function()
            signal.alarm(0)
            print(f"ok {number} - {name} # {time.monotonic() - started:.1f} s", flush=True)
        except Exception:
            signal.alarm(0)
            failed += 1
            print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), end="")
            print(f"not ok {number} - {name}", flush=True)
    sys.exit(1 if failed else 0)

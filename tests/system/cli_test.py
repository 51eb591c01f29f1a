#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The program `vellum`: its commands, its two forms of output, and its refusals."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading

import harness
from harness import KIB, MIB, TIB, VELLUM, case

ROOT = os.geteuid() == 0
NOBODY = 65534


def vellum(*arguments, control=None, program=VELLUM, **more):
    """Runs it: (exit code, stdout, stderr). Without `control` it has to find its socket itself."""
    environment = {k: v for k, v in os.environ.items()
                   if k not in ("VELLUM_CONTROL", "XDG_RUNTIME_DIR")}
    environment |= more.pop("environment", {})
    command = [program, *(["--control", control] if control else []), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, env=environment, **more)
    return done.returncode, done.stdout, done.stderr


class Server:
    """A daemon, and `vellum` talking to it."""

    def __init__(self, daemon):
        self.daemon = daemon

    def text(self, *arguments):
        code, output, error = vellum(*arguments, control=self.daemon.control_socket)
        assert code == 0 and error == "", (arguments, code, output, error)
        return output

    def json(self, *arguments):
        output = self.text("--json", *arguments)
        assert output.endswith("\n") and output.count("\n") == 1, output
        return json.loads(output)

    def refused(self, *arguments, words=()):
        """Expects a refusal, in both forms, that says the words and changes nothing."""
        before = self.state()
        for form in ([], ["--json"]):
            code, output, error = vellum(*form, *arguments, control=self.daemon.control_socket)
            assert code == 1 and output == "", (arguments, code, output, error)
            assert re.fullmatch(r"vellum: .+\n", error), (arguments, error)
            for word in words:
                assert word in error, (arguments, word, error)
        assert self.state() == before, arguments

    def state(self):
        return self.daemon.call("volume.list"), self.daemon.call("snapshot.list")


@contextlib.contextmanager
def server(*arguments):
    with harness.folder() as folder, harness.Daemon(folder, *arguments) as daemon:
        yield Server(daemon)


def write(daemon, volume, *offsets, size=4096):
    handle = daemon.connect(volume)
    for offset in offsets:
        handle.pwrite(b"x" * size, offset)
    handle.shutdown()
    harness.wait_for(lambda: not daemon.call("volume.get", name=volume)["attached"], "detached")


@case
def volumes_for_people():
    """Each volume command says what it did, and lists are tables."""
    with server() as s:
        assert s.text("volume", "list").split() == [
            "NAME", "SIZE", "SNAPSHOTS", "ATTACHED", "CREATED", "PARENT"]
        assert s.text("volume", "create", "db", "10G") == "created db, 10 GiB\n"
        s.text("volume", "create", "x", "512")
        assert s.text("volume", "rename", "x", "big") == "renamed x to big\n"
        assert s.text("volume", "resize", "big", "40T") == "resized big, 40 TiB\n"
        header, big, db = s.text("volume", "list").splitlines()
        assert big.split()[:4] == ["big", "40", "TiB", "0"] and db.split()[:3] == ["db", "10", "GiB"]
        assert header.index("SIZE") + 4 == big.index("TiB") + 3 == db.index("GiB") + 3
        s.text("snapshot", "create", "db", "--suffix", "s")
        assert s.text("volume", "clone", "db@s", "c") == "cloned db@s to c, 10 GiB\n"
        assert s.text("volume", "copy", "db", "d") == "copied db onto d, 10 GiB\n"
        assert "d@1" in s.text("volume", "copy", "db", "d", "--overwrite")
        assert "d@" not in s.text("volume", "copy", "db", "d", "--overwrite", "--no-undo")
        write(s.daemon, "db", 0)
        assert "the content before is db@1" in s.text("volume", "revert", "db", "s")
        assert s.text("volume", "revert", "db", "db@s", "--no-undo") == "reverted to db@s: db, 10 GiB\n"
        shown = s.text("volume", "show", "db")
        assert "10 GiB (10737418240 bytes)" in shown, shown
        assert re.search(r"^parent +db@s$", shown, re.M), shown
        assert s.text("volume", "destroy", "c") == "eradicated c\n"
        assert [v["name"] for v in s.daemon.call("volume.list")] == ["big", "d", "db"]


@case
def snapshots_for_people():
    """Snapshots of a group, their list, one of them, and the end of one."""
    with server() as s:
        s.text("volume", "create", "a", "1M")
        s.text("volume", "create", "b", "1M")
        assert s.text("snapshot", "create", "a", "b", "--suffix", "daily") == (
            "created a@daily\ncreated b@daily\n")
        assert s.text("snapshot", "create", "a") == "created a@1\n"
        lines = s.text("snapshot", "list").splitlines()
        assert lines[0].split() == ["NAME", "SIZE", "CREATED", "PARENT", "CHILDREN"]
        assert sorted(line.split()[0] for line in lines[1:]) == ["a@1", "a@daily", "b@daily"]
        assert len(s.text("snapshot", "list", "b").splitlines()) == 2
        assert re.search(r"^volume +a$", s.text("snapshot", "show", "a@1"), re.M)
        assert s.text("snapshot", "destroy", "a@1") == "eradicated a@1\n"
        assert len(s.daemon.call("snapshot.list")) == 2


@case
def one_json_document():
    """With --json every command prints what the control protocol answered, on one line."""
    with server() as s:
        made = s.json("volume", "create", "db", "16M")
        assert made == s.daemon.call("volume.get", name="db") == s.json("volume", "show", "db")
        assert s.json("volume", "list") == [made]
        assert s.json("snapshot", "create", "db")[0]["name"] == "db@1"
        assert s.json("snapshot", "list") == [s.json("snapshot", "show", "db@1")]
        assert s.json("volume", "clone", "db", "c")["name"] == "c"
        assert s.json("volume", "copy", "db@1", "c", "--overwrite")["undo_snapshot"] == "c@1"
        assert s.json("volume", "revert", "c", "1")["volume"]["name"] == "c"
        assert s.json("volume", "rename", "c", "d")["name"] == "d"
        assert s.json("volume", "resize", "d", "8M")["size"] == 8 * MIB
        assert s.json("volume", "destroy", "d") == {"time_remaining_ms": 0}
        assert s.json("snapshot", "destroy", "db@1") == {"time_remaining_ms": 0}
        assert s.json("bitmap", "db", "--chunk", "1M") == s.daemon.call(
            "bitmap.allocated", target="db", chunk=MIB)
        assert s.json("extents", "db") == s.daemon.call("extents.list", target="db")
        assert s.json("store")["uuid"] == s.daemon.call("store.get")["uuid"]
        assert s.json("stats", "db") == s.daemon.call("stats.get", volume="db")
        assert s.json("stats")["snapshots"] == s.daemon.call("stats.get")["snapshots"]
        assert s.json("call", "volume.get", '{"name":\n"db"}') == made
        assert s.text("volume", "list", "--json") == s.text("--json", "volume", "list")


@case
def maps():
    """bitmap draws, extents goes on to the end, both of a volume, a snapshot and a difference."""
    with server() as s:
        s.text("volume", "create", "db", "64M")
        write(s.daemon, "db", 0, MIB, 9 * MIB)
        s.text("snapshot", "create", "db", "--suffix", "s")
        write(s.daemon, "db", 20 * MIB)
        drawn = s.text("bitmap", "db", "--chunk", "1M").splitlines()
        assert drawn[0].split() == ["0", "##.......#..........#" + "." * 43], drawn
        assert drawn[1] == "4 of 64 chunks of 1 MiB hold data; next data beyond: -"
        part = s.text("bitmap", "db", "--offset", "10M", "--length", "2M", "--chunk", "1M")
        assert part.splitlines()[0].split() == ["10485760", ".."]
        assert part.endswith("beyond: 20971520\n")
        unasked = s.text("bitmap", "db", "--length", "1M", "--chunk", "1M", "--no-hint")
        assert unasked.endswith("beyond: -\n")
        assert s.json("bitmap", "db@s", "--chunk", "1M")["allocated_chunks"] == 3
        assert s.text("extents", "db@s").splitlines()[-1] == "3 extents, 12 KiB of data in 64 MiB"
        changed = s.text("extents", "db", "--base", "db@s").splitlines()
        assert changed[1].split() == ["20971520", "4096", "4", "KiB", "data"]
        assert changed[2] == "1 extent, 4 KiB of data in 64 MiB"


@case
def space():
    """space lists what each takes; a store that gets full warns, and has room once it has grown."""
    with server("--capacity", "128M") as s:
        s.text("volume", "create", "db", "256M")
        write(s.daemon, "db", *range(0, 8 * MIB, MIB), size=MIB)
        s.text("snapshot", "create", "db", "--suffix", "s")
        write(s.daemon, "db", *range(0, 4 * MIB, MIB), size=MIB)
        harness.wait_for(lambda: all(one["exact"] for one in s.json("space")), "exact figures")
        db, snapshot = s.json("space")
        assert db["referenced"] == snapshot["referenced"] == 8 * MIB
        assert 4 * MIB < snapshot["unique"] == snapshot["gives_back"] < 4.1 * MIB
        assert 12 * MIB < db["gives_back"] < 12.2 * MIB
        assert s.json("space", "db@s") == [snapshot]
        assert s.text("space", "db").split()[:4] == ["NAME", "SIZE", "REFERENCED", "UNIQUE"]
        s.refused("space", "db@no", words=["db@no"])
        drawn = s.text("bitmap", "db", "--base", "db@s", "--length", "8M", "--chunk", "1M")
        assert drawn.splitlines()[0].split() == ["0", "####...."], drawn
        write(s.daemon, "db", *range(100 * MIB, 138 * MIB, MIB), size=MIB)
        harness.wait_for(lambda: s.json("store")["warning"] is not None, "a warning")
        assert s.json("store")["warning"]["candidates"][0]["name"] == "db@s"
        assert "WARNING: " in s.text("store") and "db@s" in s.text("stats")
        s.refused("store", "grow", "64M", words=["shrink"])
        assert "1 GiB" in s.text("store", "grow", "1G")
        assert s.json("store")["warning"] is None


@case
def destroyed_and_recovered():
    """What is destroyed can be recovered for the delay of the store, or eradicated before."""
    with server("--eradication-delay", "2h") as s:
        s.text("volume", "create", "db", "16M")
        write(s.daemon, "db", 0)
        s.text("snapshot", "create", "db", "--suffix", "s")
        said = s.text("volume", "destroy", "db")
        assert re.fullmatch(r"destroyed db; for (2 h|1 h 59 min) vellum volume recover db brings it "
                            r"back\n", said), said
        assert s.json("volume", "list") == s.json("snapshot", "list") == []
        assert s.json("snapshot", "list", "--destroyed")[0]["name"] == "db@s"
        s.refused("volume", "create", "db", "1G", words=["destroyed", "eradicate"])
        s.refused("snapshot", "recover", "db@s", words=["recover the volume"])
        s.refused("extents", "db", words=["destroyed", "recover"])
        assert s.text("volume", "recover", "db") == "recovered db, 16 MiB, with 1 snapshot\n"
        assert s.json("extents", "db@s")["extents"][0]["length"] == 4 * KIB
        s.text("snapshot", "destroy", "db@s")
        assert s.text("snapshot", "eradicate", "db@s") == "eradicated db@s\n"
        assert "for 7 d" in s.text("store", "set", "--eradication-delay", "7d")
        assert s.json("store")["eradication_delay_ms"] == 7 * 24 * 3600 * 1000
        s.refused("store", "set", "--eradication-delay", "soon", words=["24h"])
        assert s.text("volume", "destroy", "db", "--eradicate") == "eradicated db\n"
        assert s.json("volume", "list", "--destroyed") == []


@case
def many_extents():
    """extents follows next_offset through more answers than one."""
    with server() as s:
        s.text("volume", "create", "db", "1G")
        offsets = [2 * i * 4 * KIB for i in range(4500)]
        write(s.daemon, "db", *offsets)
        assert s.daemon.call("extents.list", target="db")["next_offset"] is not None
        listed = s.json("extents", "db")
        assert [e["offset"] for e in listed["extents"]] == offsets
        assert listed["next_offset"] is None and listed["size"] == 1 << 30
        assert len(s.text("extents", "db").splitlines()) == 4502


@case
def state_of_the_server():
    """store and stats are readable, call prints the result of any method."""
    with server() as s:
        s.text("volume", "create", "db", "64M")
        write(s.daemon, "db", 0, MIB)
        counters = s.text("stats").splitlines()
        assert counters[0].split() == ["COUNT", "BYTES"]
        assert ["writes", "2", "8", "KiB"] in [line.split() for line in counters]
        assert s.text("stats", "db").splitlines()[0] == counters[0]
        shown = s.text("store")
        assert re.search(r"^volumes +1$", shown, re.M) and re.search(r"^read-only +-$", shown, re.M)
        assert re.search(r"^data, metadata +", shown, re.M) and "WARNING" not in shown
        assert json.loads(s.text("call", "volume.list"))[0]["name"] == "db"
        assert json.loads(s.text("call", "server.info"))["protocol_version"] == 1


@case(seconds=300)
def bad_arguments():
    """Arguments that are unknown, missing, too many, given twice, or out of range are refused."""
    with server() as s:
        s.text("volume", "create", "db", "16M")
        s.text("snapshot", "create", "db", "--suffix", "s")
        for arguments in ([], ["volume"], ["snapshot"], ["volumes"], ["volume", "make", "a", "1G"],
                          ["volume", "create"], ["volume", "create", "a"],
                          ["volume", "create", "a", "1G", "b"], ["volume", "list", "db"],
                          ["volume", "create", "a", "1G", "--sparse"], ["snapshot", "create"],
                          ["volume", "create", "--reserved=perhaps", "a", "1G"],
                          ["bitmap"], ["bitmap", "db", "--chunk"], ["extents"], ["store", "db"],
                          ["bitmap", "db", "--chunk", "4K", "--chunk", "8K"],
                          ["snapshot", "create", "db", "--suffix", "a", "--suffix", "b"],
                          ["call"], ["call", "volume.list", "{}", "{}"], ["check"], ["init"],
                          ["volume", "list", "store"]):
            s.refused(*arguments)
        for size in ("", "0", "1", "511", "-1", "-512", "+1G", "1 G", "10X", "G", "0x1000", "1e3",
                     "NaN", "5P", "4503599627370497", "18446744073709551616",
                     "99999999999999999999999", "16E", "1GG", "10Gi", "1,000"):
            s.refused("volume", "create", "a", "--", size)
            s.refused("volume", "resize", "db", "--", size)
        for name in ("", ".a", "_a", "a b", "a/b", "a@b", "a%40b", "é", "a\n", "x" * 64, "*", "../a"):
            s.refused("volume", "create", "--", name, "1G", words=["name"])
            s.refused("volume", "rename", "db", "--", name)
            s.refused("volume", "clone", "db", "--", name)
            s.refused("snapshot", "create", "db", "--suffix=" + name, words=["suffix"])
            s.refused("volume", "show", "--", name)
        s.refused("volume", "create", "--", "-a", "1G", words=["name"])
        for chunk in ("0", "1", "4095", "12K", "8P", "x"):
            s.refused("bitmap", "db", "--chunk", chunk, words=["chunk"])
        for offset in ("1K", "16M", "8P", "x", ""):
            s.refused("bitmap", "db", "--offset=" + offset, "--chunk", "4K")
        s.refused("bitmap", "db", "--length=0", words=["length"])
        for parameters in ("", "{", "[]", "1", '{"name": "db", "name": "db"}', '{"nam": "db"}', "{} {}"):
            s.refused("call", "volume.get", parameters)
        s.refused("call", "volume.gat", words=["volume.gat"])
        s.refused("call", "", words=["method"])
        s.refused("frobnicate", words=["frobnicate"])
        s.refused("volume", "frobnicate", "db", words=["frobnicate"])


@case
def refusals_of_the_server():
    """What the server refuses is said with the name of the object, on stderr, with exit code 1."""
    with server() as s:
        s.text("volume", "create", "db", "16M")
        s.text("volume", "create", "db2", "16M")
        s.text("snapshot", "create", "db", "--suffix", "s")
        s.refused("volume", "create", "db", "1G", words=["db"])
        s.refused("volume", "show", "no", words=["no"])
        s.refused("volume", "destroy", "no", words=["no"])
        s.refused("volume", "rename", "db", "db2", words=["db2"])
        s.refused("volume", "copy", "db", "db2", words=["db2", "overwrite"])
        s.refused("volume", "revert", "db", "t", words=["db"])
        s.refused("volume", "clone", "db@t", "new", words=["db@t"])
        s.refused("snapshot", "create", "db2", "no", words=["no"])
        s.refused("snapshot", "create", "db2", "db2", words=["sources"])
        s.refused("snapshot", "create", "db2", "db", "--suffix", "s", words=["db@s"])
        s.refused("snapshot", "list", "no", words=["no"])
        s.refused("snapshot", "show", "db", words=["VOLUME@SUFFIX"])
        s.refused("extents", "db", "--base", "no", words=["no"])
        s.refused("stats", "no", words=["no"])
        handle = s.daemon.connect("db")
        harness.wait_for(lambda: s.daemon.call("volume.get", name="db")["attached"], "attached")
        code, output, error = vellum("volume", "destroy", "db", control=s.daemon.control_socket)
        assert (code, output) == (1, "") and "db" in error, error
        assert s.text("volume", "destroy", "db", "--force") == "eradicated db\n"
        with contextlib.suppress(Exception):
            handle.shutdown()


@case
def shrinking():
    """A volume whose data would be cut off is shrunk only with --truncate."""
    with server() as s:
        s.text("volume", "create", "db", "16M")
        write(s.daemon, "db", 12 * MIB)
        s.refused("volume", "resize", "db", "8M", words=["db", "truncate"])
        assert s.text("volume", "resize", "db", "8M", "--truncate") == "resized db, 8 MiB\n"


@case
def which_socket():
    """--control beats VELLUM_CONTROL, which beats the default."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        daemon.call("volume.create", name="db", size=MIB)
        good, bad = daemon.control_socket, os.path.join(folder, "no.sock")
        code, output, _ = vellum("volume", "list", environment={"VELLUM_CONTROL": good})
        assert code == 0 and "db" in output
        code, output, _ = vellum("volume", "list", control=good, environment={"VELLUM_CONTROL": bad})
        assert code == 0 and "db" in output
        code, _, error = vellum("volume", "list", control=bad, environment={"VELLUM_CONTROL": good})
        assert code == 1 and bad in error and "start vellumd" in error, error
        code, _, error = vellum("volume", "list", control="/tmp/" + "x" * 200)
        assert code == 1 and "too long" in error, error


@case
def other_users():
    """The default is in XDG_RUNTIME_DIR for others than root, and permission is spoken of."""
    with harness.folder() as folder, harness.Daemon(folder) as daemon:
        program = shutil.copy(VELLUM, os.path.join(folder, "program"))
        os.chmod(folder, 0o755)
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if ROOT else {}
        os.mkdir(os.path.join(folder, "vellum"))
        os.symlink(daemon.control_socket, os.path.join(folder, "vellum", "control.sock"))
        at_home = {"program": program, "environment": {"XDG_RUNTIME_DIR": folder}, **who}
        os.chmod(daemon.control_socket, 0o666)
        assert vellum("volume", "list", **at_home)[0] == 0
        os.chmod(daemon.control_socket, 0)
        code, output, error = vellum("volume", "list", **at_home)
        assert (code, output) == (1, "") and "not permitted" in error, error
        code, output, error = vellum("volume", "list", program=program, **who)
        assert (code, output) == (1, "") and "--control" in error, error


def answering(folder, answer):
    """A socket whose server reads one line, sends `answer` and closes."""
    path = os.path.join(folder, "fake.sock")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(1)
    listener.settimeout(30)

    def serve():
        connection, _ = listener.accept()
        with connection, listener:
            connection.makefile("rb").readline()
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return path


@case
def strange_servers():
    """A server that says nothing, or no control protocol, or leaves out what is expected."""
    with harness.folder() as folder:
        dead = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        dead.bind(os.path.join(folder, "dead.sock"))
        dead.close()
        code, _, error = vellum("store", control=os.path.join(folder, "dead.sock"))
        assert code == 1 and "nobody answers" in error, error
        for answer in (b"", b"NBDMAGICIHAVEOPT\0\3", b"hello\n", b"[]\n", b"{}\n", b"null\n",
                       b'{"jsonrpc":"2.0","id":1}\n', b'{"jsonrpc":"2.0","id":2,"result":{}}\n',
                       b'{"jsonrpc":"2.0","id":1,"result":', b'{"jsonrpc":"2.0","id":1,"error":1}\n'):
            code, output, error = vellum("store", control=answering(folder, answer))
            assert (code, output) == (1, "") and error.startswith("vellum: "), (answer, error)
        for result in (b"{}", b"[]", b"null", b"[1]", b'{"used":"x","reclaim":[1]}', b'{"extents":[1]}'):
            answer = b'{"jsonrpc":"2.0","id":1,"result":' + result + b"}\n"
            for command in (["store"], ["stats"], ["volume", "list"], ["volume", "show", "a"],
                            ["snapshot", "list"], ["snapshot", "create", "a"], ["bitmap", "a"],
                            ["volume", "revert", "a", "1"], ["extents", "a"]):
                code, _, _ = vellum(*command, control=answering(folder, answer))
                assert code in (0, 1), (command, result, code)


@case
def full_output():
    """Output that cannot be written is an error."""
    with server() as s:
        with open("/dev/full", "w") as full:
            done = subprocess.run([VELLUM, "--control", s.daemon.control_socket, "store"],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 1 and "standard output" in done.stderr, done


@case
def help_and_version():
    """--help and --version go to stdout with exit code 0, for every command."""
    code, output, error = vellum("--version")
    assert (code, error) == (0, "") and re.fullmatch(r"vellum \d+\.\d+\.\d+\n", output), output
    for command in ([], ["volume"], ["volume", "copy"], ["snapshot", "create"], ["bitmap"],
                    ["extents"], ["store"], ["stats"], ["call"], ["check"], ["init"]):
        code, output, error = vellum(*command, "--help")
        assert (code, error) == (0, "") and "Usage" in output, (command, output, error)


@case
def stores_at_rest():
    """init makes a store with volumes that vellumd serves, and check finds it sound."""
    with harness.folder() as folder:
        store = os.path.join(folder, "store")
        made = harness.run(VELLUM, "init", store, "--capacity", "2G", "--volume", "a=40T",
                           "--volume", "b=1M")
        assert "2 volumes" in made and "2 GiB" in made, made
        assert "sound" in harness.run(VELLUM, "check", store)
        with harness.Daemon(folder, create=False) as daemon:
            assert [(v["name"], v["size"]) for v in daemon.call("volume.list")] == [
                ("a", 40 * TIB), ("b", MIB)]
            assert daemon.call("store.get")["capacity"] == 2 << 30
            for command in (["check", store], ["init", store], ["init", "--force", store]):
                code, output, error = vellum(*command)
                assert (code, output) == (1, "") and str(daemon.pid) in error, (command, error)
            write(daemon, "b", 0)
        report = json.loads(harness.run(VELLUM, "check", store, "--data", "--json"))
        assert report["sound"] is True and report["errors"] == [] and report["volumes"] == 2
        assert report["data_blocks"] == 1 and report["store"] == store, report


@case
def init_refuses():
    """init touches nothing before all its arguments are right, and nothing that is not empty."""
    with harness.folder() as folder:
        store = os.path.join(folder, "store")
        for arguments in (["--capacity", "1"], ["--capacity", "x"], ["--capacity", "4097"],
                          ["--volume", "a"], ["--volume", "a="], ["--volume", "=1G"],
                          ["--volume", "a@b=1G"], ["--volume", "a=1"], ["--volume", "a=8P"],
                          ["--volume", "a=1G", "--volume", "a=2G"], ["--size", "1G"],
                          ["--capacity", "1G", "--capacity", "2G"]):
            code, output, error = vellum("init", store, *arguments)
            assert (code, output) == (1, "") and error.startswith("vellum: "), (arguments, error)
            assert not os.path.exists(store), arguments
        with open(store, "wb") as file:
            file.write(b"precious" * 1024)
        code, _, error = vellum("init", store)
        assert code == 1 and store in error, error
        with open(store, "rb") as file:
            assert file.read() == b"precious" * 1024
        harness.run(VELLUM, "init", store, "--force", "--capacity", "1G")
        assert "sound" in harness.run(VELLUM, "check", store)
        code, _, error = vellum("init", os.path.join(folder, "no", "store"))
        assert code == 1 and "no/store" in error, error


@case
def check_refuses():
    """check says what is no store, and what is damaged, with exit code 1."""
    with harness.folder() as folder:
        store = os.path.join(folder, "store")
        code, output, error = vellum("check", store)
        assert (code, output) == (1, "") and store in error, error
        with open(store, "wb") as file:
            file.write(b"x" * MIB)
        code, output, error = vellum("check", store)
        assert (code, output) == (1, "") and store in error, error
        code, output, error = vellum("check", folder)
        assert (code, output) == (1, "") and folder in error, error


if __name__ == "__main__":
    harness.run_cases()

#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""tools/quickstart, the first command that README.md names."""

import json
import os
import subprocess

import harness
from harness import case, run

QUICKSTART = os.path.join(harness.SOURCE_ROOT, "tools", "quickstart")


@case(seconds=600)
def quickstart():
    """It ends with a running server and a clone that differs, can be run again, and stops."""
    environment = {**os.environ, "VELLUM_BUILD_ROOT": harness.BUILD_ROOT}
    with harness.folder() as folder:
        where = os.path.join(folder, "q u")  # a blank is a character
        try:
            said = run(QUICKSTART, where, env=environment, timeout=500)
            for expected in ["Images are identical", "Content mismatch", "--stop", "nbd-client"]:
                assert expected in said, said
            with open(f"{where}/vellumd.pid", encoding="ascii") as file:
                pid = int(file.read())
            again = run(QUICKSTART, where, env=environment)
            assert f"runs already, as process {pid}" in again, again
            control = harness.Control(f"{where}/control.sock")
            assert {v["name"] for v in control.call("volume.list")} == {"disk", "play"}
            diff = control.call("extents.diff", target="play", base="disk@clean")
            assert diff["extents"] == [{"offset": 900 << 20, "length": 64 << 10, "kind": "data"}]
            # Its own hint, and what a run leaves that was interrupted.
            control.call("volume.revert", name="play", snapshot="disk@clean")
            control.call("volume.rename", name="disk", new_name="disk.part")
            third = run(QUICKSTART, where, env=environment)
            assert "ext4 file system" in third and "is kept" in third, third
            assert control.call("snapshot.get", name="disk@clean")["volume"] == "disk"
            data = control.call("extents.list", target="disk")["extents"]
            assert sum(e["length"] for e in data) > 1 << 20, data
            control.close()
        finally:
            stopped = subprocess.run([QUICKSTART, "--stop", where], check=False, timeout=120,
                                     capture_output=True, text=True)
        assert f"stopped process {pid}" in stopped.stdout, json.dumps(stopped.stderr)
        assert not os.path.exists(f"/proc/{pid}")
        harness.check_store(f"{where}/store")


if __name__ == "__main__":
    harness.run_cases()

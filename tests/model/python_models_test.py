#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The two executable models hold, and each rule that is broken on purpose is noticed.

Run:  python_models_test.py [seeds]        (default: 24; TAP on standard output)
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OPERATIONS = 300
# "RULE   F of S seeds fail: ..."
LINE = re.compile(r"^(?P<rule>\S.*?)\s+(?P<failed>\d+) of (?P<seeds>\d+) seeds fail")


class Tap:
    def __init__(self):
        self.count, self.failed = 0, 0

    def case(self, name, good, detail=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}", flush=True)
        if not good and detail:
            print("\n".join(f"# {line}" for line in detail.strip().splitlines()), flush=True)


def run(script, *arguments):
    return subprocess.run([sys.executable, HERE / script, *map(str, arguments)],
                          capture_output=True, text=True, timeout=300)


def main(seeds):
    tap = Tap()
    print("TAP version 13", flush=True)
    done = run("version_forest.py", 2 * seeds, OPERATIONS)
    tap.case("version_forest holds", done.returncode == 0, done.stdout + done.stderr)
    done = run("checkpoint_and_crash.py", seeds, OPERATIONS)
    tap.case("checkpoint_and_crash holds", done.returncode == 0, done.stdout + done.stderr)
    done = run("checkpoint_and_crash.py", seeds, OPERATIONS, "--break", "all")
    broken = [match for match in map(LINE.match, done.stdout.splitlines()) if match]
    tap.case("the rules can be broken", done.returncode == 0 and len(broken) >= 13,
             done.stdout + done.stderr)
    for match in broken:
        tap.case(f"{match['rule']} is noticed when broken", int(match["failed"]) > 0, match[0])
    print(f"1..{tap.count}", flush=True)
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 24))

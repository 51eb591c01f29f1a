# SPDX-License-Identifier: BSD-2-Clause
"""The files of the source tree, and results in TAP, for the checks beside this file."""

import os
import pathlib

ROOT = pathlib.Path(os.environ.get("VELLUM_SOURCE_ROOT") or pathlib.Path(__file__).parents[2])
SOURCE_SUFFIXES = {".cpp", ".hpp"}


def is_left_out(path):
    """What is not ours, or not text: build folders, caches, images and corpora."""
    parts = path.parts
    return (
        parts[0] == ".git"
        or parts[0].startswith("build")
        or "__pycache__" in parts
        or parts[:2] == ("tests", "golden")
        and path.suffix in {".img", ".xz", ".zst", ".gz"}
        or parts[:3] == ("tests", "fuzz", "corpus")
    )


def files(root=ROOT):
    """Every file of the tree, relative to `root`, in order."""
    found = []
    for folder, folders, names in os.walk(root):
        here = pathlib.Path(folder).relative_to(root)
        folders[:] = sorted(f for f in folders if not is_left_out(here / f))
        found += [here / n for n in sorted(names) if not is_left_out(here / n)]
    return [path for path in found if path.name != ".git"]


def sources(root=ROOT):
    return [path for path in files(root) if path.suffix in SOURCE_SUFFIXES]


class Tap:
    """Prints one line for each check; what is wrong goes below it."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def check(self, name, complaints):
        self.count += 1
        self.failed += bool(complaints)
        print(f"{'not ok' if complaints else 'ok'} {self.count} - {name}")
        for complaint in complaints:
            print(f"# {complaint}")

    def finish(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0

# SPDX-License-Identifier: BSD-2-Clause
"""The patches of tests/mutations, for the script that runs them and for the check beside this
file."""

import pathlib
import re
import subprocess


class Patch:
    """One mutant, and the test that is to catch it; empty where its head does not say."""

    def __init__(self, path):
        self.path = path
        self.name = path.stem
        text = path.read_text(encoding="utf-8")
        head = text.split("\n--- ")[0]
        self.breaks = self.word(head, "Breaks")
        test = self.word(head, "Test").split()
        self.executable, self.test = test if len(test) == 2 else ("", "")
        self.arguments = self.word(head, "Arguments").split()
        self.files = re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)
        self.promises = re.findall(r"\bP\d+\b", self.breaks)

    def apply(self, root, *options):
        """To the tree at `root`. Empty, or why not."""
        # Inside a repository, paths would count from its top.
        command = ["git", "apply", *options, "--unsafe-paths", "--directory", str(root)]
        done = subprocess.run([*command, str(self.path.resolve())], cwd="/", capture_output=True,
                              text=True, check=False)
        return done.stderr.strip() or "it failed" if done.returncode != 0 else ""

    @staticmethod
    def word(head, key):
        found = re.search(rf"^{key}: (.+)$", head, re.MULTILINE)
        return found.group(1).strip() if found else ""


def load(folder):
    return [Patch(path) for path in sorted(pathlib.Path(folder).glob("*.patch"))]

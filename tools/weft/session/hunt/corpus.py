# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Reads and writes the directory in which `weft hunt` stores its results. hunt.json contains the settings, and seeds/N.json the verdict of seed N. If
the run of seed N did not pass, found/N.hunt contains its schedule, and found/N the output of the guests' consoles."""
import json
import os

from lab.errors import LabError


class Corpus:
    """The results of a hunt. A hunt that was interrupted continues with the seeds that have no verdict. settings: the settings that all its seeds
    share."""

    def __init__(self, directory, settings):
        self.found = directory / "found"
        self._seeds = directory / "seeds"
        for folder in (self.found, self._seeds):
            folder.mkdir(parents=True, exist_ok=True)
        file = directory / "hunt.json"
        if not file.exists():
            _write(file, settings)
        elif (others := _read(file)) != settings:
            raise LabError(f"{directory} has the results of another hunt: {others}", "choose another directory with --out")

    def verdict(self, seed):
        """Returns the verdict of a seed, or None."""
        file = self._seeds / f"{seed}.json"
        return _read(file) if file.exists() else None

    def add(self, seed, verdict, schedule):
        """Stores a verdict, and the schedule of a seed that did not pass."""
        if verdict["verdict"] != "passed":
            (self.found / f"{seed}.hunt").write_text(str(schedule))
        _write(self._seeds / f"{seed}.json", verdict)


def _read(file):
    try:
        return json.loads(file.read_text())
    except ValueError:
        raise LabError(f"{file} is damaged", "remove it, and its seed is run again") from None


def _write(file, value):
    new = file.with_suffix(".new")
    new.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(new, file)

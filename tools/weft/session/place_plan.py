# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Reads how weftd divides a lab into places, each of which runs on a host of its own."""
import dataclasses
import json
import re
import subprocess
import tomllib

import hosts_file
from lab.errors import LabError


@dataclasses.dataclass(frozen=True)
class PlannedPlace:
    """name: of the place; address, port: from the lab file, or None; listening: number of trunks for which it listens; hosts: names of its hosts; manages:
    it runs the subnet manager, or one on standby; switches: names; trunks: whether it listens, by name; ethernets: the ports of its hosts, by the name of
    the segment."""

    name: str
    address: str | None
    port: int | None
    listening: int
    hosts: frozenset
    manages: bool
    switches: frozenset = frozenset()
    trunks: dict = dataclasses.field(default_factory=dict)
    ethernets: dict = dataclasses.field(default_factory=dict)


# The directory of a lab has a directory with the name of each place, among other files.
TAKEN = re.compile(r".*\.(sock|log|core|json|toml|pcapng)|lab-ended", re.DOTALL)


def read_plan(text):
    """Returns the PlannedPlaces in the output of `weftd --plan json`."""
    try:
        places = []
        for place in json.loads(text)["places"]:
            if not hosts_file.NAME.fullmatch(place["name"]) or TAKEN.fullmatch(place["name"]):
                raise LabError(f"a place of a lab over several hosts cannot be called '{place['name']}'", "call it for example rack1")
            address, port = (None, None)
            if place.get("address"):
                if not (found := hosts_file.split(place["address"])):
                    raise LabError(f"the address '{place['address']}' of the place {place['name']} is not one of a host")
                address, port = found
            trunks = {trunk["link"]: trunk["role"].startswith("listen") for trunk in place["trunks"]}
            places.append(PlannedPlace(place["name"], address, port, sum(trunks.values()), frozenset(place["hosts"]), place.get("subnet_manager") is True or place.get("standby") is True,
                                       frozenset(place["switches"]), trunks, {name: list(ports) for name, ports in place.get("ethernets", {}).items()}))
        return places
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LabError(f"the plan of the lab is not understood: {error!r}") from None


def has_places(text):
    """Returns whether a lab file describes its places. weftd reports a file that is not valid."""
    try:
        return bool(tomllib.loads(text).get("place"))
    except tomllib.TOMLDecodeError:
        return True


def make_plan(weftd, lab_file, count):
    """Returns the places of a lab file. count: their number, for a file without places, or 0."""
    places = ["--places", str(count)] if count else []
    done = subprocess.run([weftd, "--lab", str(lab_file), "--plan", "json", *places], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError((done.stderr or done.stdout).strip() or f"{weftd} has not planned the lab")
    return read_plan(done.stdout)

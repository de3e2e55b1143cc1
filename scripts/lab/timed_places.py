# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs a lab with several places in virtual time (lab.shared_time runs one without). Each place has a clock of its own, and one or more weftds run the
places, which advance in rounds (Documentation/virtual-time-hosts.rst). The result depends on the lab and its seed, but not on the number of weftds.

The files are those of lab.shared_time, except for these:

    lab/PLACE/              the sockets of a place
    work/PLACE/HOST/        the script of a host, and its results; a directory without a status keeps a guest whose script has ended, until weftd
                            ends the lab
    weftd-NUMBER.log        of each weftd
    PLACE.pcap              the capture of a place
"""
import os
import pathlib
import re
import subprocess
import time

from lab import reports, shared_time, uml
from lab.errors import LabError, exit_in_words
from lab.process import to_bytes
from lab.shared_time import EVENTS, FINISHED, GRACE, LEFT_ALONE, SHARE, SOCKETS, WORK
from lab.waiting import wait_until

UNFINISHED = "+"    # is not the name of a host


def groups(names, count):
    """Divides the places of a lab among so many weftds; each gets consecutive ones."""
    return [names[len(names) * number // count:len(names) * (number + 1) // count] for number in range(count)]


def _start(lab, number, names):
    command = ["setpriv", "--pdeathsig", "TERM", str(lab.weftd), "--time-server", "--events", EVENTS, "--finished-file", f"{WORK}/{FINISHED}", "--socket-dir", SOCKETS,
               "--seed", str(lab.seed), "--log-level", lab.log_level, "--lab", str(pathlib.Path(lab.lab_file).resolve())]
    for name in names:
        command += ["--place", name]
    with open(lab.directory / f"weftd-{number}.log", "wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0, cwd=lab.directory)


def _words(lab, place, name, number):
    words = [*uml.repeatable_words(name, lab.seed, f"{WORK}/{place}", time=(f"time-travel=ext:{number}:{SOCKETS}/{place}/time.sock",)),
             f"virtio_uml.device={SOCKETS}/{place}/{name}.sock:{uml.PCI_DEVICE_ID}"]
    if lab.share:
        words.append(f"weft.share=/proc/self/cwd/{SHARE}")
    return [*words, *lab.append.split(), *lab.host_words(name)]


def _log(lab, number):
    return shared_time.read(lab.directory / f"weftd-{number}.log")


def _reason(lab, grouped, weftds):
    """Returns why the lab has ended."""
    for names, weftd in zip(grouped, weftds):
        if weftd.returncode < 0:
            return f"the weftd of {'place' if len(names) == 1 else 'places'} {', '.join(names)} {exit_in_words(weftd.returncode)}"
    logs = [_log(lab, number) for number in range(len(weftds))]
    # The first is an error in weftd itself, which only disconnects from the server of the rounds.
    for pattern in (r"(?m)^\S+ \w+ +weftd: ends: (.*)", r"rounds: the lab ends after \d+ rounds: (.*)", r"place \S+: ends: (.*)", r" ends: (.*)"):
        if found := [each for log in logs for each in re.findall(pattern, log)]:
            return found[0]
    return "\n".join(log.strip().splitlines()[-1] for log, weftd in zip(logs, weftds) if weftd.returncode and log.strip())


def _a_place_has_ended(lab, weftds):
    """Returns whether a place has ended by itself. The others then do what is left of the round, which takes as long as their guests compute."""
    return any(re.search(r"place \S+: ends: ", _log(lab, number)) for number in range(len(weftds)))


def _await_end(lab, weftds, keepers, timeout):
    failed, limit, began = None, 0, time.monotonic()
    while any(weftd.poll() is None for weftd in weftds):
        now = time.monotonic()
        gone = next((name for name, keeper in keepers.items() if keeper.poll() is not None), None)
        if gone or any(weftd.poll() is not None for weftd in weftds):
            failed = failed or now
        if failed and now > failed + GRACE and _a_place_has_ended(lab, weftds):
            failed = None
        if failed and now > failed + GRACE:
            if gone and all(weftd.poll() is None for weftd in weftds):
                raise LabError(f"{gone} has ended, and the others wait for it", "see its console")
            return
        limit = max(limit, timeout() if callable(timeout) else timeout)
        if now > began + limit:
            for weftd in weftds:
                weftd.terminate()
            for weftd in weftds:
                weftd.wait()
            waited = sorted({each for number in range(len(weftds)) for each in re.findall(r"waited for (.*)", _log(lab, number))})
            raise LabError(f"the lab has not finished within {limit:g} s{''.join(f'; waited for {each}' for each in waited)}", "see the guests' consoles")
        time.sleep(0.05)


def run(lab, places, processes, timeout):
    """Runs a lab until all scripts have ended; returns lab.shared_time.Done. places: the names of the lab's places; processes: number of weftds;
    timeout: as for lab.shared_time.run()."""
    grouped = groups(places, processes)
    keepers = {}
    shared_time.fill_directory(lab)
    for place in places:
        (lab.directory / WORK / place / UNFINISHED).mkdir(parents=True)
    weftds = [_start(lab, number, names) for number, names in enumerate(grouped)]
    try:
        sockets = [lab.directory / SOCKETS / place / "control.sock" for place in places]
        wait_until("weftd to serve", lambda: any(weftd.poll() is not None for weftd in weftds) or all(each.is_socket() for each in sockets), 30)
        if any(weftd.poll() is not None for weftd in weftds):
            raise LabError(_ended_early(lab, grouped, weftds))
        shown = {place: shared_time.fabric_at(lab.directory / SOCKETS / place) for place in places}
        hosts = {host["name"]: (place, number) for place in places for number, host in enumerate(shared_time.hosts_of(shown[place]), 1)}
        fabric = {"hosts": sorted((host for each in shown.values() for host in shared_time.hosts_of(each)), key=lambda host: host["number"]),
                  "subnet_manager": next((each["subnet_manager"] for each in shown.values() if each["subnet_manager"]), None)}
        names = [host["name"] for host in fabric["hosts"]]
        scripts = lab.scripts(fabric)
        for name in names:
            own = lab.directory / WORK / hosts[name][0] / name
            own.mkdir()
            (own / "script").write_bytes(to_bytes(scripts.get(name, "true\n")))
        for name in names:
            (lab.directory / f"state-{name}").mkdir()
            keepers[name] = uml.start(lab.kernel, _words(lab, *hosts[name][:1], name, hosts[name][1]), memory=lab.memory, log=lab.directory / f"console-{name}.log",
                                      state=pathlib.Path(f"state-{name}"), repeatable_in=lab.directory)
        _await_end(lab, weftds, keepers, timeout)
        left = shared_time.left_running(keepers)
    finally:
        for keeper in keepers.values():
            uml.end(keeper)
        for weftd in weftds:
            weftd.terminate()
        for weftd in weftds:
            weftd.wait()
    folder = {name: lab.directory / WORK / hosts[name][0] / name for name in names}
    return shared_time.Done(*({name: shared_time.read(folder[name] / what) for name in names} for what in ("out", "err")),
                            {name: int(text) if (text := shared_time.read(folder[name] / "status")) else None for name in names},
                            {name: reports.find(shared_time.read(lab.directory / f"console-{name}.log"), LEFT_ALONE) for name in names},
                            _reason(lab, grouped, weftds), left, any(weftd.returncode for weftd in weftds))


def _ended_early(lab, grouped, weftds):
    """Ends the others; returns why the first one has ended."""
    for weftd in weftds:
        if weftd.poll() is None:
            os.kill(weftd.pid, 15)
        weftd.wait()
    said = [line.removeprefix("weftd: ") for number in range(len(weftds)) for line in _log(lab, number).splitlines() if line.startswith("weftd: ")]
    return said[0] if said else _reason(lab, grouped, weftds)

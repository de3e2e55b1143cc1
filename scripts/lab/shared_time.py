# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Runs a lab in virtual time: weftd and a User-Mode Linux guest for each host share a time server (tools/virtual_time). One of these processes runs
at a time, and time advances when none has work left. The same seed gives an identical run, down to the last packet.

There is no input while it runs: each host has a script, and weftd gets its scheduled events beforehand (weftd(1), --events). All
files are in one directory, under relative names, because a kernel's command line affects its behaviour:

    work/HOST/script    the script of a host, and after its run: out, err, status
    work/finished       exists once all have run: then the exit of a guest is the regular end of the lab (weftd(1), --finished-file)
    console-HOST.log, weftd.log
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import socket
import subprocess
import time
import typing

from lab import reports, uml
from lab.errors import LabError, exit_in_words
from lab.process import to_bytes
from lab.waiting import wait_until

SOCKETS, WORK, SHARE, MODULES, EVENTS, FINISHED = "lab", "work", "share", "modules", "events", "finished"
# Reasons from tools/weftd/scripted_events.cpp: a shutdown, and the start of the reason if a request failed.
TIME_IS_UP = "a scheduled event requests it"
EVENT_REFUSED = "a scheduled event was refused: "
LEFT_ALONE = (re.compile("time-travel external link is broken"),)      # a kernel whose time server has exited
GRACE = 30      # seconds of real time until weftd detects that a kernel has exited, and a kernel that its time server has


class Stopped(Exception):
    """The lab was stopped by its caller."""


@dataclasses.dataclass(frozen=True)
class Lab:
    """A lab to run. kernel: one of lab.kernels that is native (User-Mode Linux); scripts(fabric) returns a bash script for each host; hosts without
    one wait for the others. share: a folder that the hosts see as /share; modules: a folder that a script may mount; events: pairs of seconds
    and a request to weftd's control socket; append, host_words(host): words for the command lines of all kernels, and of the kernel of one host."""

    directory: pathlib.Path
    weftd: pathlib.Path
    kernel: object
    scripts: typing.Callable
    seed: int
    lab_file: pathlib.Path | None = None
    share: pathlib.Path | None = None
    modules: pathlib.Path | None = None
    events: tuple = ()
    memory: str = "384M"
    append: str = ""
    host_words: typing.Callable = lambda host: ()
    log_level: str = "info"


@dataclasses.dataclass(frozen=True)
class Done:
    """The result of a lab. For each host it has the script's output and its status, which is None if the script did not finish, and the kernel's
    reports. reason: why the lab ended; left: the hosts whose kernels did not end with the lab by themselves; failed: weftd ended with a failure,
    because a guest died or a scheduled event was refused."""

    out: dict
    err: dict
    status: dict
    reports: dict
    reason: str
    left: tuple
    failed: bool


def _words(lab, name, number):
    words = [*uml.repeatable_words(name, lab.seed, WORK, time=(f"time-travel=ext:{number}:{SOCKETS}/time.sock",)),
             f"virtio_uml.device={SOCKETS}/{name}.sock:{uml.PCI_DEVICE_ID}"]
    if lab.share:
        words.append(f"weft.share=/proc/self/cwd/{SHARE}")
    return [*words, *lab.append.split(), *lab.host_words(name)]


def hosts_of(fabric):
    """Returns the hosts that have guests, in the lab's order."""
    return [host for host in fabric["hosts"] if host["socket"]]


def fabric_at(sockets):
    """Returns the fabric as the weftd with this directory of sockets reports it. The request changes nothing."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        here = os.open(sockets, os.O_PATH)
        try:
            client.connect(f"/proc/self/fd/{here}/control.sock")    # the folder's path may be longer than the path of a socket may be
        finally:
            os.close(here)
        client.sendall(b'{"command": "fabric.show"}\n')
        return json.loads(client.makefile("rb").readline())["result"]


def fill_directory(lab):
    """Creates what weftd and the guests read in the directory of a lab."""
    for name in (SOCKETS, WORK):
        (lab.directory / name).mkdir(mode=0o700, parents=True)
    for name, folder in ((SHARE, lab.share), (MODULES, lab.modules)):
        if folder:
            (lab.directory / name).symlink_to(pathlib.Path(folder).resolve())
    (lab.directory / EVENTS).write_text("".join(json.dumps({"at": at, **request}) + "\n" for at, request in lab.events))


def _start_weftd(lab):
    fill_directory(lab)
    command = ["setpriv", "--pdeathsig", "TERM", str(lab.weftd), "--time-server", "--events", EVENTS, "--finished-file", f"{WORK}/{FINISHED}", "--socket-dir", SOCKETS, "--seed", str(lab.seed),
               "--log-level", lab.log_level]
    if lab.lab_file:
        command += ["--lab", str(pathlib.Path(lab.lab_file).resolve())]
    with open(lab.directory / "weftd.log", "wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0, cwd=lab.directory)


def _said_last(lab):
    lines = (lab.directory / "weftd.log").read_text(errors="replace").splitlines()
    ends = [line.partition("ends: ")[2] for line in lines if "ends: " in line]
    return ends[-1] if ends else "\n".join(lines[-5:])


def _reason(lab, weftd):
    """Returns why weftd has exited: its last log line, and the signal or the status if it logged nothing or a signal killed it."""
    said = _said_last(lab)
    return "\n".join([*([f"weftd {exit_in_words(weftd.returncode)}"] if weftd.returncode < 0 or not said else []), *([said] if said else [])])


def _awaited(lab):
    """Returns the guests for which the time server was waiting when weftd was stopped, as far as it has reported them."""
    said = re.findall(r"waited for (.*)", read(lab.directory / "weftd.log"))
    return f"; waited for {said[-1]}" if said else ""


def run(lab, timeout, stopped=lambda: False):
    """Runs a lab until the first host detects that all scripts have ended; returns Done. timeout: seconds of real time, or a function that returns them and
    is called repeatedly, of which the largest value counts; stopped: returns True to end the lab early, by Stopped."""
    weftd = _start_weftd(lab)
    keepers = {}
    try:
        wait_until("weftd to serve", lambda: weftd.poll() is not None or (lab.directory / SOCKETS / "control.sock").is_socket(), 30)
        if weftd.poll() is not None:
            raise LabError(_reason(lab, weftd))
        fabric = fabric_at(lab.directory / SOCKETS)
        hosts = [host["name"] for host in hosts_of(fabric)]
        scripts = lab.scripts(fabric)
        for name in hosts:
            own = lab.directory / WORK / name
            own.mkdir()
            (own / "script").write_bytes(to_bytes(scripts.get(name, "true\n")))
        for number, name in enumerate(hosts, 1):
            (lab.directory / f"state-{name}").mkdir()
            keepers[name] = uml.start(lab.kernel, _words(lab, name, number), memory=lab.memory, log=lab.directory / f"console-{name}.log",
                                      state=pathlib.Path(f"state-{name}"), repeatable_in=lab.directory)
        _wait_for_end(lab, weftd, keepers, timeout, stopped)
        failed = weftd.returncode != 0
        left = left_running(keepers)
    finally:
        for keeper in keepers.values():
            uml.end(keeper)
        weftd.terminate()
        weftd.wait()
    return Done(*({name: read(lab.directory / WORK / name / what) for name in hosts} for what in ("out", "err")),
                {name: int(text) if (text := read(lab.directory / WORK / name / "status")) else None for name in hosts},
                {name: reports.find(read(lab.directory / f"console-{name}.log"), LEFT_ALONE) for name in hosts}, _reason(lab, weftd), left, failed)


def _wait_for_end(lab, weftd, keepers, timeout, stopped):
    """Waits until weftd exits, which it does when a connected guest exits. A guest that never connected is detected only here."""
    gone, limit = None, 0
    began = time.monotonic()
    while weftd.poll() is None:
        if stopped():
            raise Stopped
        now = time.monotonic()
        gone = gone or next(((name, now) for name, keeper in keepers.items() if keeper.poll() is not None), None)
        if gone and now > gone[1] + GRACE:
            raise LabError(f"{gone[0]} has ended, and the others wait for it", "see its console")
        limit = max(limit, timeout() if callable(timeout) else timeout)
        if now > began + limit:
            # Only guests that are still connected count, because the time server did not wait for a guest that has exited.
            weftd.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                weftd.wait(GRACE)
            raise LabError(f"the lab has not finished within {limit:g} s{_awaited(lab)}", "see the guests' consoles")
        time.sleep(0.05)


def left_running(keepers):
    """Returns the guests that have not exited with their time server within the time limit."""
    end = time.monotonic() + GRACE
    while (left := tuple(name for name, keeper in keepers.items() if keeper.poll() is None)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def read(file):
    return file.read_text(errors="replace") if file.exists() else ""

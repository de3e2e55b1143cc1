#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Replaces ssh, srun, weft on the other host, and weftd in tests of labs over several hosts, in which a directory simulates each host.

    stand_in_place.py ssh HOST COMMAND
    stand_in_place.py srun OPTION... COMMAND
    stand_in_place.py weft lab place [--slurm]
    stand_in_place.py weftd OPTION...

The environment variable WEFT_HOSTS is the directory of the hosts. A host's directory has its runtime directory `run`, and files with which a test
controls it: `refuse` (ssh fails with this text), `version` (of weft there), `banner` (what a login prints), `fail` (a guest fails to boot with this
text), `slow` (guests do not boot while it exists). `weftd.json` has the command lines of weftd.
"""
import json
import os
import pathlib
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import types

HERE = pathlib.Path(__file__).resolve().parent
SESSION = HERE.parent / "session/weft-session"
VERSION = "1.2.3"
PLAN = {"places": [{"name": "a", "address": None, "switches": ["s1"], "hosts": ["node1", "node2"], "trunks": [{"link": "s1/36-s2/36", "role": "listens", "port": 0}]},
                   {"name": "b", "address": None, "switches": ["s2"], "hosts": ["node3"], "trunks": [{"link": "s1/36-s2/36", "role": "connects", "port": 0}]}]}


def text_of(path):
    return path.read_text() if path.is_file() else ""


def ssh(host, command):
    folder = pathlib.Path(os.environ["WEFT_HOSTS"], host)
    if reason := text_of(folder / "refuse"):
        sys.exit(reason)
    print(text_of(folder / "banner"), end="", flush=True)
    (folder / "run").mkdir(parents=True, exist_ok=True)
    os.environ.update({"XDG_RUNTIME_DIR": str(folder / "run"), "TMPDIR": str(folder / "run"), "WEFT_HOST": str(folder)})
    os.chdir(folder)
    # As sshd does, this process stays until the command ends.
    return subprocess.run(["setpriv", "--pdeathsig", "TERM", "sh", "-c", command], check=False).returncode


def srun(*words):
    """Passes all input on to all tasks, and labels their lines. While the file `late` exists, it waits in a queue: the file `waits` says so, and
    `cancelled` that SIGTERM has ended the wait."""
    hosts = pathlib.Path(os.environ["WEFT_HOSTS"])
    if (hosts / "late").exists():
        signal.signal(signal.SIGTERM, lambda *_: ((hosts / "cancelled").touch(), sys.exit(1)))
        (hosts / "waits").touch()
        while (hosts / "late").exists():
            time.sleep(0.02)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    options = [word for word in words if word.startswith("--") and word != "--slurm"]
    command = words[len(options):]
    (count,) = [int(word.partition("=")[2]) for word in options if word.startswith("--ntasks=")]
    lock = threading.Lock()
    tasks = []
    for rank in range(count):
        folder = pathlib.Path(os.environ["WEFT_HOSTS"], f"task{rank}")
        (folder / "run").mkdir(parents=True, exist_ok=True)
        environment = {"XDG_RUNTIME_DIR": str(folder / "run"), "TMPDIR": str(folder / "run"), "WEFT_HOST": str(folder), "SLURM_PROCID": str(rank),
                       "SLURMD_NODENAME": f"n{rank}", "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1"}
        tasks.append(subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}))

    def label(rank, stream):
        # slurmstepd forwards 1024 bytes at a time.
        while line := stream.readline(1024):
            with lock:
                sys.stdout.buffer.write(f"{rank}: ".encode() + line)
                sys.stdout.buffer.flush()

    def feed():
        while data := sys.stdin.buffer.readline():
            for task in tasks:
                task.stdin.write(data)
                task.stdin.flush()
        for task in tasks:
            task.stdin.close()

    for rank, task in enumerate(tasks):
        threading.Thread(target=label, args=(rank, task.stdout), daemon=True).start()
    threading.Thread(target=feed, daemon=True).start()
    while any(task.poll() is None for task in tasks):
        if any(task.poll() for task in tasks):      # --kill-on-bad-exit
            for task in tasks:
                task.terminate()
        time.sleep(0.02)
    time.sleep(0.2)     # for the labels
    return max(task.returncode & 255 for task in tasks)


def weftd(words):
    """Serves control.sock: "fabric.show" has the guests of the place, and "key" returns the key and the path of its file."""
    split = [part for word in words for part in (word.split("=", 1) if word.startswith("--place=") else [word])]
    values = dict(zip(split[::2], split[1::2]))
    if "--plan" in values:
        print(json.dumps(PLAN))
        return 0
    folder = pathlib.Path(os.environ["WEFT_HOST"])
    with open(folder / "weftd.json", "a") as log:
        log.write(json.dumps(words) + "\n")
    print("weftd: begins", file=sys.stderr, flush=True)
    hosts = next(place["hosts"] for place in PLAN["places"] if place["name"] == values["--place"])
    directory = pathlib.Path(values["--socket-dir"])
    key = pathlib.Path(values["--trunk-key"])
    shown = {"hosts": [{"name": name, "socket": f"{name}.sock", "bus": "vfio-user", "model": "mlx4", "number": PLAN_NUMBERS[name]} for name in hosts], "links": [],
             "subnet_manager": None}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(directory / "control.sock"))
        listener.listen()

        def serve(client):
            captured = None
            with client:
                for line in client.makefile("rb"):
                    request = json.loads(line)
                    result = {"fabric.show": shown}.get(request["command"], {})
                    if request["command"] == "key":
                        result = {"key": key.read_bytes().hex(), "path": os.readlink(key), "mode": key.stat().st_mode & 0o777}
                    elif request["command"] == "capture.start":
                        captured = pathlib.Path(request["file"])
                        result = {"links": ["link"]}
                    elif request["command"] == "capture.stop":
                        captured.write_text(f"captured at {values['--place']}")
                        result = {"packets": 1, "full": False}
                    client.sendall(json.dumps({"ok": True, "result": result}).encode() + b"\n")

        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


PLAN_NUMBERS = {"node1": 1, "node2": 2, "node3": 3}


class Guest:
    """A guest whose commands run on this host."""

    slowness = 1
    accelerator = "not at all"

    def __init__(self, name, *, log, **_):
        self.name, self.log, self.netdevs = name, log, []
        self.kernel = types.SimpleNamespace(release="6", native=False, variant="stock")
        self.changed = threading.Condition()
        self._programs = {}
        self._folder = pathlib.Path(os.environ["WEFT_HOST"])
        self._reports = []

    def start(self):
        self.log.write_text(f"{self.name} boots\n")
        # A process that is to be gone with the guest.
        self._process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "sleep", "1000"], stdin=subprocess.DEVNULL)

    def ready(self, *_):
        from lab import GuestDied
        while (self._folder / "slow").exists():
            time.sleep(0.02)
        if reason := text_of(self._folder / "fail"):
            raise GuestDied(f"{self.name}: {reason}")

    def alive(self):
        return self._process.poll() is None

    def closed(self):
        return False

    def close(self):
        self._process.kill()
        self._process.wait()

    def console(self):
        return self.log.read_text()

    def console_error(self):
        return text_of(self._folder / "incomplete") or None

    def sync_log(self):
        pass

    def new_reports(self):
        reports, path = text_of(self._folder / "report"), self._folder / "report"
        path.unlink(missing_ok=True)
        return [reports] if reports else []

    def start_program(self, words, terminal=None, environment=()):
        from lab.process import ERR, OUT, Process
        # All guests have the files of this host.
        words = [word.replace("/run/weft-script", str(self._folder / f"{self.name}-script")) for word in words]
        process = Process(self, len(self._programs) + 1, " ".join(words))
        program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "GUEST": self.name}, process_group=0)
        self._programs[len(self._programs) + 1] = process, program

        def read(kind, stream):
            while data := stream.read1():
                with self.changed:
                    process.take(kind, data)
                    self.changed.notify_all()
                    while process.is_full():
                        self.changed.wait(0.5)

        def wait():
            readers = [threading.Thread(target=read, args=each, daemon=True) for each in ((OUT, program.stdout), (ERR, program.stderr))]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            status = program.wait()
            with self.changed:
                process.status = status if status >= 0 else 128 - status
                self.changed.notify_all()

        threading.Thread(target=wait, daemon=True).start()
        return process

    def send(self, number, kind, data):
        from lab.process import INPUT, KILL
        process, program = self._programs[number]
        if kind == INPUT and data:
            program.stdin.write(data)
            program.stdin.flush()
            with self.changed:
                process.window.take(process.window.taken + len(data))
                self.changed.notify_all()
        elif kind == INPUT:
            program.stdin.close()
        elif kind == KILL:
            os.killpg(program.pid, int.from_bytes(data, "little"))

    def wait_for_event(self, what, condition, timeout):
        from lab import GuestDied
        with self.changed:
            while not condition():
                if not self.alive():
                    raise GuestDied(f"{self.name} ended while waiting for {what}")
                self.changed.wait(0.2)


def weft(words):
    """Runs the session as weft does, with guests that are stand-ins."""
    sys.path[:0] = [str(SESSION.parent), str(HERE.parents[2] / "scripts")]
    import labs
    labs.Guest = Guest
    labs.GuestSettings.find_kernel = lambda *_, **__: types.SimpleNamespace(release="6", native=False, variant="stock")
    version = text_of(pathlib.Path(os.environ["WEFT_HOST"], "version")) or VERSION
    assert words[:2] == ["lab", "place"]
    weftd_program = pathlib.Path(os.environ["WEFT_HOSTS"], "weftd")
    sys.argv = [str(SESSION), "/none", "place", f"weftd={weftd_program}", f"version={version}", *(["slurm:=true"] if "--slurm" in words else [])]
    runpy.run_path(str(SESSION), run_name="__main__")


if __name__ == "__main__":
    name, *given = sys.argv[1:]
    sys.exit({"ssh": lambda: ssh(*given), "srun": lambda: srun(*given), "weft": lambda: weft(given), "weftd": lambda: weftd(given)}[name]())

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measures how long Debian's OpenSM takes to bring up fat trees and a torus on weft and on ibsim, with each routing engine that supports them. The
subnet of ibsim is generated from the output of ibnetdiscover on weft's subnet, with the same GUIDs. The forwarding tables of both are compared, and
checked for cyclic buffer dependencies (deadlocks)."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from lab import cache, simulator
from lab.benchmarks import benchmark
from lab.waiting import wait_until

sys.path[:0] = [str(cache.TREE / "tools/weft/session"), str(cache.TREE / "tools/weft/tests")]
import routes  # noqa: E402
import topology  # noqa: E402

TREE_ENGINES = ("minhop", "updn", "dnup", "ftree", "dor", "sssp", "lash")
TORUS_ENGINES = ("minhop", "updn", "dor", "sssp", "lash", "torus-2QoS", "nue", "dfsssp")
# Engines whose routes on a torus have loops, except on several virtual lanes.
LANE_ENGINES = ("lash", "torus-2QoS", "nue", "dfsssp")
# Engines whose routes have no loops, even on one virtual lane.
FREE_OF_LOOPS = {"tree": ("minhop", "updn", "dnup", "ftree", "dor", "lash"), "torus": ("updn", "dnup")}
ROUNDS = 3
TIMEOUT = 600


class Weft:
    """weftd with a lab, and programs on its first host."""

    def __init__(self, bench, lab):
        self._weft = bench.program("weft")
        # GUIDs depend on its path.
        self._folder = bench.socket_path("weft")
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = bench.directory / "lab.toml"
        path.write_text(lab.text().partition("[sm]")[0] + "[sm]\nenabled = false\n")
        with open(bench.directory / "weftd.log", "w") as output:
            self._weftd = subprocess.Popen([bench.program("weftd"), "--socket-dir", self._folder, "--lab", path], stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=output)
        self.process = self._weftd.pid
        self.environment = os.environ

    def ready(self):
        if not (self._folder / "control.sock").is_socket():     # weftd creates this socket last
            return False
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self._folder / "control.sock"))
            client.sendall(b'{"command": "fabric.sample"}\n')
            return not json.loads(client.makefile("r").readline())["result"]["down"]

    def command(self, *words):
        return [self._weft, "--socket-dir", self._folder, "attach", "node1", "--", *words]

    def text(self, *words):
        return subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout

    def close(self):
        self._weftd.terminate()
        self._weftd.wait()


class Ibsim(simulator.Simulator):
    """ibsim with the same subnet."""

    def __init__(self, bench, lab, net):
        host = re.search(r'^Ca\s.*"(H-\w+)"\s+# "node1"', net, re.MULTILINE)[1]
        super().__init__(lab, bench.directory, net=net, host=host)

    def command(self, *words):
        return list(words)

    def text(self, *words):
        return subprocess.run(words, stdin=subprocess.DEVNULL, env=self.environment, capture_output=True, text=True, check=True).stdout


def run_opensm(on, program, folder, engine, *options):
    """Measures OpenSM from its start until the subnet is up, when it exits (-o). Returns seconds, seconds of CPU time, and the maximum of memory in MiB."""
    shutil.rmtree(folder, ignore_errors=True)     # with the LIDs of an earlier subnet
    folder.mkdir()
    log = folder / "opensm.log"
    libraries = pathlib.Path(program).parents[2] / simulator.LIBRARIES
    began = time.monotonic()
    words = on.command("timeout", str(TIMEOUT), program, "-o", "-f", str(log), "-R", engine, *options)
    with open(folder / "opensm.out", "w") as output, subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                                                     env={**on.environment, "LD_LIBRARY_PATH": str(libraries), "OSM_TMP_DIR": str(folder),
                                                                          "OSM_CACHE_DIR": str(folder)}) as process:
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    took = time.monotonic() - began
    said = log.read_text(errors="replace") if log.exists() else ""
    if "SUBNET UP" not in said or f"{engine} tables configured on all switches" not in said:
        raise RuntimeError(f"OpenSM with {engine}: {said[-1000:]}")
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def cpu(process):
    fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{process}/status").read_text())[1]) / 1024


def waits_on_one_lane(lfts, around):
    """Returns the result of routes.waits_of() for one lane, in less time if the switches have many hosts."""
    waits = {}
    leaves = [guid for guid, ports in around.items() if None in ports.values()]
    hosts = {lid for guid in leaves for lid, port in lfts[guid].items() if port and around[guid].get(port, 0) is None}
    for lid in hosts:
        for at in leaves:
            before = None
            while (to := around[at][port := lfts[at][lid]]) is not None:
                waits.setdefault((at, port), set())
                if before:
                    if (at, port) in waits[before]:
                        break       # the rest of the route belongs to another destination
                    waits[before].add((at, port))
                before = (at, port)
                at = to[0]
    return waits


def switches(net):
    """Returns {name: GUID as text} of the switches."""
    return {name: f"0x{guid}" for guid, name in re.findall(r'^Switch\s.*"S-(\w+)"\s+# "([^"]+)"', net, re.MULTILINE)}


def options_of(bench, engine, net, sizes):
    """Returns OpenSM's options for an engine. sizes: the dimensions of a torus."""
    if sizes and engine == "updn":      # which finds roots only in trees
        roots = bench.directory / "roots"
        roots.write_text(f"{switches(net)['switch1-1-1']}\n")
        return ["--root_guid_file", str(roots)]
    if engine == "torus-2QoS":          # a switch, and its neighbours
        guids = switches(net)
        lines = [f"torus {' '.join(map(str, sizes))}"]
        lines += [f"{axis}p_link {guids['switch1-1-1']} {guids[f'switch{place}']}" for axis, place in (("x", "2-1-1"), ("y", "1-2-1"), ("z", "1-1-2"))]
        torus = bench.directory / "torus.conf"
        torus.write_text("\n".join(lines) + "\n")
        return ["-Q", "--torus_config", str(torus)]
    return ["-Q"] if engine in LANE_ENGINES else []       # virtual lanes


def compare(bench, lab, name, kind, engines, sizes=None):
    lab.model = "endpoint"
    with contextlib.closing(Weft(bench, lab)) as weft:
        wait_until("weftd's links", weft.ready, 120)
        net = weft.text("ibnetdiscover")
    around = routes.Subnet(net).around
    for engine in engines:
        options = options_of(bench, engine, net, sizes)
        taken, used, sizes_of = ({"weft": [], "ibsim": []} for _ in range(3))
        set_tables = {}
        managers = []
        for turn in range(ROUNDS):
            for which in taken:
                with contextlib.closing(Weft(bench, lab) if which == "weft" else Ibsim(bench, lab, net)) as on:
                    wait_until(f"{which} to serve", on.ready, 120)
                    program = str(simulator.root() / "usr/sbin/opensm")
                    if engine in LANE_ENGINES:      # these use the number of lanes that ports have got in an earlier sweep
                        run_opensm(on, program, bench.directory / f"{which}-opensm", "minhop", *options)
                    before = cpu(on.process)
                    took, busy, size = run_opensm(on, program, bench.directory / f"{which}-opensm", engine, *options)
                    taken[which].append(took)
                    used[which].append(busy + cpu(on.process) - before)
                    sizes_of[which].append(memory(on.process))
                    managers.append(size)
                    if turn == 0:
                        set_tables[which] = routes.tables(on.text)
        bench.figure(f"opensm.active-{name}-{engine}", "s", taken["weft"], taken["ibsim"])
        bench.figure(f"opensm.cpu-{name}-{engine}", "s", used["weft"], used["ibsim"])
        bench.figure(f"opensm.memory-{name}-{engine}", "MiB", sizes_of["weft"], sizes_of["ibsim"])
        same = set_tables["weft"] == set_tables["ibsim"]
        loop = routes.has_loop(waits_on_one_lane(set_tables["weft"], around))
        print(f"{name} {engine}: {'the same tables' if same else 'other tables'}, {'a loop' if loop else 'no loop'} on one lane, "
              f"OpenSM has {max(managers):.0f} MiB", flush=True)
        if loop and engine in FREE_OF_LOOPS[kind]:
            raise RuntimeError(f"routes of {engine} on {name} have a loop")
        if not same:
            raise RuntimeError(f"routes of {engine} on {name} are others on ibsim")


@benchmark(figures=("opensm.active-tree1000-*", "opensm.cpu-tree1000-*", "opensm.memory-tree1000-*"))
def opensm_tree_1000(bench):
    """A fat tree of 1,000 hosts: 50 leaves and 20 spines."""
    compare(bench, topology.fat_tree(1000, 36, each=20, spines=20), "tree1000", "tree", TREE_ENGINES)


@benchmark(figures=("opensm.active-tree5000-*", "opensm.cpu-tree5000-*", "opensm.memory-tree5000-*"))
def opensm_tree_5000(bench):
    """A fat tree of 5,000 hosts: 100 leaves and 50 spines. lash takes minutes for it."""
    compare(bench, topology.fat_tree(5000, 36, each=50, spines=50), "tree5000", "tree", [engine for engine in TREE_ENGINES if engine != "lash"])


@benchmark(figures=("opensm.active-tree10000-*", "opensm.cpu-tree10000-*", "opensm.memory-tree10000-*"))
def opensm_tree_10000(bench):
    """A fat tree of 10,000 hosts: 125 leaves and 40 spines. dump_lfts omits routes by ports above 127."""
    compare(bench, topology.fat_tree(10000, 36, each=80, spines=40), "tree10000", "tree", ("minhop", "ftree"))


@benchmark(figures=("opensm.active-torus-*", "opensm.cpu-torus-*", "opensm.memory-torus-*"))
def opensm_torus(bench):
    """A torus of 5x5x5 switches with 8 hosts each."""
    compare(bench, topology.torus((5, 5, 5), 1000), "torus", "torus", TORUS_ENGINES, (5, 5, 5))


@benchmark(figures=("opensm.lanes-torus-*",))
def opensm_virtual_lanes_of_a_torus(bench):
    """Measures how many virtual lanes an engine's routes use on a torus of 5x5x5 switches with a host each. The routes must have no loops on these lanes."""
    size = (5, 5, 5)
    lab = topology.torus(size, 125)
    lab.model = "endpoint"
    for engine in LANE_ENGINES:
        folder = bench.directory / f"lanes-{engine}"
        folder.mkdir()
        log = folder / "log"
        with contextlib.closing(Weft(bench, lab)) as weft:
            wait_until("weftd's links", weft.ready, 120)
            options = options_of(bench, engine, weft.text("ibnetdiscover"), size)
            words = weft.command("env", f"OSM_TMP_DIR={folder}", f"OSM_CACHE_DIR={folder}", "/usr/sbin/opensm", "-f", str(log), "-R", engine, *options)
            with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as manager:
                try:
                    def sweeps():
                        return log.read_text(errors="replace").count("SUBNET UP") if log.exists() else 0
                    wait_until("the first sweep", sweeps, 120)
                    manager.send_signal(signal.SIGHUP)
                    wait_until("the second sweep", lambda: sweeps() > 1, 120)
                    assert f"{engine} tables configured on all switches" in log.read_text(errors="replace"), engine
                    subnet = routes.Subnet(weft.text("ibnetdiscover"))
                    waits = routes.waits_of(routes.tables(weft.text), subnet, routes.selected_lanes(weft.text, subnet))
                finally:
                    manager.kill()
        bench.figure(f"opensm.lanes-torus-{engine}", "lanes", len({lane for _, _, lane in waits}))
        if routes.has_loop(waits):
            raise RuntimeError(f"routes of {engine} on the torus have a loop")

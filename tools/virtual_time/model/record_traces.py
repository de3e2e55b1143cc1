#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Records traces for virtual_hosts.py: runs a lab of four guests in virtual time on this host, with each length of the cables between its places.

The lab has four places with a switch and a guest each; the switches of three places are linked to the switch of the first one. The guests are idle, ping
each other 10 times a second, ping as fast as answers arrive, do the same with 32,000 bytes (bulk), and start programs without using the network (work). A lab runs
several times with the same seed, so each run has the same events. The cost of an event is the smallest CPU time of all processes of the lab between the
beginning of a guest's time slice and its end, plus that of weftd since the last time slice. Needs the kernel `um`, and root for the control group that counts the
CPU time; without root, elapsed time is used.

    record_traces.py build/virtual-hosts
"""
import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[2]
sys.path[:0] = [str(TREE / "scripts"), str(TREE / "tools/weft/session"), str(HERE)]

import guest_setup  # noqa: E402
import stack  # noqa: E402
import virtual_hosts  # noqa: E402
from lab import kernels, shared_time  # noqa: E402
from lab.errors import LabError  # noqa: E402

PLACES, EACH = 4, 1
GUESTS = PLACES * EACH
SEED = 1
DELAYS = (50, 5_000, 50_000, 500_000)       # nanoseconds: 10 m, 1 km, 10 km, 100 km
SECOND = virtual_hosts.SECOND
DATE = 1_700_000_000 * SECOND               # at which virtual time begins (tools/virtual_time/shared_time.hpp)
RECORD = struct.Struct("=IiQQQ")            # tools/virtual_time/tests/bench/time_slices.cpp
START, WAIT, RUN = 1, 3, 6                  # tools/virtual_time/protocol.hpp
CPUACCT = pathlib.Path("/sys/fs/cgroup/cpuacct")
# The loads, and the parts of the run in which they are recorded. Those of FLOODS are from the first packet to the
# first pause.
PARTS = {"idle": (12, 17), "ping": (18.2, 19.2), "flood": (21, 23.5), "bulk": (24, 27.5), "work": (28, 28.2)}
FLOODS = ("flood", "bulk")
PAUSE = 50_000_000          # nanoseconds

# Of the guest with a number N. With an interval of 10 ms, ping would poll, which takes seconds of real time for each second of virtual time.
SCRIPT = """
at() {
	local left=$(( ($1 + 1700000000) * 1000000000 - $(date +%s%N) ))
	[ $left -le 0 ] || sleep $(printf '%d.%09d' $((left / 1000000000)) $((left % 1000000000)))
}
echo lid $(cat /sys/class/infiniband/*/ports/1/lid)
peer=10.1.0.$(( (N + 1) % 4 + 1 ))
at 10
ping -c 1 -W 2 $peer || exit 1
at 18
ping -q -i 0.1 -c 15 $peer || exit 1
at 21
ping -q -f -c 200 $peer || exit 1
at 24
ping -q -f -c 60 -s 32000 $peer || exit 1
at 28
for i in {1..15}; do head -c 1M /dev/zero | sha256sum >/dev/null; sleep 0.01; done
at 30
"""


def lab_file(delay):
    """Returns a lab file with a star of switches. delay: of the cables between switches, in nanoseconds; other cables have 10 m."""
    parts = [f'[[switch]]\nname = "switch{place}"\n' for place in range(1, PLACES + 1)]
    parts += [f'[[host]]\nname = "node{number}"\nmodel = "mlx4"\n' for number in range(1, GUESTS + 1)]
    parts += [f'[[link]]\nends = ["node{number}/1", "switch{(number - 1) // EACH + 1}"]\ndelay = "50ns"\n' for number in range(1, GUESTS + 1)]
    parts += [f'[[link]]\nends = ["switch1", "switch{place}"]\ndelay = "{delay}ns"\n' for place in range(2, PLACES + 1)]
    return "".join(parts)


def slices(records):
    """Returns (virtual time, guest, real begin, real end, CPU begin, CPU end, CPU at the end of the slice before) of each complete time slice."""
    guests, running, last, result = {}, None, None, []
    for operation, descriptor, time, real, cpu in records:
        if operation == START:
            guests[descriptor] = time
        elif operation == RUN:
            running = (time, guests[descriptor], real, cpu)
        elif operation == WAIT:
            if running and last:
                result.append((*running[:3], real, running[3], cpu, *last))
            running, last = None, (real, cpu)
    return result


@dataclasses.dataclass
class Run:
    """The records of one run. shape: what must be the same in all runs; cpu, elapsed: the real cost of each slice."""

    shape: list
    cpu: list
    elapsed: list


def costs_of(file):
    found = slices(RECORD.iter_unpack(file.read_bytes()))
    return Run([each[:2] for each in found], [each[5] - each[7] for each in found], [each[3] - each[6] for each in found])


def packets(capture, lids, delay):
    """Returns (virtual time, place that sends, place that receives) of each packet between places. A packet of the star leads away from the place of its
    sender. lids: the place of each LID; other LIDs belong to the first place, where the subnet manager is."""
    data, names, result, offset = capture.read_bytes(), [], [], 0
    while offset < len(data):
        kind, length = struct.unpack_from("=II", data, offset)
        if kind == 1:       # an interface: options begin after 8 bytes, the first one is the name
            size = struct.unpack_from("=H", data, offset + 18)[0]
            names.append(data[offset + 20:offset + 20 + size].decode())
        elif kind == 6:
            interface, high, low = struct.unpack_from("=III", data, offset + 8)
            outer = re.fullmatch(r"switch1\b.*\bswitch([2-9])\b.*|switch([2-9])\b.*\bswitch1\b.*", names[interface])
            if outer:
                place = int(outer[1] or outer[2]) - 1
                # After 16 bytes of ERF, LRH: the source LID is at byte 6. A directed-route MAD has no source LID; the answer's method has bit 7 (byte 31 is its
                # offset: LRH 8, BTH 12, DETH 8, base version, class, class version).
                packet = offset + 28 + 16
                source = struct.unpack_from("!H", data, packet + 6)[0]
                inwards = bool(data[packet + 31] & 0x80) if source == 0xffff else lids.get(source, 0) == place
                arrival = (high << 32 | low) - DATE
                result.append((arrival - delay, place, 0) if inwards else (arrival - delay, 0, place))
        offset += length
    return result


@contextlib.contextmanager
def _counted(directory):
    """Moves this process into a control group; returns the file with the CPU time of the group, or None if that is not possible."""
    group = CPUACCT / f"weft-model-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        print("no control group: costs are elapsed times", file=sys.stderr)
        yield None
        return
    before = CPUACCT / re.search(r"cpuacct[^:]*:/(.*)", pathlib.Path("/proc/self/cgroup").read_text())[1]
    try:
        (group / "cgroup.procs").write_text(str(os.getpid()))
        yield group / "cpuacct.usage"
    finally:
        (before / "cgroup.procs").write_text(str(os.getpid()))
        with contextlib.suppress(OSError):
            group.rmdir()


def run(directory, args, delay, capture):
    """Runs the lab once; returns (Done, Run)."""
    directory.mkdir()
    records = directory / "slices"
    kernel = kernels.find("um")
    setup = guest_setup.Setup(stack.LINUX, kernel, directory / "modules")
    (directory / "lab.toml").write_text(lab_file(delay))
    program = directory / "weftd"
    with _counted(directory) as usage:
        program.write_text(f'#!/bin/sh\nLD_PRELOAD="{args.library}" WEFT_SLICES_FILE="{records}" {f"WEFT_SLICES_CPU={usage} " if usage else ""}exec "{args.weftd}" "$@"\n')
        program.chmod(0o755)

        def scripts(fabric):
            return {name: script + f"N={name.removeprefix('node')}\n" + SCRIPT for name, script in setup.scripts(fabric).items()}

        done = shared_time.run(shared_time.Lab(directory / "lab", program, kernel, scripts, SEED, lab_file=directory / "lab.toml", modules=setup.modules,
                                               events=((0, {"command": "capture.start", "link": "all", "file": str(capture)}),) if capture else ()), args.timeout)
    if set(done.status.values()) != {0}:
        raise LabError(f"the lab has failed: {done.reason}\n{done.out}\n{done.err}", f"see {directory}")
    return done, costs_of(records)


def _least(runs, name):
    return [min(costs) for costs in zip(*(getattr(each, name) for each in runs))]


def record(args, delay, directory):
    """Records the parts of one lab; returns the traces."""
    runs = []
    for number in range(args.runs):
        capture = directory / "all.pcapng" if number == 0 else None
        done, seen = run(directory / str(number), args, delay, capture)
        runs.append(seen)
        if capture:
            lids = {int(re.search(r"lid (\w+)", text)[1], 0): (int(name.removeprefix("node")) - 1) // EACH for name, text in done.out.items()}
            crossing = packets(capture, lids, delay)
            capture.unlink()
    if any(each.shape != runs[0].shape for each in runs):
        raise LabError("two runs with the same seed differ")
    cpu, elapsed = _least(runs, "cpu"), _least(runs, "elapsed")
    return [_part(load, delay, runs[0].shape, cpu, elapsed, crossing) for load in PARTS]


def burst(times):
    """Returns when the packets of a flood begin and end. They end before a pause; later packets are those of the subnet manager or of the neighbour discovery."""
    last = next((time for time, after in zip(times, times[1:]) if after > time + PAUSE), times[-1])
    return times[0], last + 1


def _part(load, delay, shape, cpu, elapsed, crossing):
    begin, end = (round(each * SECOND) for each in PARTS[load])
    if load in FLOODS:
        begin, end = burst([time for time, _, _ in crossing if begin <= time < end])
    own = [number for number, (time, _) in enumerate(shape) if begin <= time < end]
    cost = cpu if any(cpu) else elapsed
    trace = virtual_hosts.Trace(load, delay, PLACES, begin, end, tuple((shape[number][0], (shape[number][1] - 1) // EACH, cost[number]) for number in own),
                                tuple(each for each in crossing if begin <= each[0] < end))
    real = sum(elapsed[number] for number in own)
    print(f"{load:6} {delay:7} ns: {trace.duration / SECOND:.4f} s, {len(own)} time slices, {len(trace.packets)} packets between places, CPU {trace.cost / SECOND:.3f} s, "
          f"elapsed {real / SECOND:.3f} s", flush=True)
    return trace


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="a directory, which gets a file for each load and length")
    parser.add_argument("--weftd", type=pathlib.Path, default=TREE / "build/bin/weftd")
    parser.add_argument("--library", type=pathlib.Path, default=TREE / "build/tools/lib/libweft_time_slices.so", help="a build of time_slices.cpp")
    parser.add_argument("--runs", type=int, default=3, help="runs of each lab, the first of which records packets")
    parser.add_argument("--delays", type=int, nargs="+", default=DELAYS, metavar="NS", help="delays of the cables between places")
    parser.add_argument("--timeout", type=float, default=600, help="seconds of real time for each run")
    args = parser.parse_args(argv)
    args.weftd, args.library = (path.resolve(strict=True) for path in (args.weftd, args.library))
    args.out.mkdir(parents=True, exist_ok=True)
    for delay in args.delays:
        directory = pathlib.Path(tempfile.mkdtemp(prefix="weft-model-"))
        try:
            for trace in record(args, delay, directory):
                virtual_hosts.write(trace, args.out / f"{trace.load}-{delay}.trace")
        except LabError as error:
            sys.exit(f"{error}; files in {directory}")
        subprocess.run(["rm", "-rf", directory], check=False)


if __name__ == "__main__":
    main(sys.argv[1:])

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests labs in virtual time: the same seed gives an identical run, down to the last packet."""
import filecmp
import re
import subprocess

from lab import kernels, shared_time
from lab.testing import test

BOOTED = 1700000000      # by the guests' clocks (tools/virtual_time/shared_time.hpp)
STACK = ("weft_kern", "weft_core", "weft_mad", "weft_cm", "weft_mlx4", "weft_ipoib")
LAB = """
[[switch]]
name = "switch1"
[[host]]
name = "node1"
[[host]]
name = "node2"
[[link]]
ends = ["node1", "switch1"]
delay = "20us"
[[link]]
ends = ["node2", "switch1"]
delay = "20us"
"""
BEGIN = "".join(f"insmod /share/{name}.ko || exit 1\n" for name in STACK) + """
ip address add 10.0.0.${HOSTNAME#node}/24 dev ib0; ip link set ib0 up
until [ "$(cat /sys/class/net/ib0/carrier 2>/dev/null)" = 1 ]; do sleep 0.1; done
date +%s.%N
"""
# Output that depends on time, on which packets were lost, and on the order of execution. The server exits with the client.
TRAFFIC = {"node1": "iperf3 -s -1 >/dev/null & ping -c 10 -i 0.1 10.0.0.2; wait; nstat -az | grep -i retrans; date +%s.%N\n",
           "node2": "ping -c 10 -i 0.1 10.0.0.1; sleep 1; iperf3 -c 10.0.0.1 -t 3 -b 10M; cat /proc/interrupts; nstat -az | grep -i retrans\n"}
# iperf3's client polls while it waits for the server, and an iteration takes a quarter of a microsecond. So packets are not lost before the programs have
# started (a lost join would delay one guest by a second) nor while they exit, because waiting for a retransmission would take minutes.
EVENTS = ((4.2, {"command": "link.set", "link": "node1", "settings": {"loss": "1%"}}),
        (5.1, {"command": "link.down", "link": "node2"}), (5.4, {"command": "link.up", "link": "node2"}),
        (5.9, {"command": "link.set", "link": "node1", "settings": {"loss": "0"}}))

# Three places with a guest and a switch each, in a row of cables of 10 km, one of which loses packets.
PLACES = 'name = "row"\n' + "".join(f"""
[[place]]
name = "p{number}"
[[switch]]
name = "leaf{number}"
place = "p{number}"
[[host]]
name = "node{number}"
[[link]]
ends = ["node{number}", "leaf{number}"]
""" for number in (1, 2, 3)) + """
[[link]]
ends = ["leaf1/30", "leaf2/31"]
delay = "50us"
[[link]]
ends = ["leaf2/30", "leaf3/31"]
delay = "50us"
loss = "1%"
"""


# weftd's sockets are in the test's directory, and the path of a socket has at most 107 bytes: the names of these tests must be short.
def _lab(lab, name, scripts, **options):
    file = lab.directory / "lab.toml"
    file.write_text(LAB)
    return shared_time.Lab(lab.directory / name, lab.program("weftd"), kernels.find(lab.kernel), lambda _: {host: BEGIN + script for host, script in scripts.items()},
                           lab.seed & 0xFFFFFFFF, lab_file=file, share=lab.modules, **options)


@test(kernels=("um-debug",), also=("um",), timeout=300)
def same_seed_gives_identical_captures(lab):
    """Two runs with the same seed give identical captures and output, with ping, iperf3 and a link flap over a lossy link. With --full, a third run
    without captures and with less logging has the same output at the same times, which tracing_changes_no_guest_output checks in every run."""
    captures = [lab.directory / f"{number}.pcap" for number in range(2)]
    seen = [shared_time.run(_lab(lab, f"run-{number}", TRAFFIC, log_level="trace", events=(
        (0, {"command": "capture.start", "link": "all", "file": str(capture)}), *EVENTS)), 150 * lab.slowness) for number, capture in enumerate(captures)]
    assert set(seen[0].status.values()) == {0} and not any(seen[0].reports.values()) and not seen[0].failed, seen[0]
    assert re.search(r" 0\.00-3\.0\d +sec .* sender", seen[0].out["node2"]) and float(seen[0].out["node1"].split()[-1]) - BOOTED > 6, seen[0].out
    assert seen[0] == seen[1], f"{seen[0]}\n{seen[1]}"
    assert captures[0].stat().st_size > 4_000_000 and filecmp.cmp(*captures, shallow=False), "the captures differ"
    if lab.rounds(False, True):
        bare = shared_time.run(_lab(lab, "bare", TRAFFIC, events=EVENTS), 150 * lab.slowness)
        assert bare == seen[0], f"{bare}\n{seen[0]}"


@test(kernels=("um-debug",), timeout=120)
def tracing_changes_no_guest_output(lab):
    """A run is repeated exactly, at the same times, with captures, with all of weftd's logs, and with the kernels' tracepoints."""
    def run(name, traced, **options):
        begin = f"mount -t tracefs tracefs /sys/kernel/tracing; echo {traced} > /sys/kernel/tracing/events/weft/enable\n"
        # Printing the trace takes virtual time, so the guests do it after both have finished.
        end = "date +%s.%N; sleep 10; cat /sys/kernel/tracing/trace >&2\n"
        scripts = {f"node{own}": f"{begin}ping -D -c 10 -i 0.2 10.0.0.{other}\n{end}" for own, other in ((1, 2), (2, 1))}
        events = ((3.0, {"command": "link.set", "link": "node1", "settings": {"loss": "20%"}}), *options.pop("events", ()))
        return shared_time.run(_lab(lab, name, scripts, events=events, **options), 90 * lab.slowness)

    capture = lab.directory / "traced.pcap"
    bare, traced = run("bare", 0), run("traced", 1, log_level="trace", events=((0, {"command": "capture.start", "link": "all", "file": str(capture)}),))
    assert set(bare.status.values()) == {0} and not any(bare.reports.values()), bare
    assert (traced.out, traced.status, traced.reports) == (bare.out, bare.status, bare.reports), f"{traced}\n{bare}"
    for node in ("node1", "node2"):
        assert "post_send" not in bare.err[node] and {"post_send", "completion"} <= set(re.findall(r": (\w+): ", traced.err[node])), traced.err[node][-2000:]
    assert capture.stat().st_size > 1000


@test(kernels=("um-debug",), also=("um",), timeout=120)
def peer_stays_reachable_without_sm(lab):
    """A peer that was in use when the subnet manager stopped stays reachable under traffic. A port that comes up meanwhile has no carrier until the
    manager is back."""
    # The guests begin between 1.5 and 3 s, by the seed: each state is sampled seconds away from its change.
    scripts = {"node1": "ping -c 60 -i 10 10.0.0.2 && sleep 2060 && ping -c 1 10.0.0.2",
               "node2": "for pause in 780 15 200 1650; do sleep $pause; cat /sys/class/net/ib0/carrier; done"}
    done = shared_time.run(_lab(lab, "run", scripts, events=(
        (100, {"command": "sm.disable"}), (791.9, {"command": "link.down", "link": "node2"}),
        (810, {"command": "link.up", "link": "node2"}), (2500, {"command": "sm.enable"}))), 90 * lab.slowness)
    assert done.status == {"node1": 0, "node2": 0} and not any(done.reports.values()), done
    assert done.out["node2"].splitlines()[1:] == ["1", "0", "0", "1"], done
    assert done.out["node1"].count(" 0% packet loss") == 2, done


@test(kernels=("um-debug",), also=("um",), timeout=120)
def crashed_guest_is_reported(lab):
    """If a guest dies, the lab stops and reports which guest and at which virtual time. The other guest exits because its time server has exited."""
    scripts = {"node1": "ping 10.0.0.2", "node2": "sleep 60; echo c >/proc/sysrq-trigger"}
    done = shared_time.run(_lab(lab, "run", scripts), 90 * lab.slowness)
    assert done.status == {"node1": None, "node2": None} and done.failed, done
    assert done.reason.startswith("node2 has left the time server at 6"), done
    assert "sysrq" in (lab.directory / "run/console-node2.log").read_text()
    assert not done.left and "time-travel external link is broken" in (lab.directory / "run/console-node1.log").read_text(), done


@test(kernels=("um-debug",), also=("um",), timeout=150)
def same_seed_gives_identical_output_of_weft_run(lab):
    """weft run --deterministic prints the same for the same seed, up to its --timeout, and something else for another seed."""
    script = lab.directory / "script"
    script.write_text(f"{BEGIN}\n#@ node1\nping -D -c 30 -i 0.1 10.0.0.2 | grep --line-buffered seq=\ntrue\n")
    file = lab.directory / "lab.toml"
    file.write_text(LAB)

    def run(seed, *more):
        return subprocess.run([lab.program("weft"), "run", "--deterministic", "--seed", str(seed), "--lab", file, "--kernel", lab.kernel, "--share", lab.modules,
                               "--quiet", "--at", "3.5 link set node1 loss=0.3", "--script", script, *more],
                              check=not more, stdout=subprocess.PIPE, text=True, timeout=90 * lab.slowness)

    seed = lab.seed & 0xFFFF
    first, other = (run(each).stdout for each in (seed, seed + 1))
    assert first.count("seq=") > 2 and other != first, f"{first}\n{other}"
    # The second run stops after the third answer.
    third = [float(at) for at in re.findall(r"\[(\d+\.\d+)\]", first)][2] - BOOTED
    begun = run(seed, "--timeout", f"{third + 0.05:.3f}")
    assert begun.returncode == 124, "the time is not up"
    said = [line for line in begun.stdout.splitlines() if "seq=" in line]
    assert len(said) == 3 and said == [line for line in first.splitlines() if "seq=" in line][:3], f"{begun.stdout}\n{first}"


@test(kernels=(), also=("um",), timeout=300)
def captures_are_the_same_with_one_two_and_three_processes(lab):
    """A lab with three places gives the same capture and output if one, two or three weftds run it, with pings over lossy trunks and a trunk that flaps.
    A round trip takes at least the delay of the cables, and an answer is lost while the trunk is down."""
    file = lab.directory / "lab.toml"
    file.write_text(PLACES)
    script = lab.directory / "script"
    script.write_text("#@ node1\nping -D -c 40 -i 0.1 10.1.0.3 | grep --line-buffered -e seq= -e loss\ndate +%s.%N\n#@ node2\nping -c 10 -i 0.1 10.1.0.1; date +%s.%N\n")
    captures, outputs = [lab.directory / f"{processes}.pcapng" for processes in (1, 2, 3)], []
    for processes, capture in enumerate(captures, 1):
        done = subprocess.run([lab.program("weft"), "run", "--deterministic", "--processes", str(processes), "--seed", str(lab.seed & 0xFFFF), "--lab", file, "--kernel", lab.kernel,
                               "--stack", "linux", "--quiet", "--at", "4.5 link down leaf1/30-leaf2/31", "--at", "4.8 link up leaf1/30-leaf2/31", "--capture", capture, "--script", script],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=90 * lab.slowness)
        assert done.returncode == 0, done.stdout + done.stderr
        outputs.append(done.stdout)
    answers = [float(each) for each in re.findall(r"node1: .* time=([0-9.]+) ms", outputs[0])]
    assert 10 < len(answers) < 40 and min(answers) >= 0.2, outputs[0]
    assert outputs[0] == outputs[1] == outputs[2], "\n".join(outputs)
    assert captures[0].stat().st_size > 100_000
    for capture in captures[1:]:
        assert filecmp.cmp(captures[0], capture, shallow=False), f"the capture {capture.name} differs"

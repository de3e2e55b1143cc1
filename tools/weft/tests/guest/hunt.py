# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft hunt` with guests: the schedule of a known kernel error is found, reduced and replayed."""
import dataclasses
import filecmp
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

from lab import cache, image, kernels, own_uml
from lab.testing import test
from lab.waiting import wait_until

HERE = pathlib.Path(__file__).resolve().parent
REPORTS = cache.TREE / "Documentation/reports"
KNOWN = REPORTS / "ipoib-child-registration.hunt"
NOT_REPRODUCED = 3      # exit status of `weft hunt replay`
MOST_NUMBERS = 12       # of failing allocations that a test tries; a replay takes 4 s


def _run(lab, *words):
    return subprocess.run([lab.program("weft"), "hunt", *words], capture_output=True, text=True, check=False, timeout=600 * lab.slowness)


def _hunt(lab, *words, status):
    done = _run(lab, *words)
    assert done.returncode == status, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def _replay(lab, schedule, *words):
    """Replays a schedule until it reproduces its report. Which failing allocation does so depends on the kernel's build and on the guest's image, so the
    numbers after that of the schedule are tried, too."""
    text = schedule.read_text()
    for more in range(MOST_NUMBERS if "fail=" in text else 1):
        changed = lab.directory / schedule.name
        changed.write_text(re.sub(r"fail=(\d+)", lambda match: f"fail={int(match[1]) + more}", text))
        done = _run(lab, "replay", changed, *words)
        if done.returncode != NOT_REPRODUCED:
            break
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def assert_replayed(lab, report, kind, function, *words):
    """Replays the schedule of a report, and checks that the kernel reports the same kind of bug in that function."""
    done = _replay(lab, REPORTS / f"{report}.hunt", *words)
    assert kind in done.stdout and function in done.stdout, done.stdout


@test(kernels=("um-debug",), timeout=200)
def hunt_replay_reproduces_the_known_oops_of_ib_ipoib(lab):
    """The shortest schedule for the known oops of ib_ipoib reproduces it, with the expected signature."""
    logs = lab.directory / "logs"
    done = _replay(lab, KNOWN, "--logs", logs)
    assert "ipoib_flush_paths" in done.stdout and "Kernel mode fault" in done.stdout, done.stdout
    assert "forcing a failure" in (logs / "console-node1.log").read_text()


@test(kernels=("um-debug",), timeout=200)
def hunt_replay_reproduces_the_known_leak_of_ipoib_receive_buffers(lab):
    """The schedule for the leak of ib_ipoib's receive buffers reproduces the report of dma-debug, which names the function that mapped them."""
    assert_replayed(lab, "ipoib-open-receive-leak", "pending DMA allocations", "ipoib_alloc_rx_skb")


@test(kernels=(), also=("um-debug",), timeout=400)
def hunt_replay_reproduces_the_known_leak_of_an_ipoib_child_interface(lab):
    """Two child interfaces cannot be registered, and kmemleak reports one of them when all modules have been unloaded."""
    assert_replayed(lab, "ipoib-child-leak", "unreferenced object", "ipoib_vlan_add")


@test(kernels=(), also=("um-debug",), timeout=120)
def hunt_replay_reproduces_the_known_leak_of_a_task_struct_in_ib_uverbs(lab):
    """Random verbs request a second context, and kmemleak reports a task when all modules have been unloaded."""
    assert_replayed(lab, "uverbs-context-task-leak", "unreferenced object", "prepare_creds")


@test(kernels=(), also=("um-debug",), timeout=60)
def hunt_replay_reproduces_the_known_kernel_fault_in_ib_umad(lab):
    """Random MADs reproduce the fault at a MAD whose path bits do not fit."""
    assert_replayed(lab, "umad-path-bits", "Kernel mode fault", "ib_umad_write")


@test(kernels=(), also=("um-debug",), timeout=400)
def hunt_replay_reproduces_the_known_kernel_fault_in_mlx4(lab):
    """The driver is bound while an allocation fails, and unbound."""
    assert_replayed(lab, "mlx4-crdump-region", "Kernel mode fault", "mlx4_crdump_end")


# The signature that the hunt reports for each injected defect.
INJECTED = {
    "hang": r"task modprobe:N blocked for more than N seconds",
    "wait": r"not finished: a scheduled event requests it",
    "refcount": r"refcount_t: underflow; use-after-free: .*injected_begin",
    "leak": r"unreferenced object N \(size N\): injected_allocate",
}


def _kernel_with(base, tree, modules):
    """Fills a directory like that of a kernel that a user has built: um-debug, with modules in addition to its own, or instead of those with the same name."""
    installed = tree / "lib/modules" / base.release
    shutil.copytree(base.modules, installed)
    for module in modules:
        for old in installed.rglob(module.name):
            old.unlink()
        shutil.copy(module, installed)
    image.depmod(tree, base.release)
    (tree / "include/config").mkdir(parents=True)
    for name in ("vmlinux", ".config", "include/config/kernel.release"):
        (tree / name).symlink_to(base.kdir / name)
    return tree


@test(kernels=(), also=("um-debug",), timeout=600)
def hunt_reports_injected_kernel_defects(lab):
    """A kernel of the user's own has a task that hangs, one that waits for a lost wake-up, a reference count that falls below zero, and memory that is not
    freed at the module's removal. Each gets its signature, and the same schedule without the module passes."""
    base, source = kernels.find(lab.kernel), lab.directory / "injected"
    shutil.copytree(HERE / "injected", source)
    cache.tool("make", "-C", base.kdir, f"M={source}", "modules")
    tree = _kernel_with(base, lab.directory / "kernel", [source / f"injected_{name}.ko" for name in INJECTED])
    for name, signature in {**INJECTED, "none": ""}.items():
        schedule = lab.directory / f"{name}.hunt"
        step = "unload ib_umad" if name == "none" else f"load injected_{name}"
        schedule.write_text(f"scenario verbs\nseed 1\n4.0 node1 {step}\n")
        done = _hunt(lab, "replay", schedule, "--kernel", tree, "--logs", lab.directory / name, status=3 if signature else 0)
        said = done.stderr.splitlines()[0]
        assert re.fullmatch(f"(report|stuck): {signature}.*" if signature else "passed", said), f"{name}: {done.stdout}{done.stderr}"


SCRIPTS = cache.TREE / "scripts"
SOURCE = pathlib.Path("/usr/src/linux-source-6.1.tar.xz")


def _kernel_of_hunts():
    """Returns the tree of the kernel that WEFT_HUNT_KERNEL names, or else of one that scripts/uml/build has built for this and earlier tests."""
    if given := os.environ.get("WEFT_HUNT_KERNEL"):
        return pathlib.Path(given).resolve()
    files = [*sorted((SCRIPTS / "uml").iterdir()), *sorted(path for path in (SCRIPTS / "kernel").rglob("*") if path.is_file())]
    key = cache.key_of(SOURCE.stat().st_size, SOURCE.stat().st_mtime_ns, *files)
    return cache.entry("uml-hunt", key, lambda work: cache.tool(SCRIPTS / "uml/build", SOURCE, work / "tree"), need_mib=5000, product="tree/vmlinux") / "tree"


# The perturbation that triggers each race, and the signature that the hunt reports.
RACES = {
    "sleeps": ("sleeps=10", r"KASAN: use-after-free: injected_use"),
    "timers": ("timers=5", r"WARNING at lib/debugobjects\.c: .*"),
    "work": ("work=5", r"KASAN: use-after-free: injected_use"),
}
# The kernel perturbs nothing before the fifth second, and the module of "work" takes no virtual time, so it must not be loaded at 4.0 s.
RACE = """scenario verbs
seed {}
perturb {}
check no
4.1 node1 load injected_race_{}
"""


@test(kernels=(), also=("um-debug",), timeout=3600)
def hunt_finds_injected_races_only_with_perturbed_scheduling(lab):
    """Each of three modules has a race. Its schedule passes without perturbation. With the kind of perturbation that triggers the race, the kernel reports it. The
    same seed then gives the same console to the last byte, and another seed gives another console."""
    built = _kernel_of_hunts()
    base = dataclasses.replace(kernels.find(lab.kernel), release=(built / "include/config/kernel.release").read_text().strip(), kdir=built, modules=own_uml.look(built).modules)
    source = lab.directory / "injected"
    shutil.copytree(HERE / "injected", source)
    cache.tool("make", "-C", built, "ARCH=um", f"M={source}", "modules")
    tree = _kernel_with(base, lab.directory / "kernel", [source / f"injected_race_{name}.ko" for name in RACES])

    def replay(name, seed, perturb, status, logs=None):
        schedule = lab.directory / f"{name}.hunt"
        schedule.write_text(RACE.format(seed, perturb, name))
        done = _hunt(lab, "replay", schedule, "--kernel", tree, *(("--logs", logs) if logs else ()), status=status)
        return done.stderr.splitlines()[0], (logs / "console-node1.log").read_bytes() if logs else b""

    for name, (perturb, signature) in RACES.items():
        assert replay(name, 1, "", 0)[0] == "passed"
        runs = [replay(name, seed, perturb, 3, lab.directory / f"{name}-{number}") for number, seed in enumerate((1, 1, 2))]
        for said, _ in runs:
            assert re.fullmatch(f"report: {signature}.*", said), f"{name}: {said}"
        assert runs[0][1] == runs[1][1], f"{name}: the consoles of two runs with the same seed differ"
        assert runs[0][1] != runs[2][1], f"{name}: the consoles of runs with different seeds do not differ"


@test(kernels=(), also=("um-debug",), timeout=3600)
def perturbed_run_with_the_same_seed_captures_the_same_packets(lab):
    """Two hosts ping each other over Linux's stack, and the scheduling of their kernels is perturbed."""
    captures = []
    for number, seed in enumerate((7, 7, 8)):
        capture = lab.directory / f"{number}.pcap"
        done = subprocess.run([lab.program("weft"), "run", "--deterministic", "--quiet", "--stack", "linux", "--card", "mlx4", "--kernel", _kernel_of_hunts(), "--seed", "1",
                               "--append", f"weft.perturb={seed},20,10,5", "--capture", capture, "--",
                               "dmesg | grep -o 'scheduling is perturbed: seed [0-9]*'; ping -q -c 20 -i 0.05 10.1.0.2; ip link add p8001 link ib0 type ipoib pkey 0x8001"],
                              capture_output=True, text=True, check=False, timeout=900 * lab.slowness)
        assert "Kernel" not in done.stderr, done.stdout + done.stderr
        assert done.stdout.count(f"scheduling is perturbed: seed {seed}\n") == 2, done.stdout
        captures.append(capture.read_bytes())
    assert captures[0] == captures[1] != captures[2], [len(each) for each in captures]


@test(kernels=(), also=("um-debug",), timeout=3600)
def guests_with_each_card_ping_each_other_on_the_kernel_of_hunts(lab):
    """The guests use the card's driver and the IPoIB of the kernel. Two runs with the same seed print the same times and record the same packets."""
    kernel = _kernel_of_hunts()
    release = (kernel / "include/config/kernel.release").read_text().strip()
    for card in ("mlx4", "mthca", "mlx5"):
        captures = [lab.directory / f"{card}-{number}.pcap" for number in range(2)]
        said = []
        for capture in captures:
            done = subprocess.run([lab.program("weft"), "run", "--deterministic", "--quiet", "--stack", "linux", "--card", card, "--kernel", kernel, "--seed", "7",
                                   "--capture", capture, "--on", "node1", "--", "uname -r; ping -D -c 3 -i 0.1 10.1.0.2"],
                                  capture_output=True, text=True, check=False, timeout=300 * lab.slowness)
            assert done.returncode == 0, f"{card}: status {done.returncode}\n{done.stdout}{done.stderr}"
            said.append(done.stdout)
        assert said[0].startswith(f"{release}\n") and " 0% packet loss" in said[0], f"{card}: {said[0]}"
        assert said[0] == said[1], f"{card}: {said}"
        assert captures[0].stat().st_size > 10_000 and filecmp.cmp(*captures, shallow=False), f"{card}: the captures differ"


@dataclasses.dataclass(frozen=True)
class Fix:
    """A fix in Linux 6.1, which is undone in a copy of a module's source. pattern: text of the fixed file, and its replacement; hunt: the words of a hunt that
    finds the bug; signature: of its report."""

    directory: str
    module: str
    options: tuple
    file: str
    pattern: str
    replacement: str
    hunt: tuple
    signature: str


# From the logs of the stable kernels 6.1.43, 6.1.113 and 6.1.165. In a walk, seeds 2600 to 3500 make an allocation of ib_cache_setup_one() fail.
# Of eight in succession, at least one loses the write that starts a command; which one depends on the build of the kernel.
UNDONE = {
    "RDMA/mthca: Fix crash when polling CQ for shared QPs": Fix(
        "drivers/infiniband/hw/mthca", "ib_mthca.ko", ("CONFIG_INFINIBAND_MTHCA=m",), "mthca_qp.c",
        r"(mthca_array_set\(&dev->qp_table\.qp, mqpn, )qp\)", r"\1qp->sqp)",
        ("ipoib", "--card", "mthca", "--seed", "0", "--seeds", "1"), "KASAN: slab-out-of-bounds: mthca_poll_cq"),
    "IB/core: Fix ib_cache_setup_one error flow cleanup": Fix(
        "drivers/infiniband/core", "ib_core.ko", (), "cache.c",
        r"\t\t\tgid_table_cleanup_one\(device\);\n(\t\t\treturn err;)", r"\1",
        ("probe", "--seed", "3000", "--seeds", "8"), "WARNING at cache.c: gid_table_release_one, ib_cache_release_one"),
    "RDMA/umad: Reject negative data_len in ib_umad_write": Fix(
        "drivers/infiniband/core", "ib_umad.ko", (), "user_mad.c",
        r"if \(check_sub_overflow\((count), (hdr_size\(file\) \+ hdr_len), &(data_len)\)\) \{\n\t\tret = -EINVAL;\n\t\tgoto err_ah;\n\t\}", r"\3 = \1 - (\2);",
        ("verbs", "--seed", "23", "--seeds", "1"), "Kernel mode fault: ib_send_mad, send_next_seg"),
}


def _extract(directory, target):
    """Unpacks a directory of Linux's source below a target; returns the directory of the whole source."""
    cache.tool("tar", "-xf", "/usr/src/linux-source-6.1.tar.xz", "-C", target, "--wildcards", f"linux-source-6.1/{directory}")
    return target / "linux-source-6.1"


def _build(base, tree, directory, module, options=()):
    """Compiles a module of an unpacked source; returns a list of its file."""
    # Headers of trace points are included relative to this directory.
    traces = tree / "include/trace"
    traces.mkdir(parents=True)
    compiler = ("CC=ccache gcc",) if shutil.which("ccache") else ()
    cache.tool("make", f"-j{os.cpu_count()}", "-C", base.kdir, f"M={tree / directory}", f"KCFLAGS=-I{traces}", *compiler, *options, module)
    return [path for path in tree.rglob("*.ko") if path.name == module]


def build_without(fix, base, source):
    """Compiles a module of Linux's source without a fix; returns a list of its file."""
    tree = _extract(fix.directory, source)
    file = tree / fix.directory / fix.file
    text, count = re.subn(fix.pattern, fix.replacement, file.read_text())
    assert count == 1, f"{fix.file} has the fixed text {count} times"
    file.write_text(text)
    return _build(base, tree, fix.directory, fix.module, fix.options)


@test(kernels=(), also=("um-debug",), timeout=1800)
def hunt_finds_bugs_whose_fixes_were_reverted(lab):
    """Fixes of Linux's stable kernels are undone, one at a time. A hunt finds each of the bugs."""
    base = kernels.find(lab.kernel)
    for number, (name, fix) in enumerate(UNDONE.items()):
        tree = lab.directory / f"kernel-{number}"
        source = lab.directory / f"source-{number}"
        source.mkdir()
        _kernel_with(base, tree, build_without(fix, base, source))
        done = _hunt(lab, *fix.hunt, "--jobs", "1", "--kernel", tree, "--out", lab.directory / f"hunt-{number}", status=125)
        assert re.search(rf"^[1-9]\d* of new: {re.escape(fix.signature)}", done.stdout, re.MULTILINE), f"{name}: {done.stdout}{done.stderr}"


# The reports with a patch, the directory of the patched file, and the module that is built from it.
PATCHED = {
    "ipoib-child-leak": ("drivers/infiniband/ulp/ipoib", "ib_ipoib.ko"),
    "uverbs-context-task-leak": ("drivers/infiniband/core", "ib_uverbs.ko"),
}


@test(kernels=(), also=("um-debug",), timeout=1800)
def leaks_replayed_by_weft_hunt_do_not_occur_with_the_proposed_kernel_patches(lab):
    """With the patch that a report proposes, the schedule of the report passes."""
    base = kernels.find(lab.kernel)
    for report, (directory, module) in PATCHED.items():
        own = lab.directory / report
        own.mkdir()
        tree = _extract(directory, own)
        cache.tool("patch", "-p1", "--batch", "-d", tree, "-i", REPORTS / f"{report}.patch")
        kernel = _kernel_with(base, own / "kernel", _build(base, tree, directory, module))
        schedule = own / "schedule"
        schedule.write_text(re.sub(r"expect .*\n", "", (REPORTS / f"{report}.hunt").read_text()))
        _hunt(lab, "replay", schedule, "--kernel", kernel, status=0)


PROGRAMS = """scenario verbs
4.1 node1 verbs 5 400
4.2 node1 objects
4.3 node1 discover
4.4 node1 unload ib_uverbs
4.5 node1 unload mlx4_ib
4.6 node1 load mlx4_ib
4.7 node1 terminate objects
"""


@test(kernels=(), also=("um-debug",), timeout=300)
def program_that_outlives_its_rdma_device_leaks_nothing(lab):
    """A program keeps its objects while ib_uverbs, which is in use, cannot be unloaded, and mlx4_ib can. After it is killed all modules can be unloaded, and a
    new program works. Without that, the run would not pass."""
    schedule, logs = lab.directory / "programs", lab.directory / "logs"
    schedule.write_text(PROGRAMS)
    _hunt(lab, "replay", schedule, "--logs", logs, status=0)
    said = (logs / "console-node1.log").read_text()
    assert said.count("ib_uverbs stays loaded") == 1 and "mlx4_ib stays loaded" not in said and "weft-hunt: checked" in said, said


CONNECTIONS = """scenario cm
stack {}
4.0 node1 serve 1
4.0 node2 serve 1
4.2 node1 connect 7
4.3 node2 connect 9 fail=30
4.4 node2 random 3 400
4.5 fabric link set node1 cm_loss=20% cm_duplication=20% cm_corruption=20% cm_lateness=20% cm_delay=5s
4.9 fabric link set node1 cm_loss=0 cm_duplication=0 cm_corruption=0 cm_lateness=0
5.0 node1 unbind
5.1 node2 terminate random
"""


@test(kernels=(), also=("um-debug",), timeout=300)
def hosts_accept_connections_after_random_use_of_rdma_cm(lab):
    """Connections are abandoned in each state, messages of the CM are lost, doubled, changed and late, and the card of one of their ends is removed.
    Afterwards the modules of RDMA CM can be unloaded, and both hosts accept connections of the other. Without that, the
    run would not pass."""
    for stack in ("linux", "weft"):
        schedule, logs = lab.directory / f"connections-{stack}", lab.directory / f"logs-{stack}"
        schedule.write_text(CONNECTIONS.format(stack))
        _hunt(lab, "replay", schedule, "--logs", logs, status=0)
        for host in ("node1", "node2"):
            said = (logs / f"console-{host}.log").read_text()
            assert "weft-hunt: checked" in said and "weft-hunt: finished" in said, said


LOST_COMPLETION = """scenario ipoib
stack weft
4.0 fabric card fault node1 cqe-index
4.2 node1 create_child 8001
4.4 node1 up ib0.8001
8.0 node1 unbind
12.0 node1 bind
"""


@test(kernels=(), also=("um-debug",), timeout=300)
def driver_can_be_unbound_and_bound_again_after_a_mad_completion_was_lost(lab):
    """A card loses the completion of a MAD. The removal of weft's driver does not wait for it, and ib0 works again when the driver is bound."""
    schedule, logs = lab.directory / "lost", lab.directory / "logs"
    schedule.write_text(LOST_COMPLETION)
    _hunt(lab, "replay", schedule, "--logs", logs, status=0)
    said = (logs / "console-node1.log").read_text()
    assert "completion of no send" in said and "a send does not complete" in said and "weft-hunt: finished" in said, said


FAULTS = """scenario ipoib
4.0 node1 manage
4.5 fabric sm corrupt-replies one-in=3 seed=5
6.0 fabric sm corrupt-replies one-in=0
9.0 node1 terminate manager
9.5 fabric sm renumber
20.0 node2 unbind
20.5 fabric card fault node2 command-nth count=300
21.0 node2 bind
25.0 node2 bind
40.0 node1 up ib0
"""


@test(kernels=(), also=("um-debug",), timeout=300)
def hosts_recover_from_faults_of_subnet_managers_and_cards(lab):
    """weft's subnet manager hands over to OpenSM, and takes over when OpenSM is killed. A command fails while the driver is bound. Afterwards both
    hosts ping each other, and all modules can be unloaded."""
    schedule, logs = lab.directory / "faults", lab.directory / "logs"
    schedule.write_text(FAULTS)
    _hunt(lab, "replay", schedule, "--logs", logs, status=0)
    said = (logs / "weftd.log").read_text()
    for wanted in ("sm: handing over to GUID", "sm: the master does not respond any more"):
        assert wanted in said, said


@test(kernels=(), also=("um-debug",), timeout=300)
def hunt_replay_reproduces_the_known_lock_inversion_of_mlx4_core(lab):
    """A card reports that it has failed, and is removed later. The locks of its reset and of its removal have opposite orders."""
    assert_replayed(lab, "mlx4-health-deadlock", "catas_reset", "mlx4_remove_one")


@test(kernels=(), also=("um-debug",), timeout=300)
def hunt_reduce_keeps_only_the_schedule_step_that_triggers_the_kernel_report(lab):
    """A schedule is reduced to the only step that its report needs, with one host. A schedule without that step passes."""
    wanted = [line for line in KNOWN.read_text().splitlines() if " node1 " in line]
    padded, short, harmless = (lab.directory / name for name in ("padded", "short", "harmless"))
    steps = ["3.500 node2 up ib0", "3.600 node1 mtu ib0 1500", *wanted, "9.000 node1 up ib0"]
    padded.write_text("\n".join(["scenario ipoib", "seed 5", *steps]) + "\n")
    _hunt(lab, "reduce", padded, "--out", short, status=0)
    assert [line for line in short.read_text().splitlines() if " node1 " in line] == wanted, short.read_text()
    assert "check no" in short.read_text() and "node2" not in short.read_text(), short.read_text()
    harmless.write_text("\n".join(["scenario ipoib", "seed 5", *(step for step in steps if step not in wanted)]) + "\n")
    _hunt(lab, "replay", harmless, status=0)


@test(kernels=(), also=("um-debug",), timeout=1200)
def interrupted_hunt_continues_without_repeating_seeds(lab):
    """Ctrl-C stops a hunt and its labs. The same command then runs the seeds that have no verdict, on Linux's stack and on
    weft's. There is no new report."""
    for stack in ("linux", "weft"):
        out = lab.directory / stack
        words = ("ipoib", "--seeds", "4", "--jobs", "2", "--stack", stack, "--out", out)
        first = subprocess.Popen([lab.program("weft"), "hunt", *words], stderr=subprocess.PIPE, text=True)
        wait_until("the first verdict", lambda: list(out.glob("seeds/*.json")), 300 * lab.slowness)
        first.send_signal(signal.SIGINT)
        said = first.communicate(timeout=60)[1]
        assert first.returncode == 130 and "the same command continues" in said, said
        ready = {path.name: path.stat().st_mtime_ns for path in out.glob("seeds/*.json")}
        assert 0 < len(ready) < 4, ready
        done = _hunt(lab, *words, status=0)
        assert re.match(r"4 seeds, \d passed", done.stdout), done.stdout
        assert all((out / "seeds" / name).stat().st_mtime_ns == when for name, when in ready.items()), "a seed ran again"
        assert {json.loads(path.read_text())["seed"] for path in out.glob("seeds/*.json")} == set(range(4))


@test(kernels=(), also=("um-debug",), timeout=3600)
def initiators_reconnect_to_targets_that_disappear(lab):
    """An initiator writes and reads a disk of a target over NVMe and SRP, while the target's card and the link disappear. It connects again, the data are
    unchanged, and all modules can be unloaded. Three known reports are reproduced, and a few seeds of each protocol cause no new one. The kernel is built
    first."""
    kernel = _kernel_of_hunts()
    for name in ("nvme", "srp"):
        schedule, logs = lab.directory / f"{name}.hunt", lab.directory / name
        schedule.write_text(TARGET_DISAPPEARS.format(name))
        _hunt(lab, "replay", schedule, "--kernel", kernel, "--logs", logs, status=0)
        for host in ("node1", "node2"):
            said = (logs / f"console-{host}.log").read_text()
            assert "weft-hunt: checked" in said and "weft-hunt: finished" in said, said
        assert "weft-hunt: reconnected" in said, said
    for report in ("rds-header-direction", "rds-transport-lock-order", "nvme-rdma-reset-delete"):
        _hunt(lab, "replay", REPORTS / f"{report}.hunt", "--kernel", kernel, status=0)
    for name in ("nvme", "srp", "rds"):
        done = _hunt(lab, name, "--kernel", kernel, "--seeds", "2", "--perturb", "none", "--jobs", "1", "--out", lab.directory / f"hunt-{name}", status=0)
        assert re.match(r"2 seeds, \d passed", done.stdout), done.stdout


@test(kernels=(), also=("um-debug",), timeout=2400)
def hunt_replay_reproduces_the_known_reports_of_a_kernel_that_hunts_build(lab):
    """The schedules need connected mode, ib_mthca or perturbed scheduling, which um-debug does not have. The kernel is built first."""
    words = ("--kernel", _kernel_of_hunts())
    assert_replayed(lab, "mlx4-lost-port-events", "ib0 did not get a carrier", "", *words)
    assert_replayed(lab, "ipoib-connection-reap", "KASAN: use-after-free", "ipoib_cm_tx_reap", *words)
    assert_replayed(lab, "mthca-catas-workqueue", "WQ_MEM_RECLAIM", "catas_reset", *words)
    assert_replayed(lab, "ipoib-detach-failure", "Destroy of kernel CQ", "ipoib_transport_dev_cleanup", *words)


TARGET_DISAPPEARS = """scenario {}
seed 1
4.0 node1 begin
4.0 node2 begin
9.0 fabric link down node2
20.0 fabric link up node2
24.0 node1 unbind
25.0 node1 rebind
26.0 node1 withdraw
27.0 node1 serve
"""

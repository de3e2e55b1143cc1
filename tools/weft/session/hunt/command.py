# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Implements the commands of `weft hunt`: one runs the schedules of many seeds, several at a time; the others replay or reduce a single schedule."""
import collections
import contextlib
import os
import pathlib
import queue
import sys
import threading
import time

from hunt import perturbation, reduction, scenarios, schedule as schedules, signature, trial, walk
from hunt.corpus import Corpus
from lab import image, kernels, own_uml, shared_time
from lab.errors import SIGNALLED, LabError, printable
from labs import interruption
from stack import NAMES

NOT_REPEATED, FOUND = 3, 125
# Options of the kernel that a scenario needs, which um-debug does not have.
NEEDED = {
    "connected": (("INFINIBAND_IPOIB_CM", "y", "connected mode of IPoIB"),),
    "nvme": (("NVME_RDMA", "m", "NVMe over RDMA"), ("NVME_TARGET_RDMA", "m", "a target of NVMe over RDMA"), ("BLK_DEV_RAM", "m", "the target's disk")),
    "srp": (("INFINIBAND_SRP", "m", "SRP"), ("INFINIBAND_SRPT", "m", "a target of SRP"), ("BLK_DEV_SD", "m", "SCSI disks")),
    "rds": (("RDS_RDMA", "m", "reliable datagrams over RDMA"),),
}


class Jobs:
    """Calls work(group, stopped) for all groups of seeds, several at a time, in threads. Each thread starts its own guests, because the kernel kills a guest when
    the thread that started it exits."""

    def __init__(self, groups, jobs, work):
        self._left = collections.deque(groups)
        self._count = len(self._left)
        self._stop = threading.Event()
        self._done = queue.SimpleQueue()
        self._work = work
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(min(jobs, self._count))]

    def results(self):
        """Yields (group, result) as each run finishes. All labs have stopped when the generator is closed, also after an exception."""
        for thread in self._threads:
            thread.start()
        try:
            for _ in range(self._count):
                yield self._next()
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def _next(self):
        while True:
            interruption.check()
            with contextlib.suppress(queue.Empty):
                group, result, error = self._done.get(timeout=0.5)
                if error:
                    raise error
                return group, result

    def _run(self):
        while not self._stop.is_set():
            try:
                group = self._left.popleft()
            except IndexError:
                return
            try:
                self._done.put((group, self._work(group, self._stop.is_set), None))
            except shared_time.Stopped:
                return
            except Exception as error:     # an exception of any type, which the main thread raises again
                self._done.put((group, None, error))


def _report(text):
    print(printable(text), file=sys.stderr, flush=True)


def _prepare(args, scenario, perturbed=False):
    """Returns the guests' kernel, which must be able to perturb its scheduling if `perturbed` is set. Builds the images that all labs need first, because several labs would otherwise build them at the same time."""
    name = args.kernel or trial.KERNEL
    needed = NEEDED.get(scenario, ())
    if needed and name in kernels.VARIANTS:
        raise LabError(f"the kernel {name} has no {needed[0][2]}, which the scenario {scenario} needs", "use --kernel with the directory of scripts/uml/build")
    kernel = own_uml.named(name, (*own_uml.FAILING_ALLOCATIONS, *needed))
    if perturbed:
        perturbation.check(kernel)
    image.initramfs(kernel)
    image.root_tree()
    return kernel


def _line(verdict):
    outcome = {trial.PASSED: "passed", trial.REPORT: verdict["signature"]}.get(verdict["verdict"], f"{verdict['verdict']}: {verdict['signature']}")
    known = f" (known: {verdict['page']})" if verdict["page"] else ""
    return f"{outcome}{known}, {verdict['virtual']:.1f} s of virtual time in {verdict['real']:.1f} s"


def _summary(verdicts):
    """Prints how often each signature was reported, with its first seed; returns whether one is new."""
    passed = sum(verdict["verdict"] == trial.PASSED for verdict in verdicts.values())
    print(f"{len(verdicts)} seeds, {passed} passed")
    by_signature = collections.defaultdict(list)
    for seed, verdict in sorted(verdicts.items()):
        if verdict["verdict"] != trial.PASSED:
            by_signature[verdict["signature"], verdict["page"]].append(seed)
    for (name, page), seeds in sorted(by_signature.items(), key=lambda item: -len(item[1])):
        print(printable(f"{len(seeds)} of {'known' if page else 'new'}: {name}; first seed {seeds[0]}{f'; {page}' if page else ''}"))
    return any(page is None for _, page in by_signature)


def _mode(args, kernel):
    """Returns which seeds are perturbed: half of them if the user has not decided and the kernel is able to."""
    if args.scenario in walk.STEPS:
        return perturbation.NONE
    if args.perturb is None and not perturbation.supported(kernel):
        _report(f"the kernel {kernel.release} does not perturb its scheduling; a kernel of scripts/uml/build does")
        return perturbation.NONE
    return args.perturb or perturbation.HALF


def hunt(args):
    """Runs the seeds that have no verdict yet."""
    directory = pathlib.Path(args.out or f"hunt-{args.scenario}")
    settings = {"stack": args.stack or NAMES[0], "card": args.card or "mlx4"}
    # Verdicts of another kernel or another version of the scenario are not comparable.
    kernel = _prepare(args, args.scenario, args.perturb in (perturbation.HALF, perturbation.ALL))
    mode = _mode(args, kernel)
    corpus = Corpus(directory, {"scenario": args.scenario, "version": scenarios.version(args.scenario), "kernel": f"{kernel.kdir.name} {kernel.identity}".strip(), **settings,
                                **({"perturb": mode} if mode != perturbation.NONE else {})})
    first = args.seed or 0
    seeds = range(first, first + (args.seeds or (walk.ENOUGH if args.scenario in walk.STEPS else 100)))
    if seeds[-1] > schedules.LARGEST_SEED:
        raise LabError(f"seeds are at most {schedules.LARGEST_SEED}")
    table = signature.known(directory / "known.txt", args.scenario)
    # A report may have been added to the known ones after its seed was run.
    verdicts = {seed: {**verdict, "page": signature.page_of(verdict["signature"], table)} for seed in seeds if (verdict := corpus.verdict(seed))}
    began = time.monotonic()

    def add(seed, schedule, outcome, together=1):
        verdict = {"seed": seed, "verdict": outcome.verdict, "signature": outcome.signature, "page": signature.page_of(outcome.signature, table),
                   "virtual": round(outcome.virtual / together, 3), "real": round(outcome.real / together, 1), "until": outcome.until, "report": outcome.report}
        if outcome.beyond:
            verdict["beyond"] = True
        if together > 1:
            verdict["together"] = together
        corpus.add(seed, verdict, schedule.but(expect=outcome.signature))
        return verdict

    def run(schedule, folder, stopped):
        return trial.run(schedule, kernel, args.weftd, corpus.found / folder, stopped, table)

    def one(seed, stopped):
        schedule = scenarios.generate(args.scenario, seed, **settings)
        if perturbation.perturbs(mode, seed):
            schedule = schedule.but(perturb=perturbation.generate(args.scenario, seed))
        return add(seed, schedule, run(schedule, str(seed), stopped))

    def several(group, stopped):
        """Runs a group of seeds in one lab, and each alone if it does not pass. A report of the kernel that only the group causes is that of its first seed."""
        if len(group) == 1:
            return [one(group[0], stopped)]
        schedule = walk.group(args.scenario, group, **settings)
        outcome = run(schedule, f"{group[0]}-{group[-1]}", stopped)
        if outcome.verdict == trial.PASSED and not outcome.beyond:
            return [add(seed, schedule, outcome, len(group)) for seed in group]
        alone = [one(seed, stopped) for seed in group]
        if outcome.verdict == trial.REPORT and all(verdict["verdict"] == trial.PASSED for verdict in alone):
            alone[0] = add(group[0], schedule, outcome)
        return alone

    progress = walk.Progress(seeds, verdicts)
    jobs = walk.groups(progress.left(), (args.group if args.scenario in walk.STEPS else None) or 1)
    with contextlib.closing(Jobs(jobs, args.jobs or os.cpu_count(), several).results()) as results:
        for group, found in results:
            verdicts.update(zip(group, found))
            total = f" of {len(seeds)}" if args.scenario not in walk.STEPS else ""
            for seed, verdict in zip(group, found):
                _report(f"[{time.monotonic() - began:7.1f} s] seed {seed}: {_line(verdict)}; {len(verdicts)}{total}")
            if progress.complete():
                break
    new = _summary(verdicts)
    if progress.complete() and first <= 1:
        print(f"the {args.scenario} of a {settings['card']} card has {progress.end - 1} allocations")
    return FOUND if new else 0


def replay(args):
    """Runs the schedule of a file; the exit status reports whether the run had the expected signature."""
    schedule = schedules.read(pathlib.Path(args.file))
    kernel = _prepare(args, schedule.scenario, bool(schedule.perturb))
    outcome = trial.run(schedule, kernel, args.weftd, args.logs, interruption_came, keep_passed=True)
    if outcome.report:
        print(printable(outcome.report))
    _report(f"{outcome.verdict}{f': {outcome.signature}' if outcome.signature else ''}")
    if signature.same(outcome.signature, schedule.expect):
        return 0
    _report(f"expected: {schedule.expect or trial.PASSED}")
    return NOT_REPEATED


def reduce(args):
    """Reduces the schedule of a file to the steps that its report needs."""
    schedule = schedules.read(pathlib.Path(args.file))
    kernel = _prepare(args, schedule.scenario, bool(schedule.perturb))
    whole = trial.run(schedule, kernel, args.weftd, None, interruption_came)
    if whole.verdict == trial.PASSED:
        raise LabError(f"{args.file} passes", "only a schedule that leads to a report can be reduced")
    schedule = schedule.but(expect=whole.signature)
    _report(f"{len(schedule.steps)} steps: {whole.signature}")

    def fails(part):
        outcome = trial.run(part, kernel, args.weftd, None, interruption_came)
        same = signature.same(outcome.signature, whole.signature)
        _report(f"{len(part.steps)} steps: {'the same' if same else outcome.signature or outcome.verdict}, {outcome.real:.1f} s")
        if same:
            pathlib.Path(args.out).write_text(str(part))
        return same

    shortest = reduction.shortest(schedule, whole.until, fails)
    pathlib.Path(args.out).write_text(str(shortest))
    print(shortest, end="")
    return 0


def interruption_came():
    interruption.check()
    return False


ACTIONS = {"replay": replay, "reduce": reduce}


def run(args):
    try:
        return ACTIONS.get(args.action, hunt)(args)
    except KeyboardInterrupt:
        _report("weft hunt: interrupted; the same command continues" if args.action == "run" else "weft hunt: interrupted")
        return SIGNALLED + interruption.number

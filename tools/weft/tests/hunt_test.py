#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests `weft hunt` without guests: the generation and reduction of schedules, the signatures of kernel reports, the files with results, and the exit
status."""
import contextlib
import dataclasses
import io
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]
sys.dont_write_bytecode = True

from hunt import command, perturbation, reduction, scenarios, schedule, signature, trial, walk  # noqa: E402
from lab import reports, shared_time  # noqa: E402
from lab.errors import LabError  # noqa: E402
import repeating  # noqa: E402
import stack  # noqa: E402

SEEDS = range(50)
PREPARE = command._prepare      # a test class replaces it
OOPS = """BUG: KASAN: null-ptr-deref in __netif_schedule+0x1f/0x60
Write of size 8 at addr 0000000000000098 by task bash/77
CPU: 0 PID: 77 Comm: bash Not tainted 6.1.192-weft-um-debug #1
Call Trace:
 [<6001c2d8>] show_stack+0x138/0x14a
 [<606c9e5d>] dump_stack_lvl+0x5d/0x68
 [<60217cda>] ? kasan_report+0xba/0xe0
 [<6051a2bf>] __netif_schedule+0x1f/0x60
 [<61c0b3a1>] ipoib_flush_paths+0x2c1/0x310 [ib_ipoib]
 [<61c0b3a1>] ? ipoib_noise+0x2c1/0x310 [ib_ipoib]
 [<61c0c4a2>] ipoib_ib_dev_cleanup.part.0+0x52/0x120 [ib_ipoib]"""


LEAKS = """kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)
unreferenced object 0x0000000069f1a800 (size 256):
  comm "modprobe", pid 51, jiffies 4294937730 (age 12.040s)
  hex dump (first 32 bytes):
    00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  ................
  backtrace:
    [<00000000d8d5a4e4>] kmalloc_trace+0x2a/0xa0
    [<0>] ipoib_create+0x12/0x0 [ib_ipoib]
    [<00000000b1a2c3d4>] do_one_initcall+0x95/0x2b0
unreferenced object 0x0000000069f1a900 (size 64):
  comm "modprobe", pid 51, jiffies 4294937731 (age 12.030s)
  backtrace:
    [<0>] other+0x2/0x0 [ib_ipoib]
weft-hunt: finished"""


def file_of(text, test):
    folder = pathlib.Path(test.enterContext(tempfile.TemporaryDirectory(prefix="weft-hunt-")))
    (folder / "a.hunt").write_text(text)
    return folder / "a.hunt"


class HuntSchedules(unittest.TestCase):
    def setUp(self):
        # The tables start no OpenSM as long as MANAGES is 0. Its preconditions are tested all the same.
        tables = {name: tuple(dataclasses.replace(action, weight=1) if action.weight == scenarios.MANAGES else action for action in table)
                  for name, table in scenarios.TABLES.items()}
        patch = unittest.mock.patch.dict(scenarios.TABLES, tables)
        patch.start()
        self.addCleanup(patch.stop)

    def test_schedule_written_to_a_file_is_read_back_unchanged(self):
        for seed in SEEDS:
            generated = scenarios.generate("ipoib", seed, stack="weft", card="mthca").but(expect="some report: f, g", check=False)
            generated = generated.but(perturb=perturbation.generate("ipoib", seed))
            self.assertEqual(schedule.read(file_of(str(generated), self)), generated)

    def test_same_seed_generates_the_same_schedule(self):
        self.assertEqual(scenarios.generate("ipoib", 3), scenarios.generate("ipoib", 3))
        self.assertEqual(len({str(scenarios.generate("ipoib", seed).steps) for seed in SEEDS}), len(SEEDS))

    def test_weft_hunt_verbs_generates_the_same_schedule_from_the_same_seed(self):
        self.assertEqual(scenarios.generate("verbs", 3), scenarios.generate("verbs", 3))
        self.assertEqual(len({str(scenarios.generate("verbs", seed).steps) for seed in SEEDS}), len(SEEDS))
        for seed in SEEDS:
            generated = scenarios.generate("verbs", seed)
            self.assertEqual(schedule.read(file_of(str(generated), self)), generated)

    def test_each_action_of_weft_hunt_verbs_is_generated_and_has_a_shell_function(self):
        script = trial.GUEST.read_text() + scenarios.script("verbs")
        steps = [step for seed in SEEDS for step in scenarios.generate("verbs", seed).steps if step.host != schedule.FABRIC]
        names = {step.words[0] for step in steps}
        self.assertEqual(len(names), len(scenarios.VERBS), names)
        for name in names:
            self.assertIn(f"\n{name}() {{", script)
        self.assertEqual({step.words[1] for step in steps if step.words[0] == "unload"}, {"mlx4_ib", "ib_umad", "ib_uverbs"})
        for step in steps:
            if step.words[0] in ("verbs", "malformed"):
                self.assertRegex(" ".join(step.words[1:]), r"^\d+ \d+$")
                self.assertEqual(int(step.words[2]) % {"verbs": 400, "malformed": 1000}[step.words[0]], 0, "a part of a round is not run")

    def test_each_action_generated_by_weft_hunt_connected_has_a_shell_function(self):
        script = trial.GUEST.read_text() + scenarios.script("connected")
        names = {step.words[0] for seed in SEEDS for step in scenarios.generate("connected", seed).steps if step.host != schedule.FABRIC}
        self.assertTrue({"traffic", "connect", "mode", "send", "stop", "create_child", "unbind"} <= names, names)
        for name in names:
            self.assertIn(f"\n{name}() {{", script)

    def test_seed_of_a_probe_or_removal_schedule_selects_the_allocation_that_fails(self):
        for name, steps in (("probe", ("unbind", "probe")), ("removal", ("removal",))):
            generated = scenarios.generate(name, 7, card="mthca")
            self.assertEqual([(step.words, step.fail) for step in generated.steps], [((word,), "7" if word == name else "") for word in steps])
            self.assertEqual((generated.hosts, {step.fail for step in scenarios.generate(name, 0).steps}), (["node1"], {""}))
            self.assertIn(f"\n{name}() {{", scenarios.script(name))

    def test_steps_generated_by_weft_hunt_verbs_satisfy_their_preconditions(self):
        """A program is started only if its kind does not run and its device is there; only a running one is killed. The driver of an mthca card is unloaded, bound
        and unbound only as one module, and without programs that use verbs."""
        kinds = {"verbs": "verbs", "objects": "objects", "discover": "discover", "query": "query", "malformed": "mads", "short": "short", "manage": "manager"}
        for card, seed, host in itertools.product(stack.IN_TREE, SEEDS, scenarios.HOSTS):
            own, bound, driver, running = stack.IN_TREE[card], True, True, set()
            for step in scenarios.generate("verbs", seed, card=card).steps:
                if step.host != host:
                    continue
                name, *arguments = step.words
                removal = name == "disconnect" or (name, *arguments) == ("unload", own)
                self.assertFalse(card == "mthca" and removal and running & {"verbs", "objects"}, step)
                self.assertFalse(card == "mthca" and name in ("connect", "disconnect") and not driver, step)
                if name in kinds:
                    self.assertTrue(bound and driver and kinds[name] not in running, step)
                    self.assertFalse(card == "mlx5" and name in ("verbs", "objects"), step)
                    running.add(kinds[name])
                elif name in ("terminate", "starve"):
                    self.assertIn(arguments[0], running)
                    running -= set(arguments) if name == "terminate" else set()
                elif name in ("connect", "disconnect"):
                    self.assertEqual(bound, name == "disconnect")
                    bound = not bound
                elif arguments == [own]:
                    self.assertEqual(driver, name == "unload")
                    driver = not driver
                    bound = bound or (driver and card == "mthca")
                elif arguments == ["ib_uverbs"]:
                    self.assertFalse(driver, step)

    def test_verbs_schedules_unload_ib_umad_ib_uverbs_and_the_driver_of_the_card_model(self):
        for card, own in stack.IN_TREE.items():
            steps = [step for seed in SEEDS for step in scenarios.generate("verbs", seed, card=card).steps]
            self.assertEqual({step.words[1] for step in steps if step.words[0] == "unload"}, {own, "ib_umad", "ib_uverbs"})
            self.assertTrue({"connect", "disconnect"} <= {step.words[0] for step in steps})
            self.assertIn(f" own={own} ", trial.script(schedule.Schedule("verbs", 1, (), card=card), "node1"))

    def test_hunt_is_refused_without_its_test_program_or_on_an_unsupported_rdma_stack(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-hunt-")))
        for name, settings, said in (("verbs", {}, "there is no .*/weft-uverbs-probe"), ("verbs", {"stack": "weft"}, "Linux's stack"),
                                     ("cm", {"stack": "weft"}, "there is no .*/weft-ucma-probe")):
            with self.subTest(settings), self.assertRaisesRegex(LabError, said):
                trial.run(schedule.Schedule(name, 1, (), **settings), None, folder / "weftd")

    def test_each_action_of_weft_hunt_cm_is_generated_and_has_a_shell_function(self):
        script = trial.GUEST.read_text() + scenarios.script("cm")
        schedules = [scenarios.generate("cm", seed) for seed in SEEDS]
        names = {step.words[0] for each in schedules for step in each.steps if step.host != schedule.FABRIC}
        self.assertEqual(len(names), len(scenarios.CM), names)
        for name in names:
            self.assertIn(f"\n{name}() {{", script)
        for each in schedules:
            self.assertEqual(schedule.read(file_of(str(each), self)), each)

    def test_each_action_of_the_protocol_scenarios_is_generated_and_has_a_shell_function(self):
        for name in scenarios.PROTOCOLS:
            script = trial.GUEST.read_text() + scenarios.script(name)
            schedules = [scenarios.generate(name, seed) for seed in SEEDS]
            steps = [step for each in schedules for step in each.steps if step.host != schedule.FABRIC]
            # The tables do not have the first step, and those with an initiator have two actions that terminate programs.
            self.assertEqual(len({step.words[0] for step in steps}), len(scenarios.PROTOCOLS[name]) + (name == "rds"), name)
            for words in {step.words[0] for step in steps}:
                self.assertIn(f"\n{words}() {{", script, name)
            for each in schedules:
                self.assertEqual(schedule.read(file_of(str(each), self)), each)

    def test_steps_generated_by_the_protocol_scenarios_satisfy_their_preconditions(self):
        """Only the target serves, and only the initiator logs in. A target that serves keeps its modules, because it uses them."""
        for name, seed, host in itertools.product(scenarios.PROTOCOLS, SEEDS, scenarios.HOSTS):
            target = host == "node1"
            bound, served, loaded = True, target, True
            running = {"listen"} if name == "rds" else set() if target else {"io"}
            disks = name != "rds"
            steps = [step for step in scenarios.generate(name, seed).steps if step.host == host]
            self.assertEqual((steps[0].words, steps[0].fail), (("begin",), ""))
            for step in steps[1:]:
                word, *arguments = step.words
                if word in ("login", "logout", "io"):
                    self.assertFalse(target, step)
                if word in ("io", "listen", "ask"):
                    self.assertNotIn(word, running, step)
                    running.add(word)
                elif word == "manage":
                    running.add("manager")
                elif word in ("starve", "terminate") and arguments != ["login"]:
                    self.assertIn(arguments[0], running, step)
                    running -= set(arguments) if word == "terminate" else set()
                elif word in ("serve", "withdraw"):
                    self.assertTrue(target and (loaded if word == "serve" else served), step)
                    served = word == "serve"
                elif word in ("load", "unload"):
                    self.assertEqual(loaded, word == "unload")
                    self.assertFalse(disks and target and served and word == "unload", step)
                    loaded = not loaded
                elif word in ("unbind", "rebind"):
                    self.assertEqual((bound, step.fail), (word == "unbind", ""))
                    bound = not bound

    def test_outages_in_protocol_schedules_last_until_connections_fail(self):
        """A connection fails after a few seconds without responses. In the other scenarios no fault lasts longer than three."""
        def longest(name):
            times = []
            for seed in SEEDS:
                steps = scenarios.generate(name, seed).steps
                downs = {step.words[2]: step.at for step in steps if step.words[:2] == ("link", "down")}
                times += [step.at - downs[step.words[2]] for step in steps if step.words[:2] == ("link", "up") and step.words[2] in downs]
            return max(times)
        for name in scenarios.PROTOCOLS:
            self.assertGreater(longest(name), 10)
        self.assertLess(longest("ipoib"), 3.001)

    def test_steps_generated_by_weft_hunt_cm_satisfy_their_preconditions(self):
        """A program is started only if its kind does not run, and killed only if it does. Interfaces are changed only while the card is bound."""
        kinds = {"serve": "serve", "connect": "connect", "connect_child": "connect", "random": "random", "namespace": "namespace", "manage": "manager"}
        for seed, host in itertools.product(SEEDS, scenarios.HOSTS):
            bound, child, running = True, False, set()
            for step in scenarios.generate("cm", seed).steps:
                if step.host != host:
                    continue
                name, *arguments = step.words
                if name in kinds:
                    self.assertNotIn(kinds[name], running, step)
                    self.assertTrue(child or name != "connect_child", step)
                    running.add(kinds[name])
                elif name in ("terminate", "starve"):
                    self.assertIn(arguments[0], running)
                    running -= set(arguments) if name == "terminate" else set()
                elif name in ("unbind", "rebind"):
                    self.assertEqual(bound, name == "unbind")
                    bound, child = not bound, False
                elif name in ("create_child", "delete_child"):
                    self.assertTrue(bound and child == (name == "delete_child"), step)
                    child = not child
                elif name not in ("load", "unload"):
                    self.assertTrue(bound, step)

    def test_each_action_of_weft_hunt_ipoib_is_generated_and_has_a_shell_function(self):
        script = trial.GUEST.read_text() + scenarios.script("ipoib")
        steps = [step for seed in SEEDS for step in scenarios.generate("ipoib", seed).steps]
        names = {step.words[0] for step in steps if step.host != schedule.FABRIC}
        self.assertEqual(len(names), len(scenarios.IPOIB) + 1, names)
        for name in names:
            self.assertIn(f"\n{name}() {{", script)
        for form in ("", r"\d+", r"any:\d+"):
            self.assertTrue(any(re.fullmatch(form, step.fail) for step in steps), form)

    def test_allocations_of_kmemleak_and_debugobjects_are_never_made_to_fail(self):
        beginnings = trial.MAY_FAIL.removeprefix("slub_debug=A,").replace("*", "").split(",")
        for cache, counted in (("kmemleak_object", False), ("debug_objects_cache", False), ("kmalloc-64", True), ("kernfs_node_cache", True),
                               ("dentry", True), ("skbuff_head_cache", True), ("TCPv6", True)):
            self.assertEqual(cache.startswith(tuple(beginnings)), counted, cache)

    def test_steps_generated_by_weft_hunt_ipoib_satisfy_their_preconditions(self):
        for seed in SEEDS:
            for host in scenarios.HOSTS:
                bound, children = True, set()
                for step in scenarios.generate("ipoib", seed).steps:
                    if step.host != host:
                        continue
                    name, *arguments = step.words
                    if name in ("bind", "unbind"):
                        self.assertEqual(bound, name == "unbind")
                        bound, children = not bound, set()
                    elif name in ("create_child", "delete_child"):
                        self.assertEqual(arguments[0] in children, name == "delete_child")
                        children ^= set(arguments)

    def faults_of(self, name, **settings):
        return [step for seed in SEEDS for step in scenarios.generate(name, seed, **settings).steps if step.host == schedule.FABRIC]

    def test_faults_of_links_cards_and_subnet_managers_are_generated(self):
        for name in scenarios.TABLES:
            said = {" ".join(step.words) for step in self.faults_of(name, card="mthca")}
            for form in ("link down node1", "link set node2 loss=50%", "sm renumber", r"sm corrupt-replies one-in=3 seed=\d+", r"card fault node1 command-nth count=\d\d?",
                         "card fault node2 catastrophic", "card fault node[12] (interrupt|command-twice)"):
                self.assertTrue(any(re.fullmatch(form, words) for words in said), f"{name}: {form}")
            for kind in ("cm_loss", "cm_duplication", "cm_corruption", "cm_lateness"):
                self.assertEqual(any(f" {kind}=20%" in words for words in said), name in ("cm", "connected", *scenarios.PROTOCOLS), name)

    def test_schedule_removes_every_persistent_fault_that_it_injects(self):
        """Faults of one kind may overlap. The last step of each kind removes it."""
        for name, seed in itertools.product(scenarios.TABLES, SEEDS):
            last = {}
            for step in (step for step in scenarios.generate(name, seed).steps if step.host == schedule.FABRIC):
                noun, verb, *words = step.words
                key = {"link": (noun, words[0] if words else "", verb if verb == "set" else "state"), "sm": (noun, verb), "card": (noun, *words[:2])}[noun]
                if noun == "link" and verb == "set":
                    last.update({(*key, setting.partition("=")[0]): setting.partition("=")[2] for setting in words[1:]})
                else:
                    last[key] = " ".join((verb, *words[2 if noun == "card" else 0:]))
            for key, value in last.items():
                wanted = {("link", "set"): "0", ("link", "state"): f"up {key[1]}", ("sm", "corrupt-replies"): "corrupt-replies one-in=0"}.get((key[0], key[2] if key[0] == "link" else key[1]))
                if key[0] == "card":
                    wanted = "fault count=0" if key[2] == "command-nth" else "fault"
                if key[-1] != "cm_delay" and wanted:
                    self.assertEqual(value, wanted, f"{name} {seed}: {key}")

    def test_cards_with_linux_drivers_get_only_faults_that_the_drivers_tolerate(self):
        for card, known in scenarios.HANDLED.items():
            kinds = {step.words[3] for step in self.faults_of("ipoib", card=card) if step.words[0] == "card"}
            self.assertEqual(kinds, {*known, "command-nth", *(("catastrophic",) if card != "mlx4" else ())}, card)
            # Linux's drivers do not arm a CQ again whose event is lost.
            self.assertFalse(kinds & {"eqe-type", "eqe-number", "eqe-owner"}, card)
        self.assertEqual({step.words[3] for step in self.faults_of("ipoib", stack="weft") if step.words[0] == "card"}, {*scenarios.ALL_FAULTS, "command-nth", "catastrophic"})

    def test_schedules_generate_catastrophic_mlx4_errors_only_with_the_driver_of_weft(self):
        """Linux's driver of such a card then causes a known report, after which lockdep is off."""
        for name, (stack_name, expected) in itertools.product(scenarios.TABLES, (("linux", False), ("weft", True))):
            self.assertEqual("catastrophic" in {step.words[-1] for step in self.faults_of(name, stack=stack_name)}, expected, f"{name} {stack_name}")
        text = "scenario ipoib\n30.000 fabric card fault node2 catastrophic\n"
        self.assertEqual(schedule.read(file_of(text, self)).steps[0].words[-1], "catastrophic")

    @staticmethod
    def intervals_of(steps, host, removals):
        """Returns the intervals in which OpenSM runs on a host, and (first, last, step) of those in which its device may disappear."""
        managed, removed = [], []
        for step in steps:
            words = " ".join(step.words).replace(host, "HOST")
            if step.host == host and words == "manage":
                managed.append((step.at, next((each.at for each in steps if each.at > step.at and each.host == host and each.words == ("terminate", "manager")), 1e9)))
            elif step.host == host and words in removals:
                removed.append((step.at, step.at, words))
            elif words == "card fault HOST catastrophic":
                removed.append((step.at, step.at + 10, words))
            elif words.startswith("card fault HOST command-nth") and not words.endswith("=0"):
                disarmed = ("card", "fault", host, "command-nth", "count=0")
                removed.append((step.at, next(each.at for each in steps if each.at > step.at and each.words == disarmed) + 10, "command-nth"))
        return managed, removed

    def test_schedules_never_remove_the_device_of_a_running_opensm(self):
        """OpenSM repeats a failing call without a pause when its device disappears. mlx4_core finds a failure of the card up to five seconds later, and resets
        the card; a failing command may be such a failure."""
        for name, (card, own), stack_name in itertools.product(scenarios.TABLES, stack.IN_TREE.items(), stack.NAMES):
            kinds, count = set(), 0
            schedules = {seed: scenarios.generate(name, seed, card=card, stack=stack_name).steps for seed in SEEDS[:25]}
            for (seed, steps), host in itertools.product(schedules.items(), scenarios.HOSTS):
                managed, removed = self.intervals_of(steps, host, {"unbind", "disconnect", f"unload {own}"})
                if (card, stack_name) == ("mthca", "linux"):
                    removed = [each for each in removed if each[2] != "command-nth"]    # ib_mthca does not reset the card
                for (began, ended), (first, last, words) in itertools.product(managed, removed):
                    self.assertFalse(began <= last and first < ended, f"{name} {card} {stack_name} {seed}: {words} on {host} from {first} to {last}, OpenSM from {began} to {ended}")
                count += len(managed)
                kinds |= {words for *_, words in removed}
            self.assertTrue(count > 10 and len(kinds) >= 2, f"{name} {card} {stack_name}: {count} {kinds}")

    def test_no_verbs_program_starts_within_10_seconds_after_an_mthca_card_failure(self):
        """Its removal would wait until they have exited."""
        for seed, host in itertools.product(SEEDS, scenarios.HOSTS):
            steps = scenarios.generate("verbs", seed, card="mthca").steps
            failures = [step.at for step in steps if step.words == ("card", "fault", host, "catastrophic")]
            for step in (step for step in steps if step.host == host and step.words[0] in ("verbs", "objects")):
                self.assertFalse(any(at <= step.at < at + 10 for at in failures), f"{seed}: {step}")

    def test_steps_that_change_cards_links_or_the_subnet_manager_become_requests_to_weftd(self):
        for words, request in (("card fault node1 command-nth count=7", {"command": "card.fault", "host": "node1", "fault": "command-nth", "count": 7}),
                               ("card fault node1 interrupt", {"command": "card.fault", "host": "node1", "fault": "interrupt"}),
                               ("card random-faults node2 seed=0x10 one-in=3", {"command": "card.random_faults", "host": "node2", "seed": 16, "one_in": 3}),
                               ("sm corrupt-replies one-in=3 seed=1", {"command": "sm.corrupt-replies", "one_in": 3, "seed": 1}), ("sm sweep", {"command": "sm.sweep"}),
                               ("link set node1 loss=1%", {"command": "link.set", "link": "node1", "settings": {"loss": "1%"}})):
            self.assertEqual(repeating.event(f"2.5 {words}"), (2.5, request))
        for words in ("card fault node1", "card fault node1 interrupt count=x", "sm corrupt-replies 3"):
            with self.assertRaisesRegex(LabError, "is not a time and a change"):
                repeating.event(f"2.5 {words}")

    def test_guest_script_is_told_whether_the_schedule_injects_card_faults(self):
        """Otherwise, a card that cannot be bound because of a fault would be reported."""
        for words, faulty in ((("card", "fault", "node1", "interrupt"), 1), (("link", "down", "node1"), 0)):
            self.assertIn(f" faulty={faulty}\n", trial.script(schedule.Schedule("ipoib", 1, (schedule.Step(5, "fabric", words),)), "node1"))

    def test_lab_has_only_the_hosts_that_the_steps_use(self):
        steps = (schedule.Step(1, "fabric", ("link", "down", "node2")),)
        self.assertEqual(schedule.Schedule("ipoib", 1, steps).hosts, ["node2"])
        self.assertEqual(schedule.Schedule("ipoib", 1, ()).hosts, ["node1"])

    def test_errors_in_a_schedule_file_are_reported_with_their_line(self):
        for text, said in (("scenario ipoib\nhello\n", "a.hunt:2: it is neither"), ("1.0 node1 up $(reboot)\n", "a.hunt:1: a step has words"),
                           ("1.0 host up ib0\n", "a.hunt:1: there is no host host"), ("seed x\n", "the seed x"), ("seed 4294967296\n", "the seed 4294967296"),
                           ("check maybe\n", "check is yes or no"), ("1 node1 up ib0\n" * 10001, "more than 10000 steps"), ("card mlx9\n", "card is one of"),
                           ("perturb naps=3\n", "a.hunt:1: naps=3 does not perturb"), ("seed 1\nperturb sleeps=-1\n", "a.hunt:2: sleeps=-1 does not"),
                           ("perturb timers=2 timers=3\n", "timers=3 does not"), ("perturb work=1000000001\n", "work=1000000001 does not"),
                           ("1.0 node1  fail=3\n", "a.hunt:1: a step has words")):
            with self.subTest(text[:30]), self.assertRaisesRegex(LabError, said.replace("(", r"\(")):
                schedule.read(file_of(text, self))

    def test_unknown_scenario_is_reported(self):
        with self.assertRaisesRegex(LabError, "there is no scenario x: there is ipoib"):
            trial.run(schedule.Schedule("x", 1, ()), None, None)


class SchedulingPerturbation(unittest.TestCase):
    def test_schedule_without_a_perturb_line_does_not_perturb_scheduling(self):
        read = schedule.read(file_of("scenario ipoib\nseed 3\n4.0 node1 up ib0\n", self))
        self.assertEqual((read.perturb, perturbation.words(read.perturb, read.seed, "node1")), ("", ()))
        self.assertNotIn("perturb", str(read))

    def test_perturb_line_of_a_schedule_is_passed_to_each_kernel_with_a_seed_of_its_own(self):
        read = schedule.read(file_of("scenario ipoib\nseed 3\nperturb timers=7 sleeps=20 work=0\n4.0 node1 up ib0\n4.0 node2 up ib0\n", self))
        self.assertIn("\nperturb sleeps=20 timers=7\n", str(read))
        with (unittest.mock.patch.object(trial, "Setup"), unittest.mock.patch.object(shared_time, "run", side_effect=LookupError) as ran,
              unittest.mock.patch.object(shared_time.uml.image, "root_tree", lambda: "root"), self.assertRaises(LookupError)):
            trial.run(read, None, HERE / "weftd")
        lab = ran.call_args.args[0]
        seeds = set()
        for number, host in enumerate(read.hosts, 1):
            (word,) = [word for word in shared_time._words(lab, host, number) if word.startswith("weft.perturb=")]
            self.assertRegex(word, r"=\d+,20,7,0$")
            seeds.add(word.split(",")[0])
        self.assertEqual(len(seeds), 2)

    def test_perturbations_generated_for_seeds_use_every_kind_and_differ(self):
        generated = [perturbation.generate("ipoib", seed) for seed in SEEDS]
        self.assertEqual(generated, [perturbation.generate("ipoib", seed) for seed in SEEDS])
        self.assertTrue(all(generated) and len(set(generated)) > 20, generated)
        self.assertEqual({word.partition("=")[0] for each in generated for word in each.split()}, set(perturbation.KINDS))

    def test_random_numbers_of_a_kernel_depend_on_the_seed_and_on_the_host(self):
        self.assertEqual(len({perturbation.words("sleeps=5", seed, host) for seed in SEEDS for host in scenarios.HOSTS}), 2 * len(SEEDS))
        self.assertEqual(perturbation.words("sleeps=5", 3, "node1"), perturbation.words("sleeps=5", 3, "node1"))

    def test_reduction_removes_kinds_of_perturbation_that_the_report_does_not_need(self):
        step = schedule.Step(4, "node1", ("up", "ib0"))
        whole = schedule.Schedule("ipoib", 1, (step,), perturb="sleeps=5 timers=2 work=5")
        for needed in ("", "sleeps=5", "sleeps=5 timers=2", whole.perturb):
            found = reduction.shortest(whole, None, lambda part: part.steps == (step,) and set(needed.split()) <= set(part.perturb.split()))
            self.assertEqual(found.perturb, needed)


class ReportSignatures(unittest.TestCase):
    def test_signature_of_an_oops_is_its_kind_and_the_top_of_its_stack(self):
        self.assertEqual(signature.of(OOPS), "KASAN: null-ptr-deref: __netif_schedule, ipoib_flush_paths, ipoib_ib_dev_cleanup")

    def test_signature_does_not_depend_on_addresses_and_processes(self):
        other = OOPS.replace("6051a2bf", "6051a2c0").replace("bash/77", "ip/1234").replace("+0x1f/0x60", "+0x2f/0x70")
        self.assertEqual(signature.of(OOPS), signature.of(other))

    def test_signature_of_a_warning_has_its_file_without_the_line(self):
        self.assertEqual(signature.of("WARNING: CPU: 0 PID: 9 at net/core/dev.c:1234 f+0x1/0x2"), "WARNING at net/core/dev.c")
        self.assertEqual(signature.of("WARNING: CPU: 0 PID: 9 at /home/me/modules/core/cache.c:885 f+0x1/0x2 [a]"), "WARNING at cache.c")
        # The format of Linux 7.3.
        self.assertEqual(signature.of("WARNING: net/core/dev.c:1234 at f+0x1/0x2, CPU#0: ip/9"), "WARNING at net/core/dev.c")

    def test_signature_of_a_refcount_warning_has_the_error_and_the_caller(self):
        report = ("WARNING: CPU: 0 PID: 85 at lib/refcount.c:28 refcount_warn_saturate+0x248/0x250\nrefcount_t: underflow; use-after-free.\nModules linked in: a\n"
                  "Call Trace:\n [<6153ab9a>] warn_slowpath_fmt+0x136/0x15b\n [<60a9eb98>] refcount_warn_saturate+0x248/0x250\n"
                  " [<7880a049>] __refcount_sub_and_test.constprop.0+0x49/0x50 [a]\n [<7880c047>] owner+0x47/0x80 [a]")
        self.assertEqual(signature.of(report), "refcount_t: underflow; use-after-free: owner")

    def test_signature_of_a_workqueue_warning_has_the_work_items(self):
        report = ("WARNING: CPU: 0 PID: 72 at kernel/workqueue.c:2637 check_flush_dependency.part.0+0x2e4/0x520\n"
                  "workqueue: WQ_MEM_RECLAIM {}:{} is flushing !WQ_MEM_RECLAIM events_highpri:flush_backlog\nModules linked in: a\n"
                  "Call Trace:\n [<600fef0a>] __flush_work+0x71a/0xa80\n [<600ff282>] flush_work+0x12/0x20")
        names = [signature.of(report.format(*each)) for each in (("mthca_catas", "catas_reset [ib_mthca]"), ("other", "catas_reset [ib_mthca]"))]
        self.assertEqual([self.page(name) for name in names], ["Documentation/reports/mthca-catas-workqueue.rst", None])

    def test_signature_of_a_panic_has_the_reason_without_the_address(self):
        report = ("Kernel panic - not syncing: Kernel mode fault at addr 0x148, ip 0x60da697a\nCall Trace:\n [<61593c50>] ? debug_lockdep_rcu_enabled+0x0/0x50\n"
                  " [<60db2cd9>] netif_schedule_queue+0xd9/0x160")
        self.assertEqual(signature.of(report), "Kernel mode fault: netif_schedule_queue")

    def test_leaked_dma_mapping_is_attributed_to_the_function_that_mapped_it(self):
        report = "WARNING: CPU: 0 PID: 1 at kernel/dma/debug.c:859 dma_debug_device_change+0x2ff/0x460\nCall Trace:\n [<6011d5b0>] notifier_call_chain+0xa0/0x1d0"
        console = (f"{report}\n[    2.5] ---[ end trace 0 ]---\n[    2.5] DMA-API: Mapped at:\n[    2.5]  debug_dma_map_page+0x70/0x3a0\n"
                   "[    2.5]  ipoib_alloc_rx_skb+0x265/0x6a0 [ib_ipoib]\n[    2.6] weft-hunt: 2.6 bind fail=0\n[    2.7]  other+0x1/0x2\n")
        self.assertEqual(signature.of(signature.with_mapping(report, console)), "WARNING at kernel/dma/debug.c: ipoib_alloc_rx_skb")
        self.assertEqual(signature.with_mapping(OOPS, console), OOPS)

    def test_cq_that_remains_has_another_signature_if_its_qp_could_not_be_detached(self):
        report = ("WARNING: CPU: 0 PID: 80 at include/rdma/ib_verbs.h:3914 ipoib_transport_dev_cleanup+0x17f/0x230 [ib_ipoib]\nDestroy of kernel CQ shouldn't fail\n"
                  "Call Trace:\n [<6a>] ipoib_transport_dev_cleanup+0x17f/0x230 [ib_ipoib]")
        plain = "WARNING at include/rdma/ib_verbs.h: ipoib_transport_dev_cleanup"
        detach, destroy = "[    3.9] {}: ib_detach_mcast failed (result = -12)\n", "[    4.0] {}: ib_qp_destroy failed\n"
        for console, wanted in ((detach.format("ib0") + destroy.format("ib0"), f"ib_detach_mcast failed, {plain}"), (destroy.format("ib0"), plain), (detach.format("ib0"), plain),
                                (detach.format("ib1") + destroy.format("ib0"), plain), (detach.format("ib0") + destroy.format("ib0") + destroy.format("ib1"), plain), ("", plain)):
            console += f"{report}\n{detach.format('ib0')}{destroy.format('ib0')}"
            name = signature.of(signature.with_detachment(report, console))
            self.assertEqual(name, wanted, console)
            self.assertEqual(self.page(name), "Documentation/reports/ipoib-detach-failure.rst" if name != plain else None)
        self.assertEqual(signature.with_detachment(OOPS, destroy.format("ib0") + OOPS), OOPS)

    def page(self, name):
        return signature.page_of(name, signature.known(scenario="removal"))

    def test_uml_fault_in_clear_user_is_known_and_other_faults_of_user_copies_are_not(self):
        """A user copy with a bad pointer of the kernel is a bug; clearing memory of a program has no such pointer."""
        self.assertEqual(self.page("Kernel mode fault: buffer_op, __clear_user, padzero, elf_load"), "Documentation/hunt.rst")
        self.assertIsNone(self.page("Kernel mode fault: buffer_op, raw_copy_to_user, ib_uverbs_write"))

    def test_carrier_that_is_missing_for_another_reason_is_new(self):
        known = "ib0 did not get a carrier: ib_sa has no LID of the subnet manager (mlx4_ib)"
        self.assertEqual(self.page(known), "Documentation/reports/mlx4-lost-port-events.rst")
        for other in ("ib0 did not get a carrier", known.replace("mlx4_ib", "ib_mthca")):
            self.assertIsNone(self.page(other), other)

    def test_signature_of_a_report_without_a_stack_is_its_first_line(self):
        self.assertEqual(signature.of("INFO: task ip:77 blocked for more than 120 seconds."), "task ip:N blocked for more than N seconds")

    def test_signature_of_a_leaked_object_is_its_allocation_stack(self):
        self.assertEqual([signature.of(leak) for leak in reports.find(LEAKS)][1:],
                         ["unreferenced object N (size N): ipoib_create, do_one_initcall", "unreferenced object N (size N): other"])

    def test_known_reports_are_matched_by_a_prefix_of_their_signature(self):
        table = [("KASAN: null-ptr-deref: __netif_schedule", "page")]
        self.assertEqual(signature.page_of(signature.of(OOPS), table), "page")
        self.assertIsNone(signature.page_of("KASAN: null-ptr-deref: other", table))

    def test_known_warnings_match_signatures_with_another_directory_of_the_file(self):
        """A module that is built outside the kernel's tree has the path of its source in its warnings."""
        report = "WARNING: CPU: 0 PID: 15 at {}drivers/nvme/host/rdma.c:2187 nvme_rdma_reset_ctrl_work+0x2d5/0x4d0 [nvme_rdma]\nCall Trace:\n [<6a>] nvme_rdma_reset_ctrl_work+0x2d5/0x4d0"
        names = [signature.of(report.format(directory)) for directory in ("", "/usr/src/linux/")]
        self.assertEqual(names, ["WARNING at drivers/nvme/host/rdma.c: nvme_rdma_reset_ctrl_work", "WARNING at rdma.c: nvme_rdma_reset_ctrl_work"])
        for name in names:
            self.assertEqual(signature.page_of(name, signature.known(scenario="nvme")), "Documentation/reports/nvme-rdma-reset-delete.rst", name)
            self.assertTrue(signature.same(name, names[0]))
        for other in ("WARNING at drivers/nvme/host/tcp.c: nvme_rdma_reset_ctrl_work", "WARNING at rdma.c: nvme_rdma_error_recovery_work", "nvme/host/rdma.c: nvme_rdma_reset_ctrl_work"):
            self.assertIsNone(signature.page_of(other, signature.known(scenario="nvme")), other)
            self.assertFalse(signature.same(other, names[0]), other)

    def test_known_report_of_one_hunt_scenario_is_new_in_other_scenarios(self):
        leak = "unreferenced object N (size N): copy_process, kernel_clone, __do_sys_clone, sys_clone"
        self.assertEqual(signature.page_of(leak, signature.known(scenario="verbs")), "Documentation/reports/uverbs-context-task-leak.rst")
        self.assertIsNone(signature.page_of(leak, signature.known(scenario="cm")))

    def test_documentation_page_of_each_known_report_exists(self):
        for begin, page in (*signature.known(), *signature.belonging()):
            self.assertTrue(begin)
            self.assertTrue((HERE.parents[2] / page).is_file(), page)

    def test_addresses_of_unloaded_modules_in_a_leak_report_become_function_names(self):
        # The formats of Linux 6.1 and 6.12.
        for form in ("    [<00000000deadbeef>] {}", "    {}"):
            lines = ["unreferenced object 0x60001000 (size 64):", "  backtrace:", form.format("kmalloc_trace+0x12/0x40"),
                     form.format("0x0000000062000130"), form.format("0x0000000062000310"), "  0x12: 61 62"]
            with tempfile.TemporaryDirectory() as folder:
                symbols, report = (pathlib.Path(folder) / name for name in ("symbols", "report"))
                symbols.write_text("0000000062000100 t first_function\t[ib_ipoib]\n0000000062000300 T second_function\t[ib_ipoib]\n")
                report.write_text("\n".join(lines) + "\n")
                function = re.search(r"^with_names\(\) \{.*?^\}", trial.GUEST.read_text(), re.DOTALL | re.MULTILINE)[0]
                done = subprocess.run(["bash", "-c", f"{function}\nwith_names {symbols} {report}"], capture_output=True, text=True, check=True)
            with self.subTest(form):
                self.assertEqual(signature.of(done.stdout), "unreferenced object N (size N): first_function, second_function")
                self.assertEqual(done.stdout.splitlines()[-1], lines[-1])


class RunVerdicts(unittest.TestCase):
    def verdict_of(self, reports=(), console="", status=0, reason="", table=()):
        done = types.SimpleNamespace(reports={"node1": list(reports)}, status={"node1": status}, reason=reason)
        return trial._verdict_of(done, {"node1": console}, table, "verbs")

    def test_kernel_report_includes_the_time_of_the_last_schedule_step_before_it(self):
        console = f"[    9.1] weft-hunt: 9.100000 up ib0 fail=0\n[    9.5] weft-hunt: 9.500000 bind fail=2\n{OOPS}\n[   11.0] weft-hunt: 11.000000 unbind fail=0\n"
        self.assertEqual(self.verdict_of([OOPS], console), ("report", signature.of(OOPS), OOPS, 9.5))

    def test_new_report_takes_precedence_over_a_known_report(self):
        other = "WARNING: CPU: 0 PID: 9 at net/core/dev.c:1234 f+0x1/0x2"
        self.assertEqual(self.verdict_of([OOPS, other], f"{OOPS}\n{other}", table=[(signature.of(OOPS), "page")])[1], signature.of(other))

    def test_leaked_child_object_is_known_only_if_its_parent_object_also_leaked(self):
        def leak(*functions):
            return "unreferenced object 0x6a (size 4096):\n" + "\n".join(f" [<6a>] {function}+0x1/0x2" for function in functions)
        child = leak("alloc_netdev_mqs", "ipoib_intf_alloc", "ipoib_vlan_add", "create_child_store")
        tracker = leak("ref_tracker_alloc", "inetdev_init", "inetdev_event", "notifier_call_chain")
        table = signature.known(scenario="ipoib")
        page = "Documentation/reports/ipoib-child-leak.rst"
        self.assertEqual(signature.page_of(self.verdict_of([tracker, child], table=table)[1], table), page)
        self.assertEqual(self.verdict_of([tracker], table=table)[1], signature.of(tracker))
        self.assertIsNone(signature.page_of(signature.of(tracker), table))

    def test_run_in_which_the_peer_host_does_not_answer_gets_the_verdict_stuck(self):
        self.assertEqual(self.verdict_of(console="[ 80.0] weft-hunt: complaint: the peer did not answer\n")[:2], ("stuck", "the peer did not answer"))

    def test_complaint_of_a_host_about_itself_takes_precedence_over_one_about_its_peer(self):
        done = types.SimpleNamespace(reports={}, status={"node1": 0, "node2": 0}, reason="")
        consoles = {"node1": "[ 80.0] weft-hunt: complaint: the peer did not answer\n", "node2": "[ 70.0] weft-hunt: complaint: ib0 did not get a carrier\n"}
        self.assertEqual(trial._verdict_of(done, consoles, (), "ipoib")[1:3], ("ib0 did not get a carrier", "node2: ib0 did not get a carrier"))

    def test_unfinished_script_has_verdict_stuck_only_if_the_time_of_the_run_is_up(self):
        self.assertEqual(self.verdict_of(status=None, reason="a scheduled event requests it")[0], "stuck")
        self.assertEqual(self.verdict_of(status=None, reason="node1 has left the time server at 61.5 s")[0:2],
                         ("no end", "not finished: node1 has left the time server at N s"))

    def test_kernel_mode_fault_takes_precedence_over_an_earlier_lockdep_report(self):
        lockdep = "WARNING: possible irq lock inversion dependency detected\nCall Trace:\n [<60182bf0>] _raw_spin_lock+0x1/0x2"
        fault = "Kernel panic - not syncing: Kernel mode fault at addr 0x10, ip 0x78d4af23\nCall Trace:\n [<78d5cf62>] mlx4_ib_post_send+0x12/0x20"
        self.assertEqual(self.verdict_of([lockdep, fault], f"{lockdep}\n{fault}")[1], "Kernel mode fault: mlx4_ib_post_send")

    def test_kasan_report_takes_precedence_over_an_earlier_warning(self):
        warning = "WARNING: CPU: 0 PID: 9 at net/core/dev.c:1234 f+0x1/0x2"
        self.assertEqual(self.verdict_of([warning, OOPS], f"{warning}\n{OOPS}")[1], signature.of(OOPS))

    def test_dma_api_warning_about_too_many_overlapping_mappings_is_ignored(self):
        often = "WARNING: CPU: 0 PID: 94 at kernel/dma/debug.c:499 add_dma_entry+0x54b/0x680\nDMA-API: exceeded 7 overlapping mappings of cacheline 0x12b"
        self.assertEqual(self.verdict_of([often], often)[0], "passed")
        self.assertEqual(self.verdict_of([often, OOPS], f"{often}\n{OOPS}")[0], "report")

    def test_signature_of_leaks_names_an_unreferenced_object_and_not_the_number_of_leaks(self):
        found = reports.find(LEAKS)
        self.assertEqual(self.verdict_of(found, LEAKS)[:2], ("report", "unreferenced object N (size N): ipoib_create, do_one_initcall"))
        known = [("unreferenced object N (size N): ipoib_create", "page")]
        self.assertEqual(self.verdict_of(found, LEAKS, table=known)[1:3],
                         ("unreferenced object N (size N): other", LEAKS[LEAKS.rindex("unreferenced"):LEAKS.index("\nweft-hunt")]))

    def test_time_limit_of_a_run_grows_with_the_load_of_the_host(self):
        for load, times in ((0.1, 1), (2, 1), (8, 4), (1000, trial.MOST_SLOWNESS)):
            with unittest.mock.patch.multiple(trial.os, getloadavg=lambda load=load: (load, 0, 0), sched_getaffinity=lambda _: {2, 5}, cpu_count=lambda: 64):
                self.assertEqual(trial.time_limit(), times * trial.MOST_SECONDS)

    def test_time_limit_of_a_run_grows_with_the_number_of_its_seeds(self):
        """Each of its seeds takes some virtual seconds, and the card returns to its state at the beginning in between."""
        with unittest.mock.patch.object(trial.os, "getloadavg", lambda: (0, 0, 0)):
            for generated, seeds in ((walk.group("removal", range(1, 101)), 100), (walk.group("probe", [4, 5]), 2), (walk.generate("removal", 0), 1),
                                     (walk.generate("probe", 7), 1), (scenarios.generate("ipoib", 1), 1), (walk.group("probe", [4]).but(steps=()), 0)):
                self.assertEqual(walk.count(generated), seeds)
                wanted = trial.MOST_SECONDS + max(0, seeds - 1) * trial.FOR_NEXT_SEED
                self.assertEqual(trial.time_limit(walk.count(generated)), wanted)
                with (unittest.mock.patch.object(trial, "Setup"), unittest.mock.patch.object(shared_time, "run", side_effect=LookupError) as ran,
                      self.assertRaises(LookupError)):
                    trial.run(generated, None, HERE / "weftd")
                self.assertEqual(ran.call_args.args[1](), wanted)

    def wait(self, load, end):
        """Waits for a lab that ends after some seconds of real time; load(seconds) is the load of the host at a time."""
        clock = types.SimpleNamespace(now=0.0)

        def sleep(_):
            clock.now += 1
        weftd = types.SimpleNamespace(poll=lambda: 0 if clock.now > end else None, terminate=lambda: None, wait=lambda _: None)
        with (unittest.mock.patch.multiple(trial.os, getloadavg=lambda: (load(clock.now), 0, 0), sched_getaffinity=lambda _: {0, 1}),
              unittest.mock.patch.object(shared_time, "time", types.SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep))):
            shared_time._wait_for_end(types.SimpleNamespace(directory=HERE), weftd, {}, trial.time_limit, lambda: False)

    def test_high_cpu_load_of_the_host_during_a_run_extends_the_time_limit_of_the_run(self):
        """The limit stays as large as it was when the load falls again."""
        self.wait(lambda now: 8 if now > 500 else 0, 2000)
        self.wait(lambda now: 8 if now < 500 else 0, 2000)
        with self.assertRaisesRegex(LabError, "within 600 s"):
            self.wait(lambda now: 0, 2000)
        with self.assertRaisesRegex(LabError, "within 2400 s"):
            self.wait(lambda now: 8, 3000)

    def test_run_without_a_kernel_report_passes(self):
        self.assertEqual(self.verdict_of(), ("passed", "", "", None))


class ScheduleReduction(unittest.TestCase):
    def test_reduction_removes_steps_that_the_report_does_not_need(self):
        for needed in ((0,), (19,), (3, 4), (0, 7, 19), tuple(range(20))):
            tried = []

            def fails(part):
                tried.append(part)
                return set(needed) <= set(part)
            self.assertEqual(reduction.reduce(range(20), fails), needed)
            self.assertEqual(len(tried), len(set(tried)), "a part was tried twice")

    def test_removing_any_step_of_a_reduced_schedule_makes_the_report_disappear(self):
        """The result is minimal even if either of two pairs of steps causes the report."""
        def fails(part):
            return {1, 15} <= set(part) or {8, 9} <= set(part)
        found = reduction.reduce(range(20), fails)
        self.assertTrue(fails(found))
        self.assertFalse(any(fails(found[:each] + found[each + 1:]) for each in range(len(found))))

    def test_reduction_removes_hosts_without_steps_and_a_final_check_that_is_not_needed(self):
        generated = scenarios.generate("ipoib", 1)
        wanted = next(step for step in generated.steps if step.host == "node2" and step.at > 10)
        found = reduction.shortest(generated, 20, lambda part: wanted in part.steps)
        self.assertEqual((found.steps, found.check, found.hosts), ((wanted,), False, ["node2"]))

    def test_reduction_keeps_the_final_check_if_the_report_needs_it(self):
        generated = scenarios.generate("ipoib", 1)
        for until in (None, generated.steps[-1].at + 5):
            found = reduction.shortest(generated, until, lambda part: part.check and len(part.steps) > 2)
            self.assertEqual((found.check, len(found.steps)), (True, 3))


class HuntCommand(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-hunt-")))
        self.ran = []
        self.perturbed = {}
        self.kernel = types.SimpleNamespace(kdir=self.folder / "um-debug-1", release="6.1-um-debug", identity="")
        self.kernel.kdir.mkdir()
        self.enterContext(unittest.mock.patch.object(command, "_prepare", lambda *_: self.kernel))
        self.enterContext(unittest.mock.patch.object(trial, "run", self.outcome))
        self.enterContext(unittest.mock.patch.object(signature, "KNOWN", file_of("page.rst known\n", self)))
        self.by_seed = {}
        self.beyond = 1 << 32

    def outcome(self, generated, kernel, weftd, logs=None, stopped=None, table=(), keep_passed=False):
        self.ran.append(generated.seed)
        self.perturbed[generated.seed] = generated.perturb
        name = self.by_seed.get(generated.seed, "")
        if isinstance(name, BaseException):
            raise name
        if isinstance(name, trial.Outcome):
            return name
        return trial.Outcome("report" if name else "passed", name, name, 50.0, 1.0, beyond=generated.seed >= self.beyond)

    def hunt(self, action="run", **options):
        given = {"action": action, "scenario": "ipoib", "out": str(self.folder / "out"), "jobs": 2, "seeds": 5, "seed": None, "stack": None, "card": None, "group": None,
                 "perturb": None, "kernel": None}
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as self.said:
            status = command.run(types.SimpleNamespace(weftd=None, logs=None, **{**given, **options}))
        return status, printed.getvalue()

    def test_hunt_exit_status_tells_whether_a_new_kernel_report_was_found(self):
        self.assertEqual(self.hunt(), (0, "5 seeds, 5 passed\n"))
        self.by_seed = {7: "known: f", 8: "known: f"}
        self.assertEqual(self.hunt(seed=5), (0, "5 seeds, 3 passed\n2 of known: known: f; first seed 7; page.rst\n"))
        self.by_seed = {11: "other"}
        self.assertEqual(self.hunt(seed=10), (125, "5 seeds, 4 passed\n1 of new: other; first seed 11\n"))

    def test_hunt_perturbs_the_scheduling_of_half_the_seeds_if_the_kernel_is_able_to(self):
        self.hunt(seeds=4)
        self.assertEqual(set(self.perturbed.values()), {""})
        self.assertIn("the kernel 6.1-um-debug does not perturb its scheduling", self.said.getvalue())
        (self.kernel.kdir / ".config").write_text("CONFIG_UML_PERTURB=y\n")
        for number, (options, expected) in enumerate((({}, {1, 3}), ({"perturb": "half"}, {1, 3}), ({"perturb": "none"}, set()), ({"perturb": "all"}, {0, 1, 2, 3}),
                                                      ({"scenario": "removal"}, set()))):
            self.perturbed.clear()
            self.hunt(seeds=4, out=str(self.folder / f"out-{number}"), **options)
            self.assertEqual({seed for seed, perturb in self.perturbed.items() if perturb}, expected, options)
            self.assertNotIn("does not perturb", self.said.getvalue())
        with self.assertRaisesRegex(LabError, "results of another hunt"):
            self.hunt(seeds=4, out=str(self.folder / "out-0"), perturb="all")

    def test_kernel_that_cannot_perturb_its_scheduling_is_refused_for_a_schedule_that_needs_it(self):
        file = file_of("scenario ipoib\nseed 3\nperturb sleeps=20\n4.0 node1 up ib0\n", self)
        with (unittest.mock.patch.multiple(command, _prepare=PREPARE), unittest.mock.patch.multiple(command.image, initramfs=lambda _: None, root_tree=lambda: None),
              unittest.mock.patch.object(command.own_uml, "named", lambda *_: self.kernel)):
            for action, options in (("replay", {"file": str(file)}), ("reduce", {"file": str(file)}), ("run", {"perturb": "all"})):
                with self.subTest(action), self.assertRaisesRegex(LabError, "the kernel 6.1-um-debug lacks CONFIG_UML_PERTURB"):
                    self.hunt(action, **options)
            (self.kernel.kdir / ".config").write_text("CONFIG_UML_PERTURB=y\n")
            self.assertEqual(self.hunt("replay", file=str(file))[0], 0)

    def test_repeated_hunt_runs_only_seeds_without_a_verdict(self):
        self.hunt(seeds=3)
        self.by_seed = {1: "other"}
        self.ran.clear()
        self.assertEqual(self.hunt(seeds=5)[0], 0)
        self.assertEqual(sorted(self.ran), [3, 4])

    def test_hunt_over_the_allocations_of_a_card_removal_ends_after_the_last_allocation(self):
        """A seed below the end without a verdict is run first."""
        self.beyond = 6
        self.assertEqual(self.hunt(scenario="removal", seeds=None, seed=1, jobs=1), (0, "6 seeds, 6 passed\nthe removal of a mlx4 card has 5 allocations\n"))
        self.assertEqual(self.ran[:6], list(range(1, 7)))   # later seeds may have begun before the end was known
        (self.folder / "out/seeds/3.json").unlink()
        self.ran.clear()
        self.assertEqual(self.hunt(scenario="removal", seeds=None, seed=1)[0], 0)
        self.assertEqual(self.ran, [3])

    def test_passing_group_of_seeds_is_run_once_instead_of_once_per_seed(self):
        self.beyond = 1000
        self.assertEqual(self.hunt(scenario="removal", seed=1, seeds=25, group=10, jobs=1), (0, "25 seeds, 25 passed\n"))
        self.assertEqual(self.ran, [1, 11, 21])
        self.assertEqual(json.loads((self.folder / "out/seeds/14.json").read_text())["together"], 10)
        self.ran.clear()
        (self.folder / "out/seeds/14.json").unlink()
        self.hunt(scenario="removal", seed=1, seeds=26, group=10)
        self.assertEqual(sorted(self.ran), [14, 26])

    def test_hunt_with_group_option_reruns_the_seeds_of_a_failed_group_one_by_one(self):
        """The group's run has the seed of the first one. Its report counts if none of its seeds has one alone."""
        self.by_seed = {1: "group: f"}
        with unittest.mock.patch.object(walk, "generate", lambda name, seed, **settings: schedule.Schedule(name, seed + 100, ())):
            self.assertEqual(self.hunt(scenario="removal", seed=1, seeds=4, group=4, jobs=1)[1], "4 seeds, 3 passed\n1 of new: group: f; first seed 1\n")
            self.assertEqual(self.ran, [1, 101, 102, 103, 104])
            self.assertEqual(len(schedule.read(self.folder / "out/found/1.hunt").steps), 7)
            self.by_seed[13] = "other: f"
            self.by_seed[115] = "alone: f"
            self.assertIn("1 of new: alone: f; first seed 15\n", self.hunt(scenario="removal", seed=13, seeds=4, group=4, jobs=1)[1])

    def test_no_schedule_is_saved_for_a_group_of_seeds_that_fails_without_a_kernel_report(self):
        """It may only have taken too long. Its seeds passed alone."""
        for verdict in (trial.NO_END, trial.STUCK):
            self.by_seed = {1: trial.Outcome(verdict, "not finished")}
            with unittest.mock.patch.object(walk, "generate", lambda name, seed, **settings: schedule.Schedule(name, seed + 100, ())):
                self.assertEqual(self.hunt(scenario="removal", seed=1, seeds=4, group=4, out=str(self.folder / verdict))[1], "4 seeds, 4 passed\n")
            self.assertEqual(list((self.folder / verdict / "found").iterdir()), [])

    def test_schedule_of_a_group_of_seeds_has_one_failing_allocation_per_seed(self):
        """Between two of them the card returns to the state at the beginning."""
        self.assertEqual([f"{step.words[0]} {step.fail}".strip() for step in walk.group("removal", [4, 5]).steps], ["removal 4", "prepare", "removal 5"])
        self.assertEqual([f"{step.words[0]} {step.fail}".strip() for step in walk.group("probe", [4, 5]).steps], ["unbind", "probe 4", "unbind", "probe 5"])
        self.assertIn("\nprepare() {", scenarios.script("removal"))
        self.assertEqual(walk.groups([0, 1, 2, 3, 7, 8], 2), [[0], [1, 2], [3], [7, 8]])

    def test_weft_hunt_connected_requires_a_kernel_with_ipoib_connected_mode(self):
        with self.assertRaisesRegex(LabError, "um-debug has no connected mode.*scripts/uml/build"):
            PREPARE(types.SimpleNamespace(kernel=None), "connected")

    def test_hunt_for_a_protocol_requires_a_kernel_with_its_modules(self):
        for scenario, words in (("nvme", "NVMe over RDMA"), ("srp", "SRP")):
            with self.assertRaisesRegex(LabError, f"um-debug has no {words}, which the scenario {scenario} needs.*scripts/uml/build"):
                PREPARE(types.SimpleNamespace(kernel=None), scenario)
        self.assertEqual(set(command.NEEDED), {"connected", *scenarios.PROTOCOLS})

    def test_schedule_that_causes_a_new_kernel_report_is_saved(self):
        self.by_seed = {2: "other: f"}
        self.hunt()
        self.assertEqual([path.name for path in (self.folder / "out/found").iterdir()], ["2.hunt"])
        self.assertEqual(schedule.read(self.folder / "out/found/2.hunt"), scenarios.generate("ipoib", 2).but(expect="other: f"))
        self.assertEqual(json.loads((self.folder / "out/seeds/2.json").read_text())["signature"], "other: f")

    def test_report_listed_in_known_txt_of_the_output_directory_counts_as_known(self):
        """It also counts as known for a seed that has already been run."""
        self.by_seed = {7: "known: f", 8: "other: f"}
        self.assertEqual(self.hunt(seed=5)[0], 125)
        (self.folder / "out/known.txt").write_text("# mine\n\nmine.rst other: f\n")
        for count, passed in ((5, 3), (7, 5)):
            self.assertEqual(self.hunt(seed=5, seeds=count), (0, f"{count} seeds, {passed} passed\n1 of known: known: f; first seed 7; page.rst\n"
                                                              "1 of known: other: f; first seed 8; mine.rst\n"))
        (self.folder / "out/known.txt").write_text("# mine\nother:\n")
        with self.assertRaisesRegex(LabError, "known.txt:2: a line has a page"):
            self.hunt(seed=5)

    def test_output_directory_of_a_hunt_with_a_different_stack_scenario_or_kernel_is_refused(self):
        self.hunt()
        with self.assertRaisesRegex(LabError, "has the results of another hunt.*--out"):
            self.hunt(stack="weft")
        with unittest.mock.patch.object(scenarios, "version", lambda _: "other"), self.assertRaisesRegex(LabError, "another hunt"):
            self.hunt()
        for changed in ({"kdir": pathlib.Path("/um-debug-2")}, {"identity": "rebuilt"}):
            with self.subTest(changed), unittest.mock.patch.multiple(self.kernel, **changed), self.assertRaisesRegex(LabError, "another hunt"):
                self.hunt()

    def test_corrupt_result_file_is_reported(self):
        self.hunt()
        (self.folder / "out/seeds/2.json").write_text("{")
        with self.assertRaisesRegex(LabError, "2.json is damaged"):
            self.hunt()

    def test_exception_of_the_harness_ends_the_hunt(self):
        self.by_seed = {2: LabError("no space")}
        with self.assertRaisesRegex(LabError, "no space"):
            self.hunt()
        self.by_seed = {13: KeyError("a defect")}
        with self.assertRaisesRegex(KeyError, "a defect"):
            self.hunt(seed=10)

    def test_seeds_above_the_maximum_are_refused(self):
        with self.assertRaisesRegex(LabError, "seeds are at most"):
            self.hunt(seed=0xFFFFFFFF)

    def test_interrupted_hunt_exits_with_status_130(self):
        with unittest.mock.patch.object(command.interruption, "check", side_effect=KeyboardInterrupt):
            self.assertEqual(self.hunt()[0], 130)
        self.assertIn("interrupted", self.said.getvalue())

    def test_replay_fails_if_the_report_differs_from_the_expected_report(self):
        file = file_of(str(scenarios.generate("ipoib", 2).but(expect="other")), self)
        self.by_seed = {2: "other"}
        self.assertEqual(self.hunt("replay", file=file)[0], 0)
        self.by_seed = {2: "different"}
        self.assertEqual(self.hunt("replay", file=file)[0], 3)
        self.assertIn("expected: other", self.said.getvalue())

    def test_reduce_command_writes_the_reduced_schedule(self):
        file = file_of(str(scenarios.generate("ipoib", 2)), self)
        self.by_seed = {2: "other"}
        self.assertEqual(self.hunt("reduce", file=file, out=str(self.folder / "short"))[0], 0)
        short = schedule.read(self.folder / "short")
        self.assertEqual((len(short.steps), short.expect), (1, "other"))

    def test_schedule_that_passes_is_not_reduced(self):
        with self.assertRaisesRegex(LabError, "passes"):
            self.hunt("reduce", file=file_of(str(scenarios.generate("ipoib", 2)), self), out=str(self.folder / "short"))


if __name__ == "__main__":
    unittest.main()

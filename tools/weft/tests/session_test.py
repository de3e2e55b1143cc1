#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests parts of `weft lab` and `weft run` without guests: settings of guests, waits, messages, scripts for several hosts, and changes of a lab."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import types
import unittest
import unittest.mock

from session_folder import SESSION, Folder  # sets the paths of the modules below

import labs
import running
import serving
import stack
import topology
from lab import DeadlineExceeded, GuestDied, accelerator, cache, guest, image, vm
from lab.errors import LabError
from labs import GuestSettings, together
from options import Options


class GuestSettingsTest(unittest.TestCase):
    def test_lab_file_overrides_the_command_line_per_host(self):
        """The lab file's settings of a host take precedence over the command line; another kernel does not get the first one's modules."""
        settings = GuestSettings("/linux/bzImage", "/linux/modules", "/initrd", cpus=2)
        self.assertEqual(settings.but({"memory": "2G"}), GuestSettings("/linux/bzImage", "/linux/modules", "/initrd", cpus=2, memory="2G"))
        self.assertEqual(settings.but({"kernel": "stock"}), GuestSettings("stock", cpus=2))

    def test_guest_memory_sizes_are_parsed_and_validated(self):
        for given, mebibytes in (("192M", 192), ("768m", 768), ("1.5G", 1536), ("262144K", 256), ("1T", 1 << 20)):
            settings = GuestSettings(memory=given)
            settings.check_memory("stock")
            self.assertEqual(settings.mebibytes(), mebibytes)
        for given in ("abc", "", "768", "-1G", "1GB", "2 G", "1G,slots=2", "1e3M", "inf", "٣M"):
            with self.assertRaisesRegex(LabError, "is not an amount of memory: write it as 768M or 2G"):
                GuestSettings(memory=given).check_memory("stock")
        for given, variant, least in (("64M", "stock", 192), ("191.9M", "stock", 192), ("31M", "own", 32), ("0G", "um", 32)):
            with self.assertRaisesRegex(LabError, f"{given} of memory are too little for a guest: give it {least}M or more"):
                GuestSettings(memory=given).check_memory(variant)
        for variant in ("own", "um"):
            GuestSettings(memory="32M").check_memory(variant)

    def test_modules_option_is_refused_for_predefined_kernels(self):
        with self.assertRaisesRegex(LabError, "has its own modules"):
            GuestSettings("stock", modules="/lib/modules").find_kernel("mlx4")


class KvmOrTcg(Folder):
    """QEMU's command line selects KVM if a trial boot with it succeeds."""

    def setUp(self):
        super().setUp()
        self.boots = 0
        self.addCleanup(accelerator.kvm_works.cache_clear)
        for module, name, stand_in in ((accelerator, "_trial_boot", self.trial), (cache, "root", lambda: self.folder),
                                       (image, "root_disk", lambda: ("root.img", "raw")), (image, "initramfs", lambda _: "initramfs.cpio")):
            self.enterContext(unittest.mock.patch.object(module, name, stand_in))

    def trial(self):
        self.boots += 1
        return self.gets_through

    def options(self, flags, gets_through, **environment):
        """Returns the options -accel and -cpu, depending on whether there is KVM and whether a trial boot succeeds."""
        self.gets_through = gets_through
        accelerator.kvm_works.cache_clear()
        guest = types.SimpleNamespace(name="node1", memory="768M", cpus=1, log_target=lambda: "log", firmware_script=None, icount=False, may_reboot=False, vfio_user=[], spare_ports=0,
                                      share=None, netdevs=[], qemu_args=[], append="", kernel=types.SimpleNamespace(image="bzImage", checked=False, modules_disk=None))
        with unittest.mock.patch.object(accelerator.qemu, "kvm_flags", lambda: flags), unittest.mock.patch.dict(os.environ, environment):
            words = vm.options(guest, 3, 4)
        return [words[words.index(option) + 1] for option in ("-accel", "-cpu")]

    KVM, EMULATED = ["kvm", "host"], ["tcg,thread=multi", "max,erms=off,fsrm=off,fzrm=off,fsrs=off"]

    def test_kvm_is_used_if_a_trial_boot_succeeds(self):
        for _ in range(2):
            self.assertEqual(self.options(True, True), self.KVM)
        self.assertEqual(self.boots, 1, "one trial for each boot of the host")

    def test_tcg_is_used_if_the_trial_boot_hangs(self):
        self.assertEqual(self.options(True, False), self.EMULATED)

    def test_tcg_is_used_without_a_trial_boot_if_the_host_has_no_kvm(self):
        self.assertEqual(self.options(False, True), self.EMULATED)
        self.assertEqual(self.boots, 0)

    def test_tcg_is_used_if_the_environment_variable_weft_kvm_is_0(self):
        self.assertEqual(self.options(True, True, WEFT_KVM="0"), self.EMULATED)


class AwaitFunction(Folder):
    """Conditions that a guest waits for as it becomes a node."""

    def test_script_function_await_waits_until_a_file_matches_the_pattern(self):
        """await waits while the file does not exist or has other text, and returns at once if the text is already there."""
        file = self.folder / "state"
        script = f'{labs.AWAIT}\nawait "$1" "*ACTIVE" "no state"'
        waiting = subprocess.Popen(["bash", "-c", script, "bash", file], stderr=subprocess.PIPE)
        with self.assertRaises(subprocess.TimeoutExpired):
            waiting.wait(0.1)
        self.write("state", "1: DOWN\n")
        with self.assertRaises(subprocess.TimeoutExpired):
            waiting.wait(0.1)
        self.write("state", "4: ACTIVE\n")
        self.assertEqual((waiting.wait(60), waiting.stderr.read()), (0, b""))
        waiting.stderr.close()
        subprocess.run(["bash", "-c", script, "bash", file], check=True)

    def test_script_function_await_times_out_after_a_fixed_time_not_a_number_of_tries(self):
        """On a slow CPU, await gives up after the same time as on a fast one, and not after the same number of tries."""
        slow = 'read() { [[ $1 != -rt ]] || { echo pause; builtin read -rt 0.3 -u $never; }; builtin read "$@"; }'
        script = f'{labs.AWAIT.replace("60", "1")}\n{slow}\nawait "$1" "*ACTIVE" "no state"'
        done = subprocess.run(["bash", "-c", script, "bash", self.folder / "state"], capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "no state within 1 s\n"))
        self.assertIn(done.stdout.count("pause"), range(1, 10))


class ScriptOption(unittest.TestCase):
    HOSTS = ("node1", "node2", "node3")

    def test_each_host_gets_the_common_lines_and_its_own_sections_of_the_script(self):
        parts = running.parts_of("a\n#@ node1\nb\n#@ node2 node3\nc\n", self.HOSTS)
        self.assertEqual(parts, {"node1": "a\nb\n", "node2": "a\nc\n", "node3": "a\nc\n"})

    def test_host_without_a_script_section_runs_nothing(self):
        self.assertEqual(running.parts_of("#@ node2\nb\n", self.HOSTS), {"node2": "b\n"})

    def test_unknown_host_is_refused(self):
        for script, said in (("a\n#@ node9\nb\n", "line 2 of the script: there is no host node9"), ("#@\n", "line 1 of the script: there is no host named")):
            with self.assertRaisesRegex(LabError, said):
                running.parts_of(script, self.HOSTS)

    def test_command_runs_only_on_the_hosts_selected_by_the_on_option(self):
        def args(**given):
            return types.SimpleNamespace(**{"on": [], "script": None, "words": [], **given})
        self.assertEqual(running.scripts_of(args(words=["a b"]), ["x", "y"]), {"x": "a b", "y": "a b"})
        self.assertEqual(running.scripts_of(args(words=["echo", "a b"], on=["y"]), ["x", "y"]), {"y": "echo 'a b'"})
        with self.assertRaisesRegex(LabError, "there is no host z: there is x, y"):
            running.scripts_of(args(words=["a"], on=["z"]), ["x", "y"])


class CrashedCommand(unittest.TestCase):
    def test_exit_statuses_134_and_139_are_taken_as_crashes_by_sigabrt_and_sigsegv(self):
        self.assertEqual([running.crash_of(status) for status in (0, 1, 127, 128, 134, 139, 143, 255)],
                         [None, None, None, None, "SIGABRT", "SIGSEGV", None, None])


class WeftdWarnings(unittest.TestCase):
    def test_warnings_are_extracted_from_the_log_of_weftd(self):
        log = "17:49:39.864 info    weftd: sm: sweep\n17:49:39.865 warning weftd: lab.toml:3: the partitions have no effect\n\nno log line\n"
        self.assertEqual(labs.warnings_of(log), ["lab.toml:3: the partitions have no effect"])


class IncompleteConsoleLog(unittest.TestCase):
    def test_unwritable_console_log_is_reported(self):
        guests = [types.SimpleNamespace(name=name, log=f"/logs/{name}", console_error=lambda error=error: error) for name, error in (("a", None), ("b", "No space"))]
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual([running.report_incomplete_logs(guests, logs) for logs in ("/logs", None)], [1, 0])
            self.assertEqual(running.report_incomplete_logs(guests[:1], "/logs"), 0)
        self.assertEqual(said.getvalue(), "weft run: /logs/b does not contain the whole console of b: No space\n" * 2)


class IncompleteConsoleLogInLab(Folder):
    """`weft lab check` and `weft lab down` report consoles that could not be written."""

    SAID = "LOG does not contain the whole console of node1: No space left on device\n"

    def serve(self, error, logs_wanted):
        guest = types.SimpleNamespace(name="node1", log="LOG", alive=lambda: True, sync_log=lambda: "", new_reports=lambda: [], console_error=lambda: error)
        server = serving.Server(types.SimpleNamespace(guests={"node1": guest}, logs=self.folder, stopping=threading.Event()), self.folder / "lab.sock", logs_wanted)
        self.addCleanup(server.listener.close)
        threading.Thread(target=server.accept, daemon=True).start()
        return server

    def call(self, command):
        return subprocess.run([sys.executable, "-B", SESSION, self.folder, command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)

    def test_incomplete_console_log_gives_exit_status_1_only_if_logs_are_requested(self):
        for logs_wanted in (True, False):
            server = self.serve("No space left on device", logs_wanted)
            for command, said in (("check", self.SAID), ("check", ""), ("down", self.SAID)):
                with self.subTest((logs_wanted, command, said)):
                    done = self.call(command)
                    self.assertEqual((done.returncode, done.stderr), (int(logs_wanted and bool(said)), said))
            self.assertTrue(server.done.is_set())
            (self.folder / "lab.sock").unlink()

    def test_complete_console_log_is_not_reported(self):
        self.serve(None, True)
        for command in ("check", "down"):
            done = self.call(command)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_incomplete_console_log_of_a_restarted_guest_is_reported_again(self):
        server = self.serve("No space left on device", True)
        sent = []
        server.check(lambda **message: sent.append(message))
        server.lab.guests = {"node1": types.SimpleNamespace(**vars(server.lab.guests["node1"]))}
        server.check(lambda **message: sent.append(message))
        self.assertEqual(sent, [{"err": self.SAID}, {"status": 1}] * 2)

    def test_lab_up_command_warns_about_an_incomplete_console_log(self):
        script = f"""
import sys
sys.path[:0] = {sys.path[:2]!r}
import pathlib, threading, types
import labs
import running
import serving
guest = types.SimpleNamespace(name="node1", log="LOG", console_error=lambda: "No space left on device")
class Lab:
    def __init__(self, *_): self.guests = dict(node1=guest); self.weftd = types.SimpleNamespace(); self.stopping = threading.Event()
    def up(self): pass
    def look_after(self, _): raise serving.LabError("enough")
    def close(self): pass
running.Lab = Lab
args = types.SimpleNamespace(socket_dir=pathlib.Path({str(self.folder)!r}), logs=None, weftd=None, lab=None, bare=None, card=None, no_restart=None)
sys.exit(serving.up(args, labs.GuestSettings()))
"""
        done = subprocess.run([sys.executable, "-Bc", script], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, f"weft lab: warning: {self.SAID}"))


class PrintedGuestOutput(unittest.TestCase):
    def printer(self, several):
        self.out, self.err = io.BytesIO(), io.BytesIO()
        return running.Printer(several, self.out, self.err)

    def test_output_of_a_single_guest_has_no_prefix(self):
        """The output of a single guest is passed on unchanged."""
        printer = self.printer(False)
        printer.write("node1", b"\xff\x00half", b"e")
        printer.write("node1", b" a line", b"")
        printer.finish("node1")
        self.assertEqual((self.out.getvalue(), self.err.getvalue()), (b"\xff\x00half a line", b"e"))

    def test_output_lines_of_several_guests_have_a_prefix(self):
        printer = self.printer(True)
        printer.write("node1", b"one\ntw", b"")
        printer.write("node2", b"2\n", b"bad")
        printer.write("node1", b"o\nend", b"")
        printer.finish("node1")
        printer.finish("node2")
        self.assertEqual(self.out.getvalue(), b"node1: one\nnode2: 2\nnode1: two\nnode1: end\n")
        self.assertEqual(self.err.getvalue(), b"node2: bad\n")


class ParallelTasks(unittest.TestCase):
    def test_results_of_parallel_tasks_are_returned_by_name(self):
        self.assertEqual(together(["a", "b"], str.upper), {"a": "A", "b": "B"})

    def test_number_of_parallel_tasks_is_limited(self):
        begun, ended, outstanding = [], [], []
        three = threading.Barrier(3)

        def begin(guest):
            self.assertIs(threading.current_thread(), threading.main_thread())
            begun.append(guest)
            outstanding.append(len(begun) - len(ended))

        def work(guest):
            three.wait(timeout=60)      # three run at the same time
            ended.append(guest)

        together(range(9), work, begin=begin, most=3)
        self.assertEqual(begun, list(range(9)))
        self.assertLessEqual(max(outstanding), 3)

    def test_failure_of_a_parallel_task_is_raised(self):
        def work(name):
            raise LabError(f"{name} fails")
        with self.assertRaisesRegex(LabError, "a fails"):
            together(["a"], work)


class FakeGuest:
    """A guest that is up at once or never."""

    made = []
    broken = {"broken"}
    slowness = 1

    def __init__(self, name, **_):
        self.name, self.accelerator, self.log, self.netdevs = name, "none", "none", []
        self.kernel = types.SimpleNamespace(release="6", native=False, variant="stock")
        self.running = False
        self.made.append(self)

    def start(self):
        self.running = True

    def close(self):
        self.running = False

    def ready(self, *_):
        if self.name in self.broken:
            raise GuestDied("it broke")

    def run(self, script, *_, **__):
        self.script = script
        return types.SimpleNamespace(status=0)


class DriverStack(Folder):
    """Tests which modules a guest gets, and what is reported before any guest boots."""

    RELEASE = "6.1.0-test"

    def setUp(self):
        super().setUp()
        self.enterContext(unittest.mock.patch.object(cache, "TREE", self.folder))
        self.enterContext(unittest.mock.patch.object(GuestSettings, "find_kernel", lambda *_, **__: types.SimpleNamespace(release=self.RELEASE, native=False, variant="stock")))

    def build(self, *names):
        for name in names:
            path = self.folder / "build/modules" / self.RELEASE / f"{name}.ko"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(name.encode())

    def prepare(self, model, **settings):
        lab = labs.Lab(self.folder, self.folder, None, None, GuestSettings(), False, None)
        return lab._plan({"name": "node1", "model": model, "bus": "vfio-user", "boot": settings}, stack.weft_modules).stack

    def test_in_tree_driver_is_selected_by_the_card_model(self):
        self.assertEqual(stack.in_tree_modules("mlx4")[0], "mlx4_ib")
        self.assertEqual(stack.in_tree_modules("mthca")[0], "ib_mthca")
        self.assertEqual(stack.in_tree_modules("mlx5")[0], "mlx5_ib")

    def test_weft_driver_stack_is_refused_for_card_models_without_a_weft_driver(self):
        with self.assertRaisesRegex(LabError, "weft's own stack has no driver for mlx5: --stack linux uses Linux's driver, and --bare loads no driver"):
            self.prepare("mlx5", stack="weft")

    def test_in_tree_driver_stack_is_refused_for_card_models_without_an_in_tree_driver(self):
        with self.assertRaisesRegex(LabError, "Debian's kernel has no driver for amso1100: --stack weft has one"):
            self.prepare("amso1100")

    def test_modules_that_are_not_built_are_reported(self):
        self.build(*stack.BELOW)
        with self.assertRaisesRegex(LabError, "not built for the kernel 6.1.0-test: there is no weft_mthca.ko: run `make modules"):
            self.prepare("mthca", stack="weft")

    def test_weft_modules_for_the_card_model_are_listed_in_loading_order(self):
        self.build(*stack.BELOW, "weft_mlx4", "weft_mthca", "weft_ipoib")
        found = self.prepare("mlx4", stack="weft")
        self.assertEqual(found, stack.Stack("ib0", own=tuple((name, name.encode()) for name in (*stack.BELOW, "weft_mlx4", "weft_ipoib"))))

    def test_modprobe_in_the_guest_finds_weft_modules_and_their_dependencies(self):
        modules = (("weft_kern", b"\0license=GPL\0depends=\0name=weft_kern\0"), ("weft_mlx4", b"\0depends=weft_kern,ptp\0"))
        self.assertEqual(stack.modprobe_configuration(modules),
                         "install weft_kern insmod /run/weft_kern.ko $CMDLINE_OPTS\n"
                         "install weft_mlx4 modprobe -q weft_kern && modprobe -q ptp && insmod /run/weft_mlx4.ko $CMDLINE_OPTS\n")


class LabChanges(unittest.TestCase):
    """Guests are started and stopped when the hosts of a lab change."""

    def setUp(self):
        FakeGuest.made = []
        FakeGuest.broken = {"broken"}
        for name, stand_in in (("Guest", FakeGuest), ("ask_weftd", lambda *_: {"hosts": self.hosts, "subnet_manager": self.manager})):
            patch = unittest.mock.patch.object(labs, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)
        patch = unittest.mock.patch.object(GuestSettings, "find_kernel", lambda *_, **__: FakeGuest("").kernel)
        patch.start()
        self.addCleanup(patch.stop)
        self.reports = []
        self.manager = {"state": "master"}
        self.bus = "vfio-user"
        self.lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), True, self.reports.append)

    def settle(self, hosts, replaced=()):
        self.hosts = [{"name": name, "socket": name, "bus": self.bus, "model": "mlx4"} for name in hosts]
        self.lab.settle(replaced, self.reports.append)
        return [guest.name for guest in FakeGuest.made if guest.running]

    def test_guests_of_added_hosts_are_started_and_guests_of_removed_hosts_are_stopped(self):
        self.assertEqual(self.settle(["a", "b"]), ["a", "b"])
        first = self.lab.guests["a"]
        self.assertEqual(self.settle(["c", "a"]), ["a", "c"])
        self.assertIs(self.lab.guests["a"], first)
        self.assertEqual(self.lab._numbers, {"a": 1, "c": 2})     # a free address is reused

    def test_number_of_guests_that_boot_at_the_same_time_is_limited(self):
        most = max(labs.LEAST_BOOTING, labs.BOOTING_ON_A_CPU * len(os.sched_getaffinity(0)))
        total = most + 3
        started = []
        boot = threading.Event()

        def waits():    # called while the main thread waits for guests
            started.append(len([guest for guest in FakeGuest.made if guest.running]))
            boot.set()

        self.lab._weftd_is_there = waits
        with unittest.mock.patch.object(FakeGuest, "ready", lambda *_: self.assertTrue(boot.wait(60))):
            self.settle([f"node{number}" for number in range(1, total + 1)])
        self.assertEqual(started[0], most)
        self.assertEqual(len(self.lab.guests), total)
        self.assertIn(f"{total} of {total} guests are up", "\n".join(self.reports))

    def test_each_guest_has_a_unique_ip_address(self):
        self.assertEqual([labs.address_of(number) for number in (1, 254, 255, 300, 508, 509)],
                         ["10.1.0.1", "10.1.0.254", "10.1.1.1", "10.1.1.46", "10.1.1.254", "10.1.2.1"])
        self.assertEqual(labs.address_of(300, network=labs.ETHERNET_NETWORK), "10.2.1.46")
        most = topology.MOST_HOSTS
        self.assertEqual(len({labs.address_of(number) for number in range(1, most + 1)}), most)
        self.assertTrue(all(int(part) <= 254 for part in labs.address_of(most).split(".")))

    def test_guests_with_numbers_above_254_get_ip_addresses(self):
        self.lab._bare = False
        with unittest.mock.patch.object(labs.Lab, "_await_carrier"):
            self.settle([f"node{number}" for number in range(1, 301)])
        self.assertIn("set -- 10.1.1.46 ib0 ", self.lab.guests["node300"].script)
        self.assertIn("address add $address/16 ", self.lab.guests["node300"].script)

    def test_lab_without_a_subnet_manager_does_not_wait_for_ports_to_become_active(self):
        self.lab._bare = False
        for manager, awaited in (({"state": "master"}, True), ({"state": "not active"}, True), (None, False)):
            with self.subTest(manager=manager):
                self.manager = manager
                self.settle([])
                self.settle(["a"])
                self.assertEqual("ACTIVE" in self.lab.guests["a"].script, awaited)
                self.assertEqual("without a carrier until a subnet manager runs" in self.reports[-1], not awaited)

    def test_kernel_without_support_for_the_bus_of_the_card_is_refused(self):
        self.bus = "vhost-user"
        with self.assertRaisesRegex(LabError, "a: its card is served by vhost-user, and the kernel 6 needs vfio-user"):
            self.settle(["a"])
        self.assertEqual([guest.name for guest in FakeGuest.made if guest.running], [])

    def test_guest_memory_size_in_the_lab_file_is_checked_before_any_guest_boots(self):
        for memory, said in (("64M", "b: 64M of memory are too little for a guest: give it 192M or more"), ("abc", "b: 'abc' is not an amount of memory")):
            self.hosts = [{"name": name, "socket": name, "bus": self.bus, "model": "mlx4"} for name in ("a", "b")]
            self.hosts[1]["boot"] = {"memory": memory}
            with self.assertRaisesRegex(LabError, said):
                self.lab.settle((), self.reports.append)
            self.assertEqual([guest for guest in FakeGuest.made if guest.name], [])

    def test_guest_with_a_changed_card_is_restarted(self):
        self.settle(["a", "b"])
        first = self.lab.guests["a"]
        self.settle(["a", "b"], ["a"])
        self.assertFalse(first.running)
        self.assertTrue(self.lab.guests["a"].running)
        self.assertEqual(self.lab._numbers, {"b": 2, "a": 1})

    def test_restart_replaces_the_guest_and_keeps_its_address(self):
        self.settle(["a", "b"])
        first = self.lab.guests["a"]
        self.lab.restart(["a"], self.reports.append)
        self.assertFalse(first.running)
        self.assertEqual([guest.name for guest in FakeGuest.made if guest.running], ["b", "a"])
        self.assertEqual(self.lab._numbers, {"b": 2, "a": 1})     # the guest keeps its address
        with self.assertRaisesRegex(LabError, "there is no host c: there is a, b"):
            self.lab.restart(["b", "c"], self.reports.append)
        self.assertEqual(str(labs.no_host("node1", [])), "there is no host node1 with a guest: no host of this lab has one")
        self.assertEqual([guest.name for guest in FakeGuest.made if guest.name], ["a", "b", "a"])
        # A host whose guest failed to restart can be restarted again.
        FakeGuest.broken = {"a"}
        with self.assertRaisesRegex(LabError, "it broke"):
            self.lab.restart(["a"], self.reports.append)
        FakeGuest.broken = set()
        self.lab.restart(["a"], self.reports.append)
        self.assertTrue(self.lab.guests["a"].running)

    def test_guest_that_fails_to_boot_is_stopped(self):
        self.settle(["a"])
        with self.assertRaisesRegex(LabError, "it broke"):
            self.settle(["a", "broken"])
        self.assertEqual([guest.name for guest in FakeGuest.made if guest.running], ["a"])
        self.assertEqual(self.settle(["a", "b"]), ["a", "b"])


class BootTimeout(Folder):
    """Guest.ready() on a busy host, where a boot takes longer than its timeout."""

    TIMEOUT = 0.4

    def boot(self, lines, comes_up=True, pause=0.1):
        """Makes the guest print this number of lines, one after each pause; returns when ready() does."""
        made = guest.Guest("node1", kernel=types.SimpleNamespace(variant="stock", native=False), log=self.folder / "node1.log")
        made.log.write_text("")

        def print_lines():
            for number in range(lines):
                time.sleep(pause)
                with open(made.log, "a") as log:
                    log.write(f"line {number}\n")
            if comes_up:
                with made.changed:
                    made._boots = 1
                    made.changed.notify_all()

        with unittest.mock.patch.object(guest.Guest, "alive", return_value=True):
            printer = threading.Thread(target=print_lines)
            printer.start()
            try:
                made.ready(self.TIMEOUT)
            finally:
                printer.join()
                made._errors.close()

    def test_output_of_a_booting_guest_extends_its_timeout(self):
        self.boot(10)

    def test_boot_of_a_silent_guest_fails_after_the_timeout(self):
        with self.assertRaisesRegex(DeadlineExceeded, r"node1: waited 0\.4 s for the guest to be up$"):
            self.boot(1, pause=2)

    def test_output_of_a_guest_extends_the_boot_timeout_only_up_to_a_limit(self):
        with self.assertRaisesRegex(DeadlineExceeded, r"node1: waited 1\.6 s for the guest to be up\nline \d+\n"):
            self.boot(20, comes_up=False)


class DefaultModel(unittest.TestCase):
    def card(self, settings, **options):
        """Returns the model for which running.make_lab() writes a lab file, or None if weftd reads another one, or none."""
        args = Options(f"{name}:={json.dumps(value)}" for name, value in options.items())
        return running.make_lab(pathlib.Path("/none"), pathlib.Path("/none"), args, settings, lambda _: None)._card

    def test_guests_with_the_linux_stack_on_the_stock_kernel_have_mlx5(self):
        self.assertEqual(self.card(GuestSettings()), "mlx5")
        self.assertEqual(self.card(GuestSettings(), card="mthca"), "mthca")

    def test_guests_that_may_have_no_mlx5_driver_have_the_default_of_weftd(self):
        for settings, options in ((GuestSettings(stack=stack.WEFT), {}), (GuestSettings(kernel="um"), {}), (GuestSettings(kernel="/none/bzImage"), {}),
                                  (GuestSettings(), {"bare": True})):
            self.assertIsNone(self.card(settings, **options), (settings, options))

    def test_lab_files_are_not_replaced(self):
        self.assertIsNone(self.card(GuestSettings(), lab="/none/lab.toml"))


class GuestCommandLine(unittest.TestCase):
    def words(self, model, settings=GuestSettings(), bare=False):
        """Returns the kernel parameters that a lab adds for a host's guest."""
        lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, settings, bare, lambda _: None)
        host = {"name": "a", "model": model, "socket": "/none/card"}
        with unittest.mock.patch.object(labs, "Guest") as guest:
            lab._make_guest(labs.Plan(host, settings, types.SimpleNamespace(), None))
        return guest.call_args.kwargs["append"].split()

    def test_mac_address_of_a_guest_depends_only_on_the_number_of_its_host(self):
        """Guests on different hosts of a lab are on the same Ethernet segment."""
        lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), True, lambda _: None)
        addresses = []
        for number in (1, 2, 8192):
            host = {"name": f"h{number}", "number": number, "model": "mlx4", "socket": "/none/card", "ethernet": {"socket": "/none/eth0"}}
            with unittest.mock.patch.object(labs, "Guest") as guest:
                lab._make_guest(labs.Plan(host, GuestSettings(), types.SimpleNamespace(), None))
            addresses += [mac for _, mac in guest.call_args.kwargs["netdevs"]]
        self.assertEqual(addresses, ["52:54:00:77:00:01", "52:54:00:77:00:02", "52:54:00:77:20:00"])

    def test_mlx4_core_is_loaded_early_in_guests_with_its_card(self):
        self.assertIn("weft.early=mlx4", self.words("mlx4"))

    def test_no_driver_is_loaded_early_if_the_initramfs_has_none_for_the_guest(self):
        for words in (self.words("mthca"), self.words("mlx5"), self.words("mlx4", GuestSettings(stack=stack.WEFT)), self.words("mlx4", bare=True)):
            self.assertEqual([word for word in words if word.startswith("weft.early")], [])


class InterruptedStart(unittest.TestCase):
    def test_guest_is_stopped_if_its_start_is_interrupted(self):
        lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), False, lambda _: None)
        lab.weftd = unittest.mock.Mock()
        host = unittest.mock.Mock(get=unittest.mock.Mock(side_effect=KeyboardInterrupt))
        node = unittest.mock.Mock()
        node.name = "a"
        with unittest.mock.patch.object(lab, "_plan", lambda *_: labs.Plan(host, GuestSettings(), None, None)), \
                unittest.mock.patch.object(lab, "_make_guest", lambda _: node), self.assertRaises(KeyboardInterrupt):
            lab._start_guests([{}], True)
        node.close.assert_called_once_with()
        self.assertEqual(lab.guests, {})


if __name__ == "__main__":
    unittest.main()

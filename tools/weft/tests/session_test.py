#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the parts of `weft lab` and `weft run` that need no guests: how kernels are found and checked, how scripts are split by host, how guests are
started and replaced, what is printed, and which arguments are refused."""
import contextlib
import errno
import gzip
import io
import json
import lzma
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import labs  # noqa: E402
import repeating  # noqa: E402
import running  # noqa: E402
import serving  # noqa: E402
import stack  # noqa: E402
import topology  # noqa: E402
from lab import DeadlineExceeded, GuestDied, accelerator, cache, errors, guest, image, own_kernel, process, shared_time, vm  # noqa: E402
from lab.errors import LabError  # noqa: E402
from lab.waiting import wait_until  # noqa: E402
from labs import GuestSettings, together  # noqa: E402
from options import Options  # noqa: E402

SESSION = HERE.parent / "session/weft-session"
RELEASE = "6.18.0-mine+"
EVERYTHING = own_kernel.required(share=True, card="mlx4")


def bzimage(release=RELEASE):
    """Returns the header of a bzImage, with the boot protocol's magic number and the offset of the version."""
    data = bytearray(4096)
    data[0x202:0x206] = b"HdrS"
    data[0x20E:0x210] = (0x600).to_bytes(2, "little")
    text = f"{release} (me@here) #1 SMP".encode() + b"\0"
    data[0x800:0x800 + len(text)] = text
    return bytes(data)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-session-")))

    def write(self, path, data=b""):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path


class UserKernel(Folder):
    def tree(self, modular=(), built_in=(), suffix=".o", config=""):
        """Creates a tree in which a kernel with these modules was built."""
        self.write("tree/arch/x86/boot/bzImage", bzimage())
        self.write("tree/include/config/kernel.release", f"{RELEASE}\n")
        self.write("tree/.config", "CONFIG_BLK_DEV_INITRD=y\nCONFIG_DEVTMPFS=y\nCONFIG_TMPFS=y\nCONFIG_PCI_MSI=y\n" + config)
        self.write("tree/modules.builtin", "".join(f"kernel/drivers/{name}.ko\n" for name in built_in))
        self.write("tree/modules.order", "".join(f"drivers/{name}{suffix}\n" for name in modular))
        for name in modular:
            self.write(f"tree/drivers/{name}.ko")
        return self.folder / "tree"

    def installed(self, *names, built_in=()):
        """Creates an installed kernel, as from a package and modules_install."""
        self.write(f"boot/vmlinuz-{RELEASE}", bzimage())
        self.write(f"lib/modules/{RELEASE}/modules.dep", "".join(f"kernel/drivers/{name}:\n" for name in names))
        self.write(f"lib/modules/{RELEASE}/modules.builtin", "".join(f"kernel/drivers/{name}.ko\n" for name in built_in))
        for name in names:
            self.write(f"lib/modules/{RELEASE}/kernel/drivers/{name}")
        return self.folder / "boot" / f"vmlinuz-{RELEASE}"

    def test_built_kernel_tree_provides_image_release_and_modules(self):
        """Image, release and modules are found in a tree, whichever way its modules.order names them."""
        for suffix in (".o", ".ko"):
            found = own_kernel.look(self.tree(["virtio-blk", "ext4"], ["virtio_pci"], suffix))
            self.assertEqual((found.image.name, found.release), ("bzImage", RELEASE))
            self.assertEqual([path for path, _ in found.modules], ["kernel/drivers/virtio-blk.ko", "kernel/drivers/ext4.ko"])
            self.assertIsNone(found.lack(own_kernel.CARRIES_A_GUEST[:3]))

    def test_modules_of_an_installed_kernel_are_found(self):
        """vmlinuz-RELEASE has its modules in ../lib/modules/RELEASE, compressed or not; --modules takes any of three folders."""
        found = own_kernel.look(self.installed("virtio_blk.ko.xz", "ext4.ko.zst", "overlay.ko"))
        self.assertIsNone(found.lack([("virtio_blk", "X", ""), ("ext4", "X", ""), ("overlay", "X", "")]))
        alone = self.write("alone/deep/bzImage", bzimage())
        self.assertEqual(own_kernel.look(alone).modules, ())
        for given in ("", "lib/modules", f"lib/modules/{RELEASE}"):
            self.assertEqual(len(own_kernel.look(alone, self.folder / given).modules), 3, given)

    def test_missing_kernel_config_option_is_reported(self):
        """A kernel without any one of the options that a guest needs is refused in one line with the option and the module."""
        names = [module for module, _, _ in EVERYTHING]
        for missing, option, _ in EVERYTHING:
            found = own_kernel.look(self.tree(built_in=[name for name in names if name != missing]))
            lack = found.lack(EVERYTHING)
            self.assertIn(f"lacks CONFIG_{option} (module {missing})", lack)
            self.assertEqual(len(lack.splitlines()), 1)
        self.assertIsNone(own_kernel.look(self.tree(built_in=names)).lack(EVERYTHING))

    def test_kernel_is_accepted_if_it_has_the_driver_of_the_card_model(self):
        for model in own_kernel.DRIVERS:
            found = own_kernel.look(self.tree(built_in=[name for name, _, _ in own_kernel.required(True, model)]))
            for other in own_kernel.DRIVERS:
                lack = found.lack(own_kernel.required(True, other))
                if other == model:
                    self.assertIsNone(lack)
                else:
                    self.assertIn(own_kernel.DRIVERS[other][0][1], lack)

    def test_missing_module_is_reported(self):
        """If an option is m and its module is missing, the message says that the module is needed, not that the option is missing."""
        found = own_kernel.look(self.tree(config="CONFIG_VIRTIO_CONSOLE=m\n"))
        self.assertIn("needs the module virtio_console (CONFIG_VIRTIO_CONSOLE=m)", found.lack([("virtio_console", "VIRTIO_CONSOLE", "commands")]))
        found = own_kernel.look(self.tree(config="CONFIG_VIRTIO_CONSOLE=y\n"))
        self.assertIsNone(found.lack([("virtio_console", "VIRTIO_CONSOLE", "commands")]))

    def test_required_kernel_config_options_are_checked_even_if_no_modules_are_found(self):
        self.assertIsNone(own_kernel.look(self.tree()).lack_of_options())
        (self.folder / "tree/.config").write_text("CONFIG_BLK_DEV_INITRD=y\n")
        self.assertIn("lacks CONFIG_DEVTMPFS", own_kernel.look(self.folder / "tree").lack_of_options())

    def test_bzimage_without_kernel_tree_and_modules_is_accepted_without_checks(self):
        """A bzImage without a tree and modules cannot be checked, so it is accepted, and its console shows the outcome."""
        self.assertIsNone(own_kernel.look(self.write("alone/deep/bzImage", bzimage())).lack(EVERYTHING))

    def test_file_that_is_not_a_kernel_is_refused(self):
        for path, said in ((self.write("text", "no kernel"), "is not an x86 kernel"), (self.folder / "none", "there is no kernel"),
                           (self.write("tree/Makefile").parent, "contains no kernel built")):
            with self.assertRaisesRegex(LabError, said):
                own_kernel.look(path)
        with self.assertRaisesRegex(LabError, f"no modules of the kernel {RELEASE}"):
            own_kernel.look(self.write("bzImage", bzimage()), self.folder)

    def test_partly_built_tree_is_refused(self):
        tree = self.tree(["ext4"])
        (tree / "drivers/ext4.ko").unlink()
        with self.assertRaisesRegex(LabError, "lacks the module drivers/ext4.ko: run make modules"):
            own_kernel.look(tree)

    def test_kernel_release_is_read_from_an_elf_image(self):
        image_file = self.write("vmlinux", b"\x7fELF" + bytes(100) + b"Linux version 6.1.0-9-amd64 (debian)\0")
        self.assertEqual(own_kernel.release_of(image_file), "6.1.0-9-amd64")

    def test_boot_failure_is_diagnosed_from_the_console(self):
        """A fault that shows only during the boot is recognised from messages of the init programs and of the kernel."""
        for said, option in (("[ 1.0] x\nweft-guest: no root disk after 10 s\n", "CONFIG_VIRTIO_BLK"), ("weft-guest: no agent port after 10 s", "CONFIG_VIRTIO_CONSOLE"),
                             ("weft-guest: the overlay could not be mounted", "CONFIG_OVERLAY_FS"), ("", "CONFIG_SERIAL_8250_CONSOLE"),
                             ("Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)", "CONFIG_BLK_DEV_INITRD")):
            self.assertIn(option, own_kernel.why_not_up(said))
        self.assertIsNone(own_kernel.why_not_up("BUG: something else"))
        for text in ("no root disk", "no agent port", "the overlay could not be mounted", "the root image could not be mounted"):
            self.assertIn(text, (image.HERE / "agent/init").read_text() + (image.HERE / "agent/start").read_text())

    def test_compressed_modules_are_unpacked(self):
        for name, data in (("a.ko", b"elf"), ("a.ko.xz", lzma.compress(b"elf")), ("a.ko.gz", gzip.compress(b"elf"))):
            self.assertEqual(image.module_bytes(self.write(name, data)), b"elf")

    def test_cache_keeps_only_the_newest_disk_images_of_modules(self):
        """Only the newest entries of a kind are kept in the cache."""
        before = os.environ.get("XDG_CACHE_HOME")
        os.environ["XDG_CACHE_HOME"] = str(self.folder)
        try:
            for number in range(6):
                os.utime(self.write(f"weft/own-modules-{number}/modules.img").parent, (number, number))
            cache.keep_newest("own-modules", 4)
        finally:
            del os.environ["XDG_CACHE_HOME"]
            if before is not None:
                os.environ["XDG_CACHE_HOME"] = before
        self.assertEqual(sorted(path.name for path in (self.folder / "weft").glob("own-*")), [f"own-modules-{number}" for number in (2, 3, 4, 5)])


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
        with self.assertRaisesRegex(LabError, "weft has no driver for mlx5: --bare loads none"):
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


class CardReturn(unittest.TestCase):
    def test_replug_of_a_link_without_carrier_asks_weftd_not_to_record_the_link_down_request(self):
        """ib0 has no carrier at first. If weftd crashes while the link is pulled for a moment, the next weftd has it up."""
        asked = []
        lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), False, lambda _: None)
        lab._loaded, lab._numbers = {"a": stack.Stack("ib0", in_tree=("mlx4_ib",))}, {"a": 1}
        lab.weftd = unittest.mock.Mock()
        done = types.SimpleNamespace(status=0, out="", err="")
        node = unittest.mock.Mock(card="/card", spawn=lambda _: done, wait_for_carrier=unittest.mock.Mock(side_effect=[DeadlineExceeded("no carrier"), None]))
        node.name = "a"
        with unittest.mock.patch.object(labs, "ask_weftd", lambda _, command, **words: asked.append((command, words))):
            self.assertEqual(lab._give_card_again(node, {"ports": [{"name": "a/1"}]}, True, None), ", 10.1.0.1 on ib0")
        self.assertEqual(asked, [("link.down", {"link": "a/1", "record": False}), ("link.up", {"link": "a/1"})])

    def test_lab_does_not_wait_for_a_driver_that_the_user_has_unloaded(self):
        """The guest gets its card, and the message says which module is not loaded."""
        lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), False, lambda _: None)
        lab._numbers = {"a": 1}
        lab.weftd = unittest.mock.Mock()

        def spawn(command):
            if not isinstance(command, str):
                return types.SimpleNamespace(status=0, out="", err="")
            # The test's host may have the module.
            done = subprocess.run(["bash", "-c", command.replace("/sys/module", "/none")], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            return types.SimpleNamespace(status=done.returncode, out=done.stdout, err=done.stderr)

        node = unittest.mock.Mock(card="/none/card", spawn=spawn)
        node.name = "a"
        for loaded, driver in ((stack.Stack("ib0", in_tree=stack.in_tree_modules("mlx4")), "mlx4_ib"),
                               (stack.Stack("ib0", own=tuple((name, b"") for name in (*stack.BELOW, "weft_mthca", *stack.ABOVE["mthca"]))), "weft_mthca")):
            lab._loaded = {"a": loaded}
            self.assertEqual(lab._give_card_again(node, {"ports": [{"name": "a/1"}]}, True, None), f", but no ib0, because {driver} is not loaded")

    def test_link_of_a_booted_guest_is_replugged_if_ib0_gets_no_carrier(self):
        """mlx4_core loses the event of a port that becomes active while mlx4_ib registers its device: ib0 would never get a carrier."""
        asked = []
        lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), False, lambda _: None)
        lab._numbers = {"a": 1}
        node = unittest.mock.Mock(netdevs=[], kernel=types.SimpleNamespace(native=False, variant="stock"),
                                  run=unittest.mock.Mock(return_value=types.SimpleNamespace(status=0, out="", err="")),
                                  wait_for_carrier=unittest.mock.Mock(side_effect=[DeadlineExceeded("no carrier"), None]))
        node.name = "a"
        with unittest.mock.patch.object(labs, "ask_weftd", lambda _, command, **words: asked.append((command, words))):
            lab._bring_up(node, stack.Stack("ib0"), "a/1", True, 1)
        self.assertEqual(asked, [("link.down", {"link": "a/1", "record": False}), ("link.up", {"link": "a/1"})])


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

    def test_mlx4_core_is_loaded_early_in_guests_with_its_card(self):
        self.assertIn("weft.early=mlx4", self.words("mlx4"))

    def test_no_driver_is_loaded_early_if_the_initramfs_has_none_for_the_guest(self):
        for words in (self.words("mthca"), self.words("mlx5"), self.words("mlx4", GuestSettings(stack=stack.WEFT)), self.words("mlx4", bare=True)):
            self.assertEqual([word for word in words if word.startswith("weft.early")], [])


class LabStopDuringCardReturn(Folder):
    def test_lab_stops_without_waiting_for_guests_to_release_their_cards(self):
        """A guest whose driver does not release its card for a long time does not delay `weft lab down`."""
        lab = labs.Lab(self.folder, self.folder, None, None, GuestSettings(), False, lambda _: None)
        waits = threading.Event()
        waiting = []

        def give_card_again(*_):
            waiting.append(threading.current_thread())
            waits.wait()

        def end():
            """Waits for the thread, which writes to the directory until it exits."""
            waits.set()
            for thread in waiting:
                thread.join()

        self.addCleanup(end)
        lab.guests["a"] = unittest.mock.Mock(alive=lambda: True, kernel=types.SimpleNamespace(native=False))
        lab.weftd = unittest.mock.Mock(alive=lambda: False, start_again=lambda: "weftd was started again")
        server = serving.Server(lab, self.folder / "lab.sock")
        self.addCleanup(server.listener.close)
        fabric = types.SimpleNamespace(hosts=[{"name": "a", "ports": [{"link": "a/1"}]}], managed=True)
        with unittest.mock.patch.object(lab, "_fabric", lambda: fabric), unittest.mock.patch.object(labs, "ask_weftd", lambda *_: {"links": []}), \
                unittest.mock.patch.object(lab, "_prepare_removal"), unittest.mock.patch.object(lab, "_give_card_again", give_card_again):
            serves = threading.Timer(0.5, server.done.set)
            serves.start()
            self.assertIsNone(server.serve())


class FailedWeftdUpgrade(unittest.TestCase):
    def test_failed_upgrade_returns_the_cards_to_their_guests(self):
        lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), False, lambda _: None)
        for alive in (True, False):
            lab.weftd = unittest.mock.Mock(replace=unittest.mock.Mock(side_effect=LabError("it does not start")), alive=lambda alive=alive: alive)
            with unittest.mock.patch.object(lab, "_give_cards_again") as again, self.assertRaisesRegex(LabError, "it does not start"):
                lab.upgrade("other", lambda _: None)
            self.assertEqual(again.call_count, int(alive))


class WeftdUpgrade(unittest.TestCase):
    def setUp(self):
        self.order = []     # what happens
        self.reports = []
        self.serves = True  # weftd
        self.lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), False, lambda _: None)
        self.lab.weftd = unittest.mock.Mock(replace=lambda _: self.order.append("replacement"), alive=lambda: self.serves)

    def add_guest(self, name, statuses, wait_for_event=None):
        """Adds a guest whose commands have these statuses. One that is None does not end, and one that is a function is called first."""
        node = unittest.mock.Mock(alive=lambda: True, kernel=types.SimpleNamespace(native=False), card="/card", slowness=1)
        node.name = name

        def spawn(command):
            text = command[-1]
            what = next(what for what, part in (("removal after the failure", "mkfifo"), ("removal", "/card/remove"), ("no reset", "weftd has ended"), ("note", "nvmet"),
                                                ("rescan", "rescan")) if part in text)
            self.order.append(what)
            status = statuses.get(what, 0)
            started = process.Process(node, 0, what)
            started.status = status() if callable(status) else status
            return started

        def wait_at_once(what, condition, timeout):
            if not condition():
                raise DeadlineExceeded(f"{what} in {timeout} s")

        node.spawn, node.wait_for_event = spawn, wait_for_event or wait_at_once
        self.lab.guests[name] = node
        return node

    def upgrade(self):
        with unittest.mock.patch.object(self.lab, "_give_cards_again", lambda _: self.order.append("cards")):
            self.lab.upgrade("other", lambda text: self.reports.append(text.partition("] ")[2]))
        return self.order

    def test_upgrade_removes_cards_while_the_former_weftd_still_serves_them(self):
        self.add_guest("a", {})
        self.assertEqual(self.upgrade(), ["note", "removal", "replacement", "cards"])

    def test_upgrade_disables_card_resets_by_the_driver_if_a_guest_has_not_released_its_card(self):
        for status in (None, 1):
            self.order.clear()
            self.add_guest("a", {"removal": status})
            self.assertEqual(self.upgrade(), ["note", "removal", "no reset", "replacement", "cards"])
            self.assertIn("a: has not released its card, which is replaced all the same", self.reports)

    def test_upgrade_replaces_weftd_even_if_a_guest_does_not_respond(self):
        self.add_guest("a", {"note": None, "removal": None, "no reset": None})
        self.assertEqual(self.upgrade(), ["note", "removal", "no reset", "replacement", "cards"])

    NOT_NOTED = "a: has not recorded its NVMe controllers in time, so NVMe over RDMA does not connect again"

    def give_card_again(self, node):
        return self.lab._give_card_again(node, {}, True, self.reports.append)

    def test_upgrade_removes_a_card_even_if_nvme_controllers_of_its_guest_could_not_be_saved(self):
        for status, reports in ((None, [self.NOT_NOTED]), (1, [])):
            self.order.clear()
            self.reports.clear()
            node = self.add_guest("a", {"note": status})
            self.assertEqual(self.upgrade(), ["note", "removal", "replacement", "cards"])
            self.assertEqual(self.reports[:-1], reports)
            self.lab._loaded["a"] = None
            self.assertEqual(self.give_card_again(node), " ")
            self.lab._loaded.clear()

    def test_upgrade_stops_waiting_for_a_guest_to_release_its_card_after_a_timeout(self):
        timeouts = []
        now = 0

        def let_time_pass(what, condition, timeout):
            nonlocal now
            if not condition():
                timeouts.append(timeout)
                now += timeout
                raise DeadlineExceeded(what)

        node = self.add_guest("a", {"note": None, "removal": None}, let_time_pass)
        self.lab._prepare_removal("")
        with unittest.mock.patch.object(labs.time, "monotonic", lambda: now):
            self.assertFalse(self.lab._release_card(node))
        self.assertEqual(timeouts, [15, 15])

    def test_card_is_added_after_a_weftd_crash_even_if_nvme_controllers_could_not_be_saved(self):
        node = self.add_guest("a", {"no reset": None})     # the note also disables resets
        self.lab._prepare_removal()
        self.lab._loaded["a"] = None
        self.assertEqual(self.give_card_again(node), " ")
        self.assertEqual(self.reports, [self.NOT_NOTED])
        self.lab.weftd.keeper.pass_on.assert_called_once_with("a")

    def crash(self):
        self.serves = False

    def test_card_resets_by_the_driver_are_disabled_if_weftd_crashes_during_an_upgrade(self):
        """Nor does the upgrade wait for what a driver does with a card that has failed."""
        def never_wait(what, condition, _):
            self.assertTrue(condition(), what)

        for crashes, removed in (("note", []), ("removal", ["removal"])):
            self.order.clear()
            self.serves = True
            self.add_guest("a", {crashes: self.crash}, never_wait)
            # It would start weftd again, because this one does not serve afterwards.
            with unittest.mock.patch.object(self.lab, "look_after"):
                self.assertEqual(self.upgrade(), ["note", *removed, "no reset", "replacement", "cards"])

    def test_upgrade_does_not_disable_card_resets_in_a_guest_with_weft_drivers(self):
        self.add_guest("a", {"removal": None})
        self.lab._loaded["a"] = stack.Stack("ib0", own=("weft",))
        self.assertEqual(self.upgrade(), ["removal", "replacement", "cards"])

    def test_upgrade_reports_a_guest_that_keeps_its_card_and_waits_no_longer_on_a_busy_host(self):
        timeouts = []
        reported = threading.Event()
        released = threading.Event()

        def together_after_a(guests, work, meanwhile):
            """Calls meanwhile(), which reports the awaited guests, after "a" has released its card."""
            def work_of(guest):
                result = work(guest)
                if guest.name == "a":
                    released.set()
                return result

            def meanwhile_after_a():
                self.assertTrue(released.wait(60))
                meanwhile()

            return together(guests, work_of, meanwhile_after_a)

        def wait_long(what, condition, timeout):
            if not condition():
                timeouts.append(timeout)
                self.assertTrue(reported.wait(60))
                raise DeadlineExceeded(what)

        self.add_guest("a", {})
        self.add_guest("b", {"removal": None}, wait_long)
        with unittest.mock.patch.object(labs, "PATIENCE", 0), unittest.mock.patch.object(labs, "contention", lambda: 10), \
                unittest.mock.patch.object(labs, "together", together_after_a), \
                unittest.mock.patch.object(self.lab, "report", lambda text: [self.reports.append(text), reported.set()]):
            self.upgrade()
        self.assertEqual(self.reports, ["waits for guests to release their cards: b", "b: has not released its card, which is replaced all the same", None])
        self.assertEqual(len(timeouts), 1)
        self.assertLessEqual(timeouts[0], labs.UPGRADE_TIMEOUT)

    def test_new_weftd_gets_the_qemu_connection_only_after_the_guest_has_removed_its_card(self):
        """The earlier removal is awaited once, for a fixed time."""
        timeouts = []

        def wait_at_once(what, condition, timeout):
            if not condition():
                timeouts.append(timeout)
                raise DeadlineExceeded(what)

        node = self.add_guest("a", {"removal": None}, wait_at_once)
        self.upgrade()
        for awaited, reports in (([labs.LEFT_REMOVAL_TIMEOUT], ["a: waits for its driver to release the card that was replaced"]), ([], [])):
            timeouts.clear()
            self.reports.clear()
            with unittest.mock.patch.object(labs, "contention", lambda: 10), \
                    self.assertRaisesRegex(LabError, "its driver has not released the card that was replaced"):
                self.give_card_again(node)
            self.assertEqual((timeouts, self.reports), (awaited, reports))
        self.assertFalse(self.lab.weftd.keeper.pass_on.called)
        self.lab._removals["a"].process.status = 0
        self.lab._loaded["a"] = None
        self.assertEqual(self.give_card_again(node), " ")
        self.lab.weftd.keeper.pass_on.assert_called_once_with("a")
        self.assertEqual(self.lab._removals, {})

    def test_wait_for_the_guest_to_remove_its_card_starts_again_if_weftd_exits_meanwhile(self):
        node = self.add_guest("a", {"removal": None})
        self.upgrade()

        def exit_meanwhile(what, condition, timeout):
            if not condition():
                self.serves = False

        with unittest.mock.patch.object(node, "wait_for_event", exit_meanwhile):
            self.assertIsNone(self.give_card_again(node))
        self.assertFalse(self.lab.weftd.keeper.pass_on.called)
        self.serves = True
        self.reports.clear()
        with self.assertRaises(LabError):
            self.give_card_again(node)
        self.assertEqual(self.reports, ["a: waits for its driver to release the card that was replaced"])


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


class CardRemoval(Folder):
    def places(self, delay):
        return "".join(f"{name}={self.folder}/{name} " for name in ("reset", "former", "mark", "pipe", "kmsg", "card")) + f"awk='busybox awk' commands= delay={delay}\n"

    def run_script(self, script, delay=0):
        """Runs it, and waits for the end of all its processes: they inherit the pipe."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        try:
            subprocess.run(["busybox", "sh", "-c", self.places(delay) + script], check=True, stdin=subprocess.DEVNULL, timeout=60, pass_fds=[writer])
        finally:
            os.close(writer)
        self.assertTrue(select.select([reader], [], [], 30)[0], "a process of the script has not ended")

    def test_card_is_removed_as_soon_as_the_driver_has_detected_the_card_failure(self):
        """A failure that the kernel's log shows before the end of weftd belongs to an earlier one."""
        self.write("reset", "1\n")
        self.write("card/remove")
        found = "mlx4_core 0000:01:00.0: Internal error detected:\n"
        self.run_script(labs.NO_RESET)
        mark = (self.folder / "kmsg").read_text()
        (self.folder / "kmsg").unlink()
        os.mkfifo(self.folder / "kmsg")
        log = os.open(self.folder / "kmsg", os.O_RDWR)      # the file does not end
        self.addCleanup(os.close, log)
        for text, delay, least in ((mark + found, 1000, 0), (found + mark, 0.5, 0.5)):
            os.write(log, text.encode())
            self.write("former", "1\n")
            began = time.monotonic()
            self.run_script(labs.REMOVE, delay)
            self.assertGreaterEqual(time.monotonic() - began, least)
            self.assertEqual((self.folder / "reset").read_text(), "1\n")

    def test_mlx4_internal_err_reset_is_restored_at_card_removal_even_if_weftd_crashed_twice(self):
        """Its setting is the former one afterwards, also if weftd crashes again before the card is removed."""
        self.write("reset", "1\n")
        self.write("card/remove")
        for _ in range(2):
            self.run_script(labs.NO_RESET)
            self.assertEqual((self.folder / "reset").read_text(), "0\n")
        self.run_script(labs.REMOVE, delay=0.1)
        self.assertEqual((self.folder / "card/remove").read_text(), "1\n")
        self.assertEqual((self.folder / "reset").read_text(), "1\n")

    def test_removal_of_a_failed_mlx4_card_waits_until_a_command_has_failed(self):
        """mlx4 completes the requests of a failed card when a command fails, and not after the removal has begun."""
        state = self.folder / "card/infiniband/mlx4_0/ports/1/state"
        state.parent.mkdir(parents=True)
        os.mkfifo(state)
        self.write("card/remove")
        self.write("former", "1\n")
        self.write("reset", "0\n")
        self.write("mark", "weft\n")
        self.write("kmsg")
        with subprocess.Popen(["busybox", "sh", "-c", self.places(0.1) + labs.REMOVE], stdin=subprocess.DEVNULL) as removal:
            with open(state, "w"):      # the command
                wait_until("the former setting", lambda: not (self.folder / "former").exists(), 60)
                self.assertEqual((self.folder / "reset").read_text(), "1\n")
                time.sleep(0.3)
                self.assertEqual((self.folder / "card/remove").read_text(), "")
            self.assertEqual(removal.wait(60), 0)
        self.assertEqual((self.folder / "card/remove").read_text(), "1\n")


class NvmeReconnection(Folder):
    """The controllers of NVMe over RDMA of a guest whose card is replaced."""

    def setUp(self):
        super().setUp()
        self.places = f"nvme={self.folder}/nvme nvmet={self.folder}/nvmet fabrics={self.folder}/fabrics note={self.folder}/note links={self.folder}/links limit=0\n"

    def controller(self, name, **files):
        for file, text in files.items():
            self.write(f"nvme/{name}/{file}", f"{text}\n")

    def note(self):
        return subprocess.run(["sh", "-c", self.places + labs.NOTE_NVME], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout

    def connect(self):
        return subprocess.run(["bash", "-c", self.places + labs.CONNECT_NVME], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    def test_nvme_controllers_are_recreated_when_their_guest_gets_its_card_back(self):
        self.assertEqual(self.note(), "")
        self.controller("nvme0", transport="pcie")
        self.assertEqual(self.note(), "")
        self.controller("nvme1", transport="rdma", address="traddr=10.1.0.1,trsvcid=4420", subsysnqn="disk", hostnqn="me", hostid="5-6", ctrl_loss_tmo="off",
                        reconnect_delay=10)
        self.assertEqual(self.note(), "initiator\n")
        self.assertEqual(self.note(), "initiator\n")
        self.assertEqual(self.connect().returncode, 0)
        self.assertEqual((self.folder / "fabrics").read_text(),
                         "transport=rdma,traddr=10.1.0.1,trsvcid=4420,nqn=disk,hostnqn=me,hostid=5-6,ctrl_loss_tmo=-1,reconnect_delay=10\n")
        self.assertFalse((self.folder / "note").exists())

    def test_nvme_controller_that_cannot_be_reconnected_is_reported(self):
        self.controller("nvme1", transport="rdma", address="traddr=10.1.0.1", subsysnqn="disk")
        self.note()
        (self.folder / "fabrics").mkdir()
        done = self.connect()
        self.assertEqual((done.returncode, done.stdout), (1, "transport=rdma,traddr=10.1.0.1,nqn=disk: Is a directory\n"))
        self.assertFalse((self.folder / "note").exists())

    def test_nvme_controllers_are_recreated_if_weftd_crashes_again_after_the_card_removal(self):
        """weftd has crashed again after the card was removed, and with it the controller."""
        self.controller("nvme1", transport="rdma", address="traddr=10.1.0.1", subsysnqn="disk")
        self.note()
        subprocess.run(["rm", "-r", self.folder / "nvme"], check=True)
        self.assertEqual(self.note(), "initiator\n")
        self.assertEqual(self.connect().returncode, 0)

    def test_nvme_target_subsystems_are_relinked_to_their_ports(self):
        """Only links to RDMA ports are restored. A port listens again when its first subsystem is linked."""
        links = {}
        for port, transport in (("1", "rdma"), ("2", "tcp")):
            self.write(f"nvmet/ports/{port}/addr_trtype", f"{transport}\n")
            (self.folder / f"nvmet/ports/{port}/subsystems").mkdir()
            for subsystem in ("a", "b"):
                self.write(f"nvmet/subsystems/{subsystem}/attr_model")
                links[port, subsystem] = self.folder / f"nvmet/ports/{port}/subsystems/{subsystem}"
                links[port, subsystem].symlink_to(f"../../../subsystems/{subsystem}")
        self.assertEqual(self.note(), "target\n")
        done = self.connect()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual({key: os.readlink(link)[:1] for key, link in links.items()}, {("1", "a"): "/", ("1", "b"): "/", ("2", "a"): ".", ("2", "b"): "."})
        self.assertTrue(all(link.is_dir() for link in links.values()))

    def test_nvmet_subsystem_that_could_not_be_linked_to_its_port_is_linked_at_the_next_restart(self):
        """The subsystem could not be linked, for example because weftd crashed again. The next restart links it."""
        self.write("nvmet/ports/1/addr_trtype", "rdma\n")
        self.write("nvmet/subsystems/a/attr_model")
        link = self.folder / "nvmet/ports/1/subsystems/a"
        link.parent.mkdir()
        link.symlink_to("../../../subsystems/a")
        done = subprocess.run(["bash", "-c", f"ln() {{ return 1; }}\n{self.places}{labs.CONNECT_NVME}"], check=False, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, link.is_symlink()), (1, False))
        self.assertEqual(self.connect().returncode, 0)
        self.assertTrue(link.is_dir())
        self.assertEqual((self.folder / "links").read_text(), "")


class RefusedCommands(Folder):
    def fails(self, *words):
        weftd = self.write("weftd")
        done = subprocess.run([sys.executable, SESSION, self.folder, words[0], f"weftd={weftd}", *words[1:]], capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return done.stderr

    def test_missing_script_is_refused(self):
        self.assertIn("there is no script /none", self.fails("run", "script=/none"))

    def test_invalid_memory_option_is_refused(self):
        for command in (["up"], ["run", "--", "true"]):
            for memory, said in (("abc", "weft: --memory: 'abc' is not an amount of memory: write it as 768M or 2G\n"),
                                 ("64M", "weft: --memory: 64M of memory are too little for a guest: give it 192M or more\n")):
                self.assertEqual(self.fails(command[0], f"memory={memory}", *command[1:]), said)

    def test_missing_directory_of_the_share_option_is_refused(self):
        self.assertIn("--share /none does not exist", self.fails("run", "share=/none", "--", "true"))

    def test_lab_commands_are_refused_if_no_lab_is_up(self):
        for words in (["shell", "host=node1", "--", "true"], ["restart", "--", "node1"], ["console", "host=node1"], ["check"], ["down"]):
            done = subprocess.run([sys.executable, SESSION, self.folder, *words], capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (1, f"weft: no lab is up in {self.folder}: `weft lab up` starts one\n"))

    def test_card_option_sets_the_card_model_of_both_hosts_of_the_default_lab(self):
        """With --card the lab has two hosts with cards of that model, and the user's lab.toml is unchanged."""
        self.write("lab.toml", "the user's")
        weftd = self.write("weftd", '#!/bin/sh\necho "weftd: $(grep -c \'model = "mlx5"\' "$4") cards"\nexit 1\n')
        weftd.chmod(0o755)
        done = subprocess.run([sys.executable, SESSION, self.folder, "run", f"weftd={weftd}", "card=mlx5", f"logs={self.folder / 'logs'}", "--", "true"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (1, "weft: weftd: 2 cards\n"))
        self.assertEqual((self.folder / "lab.toml").read_text(), "the user's")

    def test_error_message_of_a_weftd_that_fails_to_start_is_reported(self):
        """weftd's own error is reported, and no temporary directory remains."""
        weftd = self.write("weftd", "#!/bin/sh\necho 'weftd: lab.toml:3: no such thing'\nexit 1\n")
        weftd.chmod(0o755)
        logs = self.folder / "logs"
        done = subprocess.run([sys.executable, SESSION, self.folder, "run", f"weftd={weftd}", f"logs={logs}", "--", "true"], capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL, timeout=60, env={**os.environ, "TMPDIR": str(self.folder)})
        self.assertEqual((done.returncode, done.stderr), (1, "weft: weftd: lab.toml:3: no such thing\n"))
        self.assertEqual([path.name for path in self.folder.glob("weft-*")], [])


class BrokenLabConnection(Folder):
    """Failures of the lab's process, of input and of the host are reported in one line each, and without a traceback."""

    # The last two represent all commands that pass on one message.
    COMMANDS = (["shell", "host=node1", "--", "true"], ["console", "host=node1"], ["check"])

    def run_session(self, *words, **more):
        return subprocess.run([sys.executable, "-B", SESSION, self.folder, *words], capture_output=True, text=True, check=False,
                              **{"stdin": subprocess.DEVNULL, "timeout": 60, **more})

    def serve(self, answer, remove=False):
        """Serves lab.sock for one client: answer(connection). Then closes the socket, and removes it on request."""
        path = self.folder / "lab.sock"
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen()

        def serve():
            with listener:
                client, _ = listener.accept()
                # Close the connection last, so that the client does not see its end before the end of the lab.
                listener.close()
                if remove:
                    path.unlink()
                with client, contextlib.suppress(ConnectionError):
                    answer(client)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        return thread

    def assert_one_line(self, done, text, status=1):
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(text, done.stderr)

    def test_lab_process_that_closes_the_connection_is_reported_as_killed(self):
        """The process closes the connection at once, without reading the request, after the request, or after a part of an answer."""
        for answer in (lambda _: None, lambda client: client.recv(1, socket.MSG_PEEK), lambda client: client.recv(65536),
                       lambda client: (client.recv(65536), client.sendall(b'{"status"'))):
            for words in self.COMMANDS:
                with self.subTest(words):
                    thread = self.serve(answer)
                    done = self.run_session(*words)
                    thread.join(60)
                    self.assert_one_line(done, f"weft: no lab is up in {self.folder}, since its process was killed: `weft lab up` starts one\n")

    def test_lab_down_succeeds_if_the_lab_process_is_killed_meanwhile(self):
        self.serve(lambda _: None)
        self.assert_one_line(self.run_session("down"), f"weft lab: the former lab in {self.folder} has ended, since its process was killed\n", 0)
        self.assertFalse((self.folder / "lab.sock").exists())

    def test_lab_that_stops_during_a_command_is_reported(self):
        self.write("lab-ended", "weftd ended with status 0; its log is LOG")
        self.serve(lambda _: None, remove=True)
        self.assert_one_line(self.run_session("check"), f"weft: no lab is up in {self.folder}, since weftd ended with status 0; its log is LOG: `weft lab up` starts one\n")

    def test_command_suggests_a_retry_if_the_running_lab_closes_the_connection(self):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(str(self.folder / "lab.sock"))
        listener.listen()
        threading.Thread(target=lambda: listener.accept()[0].close(), daemon=True).start()
        self.assert_one_line(self.run_session("check"), f"weft: the lab in {self.folder} closed the connection before it answered: try again\n")

    def test_invalid_reply_on_the_lab_socket_is_reported(self):
        for garbage in (b"\xff\xfe garbage that is longer than a header\n", b"[1, 2]\n" + bytes(20), b"[" * 100000 + b"\n", bytes(12), b'{"status": "x"}\n'):
            for words in self.COMMANDS:
                with self.subTest((garbage[:10], words)):
                    thread = self.serve(lambda client, garbage=garbage: (client.recv(65536), client.sendall(garbage), client.shutdown(socket.SHUT_WR), client.recv(65536)))
                    done = self.run_session(*words)
                    thread.join(60)
                    self.assertRegex(done.stderr, "is not a lab's: end the program that serves it|no lab is up")
                    self.assert_one_line(done, str(self.folder))

    def test_shortage_of_file_descriptors_is_reported(self):
        # After it has read its modules, the program has one descriptor in addition to the standard streams.
        program = f"import resource, runpy, sys; sys.path[:0] = [{str(SESSION.parent)!r}]; it = runpy.run_path({str(SESSION)!r}); resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n" \
                  "with it['reported']('weft'): it['in_words'](it['main'])"
        done = subprocess.run([sys.executable, "-Bc", program, self.folder, "up", f"weftd={self.write('weftd')}"], capture_output=True, text=True, check=False, timeout=60)
        self.assert_one_line(done, "weft: Too many open files: raise the limit of open files with `ulimit -n`\n")

    def test_traceback_of_an_unexpected_exception_is_written_to_a_file(self):
        program = f"import runpy, sys; sys.path[:0] = [{str(SESSION.parent)!r}]; it = runpy.run_path({str(SESSION)!r})\ndef fail(): raise ZeroDivisionError('why')\nwith it['reported']('weft'): it['in_words'](fail)"
        done = subprocess.run([sys.executable, "-Bc", program], capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "TMPDIR": str(self.folder)})
        (kept,) = self.folder.glob("weft-traceback-*")
        self.assertEqual((done.returncode, done.stderr), (1, f"weft: ZeroDivisionError: why: this is a defect of weft; please report it with {kept}\n"))
        self.assertIn("Traceback", kept.read_text())

    def test_script_that_is_not_utf8_is_passed_to_the_guest_unchanged(self):
        """A script that is not UTF-8 reaches the guest unchanged, from a file and from standard input."""
        script = b"echo caf\xe9 # \xff\n"
        args = types.SimpleNamespace(on=[], script=str(self.write("script", script)), words=[])
        self.assertEqual(process.to_bytes(running.scripts_of(args, ["node1"])["node1"]), script)
        args.script = "-"
        with unittest.mock.patch.object(running.sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(script))):
            self.assertEqual(process.to_bytes(running.scripts_of(args, ["node1"])["node1"]), script)

    def test_broken_connection_is_not_mistaken_for_closed_standard_output(self):
        for error, text in ((BrokenPipeError(errno.EPIPE, "Broken pipe"), "weft: Broken pipe: another program has closed a connection"),
                            (BrokenPipeError(), "weft: : another program has closed a connection")):
            with unittest.mock.patch.object(errors, "output_is_closed", return_value=False), unittest.mock.patch.object(errors.signal, "signal"), \
                 self.assertRaises(SystemExit) as caught, errors.reported("weft"):
                raise error
            self.assertEqual(caught.exception.code, text)


class EarlyExitOfWeftd(Folder):
    """A weftd that ends before it serves the lab is reported with its signal or status, and with the end of its log."""

    CASES = (("exit 0", "weft: weftd ended with status 0 before it served the lab\n"), ("exit 3", "weft: weftd ended with status 3 before it served the lab\n"),
             ("kill -KILL $$", "weft: weftd was killed by SIGKILL before it served the lab\n"),
             ("echo begun; kill -BUS $$", "weft: weftd was killed by SIGBUS before it served the lab\nbegun\n"),
             ("kill -35 $$", "weft: weftd was killed by signal 35 before it served the lab\n"))

    def run_weftd(self, script, *options):
        weftd = self.write("weftd", f"#!/bin/sh\nulimit -c 0\n{script}\n")
        weftd.chmod(0o755)
        return subprocess.run([sys.executable, "-B", SESSION, self.folder, "run", f"weftd={weftd}", *options, "--", "true"], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60, env={**os.environ, "TMPDIR": str(self.folder)})

    def test_exit_of_weftd_during_start_is_reported(self):
        for script, said in self.CASES:
            with self.subTest(script):
                done = self.run_weftd(script)
                self.assertEqual((done.returncode, done.stderr), (1, said))

    def test_exit_of_weftd_in_a_run_with_virtual_time_is_reported(self):
        lab = types.SimpleNamespace(directory=self.folder)
        for logged, status, said in (("", -9, "weftd was killed by SIGKILL"), ("a\nb", -11, "weftd was killed by SIGSEGV\na\nb"), ("", 1, "weftd ended with status 1"),
                                     ("x ends: node1 has left", 1, "node1 has left")):
            self.write("weftd.log", logged)
            self.assertEqual(shared_time._reason(lab, types.SimpleNamespace(returncode=status)), said)


class AnotherDaemon(Folder):
    """Files in a lab's directory that a killed weftd has left behind, or that belong to another running weftd."""

    def session(self, *words, **more):
        return subprocess.run([sys.executable, SESSION, self.folder, *words], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60, **more)

    def listen(self, name):
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(str(self.folder / name))
        listener.listen()
        return listener

    def weftd(self, script):
        weftd = self.write("weftd", f"#!/bin/sh\n{script}\n")
        weftd.chmod(0o755)
        return weftd

    def test_stale_socket_is_replaced(self):
        self.listen("control.sock").close()
        done = self.session("up", f"weftd={self.weftd('echo reached; exit 1')}")
        self.assertEqual((done.returncode, done.stderr), (1, "weft lab: reached\n"))
        self.assertFalse((self.folder / "control.sock").exists())

    def test_lab_up_fails_and_keeps_the_control_socket_if_another_weftd_listens_on_it(self):
        self.listen("control.sock")
        for words in (("up", f"weftd={self.weftd('exit 1')}"),):
            done = self.session(*words)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, "did not start serves .*shutdown")
        self.assertTrue((self.folder / "control.sock").exists())

    def test_lab_commands_report_why_the_previous_lab_ended(self):
        self.write("lab-ended", "weftd was killed by SIGKILL; its log is LOG")
        for words in (("shell", "host=node1", "--", "true"), ("down",)):
            self.assertEqual(self.session(*words).stderr,
                             f"weft: no lab is up in {self.folder}, since weftd was killed by SIGKILL; its log is LOG: `weft lab up` starts one\n")
        self.session("up", f"weftd={self.weftd('exit 1')}")
        self.assertNotIn("SIGKILL", self.session("down").stderr)

    def test_unwritable_log_directory_is_reported(self):
        self.write("file")
        done = self.session("up", f"weftd={self.weftd('exit 1')}", f"logs={self.folder / 'file/logs'}")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)
        self.assertIn("file/logs: Not a directory", done.stderr)

    def test_weft_exits_silently_when_its_output_pipe_is_closed(self):
        # Without a buffer, Python does not detect that a closed pipe has truncated a write.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        lines = subprocess.Popen([sys.executable, SESSION, self.folder, "topology", "kind=ring", "switches:=4000"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env=environment)
        lines.stdout.readline()
        lines.stdout.close()
        self.assertEqual(lines.stderr.read(), "")
        lines.stderr.close()
        self.assertEqual(lines.wait(60), 1)


class Terminated(Folder):
    SCRIPT = """
import os, signal, threading, types
import serving
class Dies:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
signal.signal(signal.SIGTERM, serving._leave)
server = serving.Server(types.SimpleNamespace(look_after=lambda _: None, weftd=types.SimpleNamespace(), stopping=threading.Event()), PATH)
Dies()
server.serve()
print("ended")
"""

    def test_sigterm_during_a_python_finalizer_stops_the_lab(self):
        """Python drops the exception that a handler raises while a finalizer runs."""
        script = f"import pathlib, sys\nsys.path[:0] = {sys.path[:2]!r}\nPATH = pathlib.Path({str(self.folder / 'lab.sock')!r})\n{self.SCRIPT}"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=30)
        self.assertEqual(done.stdout, "ended\n", done.stderr)

    def test_interrupted_command_exits_with_128_plus_the_signal(self):
        """A lab's process accepts the connection and does not answer."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.folder / "lab.sock"))
            listener.listen()
            listener.settimeout(60)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                command = subprocess.Popen([sys.executable, SESSION, self.folder, "check"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                with listener.accept()[0]:
                    command.send_signal(number)
                    said = command.communicate(timeout=60)[1]
                self.assertEqual((command.returncode, said), (128 + number, "weft: interrupted\n"))

    def test_interrupted_script_exits_with_128_plus_the_signal(self):
        script = f"import sys\nsys.path[:0] = {sys.path[:2]!r}\nfrom lab import errors\nwith errors.reported('script'):\n    print('here', flush=True); input()"
        for number in (signal.SIGINT, signal.SIGTERM):
            with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as command:
                command.stdout.readline()
                command.send_signal(number)
                self.assertEqual(command.stderr.read(), "script: interrupted\n")
                self.assertEqual(command.wait(30), 128 + number)


class ChecksBeforeBoot(unittest.TestCase):
    def test_unknown_host_is_reported_before_a_guest_boots(self):
        lab = labs.Lab(pathlib.Path("/none"), pathlib.Path("/none"), None, None, GuestSettings(), True, lambda _: None)
        booted = []
        with contextlib.ExitStack() as stack:
            for name, stand_in in (("_fabric", lambda: labs.Fabric([{"name": "node1"}], True)), ("_start_guests", lambda *each: booted.append(each))):
                stack.enter_context(unittest.mock.patch.object(lab, name, stand_in))
            for owner, name in ((labs, "is_served"), (labs.Daemon, "start"), (labs.pathlib.Path, "mkdir"), (labs.pathlib.Path, "unlink")):
                stack.enter_context(unittest.mock.patch.object(owner, name, return_value=False))
            stack.enter_context(unittest.mock.patch.object(labs, "open", unittest.mock.mock_open(), create=True))
            args = types.SimpleNamespace(on=["node3"], script=None, words=["true"])
            with self.assertRaisesRegex(LabError, "there is no host node3: there is node1"):
                lab.up(lambda hosts: running.scripts_of(args, hosts))
        self.assertEqual(booted, [])


class LabTimeout(Folder):
    """The error of a lab in virtual time that does not finish refers to the consoles."""

    def run_with(self, logs):
        lab = types.SimpleNamespace(directory=self.folder / "lab")
        self.write("lab/console-node1.log", "spins")
        with unittest.mock.patch("lab.shared_time.run", side_effect=LabError("no end; waited for node1")), self.assertRaises(LabError) as caught:
            repeating._run(lab, logs)
        return str(caught.exception)

    def test_logs_are_written_to_the_given_directory_after_a_timeout(self):
        said = self.run_with(self.folder / "logs")
        self.assertIn("waited for node1", said)
        self.assertEqual((self.folder / "logs/console-node1.log").read_text(), "spins")

    def test_timeout_error_reports_the_log_directory(self):
        said = self.run_with(None)
        kept = pathlib.Path(said.rpartition("logs in ")[2])
        self.addCleanup(lambda: subprocess.run(["rm", "-rf", kept], check=True))
        self.assertEqual((kept / "console-node1.log").read_text(), "spins")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that a malicious guest, which controls its console and its agent (the program in a guest that runs weft's commands), cannot make the session
process of `weft run` or `weft lab` use unbounded memory or disk space, and cannot disturb other guests."""
import os
import pathlib
import resource
import socket
import struct
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

import serving  # noqa: E402
from lab import console, errors, guest, process, uml  # noqa: E402
from lab.guest import Guest, GuestDied  # noqa: E402
from lab.waiting import DeadlineExceeded, wait_until  # noqa: E402

TIME_LIMIT = 60 * float(os.environ.get("WEFT_SLOWNESS", "1"))
OUT, EXIT, READY, TAKEN = process.OUT, process.EXIT, process.READY, process.TAKEN


class GuestAgent(unittest.TestCase):
    """A guest without a kernel. The test acts as its agent."""

    def setUp(self):
        self.guest = Guest("node1", kernel=types.SimpleNamespace(variant="stock", native=False))
        self.addCleanup(self.guest.log.unlink)
        self.addCleanup(self.guest._errors.close)
        self.guest._process = types.SimpleNamespace(poll=lambda: None)
        self.guest._agent, self.far = socket.socketpair()
        self.addCleanup(self.guest._agent.close)
        self.addCleanup(self.far.close)
        self.reader = threading.Thread(target=self.guest._read_frames, args=(self.guest._agent,), daemon=True)
        self.reader.start()

    def frame(self, number, kind, data=b"", size=None):
        self.far.sendall(struct.pack("<III", len(data) if size is None else size, number, kind) + data)

    def command(self):
        """Returns a command that has been sent to the agent, and its number."""
        command = self.guest.spawn("true")
        return command, command._number

    def assert_ends(self, command, said):
        with self.assertRaisesRegex(GuestDied, said):
            command.wait(TIME_LIMIT)
        self.reader.join(TIME_LIMIT)
        self.assertFalse(self.reader.is_alive())

    def test_oversized_frame_is_a_protocol_error(self):
        command, number = self.command()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        self.frame(number, OUT, bytes(100), size=0xffffffff)
        self.assert_ends(command, "a frame of 4294967295 bytes")
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 64 << 10)

    def test_agent_frames_with_an_unknown_command_number_or_frame_type_are_ignored(self):
        command, number = self.command()
        for kind in (OUT, process.ERR, EXIT):
            self.frame(4711, kind, bytes(4))
        self.frame(number, 99, b"?")
        self.frame(number, OUT, b"well")
        self.frame(number, EXIT, struct.pack("<I", 3))
        self.assertEqual((command.wait(TIME_LIMIT, check=False).status, command.out), (3, "well"))
        self.frame(number, OUT, b"after its end")
        second, number = self.command()
        self.frame(number, EXIT, bytes(4))
        second.wait(TIME_LIMIT)
        self.assertEqual(command.out, "well")

    def test_exit_status_of_invalid_size_is_a_protocol_error(self):
        command, number = self.command()
        self.frame(number, EXIT, b"\0")
        self.assert_ends(command, "a frame of kind 19 with 1 bytes")

    def test_kernel_release_with_invalid_utf8_is_accepted(self):
        self.frame(0, READY, b"\xff\x1b[2J")
        self.guest.ready(TIME_LIMIT)

    def test_output_above_the_limit_fails_the_command(self):
        command, number = self.command()
        with unittest.mock.patch.object(process, "MOST_OUTPUT", 1 << 20):
            for _ in range(40):
                self.frame(number, OUT, bytes(65536))
            self.frame(number, EXIT, bytes(4))
            with self.assertRaisesRegex(process.CommandFailed, "wrote 2621440 bytes, of which 1048576 are kept"):
                command.wait(TIME_LIMIT)
        self.assertEqual(len(command.raw), 1 << 20)

    def test_unread_output_is_throttled_without_loss(self):
        command, number = self.command()
        self.assertFalse(command.is_ready())
        written, whole = [], 16 << 20

        def write():
            for _ in range(whole >> 16):
                self.frame(number, OUT, bytes(65536))
                written.append(65536)
            self.frame(number, EXIT, bytes(4))

        threading.Thread(target=write, daemon=True).start()
        most = process.MOST_UNREAD + 65536
        wait_until("output to wait", lambda: command.is_full(), TIME_LIMIT)
        self.assertLess(sum(written), whole)
        taken = 0
        while True:
            self.guest.wait_for_event("output", command.is_ready, TIME_LIMIT)
            ended = command.status is not None
            out, _ = command.drain()
            self.assertLessEqual(len(out), most)
            taken += len(out)
            if ended:
                break
        self.assertEqual(taken, whole)

    def test_agent_that_reports_too_many_consumed_bytes_does_not_enlarge_the_send_window(self):
        """An agent that reports more consumed bytes than it was sent does not enlarge the window."""
        command = self.guest.start_program(["cat"])
        command.give(bytes(1000))
        for count in (1001, 0xffffffff, 1000, 999, 0):
            self.frame(command._number, process.CONSUMED, struct.pack("<I", count))
            self.frame(command._number, OUT, b".")
            wait_until("the frame", lambda: command.out, TIME_LIMIT)
            command.drain()
        self.assertEqual(command.window.space(), process.INPUT_MOST)
        self.frame(command._number, process.CONSUMED, b"?")
        self.assert_ends(command, "a frame of kind 21 with 1 bytes")

    def test_command_input_after_the_guest_was_closed_raises_guest_died_with_that_reason(self):
        """Input that the caller types while the lab ends is dropped, without a traceback."""
        command = self.guest.start_program(["cat"])
        self.close_guest(lambda: None)
        with self.assertRaisesRegex(GuestDied, "node1 has been closed"):
            command.give(b"more")

    def test_command_wait_raises_guest_died_with_the_reason_if_the_guest_is_closed_meanwhile(self):
        """The waiting thread may detect the exit of the guest's process before close() continues."""
        command, _ = self.command()
        said = []

        def wait():
            with self.assertRaises(GuestDied) as raised:
                command.wait(TIME_LIMIT)
            said.append(str(raised.exception))

        waiter = threading.Thread(target=wait, daemon=True)
        waiter.start()
        self.close_guest(lambda: waiter.join(TIME_LIMIT))
        self.assertEqual(said, ["node1 has been closed"])

    def close_guest(self, wait):
        """Closes the guest; wait() is called as soon as its QEMU has ended."""
        def kill():
            self.guest._process.poll = lambda: -9

        self.guest._process.kill, self.guest._process.wait = kill, lambda timeout=None: wait()
        self.guest._monitor = types.SimpleNamespace(close=lambda: None)
        self.guest._keep_log = True
        self.guest.close()

    def test_other_commands_finish_after_a_command_with_unread_output_is_abandoned(self):
        command, number = self.command()
        command.is_ready()
        for _ in range(process.MOST_UNREAD // 65536):
            self.frame(number, OUT, bytes(65536))
        wait_until("output to wait", lambda: command.is_full(), TIME_LIMIT)
        second, following = self.command()
        self.frame(following, EXIT, bytes(4))
        command.abandon()
        second.wait(TIME_LIMIT)


class GuestConsole(unittest.TestCase):
    def setUp(self):
        self.log = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-console-"))) / "node1.log"

    def record(self, *pieces):
        recorder = console.Recorder(self.log)
        with open(os.dup(recorder.writer), "wb") as guest:
            recorder.close_writer()
            for piece in pieces:
                guest.write(piece)
        recorder.join(TIME_LIMIT)
        return self.log.read_bytes()

    def test_short_console_log_is_not_truncated(self):
        self.assertEqual(self.record(b"boots\n", b"\xffis up\n"), b"boots\n\xffis up\n")

    def test_console_recorder_on_a_full_disk_stores_the_error_and_does_not_block(self):
        recorder = console.Recorder("/dev/full")
        for _ in range(100):
            os.write(recorder.writer, bytes(10000))
        recorder.close_writer()
        recorder.join()
        self.assertFalse(recorder._thread.is_alive())
        self.assertEqual(recorder.error, "No space left on device")

    def stand_in(self):
        """A guest that boots. Its virtual machine is a process that does nothing, and the test writes its console."""
        guest = Guest("node1", kernel=types.SimpleNamespace(variant="stock", native=False), log=self.log)
        self.addCleanup(guest._errors.close)
        guest._process = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(guest._process.wait)
        self.addCleanup(guest._process.kill)
        return guest

    def fails_to_boot(self, kind, *limits):
        """Returns the error and the time until it was raised."""
        guest, begun = self.stand_in(), time.monotonic()
        with self.assertRaises(kind) as caught:
            guest.ready(*limits)
        return str(caught.exception), time.monotonic() - begun

    def test_guest_that_hangs_at_boot_is_reported_with_its_console(self):
        self.log.write_text("".join(f"line {number}\n" for number in range(100)))
        with unittest.mock.patch.object(guest, "contention", lambda: 1):
            said, seconds = self.fails_to_boot(DeadlineExceeded, 20, 1)
        self.assertRegex(said, r"^node1: its console has been silent for [\d.]+ s while waiting for the guest to be up\nline 85\n")
        self.assertTrue(said.endswith("\nline 99"), said)
        self.assertLess(seconds, 60)

    def test_host_load_extends_the_silence_timeout(self):
        cpus = os.cpu_count()
        for load, factor in ((0.1, 1), (cpus, 1), (7 * cpus, 7)):
            with unittest.mock.patch.object(os, "getloadavg", lambda load=load: (load, 0, 0)):
                self.assertEqual(guest.contention(), factor)
        self.log.write_text("")
        with unittest.mock.patch.object(guest, "contention", lambda: 1000):
            said, _ = self.fails_to_boot(DeadlineExceeded, 2, 1)
        self.assertRegex(said, "^node1: waited [0-9.]+ s for the guest to be up")

    def test_guest_that_prints_is_not_reported_as_hung(self):
        self.log.write_text("")
        ended = threading.Event()

        def write():
            for number in range(100):
                with open(self.log, "a") as log:
                    log.write(f"line {number}\n")
                if ended.wait(0.1):
                    return

        writer = threading.Thread(target=write)
        writer.start()
        self.addCleanup(writer.join)
        self.addCleanup(ended.set)
        said, _ = self.fails_to_boot(DeadlineExceeded, 1, 1)
        # The wait is repeated while lines arrive.
        self.assertRegex(said, f"^node1: waited {guest.BOOT_WAITS} s for the guest to be up\nline ")

    def test_panic_at_boot_is_reported_at_once(self):
        """A kernel that panics before it has parsed panic= does not reboot. Only a panic of this boot counts."""
        self.log.write_text("booting\nKernel panic - not syncing: Out of memory and no killable processes...\n---[ end ]---\n")
        said, seconds = self.fails_to_boot(GuestDied, 20, None)
        self.assertRegex(said, "(?s)^node1 has panicked while waiting for the guest to be up\n.*Kernel panic - not syncing: Out of memory")
        self.assertLess(seconds, 60)
        guest = self.stand_in()
        guest._boot_begins = guest._console.end()
        with self.assertRaises(DeadlineExceeded):
            guest.ready(0.2)

    def test_panic_message_that_arrives_in_two_parts_is_found(self):
        self.log.write_text("booting\nKernel pa")
        guest = self.stand_in()
        timer = threading.Timer(1, lambda: self.log.write_text("booting\nKernel panic - not syncing: VFS\n"))
        timer.start()
        self.addCleanup(timer.join)
        with self.assertRaisesRegex(GuestDied, "has panicked"):
            guest.ready(20)

    def test_sync_of_the_console_log_does_not_wait_if_the_log_cannot_be_written(self):
        guest = Guest("node1", kernel=types.SimpleNamespace(variant="stock", native=False), log=self.log)
        self.addCleanup(guest._errors.close)
        self.log.touch()
        guest._recorder = types.SimpleNamespace(error="No space left on device")
        begun = time.monotonic()
        with unittest.mock.patch.object(guest, "put"):
            guest.sync_log()
        self.assertLess(time.monotonic() - begun, 10)

    def test_long_console_log_is_truncated_in_the_middle(self):
        with unittest.mock.patch.multiple(console, BEGINNING=1000, MOST=8000, PIECE=500, RATE=1 << 30):
            text = self.record(*(b"line %06d\n" % number for number in range(20000)))
        self.assertLessEqual(len(text), 8000)
        self.assertTrue(text.startswith(b"line 000000\n"))
        self.assertTrue(text.endswith(b"line 019999\n"))
        self.assertEqual(text.count(b"bytes of the console are left out here"), 1)
        omitted = int(text.split(b"[weft: ")[1].split()[0])
        self.assertEqual(len(text) + omitted - len(console.OMISSION % omitted), 12 * 20000)

    def test_console_text_after_a_given_offset_is_returned(self):
        reader = console.Reader(self.log)
        self.assertEqual(reader.end(), 0)
        self.log.write_text("before\n")
        end = reader.end()
        self.log.write_text("before\nafter\nlater\n")
        self.assertEqual(reader.since(end, end + 6), "after\n")
        self.assertEqual(reader.since(end), "after\nlater\n")
        # The file has been truncated.
        self.log.write_text("x\n")
        self.assertEqual(reader.since(end), "x\n")


class ConsoleLogPaths(unittest.TestCase):
    def test_lab_returns_absolute_paths_of_console_logs(self):
        """Readers have another working directory than the process whose --logs was relative."""
        answer = {}
        server = types.SimpleNamespace(lab=types.SimpleNamespace(log_of=lambda host: pathlib.Path("logs", f"{host}.log")))
        serving.Server.find_log(server, "node1", lambda **message: answer.update(message))
        self.assertEqual(answer, {"status": 0, "path": os.path.join(os.getcwd(), "logs/node1.log")})


LOSES_IT = """
import os, signal, sys, threading
sys.path[:0] = {path!r}
import labs
if hasattr(labs, "interruption"):
    labs.interruption.watch(signal.SIGINT)

class Swallows:
    def __del__(self):
        # Python drops what a handler raises here.
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

def work(guest):
    threading.Event().wait()

Swallows()
print("goes on", flush=True)
try:
    labs.together(["node1"], work)
except KeyboardInterrupt:
    os._exit(130)
"""


class InterruptSignal(unittest.TestCase):
    def test_ctrl_c_during_a_python_finalizer_still_interrupts_the_program(self):
        with subprocess.Popen([sys.executable, "-c", LOSES_IT.format(path=sys.path[:2])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            try:
                self.assertEqual(child.stdout.readline(), "goes on\n")
                self.assertEqual(child.wait(TIME_LIMIT), 130)
            finally:
                child.kill()


TRIES = """
import errno, os, sys
os.chdir(sys.argv[1])
os.close(os.open("file", os.O_CREAT | os.O_RDWR, 0o755))
file = os.open("file", os.O_RDWR)
def refused(*call):
    try:
        call[0](*call[1:])
    except OSError as error:
        return error.errno == errno.EPERM
    return False
folder = os.open(".", os.O_DIRECTORY)
for bits in (0o4755, 0o2755, 0o6000):
    assert refused(os.chmod, "file", bits), oct(bits)
    assert refused(os.fchmod, file, bits), oct(bits)
    assert refused(os.open, "other", os.O_CREAT | os.O_RDWR, bits), oct(bits)
    assert refused(os.mknod, "other", 0o100000 | bits), oct(bits)
    assert refused(lambda: os.close(os.open("other", os.O_CREAT | os.O_RDWR, bits, dir_fd=folder))), oct(bits)
os.chmod("file", 0o1777)
os.close(os.open("file", os.O_RDONLY, 0o4755))
assert os.system("chmod u+s file 2>/dev/null") != 0
assert os.system("chmod 640 file") == 0
"""


class SetuidFilter(unittest.TestCase):
    """The programs through which a guest writes to its share."""

    def test_program_under_the_seccomp_filter_cannot_set_setuid_or_setgid_bits(self):
        with tempfile.TemporaryDirectory(prefix="weft-share-") as folder:
            subprocess.run([sys.executable, "-B", uml.NO_SETUID, sys.executable, "-c", TRIES, folder], check=True, timeout=TIME_LIMIT)
            path = pathlib.Path(folder, "file")
            self.assertEqual(path.stat().st_mode & 0o7777, 0o640)
            # Without the filter, the bits can be set.
            path.chmod(0o4755)
            self.assertEqual(path.stat().st_mode & 0o7777, 0o4755)

    def test_seccomp_filter_is_applied_only_to_guests_with_a_shared_directory(self):
        for native in (False, True):
            for share in (None, self.enterContext(tempfile.TemporaryDirectory(prefix="weft share-"))):
                kernel = types.SimpleNamespace(variant="um" if native else "stock", native=native, image="kernel", checked=False, modules_disk=None)
                guest = Guest("node1", kernel=kernel, share=share)
                words = []
                with unittest.mock.patch("subprocess.Popen", side_effect=lambda argv, **_: words.extend(map(str, argv)) or unittest.mock.MagicMock()), \
                        unittest.mock.patch("lab.image.root_image", lambda: "root"), unittest.mock.patch("lab.image.root_disk", lambda: ("root", "raw")), \
                        unittest.mock.patch("lab.image.initramfs", lambda _: "initramfs"), \
                        unittest.mock.patch("lab.accelerator.options", list), \
                        unittest.mock.patch("lab.qemu.find", lambda: types.SimpleNamespace(argv=["qemu"], environment={})):
                    guest.start()
                self.assertEqual(str(uml.NO_SETUID) in words, share is not None, words)
                shares = [word.partition("=")[2] for word in words if word.startswith("weft.share=")]
                for path in shares:
                    self.assertNotIn(" ", path)
                    self.assertTrue(os.path.samefile(path, share))
                self.assertEqual(len(shares), int(native and share is not None), words)
                guest._process = None
                guest.close()


class PrintedGuestOutput(unittest.TestCase):
    def test_control_characters_in_guest_output_are_escaped(self):
        self.assertEqual(errors.printable("a\tb\n\x1b[2J\r\x9b1m\u202e\ud800 Zürich"), "a\tb\n\\x1b[2J\\x0d\\xc2\\x9b1m\\xe2\\x80\\xae\\xed\\xa0\\x80 Zürich")


if __name__ == "__main__":
    unittest.main()

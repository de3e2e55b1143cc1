#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the Python package weft and its pytest plugin, with a stub of the program weft that records its arguments."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import unittest
import unittest.mock

from stand_in import Folder

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python"


class PythonPackage(Folder):
    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(PACKAGE))
        self.addCleanup(sys.path.remove, str(PACKAGE))
        import weft
        self.weft = weft
        self.lab = weft.Lab(program=self.program, kernel="mine", bare=True, cpus=None)

    def assert_has_ended(self, file):
        self.assertFalse(pathlib.Path(f"/proc/{file.read_text().strip()}").exists())

    def test_lab_context_manager_starts_the_lab_with_the_given_options_and_then_stops_it(self):
        with self.lab as lab:
            self.assertEqual(lab.hosts, ["a"])
        self.assertEqual(self.asked(), ["lab up --kernel=mine --bare", "--json fabric show", "lab down"])

    def test_lab_that_fails_to_start_reports_the_reason_and_is_stopped(self):
        (self.folder / "no-up").touch()
        with self.assertRaisesRegex(self.weft.WeftError, "^weft: there is no card$"):
            self.lab.up()
        self.assertEqual(self.asked()[-1], "lab down")

    def test_guest_command_returns_its_output_and_exit_status(self):
        host = self.lab["a"]
        self.assertEqual(host.run("echo out; echo err >&2"), self.weft.Result(0, "out\n", "err\n"))
        self.assertEqual(host.run(["printf", "%s|", "a b", "c"]).stdout, "a b|c|")
        self.assertEqual(host.run("exit 3", check=False).status, 3)
        with self.assertRaisesRegex(self.weft.CommandFailed, "a: `echo no; exit 4` exited with status 4\nno"):
            host.run("echo no; exit 4")

    def test_guest_command_that_exceeds_its_timeout_raises_timeout_expired(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            self.lab["a"].run("exec sleep 1000", timeout=0.1)

    def test_guest_command_is_stopped_when_its_context_manager_exits(self):
        with self.lab["a"].start("exec sleep 1000") as process:
            self.assertTrue(process.running())
        self.assertFalse(process.running())

    def test_host_program_attached_to_a_lab_node_gets_input_and_returns_output_and_exit_status(self):
        node = self.lab.attach("a")
        self.assertEqual(node.run("sh", "-c", "cat; echo err >&2", input="in\n"), self.weft.Result(0, "in\n", "err\n"))
        self.assertEqual(node.run("printf", "%s|", "a b", 7, self.folder).stdout, f"a b|7|{self.folder}|")
        self.assertEqual(self.asked()[-1], f"attach a -- printf %s| a b 7 {self.folder}")
        self.assertEqual(node.run("sh", "-c", "exit 3", check=False).status, 3)
        with self.assertRaisesRegex(self.weft.CommandFailed, "a: `sh -c 'echo no; exit 4'` exited with status 4\nno"):
            node.run("sh", "-c", "echo no; exit 4")

    def test_host_program_attached_to_a_lab_node_has_sbin_directories_in_its_path(self):
        with unittest.mock.patch.dict(os.environ, PATH="/usr/bin"):
            self.assertEqual(self.lab.attach("a").run("sh", "-c", "echo $PATH").stdout, "/usr/bin:/usr/sbin:/sbin\n")

    def test_host_program_attached_to_a_lab_node_is_stopped_after_its_timeout(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            self.lab.attach("a").run("sh", "-c", f"echo $$ > {self.folder}/pid; exec sleep 1000", timeout=0.5)
        self.assert_has_ended(self.folder / "pid")

    def test_host_program_attached_to_a_lab_node_is_stopped_when_its_context_manager_exits(self):
        with self.lab.attach("a").start("sleep", 1000) as process:
            self.assertTrue(process.running())
        self.assertFalse(process.running())

    def test_attached_host_programs_are_stopped_with_the_lab_even_if_they_ignore_sigterm(self):
        with unittest.mock.patch.object(self.weft, "GRACE", 0.2), self.lab as lab:
            programs = [lab.attach("a").start("sleep", 1000), lab.attach("a").start("sh", "-c", "trap '' TERM; echo; while :; do sleep 0.1; done")]
            while not programs[1].output():
                pass
            self.assertTrue(all(program.running() for program in programs))
        self.assertEqual([program.wait(timeout=10, check=False).status for program in programs], [-signal.SIGTERM, -signal.SIGKILL])

    def test_attached_host_program_can_write_1_mb_before_its_output_is_read(self):
        process = self.lab.attach("a").start("sh", "-c", "yes | head -c 1000000")
        self.assertEqual(len(process.wait(timeout=60).stdout), 1000000)

    def test_wait_until_active_raises_an_error_if_the_port_stays_down(self):
        (self.folder / "ibstat").write_text("#!/bin/sh\n[ -e active ] && echo State: Active || echo State: Down\n")
        (self.folder / "ibstat").chmod(0o755)
        with contextlib.chdir(self.folder), unittest.mock.patch.dict(os.environ, PATH=f"{self.folder}:{os.environ['PATH']}"):
            with self.assertRaisesRegex(self.weft.WeftError, "a: the port is not active after 0 s\nState: Down"):
                self.lab.attach("a").wait_until_active(timeout=0)
            (self.folder / "active").touch()
            self.lab.attach("a").wait_until_active()

    def test_link_settings_are_restored_when_their_context_manager_exits(self):
        for name in ("a", "a/1", "a/1-s/1"):
            with self.lab.link(name).changed(loss="5%"):
                pass
            self.assertEqual([line for line in self.asked() if "set" in line][-2:], [f"link set {name} loss=5%", f"link set {name} loss=0"])
        with self.assertRaisesRegex(self.weft.WeftError, "there is no link b"):
            _ = self.lab.link("b").settings

    def test_capture_is_stopped_when_its_context_manager_exits(self):
        with self.lab.capture("a", self.folder / "file") as file:
            self.assertEqual(file, self.folder / "file")
        self.assertEqual(self.asked(), [f"capture a -w {self.folder / 'file'}"])

    def test_check_method_of_a_lab_returns_error_reports_of_guest_kernels(self):
        self.assertEqual(self.lab.check(), "")
        (self.folder / "report").touch()
        self.assertEqual(self.lab.check(), "the kernel of a: report\n")

    def test_counters_of_ports_are_returned(self):
        self.assertEqual(self.lab.counters("a/1", "s/1"), {"a/1": {"symbol_errors": 3}, "s/1": {"symbol_errors": 3}})


class PytestPlugin(Folder):
    def run_tests(self, source, *options):
        (self.folder / "test_it.py").write_text(f"import pytest\n{source}")
        done = subprocess.run(["/usr/bin/python3", "-B", "-m", "pytest", "-p", "weft.pytest_plugin", "-p", "no:cacheprovider", "--weft", self.program, *options,
                               "test_it.py"], cwd=self.folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        return done.stdout + done.stderr

    def ups(self):
        return [line for line in self.asked() if line.startswith("lab up")]

    def test_consecutive_tests_with_the_same_lab_options_share_a_lab(self):
        said = self.run_tests("""
def test_command_true_exits_with_status_0(lab): lab["a"].run("true")
def test_lab_has_one_host(lab): assert lab.hosts == ["a"]
@pytest.mark.weft(lab="other.toml", memory="1G")
def test_marker_selects_another_lab_file(lab): pass
@pytest.mark.weft(lab="other.toml", memory="1G", fresh=True)
def test_fresh_marker_starts_a_new_lab(lab): pass
@pytest.mark.weft(kernel="stock")
def test_marker_selects_the_stock_kernel(lab): pass
def test_without_the_lab_fixture_passes(): pass
""", "--weft-kernel", "um")
        self.assertIn("6 passed", said)
        other = f"lab up --lab={self.folder}/other.toml --kernel=um --memory=1G".split()
        self.assertEqual([sorted(line.split()) for line in self.ups()], [sorted(line) for line in (["lab", "up", "--kernel=um"], other, other, ["lab", "up", "--kernel=stock"])])
        self.assertEqual(self.asked()[-1], "lab down")

    def test_lab_of_a_failed_test_is_not_reused(self):
        said = self.run_tests("""
def test_command_with_exit_status_5_fails(lab): lab["a"].run("exit 5")
def test_lab_fixture_is_available(lab): pass
""")
        self.assertIn("1 failed, 1 passed", said)
        self.assertIn("exited with status 5", said)
        self.assertIn("last words of the kernel", said)
        self.assertEqual(len(self.ups()), 2)

    def test_hosts_without_guests_have_no_console(self):
        (self.folder / "no-guests").touch()
        said = self.run_tests("""
def test_attached_program_with_exit_status_5_fails(lab): lab.attach("a").run("sh", "-c", "exit 5")
""")
        self.assertIn("a: `sh -c 'exit 5'` exited with status 5", said)
        self.assertNotIn("error", said)
        self.assertNotIn("lab console a", self.asked())

    def test_kernel_error_or_exit_of_a_guest_is_reported_as_a_pytest_error(self):
        for name in ("report", "dead"):
            said = self.run_tests(f"""
import pathlib
def test_stub_reports_a_kernel_error_or_an_exit_of_the_guest(lab): pathlib.Path({str(self.folder / name)!r}).touch()
""")
            self.assertIn("1 passed, 1 error", said)
            self.assertIn(f"the kernel of a: {name}", said)

    def test_lab_that_fails_to_start_is_reported_as_a_pytest_error(self):
        (self.folder / "no-up").touch()
        self.assertIn("weft: there is no card", self.run_tests("def test_lab_fixture_is_available(lab): pass"))

    def test_marker_with_positional_arguments_is_refused(self):
        self.assertIn("named arguments", self.run_tests("""
@pytest.mark.weft("other.toml")
def test_lab_fixture_is_available(lab): pass
"""))

    def test_logs_are_kept_in_the_requested_directory(self):
        self.run_tests("def test_lab_fixture_is_available(lab): pass", "--weft-logs", "logs")
        self.assertIn(f"--logs={self.folder}/logs/lab1", (self.folder / "asked").read_text())

    def test_results_are_written_as_junit_xml(self):
        self.run_tests("def test_lab_fixture_is_available(lab): pass", "--junitxml", "results.xml")
        self.assertIn('testcase classname="test_it" name="test_lab_fixture_is_available"', (self.folder / "results.xml").read_text())


if __name__ == "__main__":
    unittest.main()

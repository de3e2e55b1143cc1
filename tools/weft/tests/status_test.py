#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the exit status of `weft run` after failures, and that its logs are kept. Simulated guests replace real ones."""
import contextlib
import io
import pathlib
import shutil
import sys
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "session"), str(HERE.parents[2] / "scripts")]

import repeating  # noqa: E402
import running  # noqa: E402
from lab import GuestDied, shared_time  # noqa: E402
from lab.errors import LabError  # noqa: E402
from labs import GuestSettings  # noqa: E402


class RunExitStatus(unittest.TestCase):
    """The exit status of `weft run` in a lab that failed."""

    OOPS = "BUG: kernel NULL pointer dereference, address: 0000000000000008"

    def run_lab(self, reports, error):
        """Runs in a lab whose guest fails with `error`, and has `reports` on its console."""
        guest = types.SimpleNamespace(name="node1", new_reports=lambda: reports)
        lab = unittest.mock.MagicMock()
        lab.__enter__.return_value = types.SimpleNamespace(guests={"node1": guest}, up=unittest.mock.Mock(side_effect=GuestDied(error)))
        lab.__exit__.return_value = False
        args = types.SimpleNamespace(script=None, words=["true"], on=None, logs=pathlib.Path("/none"), weftd=None, lab=None, bare=True, card=None, quiet=True, no_restart=None,
                                     timeout=None)
        said = io.StringIO()
        with unittest.mock.patch("running.Lab", return_value=lab), contextlib.redirect_stderr(said):
            status = running.run(args, GuestSettings())
        return status, said.getvalue()

    def test_guest_that_exits_after_an_oops_gives_status_125(self):
        status, said = self.run_lab([self.OOPS], f"node1 ended with status 1\n{self.OOPS}")
        self.assertEqual((status, said.count(self.OOPS)), (125, 1))

    def test_kernel_error_report_is_printed_unless_the_error_message_contains_it(self):
        status, said = self.run_lab([self.OOPS], "node2 ended with status 1")
        self.assertEqual((status, said.count(f"the kernel of node1 reported:\n{self.OOPS}")), (125, 1))

    def test_guest_that_dies_during_a_run_without_a_kernel_report_gives_status_126(self):
        self.assertEqual(self.run_lab([], "node1 ended with status 1"), (126, "weft run: node1 ended with status 1\n"))

    def run_and_fail(self, logs_written, kind=LabError):
        """Runs in a lab that fails after it has written these logs; returns the error and the printed text."""
        def lab_in(directory, logs, *_):
            def fail(_):
                logs.mkdir()
                for name in logs_written:
                    (logs / name).write_text("the console")
                raise kind(f"node1: no ib0 (its console: {logs}/node1.log)")
            lab = unittest.mock.MagicMock()
            lab.__enter__.return_value = types.SimpleNamespace(guests={}, up=fail)
            lab.__exit__.return_value = False
            return lab

        args = types.SimpleNamespace(script=None, words=["true"], on=None, logs=None, weftd=None, lab=None, bare=True, card=None, quiet=True, no_restart=None,
                                     timeout=None)
        said = io.StringIO()
        with unittest.mock.patch("running.Lab", side_effect=lab_in), contextlib.redirect_stderr(said), self.assertRaises(kind) as caught:
            running.run(args, GuestSettings())
        return str(caught.exception), said.getvalue()

    def kept(self, said):
        """Returns the directory that weft run has printed. It is removed after the test."""
        self.assertRegex(said, r"^weft run: logs are kept in /\S+/weft-logs-\w+\n$")
        kept = pathlib.Path(said.rstrip("\n").rpartition(" in ")[2])
        self.addCleanup(shutil.rmtree, kept)
        return kept

    def test_error_message_contains_the_path_to_which_the_console_log_was_moved(self):
        error, said = self.run_and_fail(["weftd.log", "node1.log"])
        kept = self.kept(said)
        self.assertEqual(error, f"node1: no ib0 (its console: {kept}/node1.log)")
        self.assertEqual((kept / "node1.log").read_text(), "the console")

    def test_logs_are_kept_after_an_unexpected_exception(self):
        _, said = self.run_and_fail(["weftd.log", "node1.log"], ZeroDivisionError)
        self.assertEqual({path.name: path.read_text() for path in self.kept(said).iterdir()}, dict.fromkeys(("weftd.log", "node1.log"), "the console"))

    def run_and_succeed(self, logs_written):
        """Runs in a lab that has written these logs; returns the printed text."""
        def lab_in(_, logs, *__):
            logs.mkdir()
            for name in logs_written:
                (logs / name).write_text("the log")
            lab = unittest.mock.MagicMock()
            lab.__exit__.return_value = False
            return lab

        args = types.SimpleNamespace(script=None, words=["true"], on=None, logs=None, weftd=None, lab=None, bare=True, card=None, quiet=True, no_restart=None,
                                     timeout=None)
        said = io.StringIO()
        with (unittest.mock.patch("running.Lab", side_effect=lab_in), unittest.mock.patch("running.execute", return_value=0), contextlib.redirect_stderr(said)):
            self.assertEqual(running.run(args, GuestSettings()), 0)
        return said.getvalue()

    def test_logs_are_kept_if_weftd_was_restarted(self):
        """The logs are kept even if the command succeeds, because the message about the crash refers to the log."""
        self.assertEqual(self.run_and_succeed(["weftd.log", "node1.log"]), "")
        kept = self.kept(self.run_and_succeed(["weftd.log", "weftd-1.log", "node1.log"]))
        self.assertEqual((kept / "weftd-1.log").read_text(), "the log")

    def test_no_logs_are_kept_if_no_guest_has_booted(self):
        for kind in (LabError, ZeroDivisionError):
            self.assertEqual(self.run_and_fail(["weftd.log"], kind)[1], "")

    def test_no_logs_are_kept_after_the_output_pipe_was_closed(self):
        self.assertEqual(self.run_and_fail(["weftd.log", "node1.log"], BrokenPipeError)[1], "")

    def deterministic(self, status, reason="node1 has left the time server at 5.000000000 s", failed=True, reports=()):
        done = shared_time.Done({}, {}, {"node1": 0, "node2": status}, {"node1": [], "node2": list(reports)}, reason, (), failed)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            return repeating._status(done, ["node1", "node2"]), said.getvalue()

    def test_failures_in_a_run_with_virtual_time_set_the_exit_status(self):
        """A failure of weftd sets the exit status of the run, also after the last script has finished."""
        refused = f"{shared_time.EVENT_REFUSED}{{}}: there is no link"
        for expected, arguments in (
                (0, {"status": 0, "failed": False}), (7, {"status": 7, "failed": False}),
                (124, {"status": None, "reason": shared_time.TIME_IS_UP, "failed": False}),
                (126, {"status": None}), (126, {"status": 0}), (125, {"status": None, "reports": [self.OOPS]}), (125, {"status": 0, "reports": [self.OOPS]}),
                (1, {"status": None, "reason": refused}), (1, {"status": 0, "reason": refused})):
            with self.subTest(arguments):
                status, said = self.deterministic(**arguments)
                self.assertEqual(status, expected)
                if status in (0, 7):
                    self.assertEqual(said, "")
                else:
                    self.assertIn(self.OOPS if status == 125 else arguments.get("reason", "has left the time server"), said)


if __name__ == "__main__":
    unittest.main()

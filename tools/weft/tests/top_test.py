#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that `weft top` shows the fabric on a terminal, handles keys and changes of the terminal's size, and restores the terminal however it
ends.

    top_test.py WEFT WEFTD
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import unittest

sys.dont_write_bytecode = True
import daemon

WEFT, WEFTD = sys.argv[1:3]
ESCAPE = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]")


class Terminal:
    """A pseudo terminal with `weft top` in it."""

    def __init__(self, directory, *options, rows=24, columns=120):
        self._master, self._slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self._slave)
        self.output = ""
        self.process = subprocess.Popen([WEFT, "--socket-dir", directory, "top", "--interval", "0.1", *options], stdin=self._slave, stdout=self._slave,
                                        stderr=self._slave, start_new_session=True)

    def resize(self, rows, columns):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self._master, text.encode())

    def _read(self):
        if select.select([self._master], [], [], 0)[0]:
            self.output += os.read(self._master, 65536).decode()

    def pictures(self):
        """Returns the complete screens so far, as text."""
        self._read()
        return [ESCAPE.sub("", picture).replace("\r", "") for picture in self.output.split("\x1b[H")[1:] if "\x1b[J" in picture]

    def shows(self, text):
        daemon.await_that(f"'{text}' on the screen", lambda: self.pictures() and text in self.pictures()[-1])
        return self.pictures()[-1]

    def end(self):
        """Returns the exit status, and whether the terminal's settings were restored."""
        def ended():
            self._read()
            return self.process.poll() is not None
        daemon.await_that("its end", ended)
        self._read()
        given_back = termios.tcgetattr(self._slave) == self.before and self.output.rstrip().split("\x1b[?1049l")[0] != self.output.rstrip()
        os.close(self._master)
        os.close(self._slave)
        return self.process.returncode, given_back


class WeftTop(unittest.TestCase):
    def test_keys_change_the_sort_order_of_links_and_the_screen_fits_the_terminal(self):
        with daemon.weftd(WEFTD) as (_, directory):
            terminal = Terminal(directory)
            picture = terminal.shows("by rate")
            for text in ("sm/1-switch1/3", "4x QDR", "guests 0 of 2", "sm master"):
                terminal.shows(text)
            # A host's port is down until a guest enables it.
            self.assertRegex(picture, r"node1/1-switch1/1 +DOWN")
            terminal.shows("links 1 up, 2 down")
            terminal.type("n")
            terminal.shows("by name")
            terminal.type("e")
            terminal.shows("by errors")
            terminal.resize(7, 60)
            os.kill(terminal.process.pid, signal.SIGWINCH)
            picture = terminal.shows("... and 2 more links")
            lines = picture.split("\n")
            self.assertEqual(len(lines), 7)
            self.assertLessEqual(max(map(len, lines)), 60)
            terminal.type("q")
            self.assertEqual(terminal.end(), (0, True))

    def test_rate_of_a_busy_link_is_shown(self):
        """A sweep sends packets, and the manager's link shows them."""
        with daemon.weftd(WEFTD) as (_, directory):
            terminal = Terminal(directory)
            terminal.shows("sm/1")

            def busy():
                subprocess.run([WEFT, "--socket-dir", directory, "sm", "sweep"], check=True, stdout=subprocess.DEVNULL)
                return re.search(r"sm/1-switch1/3 +up +4x QDR +[1-9][\d.]*[kM]", "".join(terminal.pictures()))
            daemon.await_that("a rate", busy)
            terminal.type("q")
            self.assertEqual(terminal.end(), (0, True))

    def test_weft_top_shows_a_newly_injected_link_fault(self):
        with daemon.weftd(WEFTD) as (_, directory):
            terminal = Terminal(directory, "--sort", "name")
            self.assertRegex(terminal.shows("sm/1"), r"sm/1-switch1/3 +up ")
            subprocess.run([WEFT, "--socket-dir", directory, "link", "set", "sm", "loss=5%"], check=True, stdout=subprocess.DEVNULL)
            self.assertRegex(terminal.shows("loss=0.05"), r"sm/1-switch1/3 +fault .* loss=0.05")
            terminal.type("q")
            self.assertEqual(terminal.end(), (0, True))

    def test_weft_top_restores_the_terminal_after_a_signal(self):
        with daemon.weftd(WEFTD) as (_, directory):
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
                terminal = Terminal(directory)
                terminal.shows("by rate")
                terminal.process.send_signal(number)
                self.assertEqual(terminal.end(), (0, True), number)

    def test_weft_top_exits_when_weftd_exits(self):
        with daemon.weftd(WEFTD) as (running, directory):
            terminal = Terminal(directory)
            terminal.shows("by rate")
            running.terminate()
            self.assertEqual(terminal.end(), (1, True))
            self.assertIn("weft: weftd has ended", terminal.output)

    def test_weft_top_without_a_terminal_prints_the_screen_once_per_interval(self):
        """weft top --count 2 prints two complete screens without control characters."""
        with daemon.weftd(WEFTD) as (_, directory):
            done = subprocess.run([WEFT, "--socket-dir", directory, "top", "--interval", "0.1", "--count", "2"], capture_output=True, text=True, check=True,
                                  stdin=subprocess.DEVNULL, timeout=daemon.TIME_LIMIT)
            self.assertEqual(done.stdout.count("weft top"), 2)
            self.assertEqual(done.stdout.count("sm/1-switch1/3"), 2)
            self.assertNotIn("\x1b", done.stdout)

    def test_weft_log_shows_only_messages_of_the_requested_component(self):
        with daemon.weftd(WEFTD) as (_, directory):
            def said(*part):
                return subprocess.run([WEFT, "--socket-dir", directory, "log", *part], capture_output=True, text=True, check=True, timeout=daemon.TIME_LIMIT).stdout
            daemon.await_that("a sweep", lambda: "sm: sweep of" in said("sm"))
            self.assertIn("link sm/1-switch1/3: up", said())
            self.assertNotIn("link ", said("sm"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

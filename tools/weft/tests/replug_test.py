#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the example replug-cards with a stub of QEMU's monitor, and a control socket in place of weftd's."""
import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
from daemon import TIME_LIMIT

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "examples/replug-cards"
OK = {"return": {}}


def refusal(reason):
    return {"error": {"class": "GenericError", "desc": reason}}


def deleted(device):
    return {"event": "DEVICE_DELETED", "data": {"device": device, "path": f"/machine/peripheral/{device}"}}


class ReplugCards(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-replug-")))
        self.control, self.qmp = self.folder / "control.sock", self.folder / "qmp.sock"
        self.commands = []      # commands that the monitor has received
        self.answers = {}       # by command: a list of lists of lines; None closes the connection
        self.greeting = {"QMP": {"version": {"qemu": {"major": 11, "minor": 1}}, "capabilities": []}}
        self.monitor = self.listener(self.qmp)
        self.monitor.settimeout(None)       # with one, accept() does not return after shutdown()
        thread = threading.Thread(target=self.serve)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.monitor.shutdown, socket.SHUT_RDWR)

    def listener(self, path):
        path.unlink(missing_ok=True)
        listener = self.enterContext(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(TIME_LIMIT)
        return listener

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.monitor.accept()
                with client, client.makefile("rwb") as stream, contextlib.suppress(OSError):
                    self.converse(stream)

    def converse(self, stream):
        def send(line):
            stream.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
            stream.flush()

        send(self.greeting)
        for line in stream:
            request = json.loads(line)
            name = request["execute"]
            if name != "qmp_capabilities":
                self.commands.append((name, request["arguments"]))
            for answer in self.answers[name].pop(0) if self.answers.get(name) else [OK]:
                if answer is None:
                    return
                send(answer)

    def start(self, *words):
        self.weftd = self.listener(self.control)
        running = subprocess.Popen([sys.executable, PROGRAM, self.control, self.qmp, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.addCleanup(lambda: [running.kill(), running.communicate(), self.client.close()])
        self.client = self.accept()
        return running

    def accept(self, commands=None):
        """Accepts the program's connection to weftd, and answers its request. Returns the connection. commands: what the monitor must have received before."""
        client, _ = self.weftd.accept()
        client.settimeout(TIME_LIMIT)
        self.assertEqual(client.recv(4096), b'{"command": "fabric.show"}\n')
        if commands is not None:
            self.assertEqual(self.commands, commands)
        # A long answer arrives in parts.
        client.sendall(b'{"ok": true, ')
        client.sendall(b'"result": {}}\n')
        return client

    def restart(self):
        """Simulates a restart of weftd; returns when the program is connected to the new one."""
        self.weftd.close()
        self.client.close()
        self.weftd = self.listener(self.control)
        self.client = self.accept()

    def finish(self, running):
        out, err = running.communicate(timeout=TIME_LIMIT)
        self.client.close()
        return running.returncode, out, err

    def run_once(self, *words):
        running = self.start("--once", *words)
        self.restart()
        return self.finish(running)

    @staticmethod
    def added(name, port, path):
        return "device_add", {"driver": "vfio-user-pci", "id": name, "bus": port, "rombar": 0, "socket": {"type": "unix", "path": path}}

    def test_replugged_cards_get_the_next_spare_pcie_ports_after_each_restart_of_weftd(self):
        running = self.start("--ports", "p0,p1,p2,p3", "a=/run/a.sock", "b=/run/b.sock")
        for number in (1, 2):
            self.restart()
            said = [running.stdout.readline() for _ in range(3)]
            self.assertEqual(said[0], "weftd has exited\n")
            self.assertEqual(self.commands[-2:], [self.added(f"a-{number}", f"p{number * 2 - 2}", "/run/a.sock"),
                                                  self.added(f"b-{number}", f"p{number * 2 - 1}", "/run/b.sock")])
        self.restart()
        status, _, err = self.finish(running)
        self.assertEqual((status, err), (1, "replug-cards: there is no spare port left for a\n"))
        self.assertEqual(len(self.commands), 4)

    def test_qemu_gets_no_command_before_weftd_has_restarted(self):
        running = self.start("--ports", "p0", "a=/a")
        self.client.sendall(b'{"ok": true}\n')
        self.weftd.close()
        self.client.close()
        self.assertEqual(running.stdout.readline(), "weftd has exited\n")
        self.assertEqual(self.commands, [])
        # A weftd that exits accepts the connection and closes it.
        self.weftd = self.listener(self.control)
        self.weftd.accept()[0].close()
        self.weftd.close()
        self.weftd = self.listener(self.control)
        self.client = self.accept(commands=[])
        self.assertEqual(running.stdout.readline(), "a-1 is plugged in at p0\n")

    def test_card_is_added_after_the_former_card_is_deleted(self):
        """The event may come before the answer or after it, and there may be others."""
        for lines in ([OK, deleted("b"), {"event": "RTC_CHANGE"}, deleted("a")], [deleted("a"), OK]):
            self.commands.clear()
            self.answers = {"device_del": [lines]}
            self.assertEqual(self.run_once("--device-del", "a@root0=/run/a.sock"), (0, "weftd has exited\na is plugged in at root0\n", ""))
            self.assertEqual(self.commands, [("device_del", {"id": "a"}), self.added("a", "root0", "/run/a.sock")])

    def test_card_is_not_added_before_the_former_card_is_deleted(self):
        """The guest may refuse to release the card."""
        self.answers = {"device_del": [[OK, deleted("b")]]}
        status, _, err = self.run_once("--device-del", "--timeout", str(TIME_LIMIT / 20), "a@root0=/run/a.sock")
        self.assertEqual((status, err), (1, "replug-cards: QEMU has not completed device_del of a in time\n"))
        self.assertEqual([name for name, _ in self.commands], ["device_del"])

    def test_command_refused_by_qemu_and_exit_of_qemu_are_reported(self):
        for command, lines, reason in (("device_add", [refusal("no slot")], "QEMU refused device_add: no slot"), ("device_add", [None], "QEMU has exited during device_add"),
                                       ("qmp_capabilities", [b"nonsense"], "QEMU has exited during qmp_capabilities"),
                                       ("qmp_capabilities", [b"[]"], "QEMU has exited during qmp_capabilities")):
            self.answers = {command: [lines]}
            status, _, err = self.run_once("--ports", "p0", "a=/a")
            self.assertEqual((status, err), (1, f"replug-cards: {reason}\n"))
        self.answers = {"device_del": [[OK, None]]}
        self.assertEqual(self.run_once("--device-del", "a@root0=/a")[::2], (1, "replug-cards: QEMU has exited during device_del of a\n"))
        self.greeting = {"hello": 1}
        self.assertEqual(self.run_once("--ports", "p0", "a=/a")[::2], (1, f"replug-cards: {self.qmp} is not a QMP socket\n"))

    def test_replug_cards_refuses_invalid_arguments(self):
        for words, reason in ((["a=/a"], "give either --ports or --device-del"), (["--ports", "p", "--device-del", "a@r=/a"], "give either --ports or --device-del"),
                              (["--ports", "p", "a"], "a is not ID=SOCKET"), (["--device-del", "a=/a"], "--device-del needs ID@PORT=SOCKET")):
            done = subprocess.run([sys.executable, PROGRAM, self.control, self.qmp, *words], capture_output=True, text=True, check=False, timeout=TIME_LIMIT)
            self.assertEqual(done.returncode, 2)
            self.assertIn(reason, done.stderr)
        done = subprocess.run([sys.executable, PROGRAM, "/none", self.qmp, "--ports", "p", "a=/a"], capture_output=True, text=True, check=False, timeout=TIME_LIMIT)
        self.assertEqual((done.returncode, done.stderr), (1, "replug-cards: cannot connect to weftd at /none: No such file or directory\n"))


if __name__ == "__main__":
    unittest.main()

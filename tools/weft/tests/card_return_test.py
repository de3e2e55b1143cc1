#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests how guests lose their cards and get them again when weftd is restarted or upgraded, without guests: the scripts run on this machine."""
import os
import pathlib
import select
import subprocess
import threading
import time
import types
import unittest
import unittest.mock

from session_folder import Folder  # sets the paths of the modules below

import labs
import serving
import stack
from lab import DeadlineExceeded, process
from lab.errors import LabError
from lab.waiting import wait_until
from labs import GuestSettings, together


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


class CardRemoval(Folder):
    def places(self, delay, checks=0):
        return "".join(f"{name}={self.folder}/{name} " for name in ("reset", "former", "mark", "pipe", "kmsg", "card")) + f"awk='busybox awk' commands= delay={delay} checks={checks}\n"

    def run_script(self, script, delay=0, checks=0):
        """Runs it, and waits for the end of all its processes: they inherit the pipe."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        try:
            subprocess.run(["busybox", "sh", "-c", self.places(delay, checks) + script], check=True, stdin=subprocess.DEVNULL, timeout=60, pass_fds=[writer])
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

    def mlx5_card(self):
        """Returns the directory that the card's device has until its driver has detected the failure."""
        (self.folder / "mlx5_core").mkdir()
        self.write("card/remove")
        (self.folder / "card/driver").symlink_to(self.folder / "mlx5_core")
        device = self.folder / "card/infiniband"
        device.mkdir()
        return device

    def test_removal_of_a_failed_mlx5_card_waits_until_its_driver_has_removed_the_device(self):
        device = self.mlx5_card()
        with subprocess.Popen(["busybox", "sh", "-c", self.places(0, 1000) + labs.REMOVE], stdin=subprocess.DEVNULL) as removal:
            time.sleep(0.3)
            self.assertEqual((self.folder / "card/remove").read_text(), "")
            device.rmdir()
            self.assertEqual(removal.wait(60), 0)
        self.assertEqual((self.folder / "card/remove").read_text(), "1\n")

    def test_failed_mlx5_card_is_removed_although_its_driver_keeps_the_device(self):
        self.mlx5_card()
        self.run_script(labs.REMOVE, checks=3)
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


if __name__ == "__main__":
    unittest.main()

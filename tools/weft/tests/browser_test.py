#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests in a real browser that `weft web` shows 18 switches and 215 hosts legibly, that a click breaks a link, and that viewing the page costs
weftd less than 3 % of a CPU. It writes screenshots to FOLDER, from which the documents' pictures are taken.

    browser_test.py WEFT WEFTD FOLDER
"""
import os
import pathlib
import sys
import time
import unittest

sys.dont_write_bytecode = True
import browser
import daemon
import png
from page_tests import (  # noqa: F401: unittest finds them here
    WebPageAlarms, WebPageAppearance, WebPageConfirmation, WebPageConsoles, WebPageEthernet, WebPageKeyboard, WebPageSearch, WebPageTables)

WEFT, WEFTD = sys.argv[1:3]
PICTURES = pathlib.Path(sys.argv[3])
MOST_CPU = 0.03


def cpu_of(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class WebPage(browser.TestCase):
    def test_page_shows_215_hosts_without_overlap_and_weftd_cpu_use_stays_below_the_limit(self):
        with daemon.weftd(WEFTD, daemon.fat_tree()) as (running, directory), daemon.web(WEFT, directory) as address:
            self.open(address)
            self.assertEqual(len(self.find("#fabric .switch")), 18)
            self.assertEqual(len(self.find("#fabric .host")), 215)
            self.assertEqual(len(self.find("#fabric .link")), 215 + 216 + 1)
            # All nodes are within the window, none covers another, and the text is large enough to read.
            places = self.browser.execute_script("""return [...document.querySelectorAll('#fabric .node rect')].map((box) => {
                const place = box.getBoundingClientRect(); return [place.left, place.top, place.right, place.bottom]; })""")
            size = self.browser.execute_script("return [innerWidth, innerHeight, document.querySelector('#fabric .host text').getBoundingClientRect().height]")
            for number, (left, top, right, bottom) in enumerate(places):
                self.assertTrue(0 <= left and right <= size[0] and 0 <= top and bottom <= size[1], places[number])
                for other in places[:number]:
                    self.assertTrue(right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top)
            self.assertGreater(size[2], 9)
            daemon.await_that("the sweep's end", lambda: "SM master" in self.find("#state")[0].text)
            for _ in range(10):     # repeat, because other load on the host affects the measurement
                begun, before = time.monotonic(), cpu_of(running.pid)
                daemon.await_that("five seconds", lambda begun=begun: time.monotonic() - begun > 5)
                share = (cpu_of(running.pid) - before) / (time.monotonic() - begun)
                if share < MOST_CPU:
                    break
            print(f"weftd takes {share:.2%} of a CPU, looked at")
            self.assertLess(share, MOST_CPU)
            png.keep(self.browser.get_screenshot_as_png(), PICTURES / "web-fat-tree.png")
            self.quiet()

    def test_buttons_of_a_link_change_its_state_and_loss(self):
        with daemon.weftd(WEFTD) as (_, directory), daemon.web(WEFT, directory, "allow+=faults", "allow+=captures", "interval:=0.2") as address:
            self.open(address)
            link = '#fabric .link[data-name="sm/1-switch1/3"]'
            daemon.await_that("a link that is up", lambda: self.find(f"{link} path.up"))
            self.click(link)
            daemon.await_that("its curve", lambda: self.find("#chart .curve"))
            daemon.await_that("its buttons", lambda: self.texts("#actions button") == ["pull", "plug", "lose 5 %", "delay 1 ms", "clear faults", "capture 5 s"])
            self.find("#actions button")[0].click()
            daemon.await_that("a link that is down", lambda: self.find(f"{link} path.down"))
            self.find("#actions button")[1].click()
            daemon.await_that("a link that is up again", lambda: self.find(f"{link} path.up"))
            self.find("#actions button")[2].click()
            daemon.await_that("the loss among its settings", lambda: "0.05" in self.find("#facts")[0].text)
            png.keep(self.browser.get_screenshot_as_png(), PICTURES / "web-link.png")
            self.click('#fabric .node[data-name="node1"]')
            daemon.await_that("faults of a card", lambda: "catastrophic" in self.texts("#actions button"))
            self.click('nav [data-view="log"]')
            daemon.await_that("the log", lambda: "sm: sweep of" in self.find("#log pre")[0].text)
            self.click('nav [data-view="cards"]')
            daemon.await_that("the cards", lambda: "node2" in self.find("#cards")[0].text)
            self.click('nav [data-view="links"]')
            daemon.await_that("the links", lambda: "node1/1-switch1/1" in self.find("#links")[0].text)
            self.quiet()

    def test_markup_in_host_names_is_escaped(self):
        """A host name that is markup is shown as text."""
        lab = daemon.fat_tree(1, 1, 2, 2, 1).replace('"node1"', '"<img/src=x>"')
        try:
            serving = daemon.weftd(WEFTD, lab)
            _, directory = serving.__enter__()
        except AssertionError:
            return  # weftd refuses such a name
        self.addCleanup(serving.__exit__, None, None, None)
        with daemon.web(WEFT, directory) as address:
            self.open(address)
            self.assertEqual(self.find("img"), [])

    def test_page_has_no_action_buttons_unless_weft_web_is_started_with_allow(self):
        """Without --allow the page has no buttons that change anything."""
        with daemon.weftd(WEFTD) as (_, directory), daemon.web(WEFT, directory) as address:
            self.open(address)
            for node in ('.link[data-name="sm/1-switch1/3"]', '.node[data-name="node1"]'):
                self.click(f"#fabric {node}")
                daemon.await_that("what it is", lambda: self.find("#facts dd"))
                self.assertEqual(self.find("#actions button"), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

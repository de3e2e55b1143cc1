# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Contains tests that the page of `weft web` shows alarms, hosts and errors correctly in a browser. browser_test.py runs these tests."""
import json
import re
import socket
import urllib.parse
import urllib.request

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import browser
import daemon
import stand_in_lab
from daemon import await_that

# Two cards of an Ethernet and a virtio-net device, without InfiniBand.
ETHERNET = """
[sm]
enabled = false
[[ethernet]]
name = "lan"
[[host]]
name = "node1"
model = "amso1100"
ethernet = "lan"
[[host]]
name = "node2"
model = "amso1100"
ethernet = "lan"
[[host]]
name = "node3"
ethernet = "lan"
"""
SM_LINK = '.link[data-name="sm/1-switch1/3"]'
# Endpoints have no guests, and their links are up.
ENDPOINT = 'model = "endpoint"'


def endpoints(leaves, hosts, each):
    return daemon.fat_tree(leaves, 1, hosts, each, 1).replace('[[host]]\n', f"[[host]]\n{ENDPOINT}\n")


def contrast(one, other):
    """Returns the contrast ratio of two colours as WCAG 2 defines it. Each colour is "rgb(R, G, B)"."""
    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


class WebPageAlarms(browser.TestCase):
    def test_alarms_are_listed_first(self):
        self.open(self.serve(endpoints(12, 200, 18)))
        self.await_text("#state", "213 links up")
        self.assertFalse(self.shown("#alarms"))
        pulled, lossy, plain = "node150/1-leaf9/6", "node7/1-leaf1/7", "node8/1-leaf1/8"
        self.weft("link", "down", "node150")
        self.weft("link", "set", "node7", "loss=5%")
        await_that("both alarms", lambda: self.texts("#alarms .alarm") == [f"{pulled} down", f"{lossy} loss 5 %"])
        self.assertEqual(self.browser.title, "(2) weft")
        # Their links are drawn above all others, with other colours and widths.
        last = "return [...document.querySelectorAll('.links .link')].slice(-2).map((link) => link.dataset.name)"
        await_that("both on top", lambda: set(self.run_script(last)) == {pulled, lossy})
        colours, widths = ([self.style(f'.link[data-name="{name}"] path', what) for name in (pulled, lossy, plain)] for what in ("stroke", "stroke-width"))
        self.assertEqual(len(set(colours)), 3, colours)
        self.assertGreater(float(widths[1][:-2]), float(widths[2][:-2]))
        self.click('nav [data-view="links"]')
        await_that("the first rows", lambda: self.texts("#links tbody tr td:first-child")[:2] == [pulled, lossy])
        self.assertEqual(self.texts("#links tbody tr td:nth-child(2)")[:3], ["down", "up, loss 5 %", "up"])
        # A click on an alarm opens the panel of its link.
        self.click("#alarms .alarm")
        self.await_text("aside h2", pulled)
        self.weft("link", "up", "node150")
        self.weft("link", "set", "node7", "loss=0")
        await_that("no alarm", lambda: not self.shown("#alarms"))
        self.quiet()

    def test_many_alarms_are_shown_as_a_table(self):
        self.open(self.serve(endpoints(2, 12, 6)))
        self.await_text("#state", "15 links up · 12 hosts: 12 endpoints")
        for number in range(1, 9):
            self.weft("link", "down", f"node{number}")
        self.await_text("#alarms .all", "all 8")
        self.assertEqual(len(self.find("#alarms .alarm")), 5)
        self.click("#alarms .all")
        await_that("those alone", lambda: self.texts("#links .count") == ["8 of 15"])

    def test_down_link_of_a_host_without_a_guest_raises_no_alarm(self):
        self.open(self.serve())
        self.await_text("#state", "2 hosts: 0 with a guest")
        await_that("a state", lambda: self.find('.link.empty[data-name="node1/1-switch1/1"]'))
        self.assertNotIn("down", self.text("#state"))
        self.assertFalse(self.shown("#alarms"))

    def test_connected_guest_is_shown_as_running(self):
        self.open(self.serve())
        self.await_text("#state", "2 hosts: 0 with a guest")
        with socket.socket(socket.AF_UNIX) as guest:
            guest.connect(str(self.directory / "node1.sock"))
            self.await_text("#state", "2 hosts: 1 with a guest")
            await_that("its colour", lambda: self.style('.node[data-name="node1"] rect', "fill") == self.style("#colours .box[data-kind=on]", "background-color"))
            self.assertEqual(self.text('.node[data-name="node1"] .detail'), "guest running")
            # Its driver has not enabled the port, which raises an alarm.
            await_that("its link", lambda: self.texts("#alarms .alarm") == ["node1/1-switch1/1 does not come up"])
        await_that("no guest", lambda: not self.shown("#alarms"))

    def test_page_shows_the_number_of_hosts_with_a_guest_and_of_emulated_endpoints(self):
        lab = daemon.fat_tree(1, 1, 5, 5, 1)
        for host in ("node1", "node2"):
            lab = lab.replace(f'[[host]]\nname = "{host}"', f'[[host]]\n{ENDPOINT}\nname = "{host}"')
        self.open(self.serve(lab))
        self.await_text("#state", "5 hosts: 0 with a guest, 2 endpoints")
        self.click('nav [data-view="cards"]')
        await_that("their kinds", lambda: self.texts("#cards tbody td:nth-child(2)") == ["endpoint", "endpoint", "none", "none", "none"])

    def test_exit_of_weftd_is_shown(self):
        self.open(self.serve())
        self.await_text("#state", "SM master")
        self.assertFalse(self.shown("#stale"))
        self.weftd.terminate()
        await_that("the notice", lambda: self.shown("#stale"))
        self.assertRegex(self.text("#stale"), r"weftd does not answer\. Everything below is as it was at \d\d:\d\d:\d\d")
        self.assertNotEqual(self.style("main", "filter"), "none")
        self.weftd.wait()
        # The page is live again with another weftd.
        with daemon.weftd(browser.WEFTD, None, self.directory):
            await_that("no notice", lambda: not self.shown("#stale"))
            self.assertEqual(self.style("main", "filter"), "none")

    def test_exit_of_weft_web_is_shown(self):
        _, directory = self.enter(daemon.weftd(browser.WEFTD))
        with daemon.web(browser.WEFT, directory, "interval:=0.2") as address:
            self.open(address)
            self.await_text("#state", "SM master")
        self.await_text("#stale", "weft web does not answer")


class WebPageConfirmation(browser.TestCase):
    """Actions need a permission, and harmful ones a confirmation."""

    def faults(self, address):
        return json.load(urllib.request.urlopen(urllib.parse.urldefrag(address).url + "api/fabric"))["hosts"][0]["faults"]

    def open_host(self, address):
        self.open(address)
        self.click('#fabric .node[data-name="node1"]')
        await_that("its faults", lambda: "catastrophic" in self.texts("#actions button"))

    def test_fault_that_may_crash_a_guest_or_stop_its_card_needs_confirmation(self):
        address = self.serve(None, "allow+=faults")
        self.open_host(address)
        for leave in (lambda: self.click("#confirm .no"), lambda: self.press(Keys.ESCAPE)):
            self.click_text("#actions button", "catastrophic")
            await_that("the question", lambda: self.shown("#confirm"))
            self.assertIn("node1", self.text("#confirm h2"))
            leave()
            self.await_text("#said", "not injected")
            self.assertEqual(self.faults(address)["catastrophic"], 0)
            # Esc has closed only the confirmation.
            self.assertTrue(self.shown("aside"))
        self.click_text("#actions button", "catastrophic")
        await_that("the question", lambda: self.shown("#confirm"))
        self.click("#confirm .yes")
        self.await_text("#said", "catastrophic: injected")
        await_that("the fault", lambda: self.faults(address)["catastrophic"] == 1)
        # A harmless fault needs no confirmation.
        self.click_text("#actions button", "interrupt")
        self.await_text("#said", "interrupt: injected")
        self.assertFalse(self.shown("#confirm"))
        self.quiet()

    def test_every_fault_button_has_a_tooltip(self):
        """The faults of every model have a description in their tooltip."""
        lab = daemon.fat_tree(1, 1, 3, 3, 1)
        for host, model in (("node2", "mlx5"), ("node3", "mthca")):
            lab = lab.replace(f'[[host]]\nname = "{host}"', f'[[host]]\nmodel = "{model}"\nname = "{host}"')
        self.open_host(self.serve(lab, "allow+=faults", "allow+=captures"))
        for number in (1, 2, 3):
            self.click(f'#fabric .node[data-name="node{number}"]')
            await_that("its panel", lambda number=number: self.text("aside h2") == f"node{number}" and self.find("#actions button"))
            self.assertEqual(self.texts("#actions h3"), ["Card faults"])
            for title in self.run_script("return [...document.querySelectorAll('#actions button')].map((each) => each.title)"):
                self.assertRegex(title, r"^[A-Z].{10,}\.$")
                self.assertNotIn("card model’s own", title)
        self.click("#fabric .link")
        await_that("a link's", lambda: self.texts("#actions h3") == ["Link faults", "Capture"])

    def test_action_buttons_are_hidden_without_the_access_token(self):
        address, _, token = self.serve(None, "allow+=faults").partition("#")
        self.open(address)
        self.click(f"#fabric {SM_LINK}")
        self.await_text("#actions .notice", "the token is missing")
        self.assertEqual(self.find("#actions button"), [])
        self.assertTrue(self.shown("#readonly"))
        # With the token the page has buttons. The token is kept for the tab and removed from the address.
        self.browser.get(f"{address}#{token}")
        for _ in range(2):
            await_that("the drawing", lambda: self.find(f"#fabric {SM_LINK}"))
            await_that("no notice", lambda: not self.shown("#readonly"))
            self.assertNotIn(token, self.browser.current_url)
            self.click(f"#fabric {SM_LINK}")
            await_that("the buttons", lambda: "pull" in self.texts("#actions button"))
            self.browser.refresh()
        self.browser.get("about:blank")
        self.browser.get(f"{address}#{token}")
        await_that("an address that may be passed on", lambda: self.browser.current_url.endswith("#view=fabric"))


class WebPageSearch(browser.TestCase):
    def search(self, text):
        self.run_script("""const input = document.querySelector('#search input');
            input.focus();
            input.value = arguments[0];
            input.dispatchEvent(new Event('input', {bubbles: true}))""", text)

    def test_search_finds_a_host_by_name_guid_or_lid(self):
        self.open(self.serve(endpoints(32, 1000, 32)))
        node = "777"
        fabric = await_that("LIDs", lambda: (shown := json.loads(self.weft("--json", "fabric", "show")))["hosts"][-1]["ports"][0]["lid"] and shown)
        host = next(each for each in fabric["hosts"] if each["name"] == f"node{node}")
        self.await_text("#state", "SM master")
        lid = host["ports"][0]["lid"]
        for query, note in ((f"NODE{node}", ""), (host["guid"], host["guid"]), (host["guid"][-8:], host["guid"]),
                            (f"lid {lid}", f"LID {lid}"), (f"LID {lid:#x}", f"LID {lid}")):
            self.search(query)
            await_that(f"what {query} finds", lambda note=note: self.texts("#found li:first-child button") == [f"node{node} {note}"])
        self.press(Keys.ENTER)
        self.await_text("aside h2", f"node{node}")
        self.assertFalse(self.shown("#found"))
        # The drawing is centred on the host, and only this host is highlighted.
        place, size = self.run_script("""return [arguments[0], '#drawing'].map((each) => document.querySelector(each).getBoundingClientRect())
            .map((box) => [box.x + box.width / 2, box.y + box.height / 2])""", f".node[data-name=node{node}] rect")
        self.assertLess(max(abs(place[0] - size[0]), abs(place[1] - size[1])), 5)
        self.assertEqual(self.run_script("return document.querySelectorAll('.node.found').length"), 1)
        self.click('nav [data-view="cards"]')
        await_that("its row alone", lambda: self.texts("#cards tbody td:first-child") == [f"node{node}"])
        self.assertEqual(self.texts("#cards .count"), ["1 of 1000"])
        self.click('nav [data-view="links"]')
        await_that("its link", lambda: self.texts("#links .count") == ["1 of 1033"])
        self.search("no such thing")
        self.await_text("#found", "nothing found")
        self.quiet()

    def test_links_are_filtered_by_state(self):
        self.open(self.serve())
        self.click('nav [data-view="links"]')
        await_that("all", lambda: self.texts("#links .count") == ["3"])
        self.weft("link", "down", "sm")
        self.choose("#links select", "down")
        await_that("those that are down", lambda: self.texts("#links tbody td:first-child") == ["sm/1-switch1/3"])

    def test_url_restores_the_view_the_selection_and_the_search(self):
        self.open(self.serve())
        plain = self.browser.current_url
        self.click('nav [data-view="links"]')
        await_that("the view", lambda: "view=links" in self.browser.current_url)
        self.click("#links tbody tr")
        await_that("the link", lambda: "link=node1/1-switch1/1" in self.browser.current_url)
        self.search("node")
        await_that("the search", lambda: "search=node" in self.browser.current_url)
        address = self.browser.current_url
        self.browser.get("about:blank")
        self.browser.get(address)
        self.await_text("aside h2", "node1/1-switch1/1")
        await_that("the table", lambda: self.texts("#links .count") == ["2 of 3"])
        self.assertEqual(self.run_script("return document.querySelector('#search input').value"), "node")
        self.browser.get(plain)
        self.click('nav [data-view="log"]')
        await_that("the log", lambda: self.shown("#log"))
        self.browser.back()
        await_that("the view before", lambda: self.shown("#fabric"))


class WebPageTables(browser.TestCase):
    def sorts(self):
        return self.run_script("return [...document.querySelectorAll('#cards th')].map((each) => each.getAttribute('aria-sort'))")

    def test_tables_are_sorted_by_column(self):
        self.open(self.serve(endpoints(4, 101, 32)))
        self.click('nav [data-view="cards"]')
        names = [f"node{number}" for number in range(1, 102)]
        await_that("node2 before node100", lambda: self.texts("#cards tbody td:first-child") == names)
        self.assertEqual(set(self.sorts()), {"none"})
        self.click("#cards th:first-child button")
        self.assertEqual(self.texts("#cards tbody td:first-child"), names)
        self.assertEqual(self.sorts()[:2], ["ascending", "none"])
        self.assertIn("▲", self.run_script("return getComputedStyle(document.querySelector('#cards th button'), '::after').content"))
        self.click("#cards th:first-child button")
        self.assertEqual(self.texts("#cards tbody td:first-child"), names[::-1])
        self.assertEqual(self.sorts()[0], "descending")
        self.assertIn("▼", self.run_script("return getComputedStyle(document.querySelector('#cards th button'), '::after').content"))
        # A column of numbers is sorted in descending order first.
        self.click("#cards th:nth-child(3) button")
        self.assertEqual(self.sorts()[:3], ["none", "none", "descending"])

    def test_log_view_shows_the_same_lines_as_the_weft_log_command(self):
        self.open(self.serve())
        self.click('nav [data-view="log"]')
        self.await_text("#log pre", "sweep of")
        self.weft("link", "down", "sm")
        await_that("the same lines", lambda: self.text("#log pre") == self.weft("log").strip())
        self.assertRegex(self.text("#log pre"), r"node1: waits")
        # A button of a node opens the log with only the node's lines.
        self.click('#fabric .node[data-name="node1"]')
        self.click_text("#looks button", "log")
        await_that("its lines", lambda: "node1" in self.text("#log pre") and "node2" not in self.text("#log pre"))
        self.assertIn("text=node1", self.browser.current_url)


class WebPageEthernet(browser.TestCase):
    FRAME = bytes.fromhex("ffffffffffff 020000000001 88b5") + bytes(986)

    def column(self, view, number):
        return self.texts(f"#{view} tbody td:nth-child({number})")

    def test_ethernet_links_are_listed(self):
        self.open(self.serve(ETHERNET))
        self.click('nav [data-view="links"]')
        names = ["node1/eth0-lan/1", "node2/eth0-lan/2", "node3/eth0-lan/3"]
        await_that("a row for each", lambda: self.column("links", 1) == names)
        self.assertEqual(self.column("links", 2), ["no guest"] * 3)
        self.assertEqual(self.column("links", 3), ["Ethernet"] * 3)
        with socket.socket(socket.AF_UNIX) as guest, socket.socket(socket.AF_UNIX) as owner:
            guest.connect(str(self.directory / "node3-eth0.sock"))
            owner.connect(str(self.directory / "node1.sock"))
            await_that("their guests", lambda: self.column("links", 2) == ["up", "no guest", "up"])

            def rates():
                guest.sendall(len(self.FRAME).to_bytes(4, "big") + self.FRAME)
                return self.column("links", 4)[2] != "0" and self.column("links", 7)[0] != "0"
            await_that("rates at both ends", rates)
            # Frames for an end without a guest raise no alarm.
            self.assertFalse(self.shown("#alarms"))
            self.weft("link", "down", "node2/eth0")
            self.weft("link", "set", "node3/eth0", "loss=5%")
            await_that("both faults", lambda: self.texts("#alarms .alarm") == [f"{names[1]} down", f"{names[2]} loss 5 %"])
            await_that("the order of attention", lambda: self.column("links", 1) == [names[1], names[2], names[0]])
            self.assertEqual(self.column("links", 2), ["down", "up, loss 5 %", "up"])
            self.assertIn("2 links up, 1 down", self.text("#state"))
        self.choose("#links select", "infiniband")
        await_that("no InfiniBand links", lambda: self.texts("#links .count") == ["0 of 3"])
        self.choose("#links select", "ethernet")
        await_that("all", lambda: self.texts("#links .count") == ["3"])
        self.quiet()

    def test_ethernet_segments_are_listed(self):
        self.open(self.serve(ETHERNET))
        await_that("its view", lambda: self.shown('nav [data-view="ethernet"]'))
        self.click('nav [data-view="ethernet"]')
        await_that("its row", lambda: self.texts("#ethernet tbody td")[:3] == ["lan", "0 of 3", "0"])
        with socket.socket(socket.AF_UNIX) as guest:
            guest.connect(str(self.directory / "node3-eth0.sock"))
            guest.sendall(len(self.FRAME).to_bytes(4, "big") + self.FRAME)
            await_that("its guest and the guest's address", lambda: self.texts("#ethernet tbody td")[:3] == ["lan", "1 of 3", "1"])
        self.click("#ethernet tbody tr")
        self.await_text("#ports", "rcv_group_frames")
        self.assertEqual(self.texts("#ports th"), ["counter", "lan/1", "lan/2", "lan/3"])
        self.assertIn("segment=lan", self.browser.current_url)
        # Buttons lead to a link, which shows the counters of both ends, and to a host.
        self.click_text("#looks button", "node3/eth0-lan/3")
        await_that("its ends", lambda: self.texts("#ports th") == ["counter", "lan/3", "node3/eth0"])
        self.assertIn("networkEthernet", self.text("#facts"))
        self.click_text("#looks button", "lan")
        self.click_text("#looks button", "node1/eth0-lan/1")
        self.click_text("#looks button", "node1")
        self.await_text("#facts", "amso1100")
        self.quiet()

    def test_buttons_inject_faults_into_ethernet_links_and_capture_packets(self):
        self.open(self.serve(ETHERNET, "allow+=faults", "allow+=captures"))
        self.click('nav [data-view="links"]')
        await_that("rows", lambda: self.find("#links tbody tr"))
        self.click("#links tbody tr")
        self.click_text("#actions button", "lose 5 %")
        await_that("the loss", lambda: self.column("links", 2)[0] == "no guest, loss 5 %")
        self.click_text("#actions button", "pull")
        await_that("the pulled cable", lambda: self.column("links", 2)[0] == "down, loss 5 %")
        self.click_text("#actions button", "plug")
        self.click_text("#actions button", "clear faults")
        await_that("no alarm", lambda: not self.shown("#alarms"))
        self.click_text("#actions button", "capture 5 s")
        self.await_text("#said", "bytes")
        self.quiet()

    def test_ethernet_view_is_hidden_if_the_lab_has_no_ethernet_segment(self):
        self.open(self.serve())
        self.await_text("#state", "SM master")
        self.assertFalse(self.shown('nav [data-view="ethernet"]'))


class WebPageAppearance(browser.TestCase):
    def test_panel_of_a_selected_switch_shows_its_routes_pkeys_and_counters(self):
        self.open(self.serve())
        self.await_text("#state", "SM master")
        self.click('#fabric .node[data-name="switch1"]')
        self.await_text("#subnet", "by port 3")
        self.assertRegex(self.text("#subnet"), r"port 0LID \d+, P_Key 0x[7f]fff")
        self.await_text("#ports", "xmit_packets")
        self.assertIn("switch1/3", self.text("#ports"))
        self.click('#fabric .node[data-name="sm"]')
        await_that("the manager's LID", lambda: re.search(r"port 1LID \d+, P_Key 0xffff", self.text("#subnet")))
        self.click(f"#fabric {SM_LINK}")
        await_that("both ends' counters", lambda: self.texts("#ports th") == ["counter", "sm/1", "switch1/3"])
        # A button leads from the link to the switch.
        self.click_text("#looks button", "switch1")
        self.await_text("aside h2", "switch1")
        self.quiet()

    def test_page_fits_a_small_window(self):
        self.resize(800, 600)
        self.open(self.serve(endpoints(12, 200, 18), "allow+=faults"))
        self.weft("link", "down", "node150")
        self.await_text("#alarms", "node150")
        self.click('#fabric .node[data-name="node7"]')
        self.await_text("#ports", "xmit_packets")
        self.assertLess(self.run_script("return document.querySelector('aside').getBoundingClientRect().width"), 0.4 * 800)
        # Long text wraps, also in the legend of the curves.
        for box in ("html", "aside", "#legend", "#colours", "header", "#alarms"):
            # Use one script, because the page rebuilds the legend.
            wide, width = self.run_script("""const legend = document.querySelector('#legend'), box = document.querySelector(arguments[0]);
                for (let number = 0; number < 20; number += 1) legend.append(Object.assign(document.createElement('span'), {textContent: 'send_doorbells/s'}));
                return [box.scrollWidth, box.clientWidth]""", box)
            self.assertLessEqual(wide, width, box)

    def test_labels_are_drawn_above_links(self):
        self.open(self.serve())
        self.await_text(".labels text", "4x QDR")
        # All labels are drawn above all links, each with an outline in the background colour.
        layers = self.run_script("return [...document.querySelector('#drawing svg > g').children].map((each) => each.getAttribute('class')).filter(Boolean)")
        self.assertEqual(layers, ["background", "hits", "links", "labels", "nodes"])
        self.assertEqual(self.style(".labels text", "paint-order"), "stroke")
        self.assertEqual(self.style(".labels text", "stroke"), self.style("body", "background-color"))
        self.assertEqual(self.find(".links text"), [])

    def test_colours_have_contrast_and_are_in_the_legend(self):
        """In both colour schemes, lines have enough contrast, and the legend shows all of them."""
        self.open(self.serve())
        await_that("states", lambda: self.find(".link.empty"))
        backgrounds = set()
        for scheme in ("light", "dark"):
            self.set_scheme(scheme)
            background = self.style("body", "background-color")
            backgrounds.add(background)
            self.assertEqual(self.style("#drawing rect.background", "fill"), background)
            self.assertGreater(contrast(self.style("body", "color"), background), 7)
            for kind in ("idle", "busy", "busier", "errors", "lossy", "down", "empty"):
                # Use one script, because the page soon restores the classes of the link.
                line, swatch = self.run_script("""const link = document.querySelector('.link');
                    link.setAttribute('class', `link ${arguments[0]}`);
                    const swatch = document.querySelector(`#colours .line[data-kind=${arguments[0]}]`);
                    return [getComputedStyle(link.querySelector('path')).stroke, getComputedStyle(swatch).borderTopColor]""", kind)
                self.assertEqual(line, swatch, kind)
                self.assertGreaterEqual(contrast(line, background), 3, (scheme, kind))
            for kind in ("switch", "manager", "host"):
                self.assertEqual(self.style(f".node.{kind} rect", "fill"), self.style(f"#colours .box[data-kind={kind}]", "background-color"))
        self.assertEqual(len(backgrounds), 2)

    def test_click_near_a_link_selects_it(self):
        self.open(self.serve())
        await_that("its state", lambda: self.find(f"{SM_LINK} path.up"))
        x, y = self.run_script("""const path = document.querySelector(arguments[0] + ' path'), matrix = path.getScreenCTM(), at = path.getTotalLength() * 0.6;
            const [one, other] = [at, at + 1].map((length) => path.getPointAtLength(length).matrixTransform(matrix));
            const length = Math.hypot(other.x - one.x, other.y - one.y);
            return [one.x - 4 * (other.y - one.y) / length, one.y + 4 * (other.x - one.x) / length]""", SM_LINK)
        box = self.run_script("const box = document.body.getBoundingClientRect(); return [box.width / 2, box.height / 2]")
        ActionChains(self.browser).move_to_element_with_offset(self.find("body")[0], round(x - box[0]), round(y - box[1])).click().perform()
        self.await_text("aside h2", "sm/1-switch1/3")


class WebPageKeyboard(browser.TestCase):
    def focused(self):
        return self.run_script("const item = document.activeElement; return item.dataset.name || item.querySelector('td')?.textContent || item.tagName")

    def tab_to(self, name):
        for _ in range(40):
            self.press(Keys.TAB)
            if self.focused() == name:
                return
        self.fail(f"the Tab key does not lead to {name}")

    def test_keyboard_reaches_all_controls(self):
        self.open(self.serve())
        await_that("states", lambda: self.find(".link.empty"))
        # Tab reaches all links as one stop and all nodes as another; the arrow keys move within them.
        self.tab_to("node1/1-switch1/1")
        self.press(Keys.ARROW_DOWN)
        self.assertEqual(self.focused(), "node2/1-switch1/2")
        self.press(Keys.ENTER)
        self.await_text("aside h2", "node2/1-switch1/2")
        self.press(Keys.ESCAPE)
        self.assertFalse(self.shown("aside"))
        self.assertEqual(self.focused(), "node2/1-switch1/2")
        self.tab_to("switch1")
        self.press(Keys.ARROW_DOWN)
        self.assertEqual(self.focused(), "node2")
        self.press(Keys.ARROW_LEFT)
        self.assertEqual(self.focused(), "node1")
        self.press(Keys.ENTER)
        self.await_text("aside h2", "node1")
        self.press(Keys.ESCAPE)
        self.assertFalse(self.shown("aside"))
        # The keyboard also reaches the rows of a table and the search.
        self.click('nav [data-view="links"]')
        await_that("rows", lambda: self.find("#links tbody tr"))
        self.tab_to("node1/1-switch1/1")
        self.press(Keys.ARROW_DOWN, Keys.ENTER)
        self.await_text("aside h2", "node2/1-switch1/2")
        self.press(Keys.ESCAPE)
        self.assertEqual(self.focused(), "node2/1-switch1/2")
        self.press("/")
        self.press("switch")
        await_that("what is found", lambda: self.shown("#found"))
        self.press(Keys.ESCAPE)
        self.assertFalse(self.shown("#found"))
        self.press(Keys.ESCAPE)
        self.assertEqual(self.run_script("return document.querySelector('#search input').value"), "")
        self.quiet()


class WebPageConsoles(browser.TestCase):
    def test_console_button_shows_the_console(self):
        address = self.serve()
        log = self.directory / "node1.log"
        log.write_text('first\n<img src="x"><script>document.title = "taken"</script>\n')
        self.enter(stand_in_lab.lab(self.directory, {"node1": log}))
        self.open(address)
        self.click('nav [data-view="cards"]')
        await_that("its button", lambda: self.texts("#cards tbody tr:first-child button") == ["console"])
        self.click("#cards tbody tr:first-child button")
        self.await_text("#console pre", "first")
        # The guest's output is shown as text, and new output is appended.
        self.assertIn('<img src="x">', self.text("#console pre"))
        self.assertEqual(self.find("#console pre *"), [])
        self.assertEqual(self.browser.title, "weft")
        with log.open("a") as file:
            file.write("second\n")
        self.await_text("#console pre", "</script>\nsecond")
        self.assertEqual(self.text("#console pre").count("first"), 1)
        self.assertIn("console=node1", self.browser.current_url)
        self.choose("#console select", "node2")
        self.await_text("#console pre", "node2 has no guest with a console")

    def test_guest_consoles_are_hidden_if_the_server_does_not_allow_them(self):
        self.open(self.serve())
        self.click('nav [data-view="console"]')
        self.await_text("#console pre", "No console is available")
        self.click('nav [data-view="cards"]')
        await_that("the hosts", lambda: self.texts("#cards tbody td:first-child") == ["node1", "node2"])
        self.assertEqual(self.find("#cards tbody button"), [])

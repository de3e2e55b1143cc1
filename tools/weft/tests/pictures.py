#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Makes the documents' pictures of a running lab: `weft web` in a browser, `weft top`, a capture in tshark, the demonstration on a terminal.

    pictures.py lab WEFT SOCKET-DIRECTORY FOLDER    of a lab whose guests exchange packets
    pictures.py demo FOLDER                         of `make demo`

It fails if a picture does not show its subject. Documentation/pictures has copies of FOLDER's files.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

from selenium.webdriver.common.by import By

sys.dont_write_bytecode = True
import browser
import daemon
import png
import recording

ROWS, COLUMNS = 24, 118
TREE = pathlib.Path(__file__).resolve().parents[3]
# The shown packets: an address is resolved, and pings follow.
SHOWN = "infiniband.mad.mgmtclass == 3 || arp || icmp"


def with_rates(screen):
    """Returns whether `weft top` shows a link with traffic, and all guests running."""
    return re.search(r"node\d\S* +up +4x \w+ +[1-9][\d.]*[MG]", screen) and "sm master" in screen


def top(weft, directory, folder):
    seen, _ = recording.record([weft, "--socket-dir", directory, "top"], ROWS, COLUMNS, until=with_rates, timeout=120)
    (folder / "top.svg").write_text(recording.still(seen, "weft top: links with their rates"))


def capture(weft, directory, folder):
    with tempfile.TemporaryDirectory() as scratch:
        file = f"{scratch}/lab.pcap"
        subprocess.run([weft, "--socket-dir", directory, "capture", "all", "-w", file, "--seconds", "2"], check=True, stderr=subprocess.DEVNULL)
        words = ["sh", "-c", f"tshark -r lab.pcap -Y '{SHOWN}' -c 4000 -T fields -e frame.interface_name -e _ws.col.Protocol -e _ws.col.Info "
                             f"2>/dev/null | tail -n {ROWS - 2} | cut -c 1-{COLUMNS - 1}"]
        seen, status = recording.record(words, ROWS, COLUMNS, cwd=scratch)
    text = "\n".join(seen.screen().display)
    assert status == 0 and "Echo (ping) request" in text and "node1" in text, text
    (folder / "capture.svg").write_text(recording.still(seen, "A capture of all links in tshark"))


def web(weft, directory, folder):
    window = browser.started()
    window.set_window_size(1280, 620)
    with daemon.web(weft, directory) as address:
        window.get(address)
        daemon.await_that("guests", lambda: len(window.find_elements(By.CSS_SELECTOR, "#fabric .host.on")) == 4)
        daemon.await_that("links with traffic", lambda: window.find_elements(By.CSS_SELECTOR, "#fabric .link.busy"))
        png.keep(window.get_screenshot_as_png(), folder / "web-lab.png")


def demo(folder):
    seen, status = recording.record(["make", "--no-print-directory", "demo"], ROWS, COLUMNS, cwd=TREE, timeout=900)
    text = "\n".join(seen.screen().display)
    assert status == 0 and "It works" in text, text
    (folder / "demo.svg").write_text(recording.svg(seen.frames(), "make demo"))
    (folder / "demo.cast").write_text(seen.asciicast())


def main():
    folder = pathlib.Path(sys.argv[-1])
    folder.mkdir(parents=True, exist_ok=True)
    if sys.argv[1] == "demo":
        demo(folder)
        return
    for make in (top, capture, web):
        make(sys.argv[2], sys.argv[3], folder)


if __name__ == "__main__":
    main()

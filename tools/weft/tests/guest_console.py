#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests in a browser that the console button of a host shows what its guest prints. A lab with the host node1 is up.

    guest_console.py WEFT SOCKET-DIRECTORY
"""
import subprocess
import sys

from selenium.webdriver.common.by import By

sys.dont_write_bytecode = True
import browser
import daemon

WEFT, DIRECTORY = sys.argv[1:3]


def weft(*words):
    return subprocess.run([WEFT, "--socket-dir", DIRECTORY, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def texts(window, selector):
    return window.execute_script("return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector)


def main():
    window = browser.started()
    with daemon.web(WEFT, DIRECTORY) as address:
        window.get(address)
        window.find_element(By.CSS_SELECTOR, 'nav [data-view="cards"]').click()
        row = "#cards tbody tr:first-child button"
        daemon.await_that("the button of node1", lambda: texts(window, row) == ["console"])
        window.find_element(By.CSS_SELECTOR, row).click()
        daemon.await_that("the kernel's messages", lambda: "virtio_blk" in "".join(texts(window, "#console pre")))
        # The same text as for `weft lab console`, of which the page shows the latest 64 KiB.
        shown = "".join(texts(window, "#console pre"))
        last = weft("lab", "console", "node1").strip().splitlines()[-1].strip()
        assert last in shown, (last, shown[-500:])
        # New output appears while the console is shown.
        weft("lab", "shell", "node1", "echo printed by the guest >/dev/kmsg")
        daemon.await_that("what the guest prints", lambda: "printed by the guest" in "".join(texts(window, "#console pre")))
        complaints = [entry["message"] for entry in window.get_log("browser")]
        assert not complaints, complaints


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Provides a headless Chromium, which several tests share because Chromium takes seconds to start."""
import atexit
import functools
import subprocess
import sys
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

import daemon
from daemon import await_that

WEFT, WEFTD = sys.argv[1:3]


@functools.cache
def started():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1480,1000"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    atexit.register(browser.quit)
    return browser


class TestCase(unittest.TestCase):
    def setUp(self):
        self.browser = started()
        self.addCleanup(self.forget)

    def forget(self):
        """Clears the browser's state, so that tests do not affect each other."""
        self.browser.get("about:blank")
        self.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        self.browser.get_log("browser")

    def serve(self, lab=None, *options):
        """Starts weftd and `weft web` for the test; returns the printed address."""
        self.weftd, self.directory = self.enter(daemon.weftd(WEFTD, lab))
        return self.enter(daemon.web(WEFT, self.directory, "interval:=0.2", *options))

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def weft(self, *words):
        return subprocess.run([WEFT, "--socket-dir", self.directory, *words], check=True, capture_output=True, text=True).stdout

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def run_script(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def texts(self, selector):
        """Evaluated in one script, because an element may be removed between two queries."""
        return self.run_script("return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)", selector)

    def text(self, selector):
        return "".join(self.texts(selector))

    def await_text(self, selector, text):
        await_that(f"'{text}' in {selector}", lambda: text in self.text(selector))

    def style(self, selector, name):
        return self.run_script("return getComputedStyle(document.querySelector(arguments[0])).getPropertyValue(arguments[1])", selector, name)

    def shown(self, selector):
        return self.run_script("return document.querySelector(arguments[0]).checkVisibility()", selector)

    def click(self, selector):
        """Clicks as a user does, even if another line is above the element."""
        self.run_script("document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))", selector)

    def click_text(self, selector, text):
        """Waits for the element with that text, and clicks it."""
        script = """const found = [...document.querySelectorAll(arguments[0])].find((each) => each.textContent === arguments[1]);
            found?.click();
            return Boolean(found)"""
        await_that(f"'{text}' among {selector}", lambda: self.run_script(script, selector, text))

    def choose(self, selector, value):
        self.run_script("const choice = document.querySelector(arguments[0]); choice.value = arguments[1]; choice.dispatchEvent(new Event('change'))",
                        selector, value)

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def resize(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def set_scheme(self, scheme):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, address):
        self.browser.get(address)
        await_that("the drawing", lambda: self.find("#fabric .node"))

    def quiet(self):
        """Checks that no script has failed, and that nothing was fetched from elsewhere."""
        self.assertEqual([entry for entry in self.browser.get_log("browser") if entry["level"] == "SEVERE"], [])

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Implements the pytest plugin, which provides the fixture `lab`, a running weft.Lab.

    @pytest.mark.weft(lab="two-rails.toml", memory="1G")
    def test_node1_pings_node2(lab):
        lab["node1"].run("ping -c 3 10.1.0.2")

The marker `weft` has the arguments of weft.Lab. Consecutive tests that request the same lab share it, unless one of them has failed or has
fresh=True. A test fails if a guest's kernel reports an error during it.
"""
import os
import pathlib

import pytest

from weft import Lab, WeftError

CONSOLE_LINES = 60      # lines of each guest's console in the report of a failed test


def pytest_addoption(parser):
    group = parser.getgroup("weft")
    group.addoption("--weft", metavar="PROGRAM", help="the program weft; the default is $WEFT, the source tree's, or the one in $PATH")
    group.addoption("--weft-kernel", metavar="KERNEL", help="the guests' kernel, for tests whose marker has no kernel")
    group.addoption("--weft-logs", metavar="DIR", help="keep consoles and logs in directories below this one; the default is pytest's temporary directory")


def pytest_configure(config):
    config.addinivalue_line("markers", "weft(lab=FILE, fresh=False, **options): the lab of the fixture `lab`; the options are those of `weft lab up`")


class _Labs:
    """The running lab, and its options."""

    def __init__(self, config, folder):
        self._config = config
        self._folder = folder
        self._lab = self._made_of = None
        self._number = 0

    def get(self, options, base):
        options = dict(options)
        fresh = options.pop("fresh", False)
        if options.get("lab"):
            options["lab"] = str(base / options["lab"])     # in the directory of the test
        options.setdefault("kernel", self._config.getoption("--weft-kernel"))
        if fresh or options != self._made_of:
            self.discard()
        if not self._lab:
            self._number += 1
            # Each process of pytest-xdist has a name.
            logs = self._folder / f"{os.environ.get('PYTEST_XDIST_WORKER', '')}lab{self._number}"
            logs.mkdir(parents=True, exist_ok=True)
            lab = Lab(program=self._config.getoption("--weft"), logs=logs, **options)
            lab.up()
            self._lab, self._made_of = lab, options
        return self._lab

    def discard(self):
        if self._lab:
            self._lab.down()
        self._lab = self._made_of = None


@pytest.fixture(scope="session")
def _weft_labs(request, tmp_path_factory):
    logs = request.config.getoption("--weft-logs")
    labs = _Labs(request.config, pathlib.Path(logs).absolute() if logs else tmp_path_factory.mktemp("weft"))
    yield labs
    labs.discard()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        item.stash[_REPORT] = report


_REPORT = pytest.StashKey()


@pytest.fixture
def lab(request, _weft_labs):
    """A running weft.Lab, as the marker `weft` describes it."""
    marker = request.node.get_closest_marker("weft")
    if marker and marker.args:
        raise pytest.UsageError("the marker weft takes named arguments, as in weft(lab=FILE)")
    found = _weft_labs.get(marker.kwargs if marker else {}, request.node.path.parent)
    yield found
    report = request.node.stash.get(_REPORT, None)
    try:
        problems = found.check()
    except WeftError as error:
        problems = str(error)
    if problems or report is None or report.failed:
        for host in _guests(found):
            console = found[host].console().splitlines()[-CONSOLE_LINES:]
            request.node.add_report_section("teardown", f"console of {host}", "\n".join(console))
        _weft_labs.discard()
    if problems:
        pytest.fail(problems.rstrip(), pytrace=False)


def _guests(found):
    try:
        return found.guests
    except WeftError:
        return []

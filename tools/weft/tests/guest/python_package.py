# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the examples of the pytest plugin pass with a lab with guests, as a user runs them."""
import os
import subprocess

from lab import cache
from lab.testing import test

PACKAGE = cache.TREE / "tools/weft/python"


@test(kernels=("stock",), timeout=200)
def pytest_plugin_examples_pass(lab):
    """All examples of the pytest plugin pass, and they share one lab."""
    done = subprocess.run(["/usr/bin/python3", "-B", "-m", "pytest", "-p", "weft.pytest_plugin", "-p", "no:cacheprovider", "--weft", lab.program("weft"),
                           "--weft-logs", lab.directory / "logs", "--junitxml", lab.directory / "results.xml", PACKAGE / "examples/test_two_nodes.py"],
                          cwd=lab.directory, env={**os.environ, "PYTHONPATH": str(PACKAGE)}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    assert done.returncode == 0 and " passed" in done.stdout and not {"failed", "error", "skipped"} & set(done.stdout.split()), done.stdout
    assert 'errors="0" failures="0"' in (lab.directory / "results.xml").read_text()
    # All examples have used one lab.
    assert [path.name for path in (lab.directory / "logs").iterdir()] == ["lab1"]

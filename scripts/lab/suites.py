# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Parses the KUnit output of a test module into results. The module ran in a VM (lab.kunit) or in User-Mode Linux (lab.batch)."""
from lab import ktap, modules
from lab.results import FAILED, Result

SEED = "/sys/module/weft_kern/parameters/kunit_seed"     # for the cases that use random numbers


def add_results(results, group, path, text, problem, reports, seconds=0.0):
    """Adds the results in the output of a module's suites (text), and other errors."""
    found = ktap.parse(text)
    for suite in found:
        for case in suite.outcomes():
            results.add(Result(group, f"{path.stem}.{suite.name}.{case.name}", case.outcome, case.detail))
    expected = modules.suite_count(path)
    trouble = []
    if problem:
        trouble.append(problem)
    if len(found) < expected or expected == 0:
        trouble.append(f"{len(found)} of the module's {expected} suites ran")
    trouble += reports
    if trouble:
        results.add(Result(group, f"{path.stem}.kernel-log", FAILED, "\n".join(trouble), seconds))

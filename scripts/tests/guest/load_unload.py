# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the modules load and unload on every kernel."""
from lab import kernels, modules
from lab.testing import test

# Objects that a module may leave in the kernel.
TRACES = "ls -d /sys/module/weft_* /sys/kernel/debug/weft* /sys/class/infiniband /sys/bus/pci/drivers/weft* 2>/dev/null || true"


@test(kernels=("debug",), also=("stock", "plain"), timeout=240)
def modules_can_be_unloaded_and_reloaded_without_a_leak(lab):
    """Every module can be inserted after those it needs, removed in reverse order and inserted again. No trace or leak remains."""
    # Benchmark modules are excluded, because they count instructions for minutes while they are inserted.
    paths = [path for path in modules.all_of(kernels.find(lab.kernel), tests=False)
             if not path.stem.endswith(("_bench", "_figures"))]
    assert [path for path in paths if path.stem == "weft_kern"], f"weft_kern.ko is not in {lab.modules}"
    with lab.guest("node1", memory="1G") as node1:
        assert node1.run(TRACES).out == ""
        for _ in range(2):
            node1.insmod(*(f"/share/{path.name}" for path in paths))
            loaded = node1.run("lsmod").out
            for path in paths:
                assert f"{path.stem} " in loaded, f"{path.stem} is not in lsmod:\n{loaded}"
            node1.run(["rmmod", *(path.stem for path in reversed(paths))])
            assert node1.run(TRACES).out == ""
        assert node1.find_leaks() == ""

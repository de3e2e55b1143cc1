# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the properties that the test environment guarantees for every guest."""
import hashlib

from lab.testing import test


@test(kernels=("um-debug",), also=("stock",), timeout=120)
def files_of_any_size_are_transferred_intact_between_host_and_guest(lab):
    """Files of any size are transferred intact to the guest and back, and the guest answers after each. Input waits while the guest is slow."""
    with lab.boot(lab.guest("node1")) as (node,):
        for size in (100, 5_000, 70_000, 1_000_000):
            data = lab.random.randbytes(size)
            node.put("/tmp/file", data)
            assert node.run("sha256sum </tmp/file", timeout=20).out.split()[0] == hashlib.sha256(data).hexdigest(), size
        assert node.get("/tmp/file") == data
        # Long command lines, and many at once, are also transferred intact.
        assert node.run(f"echo {'x' * 20_000} | wc -c").out.strip() == "20001"
        for process in [node.spawn(f"echo {'x' * 500}") for _ in range(40)]:
            assert process.wait(20).out.strip() == "x" * 500

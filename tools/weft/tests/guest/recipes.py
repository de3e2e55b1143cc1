# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the commands of Documentation/recipes.rst work as written. Where a recipe needs software that users build themselves, the test uses
Debian's."""
import pathlib
import re

from lab import cache, image, rdma_core
from lab.testing import test

from pages import follow, sections

PAGE = cache.TREE / "Documentation/recipes.rst"
# This test resizes a completion queue without waiting for its sends, so its result depends on the card's speed.
RACES = {"test_resize_cq"}
ON_MLX4 = (("weft run ", "weft run --card mlx4 "), ("weft lab up ", "weft lab up --card mlx4 "), ("mlx5_0", "mlx4_0"))
# For a lab file, whose hosts have a ConnectX-2 by default.
ON_MLX5 = (("mlx4_0", "mlx5_0"), ("ports = 2", 'model = "mlx5"\nports = 2'))
# The transports by which UCX uses the card's queues itself.
BY_MLX5DV = (("rc_v", "rc_x"),)


def check_suite(log, known, passing):
    """Checks a log of rdma-core's tests. known: tests that may fail; passing: how many pass at least."""
    said = log.read_text()
    failed, passed = rdma_core.outcome(said)
    assert failed <= known, failed - known
    assert passed >= passing, said


@test(kernels=(), also=("stock",), timeout=400)
def rdma_core_tests_pass(lab):
    """More than 120 of rdma-core's tests pass on the default card, and only known ones fail. The tests of the guests' package are used instead of a checkout."""
    home = lab.directory / "home"
    # Use the cache of the user, because it takes long to build.
    checkout = f"export XDG_CACHE_HOME=${{XDG_CACHE_HOME:-$HOME/.cache}} HOME={home} && mkdir -p ~/rdma-core && cp -r {image.root_tree() / image.PYVERBS_TESTS} ~/rdma-core/tests"
    follow(lab, PAGE, "rdma-core's own tests", before=(checkout,), after=(f"cp rdma-core.log {lab.directory}",))
    check_suite(lab.directory / "rdma-core.log", RACES | rdma_core.FAIL_ON_MLX5, 120)


@test(kernels=(), also=("stock",), timeout=200)
def ucx_perftest_runs_between_two_guests(lab):
    """ucx_perftest runs over verbs between two guests."""
    follow(lab, PAGE, "UCX between two hosts")


def newer_programs(lab, known, passing, replaced=()):
    """Follows the recipe of another Debian's programs. known: rdma-core's tests that may fail; passing: how many pass at least."""
    follow(lab, PAGE, "Programs of a newer Debian", replaced=replaced, after=(f"cp rdma-core-56.log {lab.directory}",))
    check_suite(lab.directory / "rdma-core-56.log", known, passing)


@test(kernels=(), also=("stock",), timeout=900)
def ucx_1_18_and_rdma_core_56_run_in_guests(lab):
    """UCX 1.18 exchanges addresses by MADs, by LID and by GUID, and rdma-core 56's tests pass on the default card, a ConnectX-5."""
    newer_programs(lab, RACES | rdma_core.FAIL_ON_MLX5, 120)


@test(kernels=(), also=("stock",), timeout=900)
def ucx_1_18_and_rdma_core_56_run_on_connectx_2(lab):
    """UCX 1.18 exchanges addresses by MADs, by LID and by GUID, and rdma-core 56's tests pass on a ConnectX-2."""
    newer_programs(lab, RACES, 80, ON_MLX4)


@test(kernels=(), also=("stock",), timeout=250)
def open_mpi_runs_between_two_guests(lab):
    """Open MPI runs one rank on each of two hosts over UCX."""
    follow(lab, PAGE, "Open MPI between two hosts")


@test(kernels=(), also=("stock",), timeout=250)
def open_mpi_runs_between_two_connectx_2(lab):
    """Open MPI runs on two ConnectX-2 over UCX's rc_verbs."""
    follow(lab, PAGE, "Open MPI between two hosts", replaced=ON_MLX4)


@test(kernels=(), also=("stock",), timeout=250)
def open_mpi_runs_between_two_connectx_5(lab):
    """Open MPI runs on two ConnectX-5, the default card, over UCX's rc_mlx5."""
    follow(lab, PAGE, "Open MPI between two hosts", replaced=BY_MLX5DV)


def mount(lab, replaced=()):
    """Follows the recipe of NFS, and checks that both ends have the same file."""
    said = follow(lab, PAGE, "NFS over RDMA", replaced=replaced)
    sums = re.findall(r"^node[12]: ([0-9a-f]{64}) ", said, re.MULTILINE)
    assert len(sums) == 2 and sums[0] == sums[1], said


@test(kernels=(), also=("stock",), timeout=250)
def nfs_over_rdma_shows_the_same_file_at_both_ends(lab):
    """A directory is exported and mounted over RDMA, and both ends show the same file."""
    mount(lab)


@test(kernels=(), also=("stock",), timeout=250)
def nfs_over_connectx_2_shows_the_same_file_at_both_ends(lab):
    """A directory is exported and mounted over RDMA between two ConnectX-2, and both ends show the same file."""
    mount(lab, ON_MLX4)


@test(kernels=(), also=("stock",), timeout=250)
def nvme_and_srp_disks_transfer_data(lab):
    """nvme-cli and srptools discover a disk, log in, transfer data and log out."""
    follow(lab, PAGE, "Disks over RDMA, and blktests")


@test(kernels=(), also=("stock",), timeout=500)
def fat_tree_of_5000_hosts_is_discovered(lab):
    """A guest discovers a subnet of 5000 hosts, and weft reads the result back."""
    follow(lab, PAGE, "A fat tree with 5000 hosts")


@test(kernels=(), also=("stock",), timeout=400)
def ucx_continues_when_one_of_two_ports_fails(lab):
    """UCX uses both ports of a card, and continues when one of them fails."""
    follow(lab, PAGE, "Two rails")


@test(kernels=(), also=("stock",), timeout=400)
def ucx_continues_when_one_of_two_ports_of_a_connectx_5_fails(lab):
    """UCX uses both ports of a ConnectX-5, and continues when one of them fails."""
    follow(lab, PAGE, "Two rails", replaced=ON_MLX5)


@test(kernels=(), also=("stock",), timeout=250)
def gdb_debugs_a_program_in_a_guest(lab):
    """gdb on the host debugs a verbs program in a guest."""
    follow(lab, PAGE, "Your own program under gdb")


@test(kernels=(), also=("stock",), timeout=250)
def source_line_is_found_from_the_oops_of_a_user_module(lab):
    """A module is built and crashes its guest, and the source line is found from the oops."""
    follow(lab, PAGE, "Your own module, and its oops")


@test(kernels=("stock",), timeout=20)
def every_recipe_has_a_test(_):
    """A test follows every recipe of the page."""
    titles = set(sections(PAGE)) - {"Recipes"}
    followed = set(re.findall(r'PAGE, "(.+?)"[,)]', pathlib.Path(__file__).read_text()))
    assert titles == followed, titles ^ followed

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests programs that connect by IP address, between every pair of cards and on each stack."""
from lab.testing import test

from connecting import ALL, UCMATOSE, WITH_FOUR_READS, End, check_programs, two_guests


def check(lab, one, other, programs=ALL):
    with two_guests(lab, one, other) as (_fabric, nodes):
        check_programs(nodes, programs)


@test(kernels=("stock",), also=("plain", "debug"), timeout=240)
def ucmatose_connects_two_mthca_cards(lab):
    """ucmatose makes one connection, and then a hundred, between two InfiniHosts on weft's stack, and receives every completion."""
    check(lab, End("mthca"), End("mthca"), UCMATOSE)


@test(kernels=(), also=("stock", "plain", "debug"), timeout=900)
def librdmacm_programs_connect_two_mthca_cards(lab):
    """All programs connect two InfiniHosts on weft's stack."""
    check(lab, End("mthca"), End("mthca"))


@test(kernels=(), also=("stock", "plain"), timeout=900)
def librdmacm_programs_connect_mthca_on_weft_to_mthca_on_the_in_tree_stack(lab):
    """All programs connect two InfiniHosts, one on weft's stack and one on Linux's."""
    check(lab, End("mthca"), End("mthca", "linux"), WITH_FOUR_READS)


@test(kernels=(), also=("stock", "plain"), timeout=900)
def librdmacm_programs_connect_mthca_to_mlx4(lab):
    """All programs connect an InfiniHost and a ConnectX on weft's stack."""
    check(lab, End("mthca"), End("mlx4"))


@test(kernels=(), also=("stock", "plain"), timeout=900)
def librdmacm_programs_connect_mlx4_on_weft_to_mthca_on_the_in_tree_stack(lab):
    """All programs connect a ConnectX on weft's stack and an InfiniHost on Linux's."""
    check(lab, End("mlx4"), End("mthca", "linux"), WITH_FOUR_READS)


@test(kernels=(), also=("stock", "plain"), timeout=900)
def librdmacm_programs_connect_mlx4_cards_on_the_in_tree_stack(lab):
    """For comparison, all programs connect two ConnectX cards on Linux's stack."""
    check(lab, End("mlx4", "linux"), End("mlx4", "linux"))


@test(kernels=(), also=("stock", "plain"), timeout=900)
def librdmacm_programs_connect_mthca_cards_on_the_in_tree_stack(lab):
    """For comparison, all programs connect two InfiniHosts on Linux's stack."""
    check(lab, End("mthca", "linux"), End("mthca", "linux"))

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Lists the objects that every driver of the family (mlx4, mthca) links. A driver is one module, so that its fast path calls no function of another module.
weft_mellanox_icm := $(addprefix hw/mellanox_icm/,command.o icm_table.o mailbox.o management.o mtt.o multicast.o page_area.o port.o protection_entry.o qp_states.o special_packet.o user_pages.o)
weft_mellanox_icm += core/wire/headers.o

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Objects that every driver of the family links: a driver is one module, and its fast path calls nothing outside it.
weft_mellanox_icm := $(addprefix hw/mellanox_icm/,command.o icm_table.o mailbox.o management.o mtt.o multicast.o page_area.o port.o protection_entry.o qp_states.o special_packet.o user_pages.o)
weft_mellanox_icm += core/wire/headers.o

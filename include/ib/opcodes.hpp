// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the operation codes of the BTH, and the headers that follow the BTH for each of them: IBA
 * 9.2.1 (tables 35 and 38), and annex A14 for XRC.
 */
#pragma once

#include <cstdint>
#include <initializer_list>

namespace ib
{

/* Bits 7..5 of an opcode. */
enum class Transport : std::uint8_t {
	rc = 0x00,
	uc = 0x20,
	rd = 0x40,
	ud = 0x60,
	cnp = 0x80,
	xrc = 0xa0,
	/* C0h-FFh is left to manufacturers. */
	vendor = 0xc0,
};

/* Bits 4..0 of an opcode, common to RC and XRC; UC has the first twelve, UD send_only(_imm). */
enum class Operation : std::uint8_t {
	send_first = 0x00,
	send_middle = 0x01,
	send_last = 0x02,
	send_last_imm = 0x03,
	send_only = 0x04,
	send_only_imm = 0x05,
	write_first = 0x06,
	write_middle = 0x07,
	write_last = 0x08,
	write_last_imm = 0x09,
	write_only = 0x0a,
	write_only_imm = 0x0b,
	read_request = 0x0c,
	read_response_first = 0x0d,
	read_response_middle = 0x0e,
	read_response_last = 0x0f,
	read_response_only = 0x10,
	ack = 0x11,
	atomic_ack = 0x12,
	compare_swap = 0x13,
	fetch_add = 0x14,
	send_last_inv = 0x16,
	send_only_inv = 0x17,
};

constexpr std::uint8_t opcode(Transport transport, Operation operation)
{
	return static_cast<std::uint8_t>(static_cast<unsigned>(transport) |
					 static_cast<unsigned>(operation));
}

enum Opcode : std::uint8_t {
	opcode_ud_send_only = 0x64,
	opcode_ud_send_only_imm = 0x65,
	opcode_cnp = 0x80,
	/*
	 * The masked atomics of ConnectX have no opcode in the specification. These two of the
	 * manufacturer's range carry a MaskedAtomicEth and are answered by atomic_ack.
	 */
	opcode_rc_masked_compare_swap = 0xd3,
	opcode_rc_masked_fetch_add = 0xd4,
	opcode_xrc_masked_compare_swap = 0xf3,
	opcode_xrc_masked_fetch_add = 0xf4,
};

/* Headers and properties of packets with an opcode. */
struct OpcodeTraits {
	enum Flag : std::uint16_t {
		valid = 1 << 0,
		deth = 1 << 1,
		xrceth = 1 << 2,
		reth = 1 << 3,
		atomic_eth = 1 << 4,
		masked_atomic_eth = 1 << 5,
		aeth = 1 << 6,
		atomic_ack_eth = 1 << 7,
		immdt = 1 << 8,
		ieth = 1 << 9,
		payload = 1 << 10,
		/* First/last packet of a message; "only" is both, "middle" neither. */
		first = 1 << 11,
		last = 1 << 12,
		/* Travels from responder to requester. */
		response = 1 << 13,
	};
	std::uint16_t flags = 0;

	constexpr bool has(Flag flag) const { return (flags & flag) != 0; }
	/* Bytes of the extension headers between BTH and payload. */
	constexpr unsigned extension_bytes() const
	{
		return (has(deth) ? 8 : 0) + (has(xrceth) ? 4 : 0) + (has(reth) ? 16 : 0) +
		       (has(atomic_eth) ? 28 : 0) + (has(masked_atomic_eth) ? 44 : 0) +
		       (has(aeth) ? 4 : 0) + (has(atomic_ack_eth) ? 8 : 0) + (has(immdt) ? 4 : 0) +
		       (has(ieth) ? 4 : 0);
	}
};

namespace detail
{
constexpr std::uint16_t operation_flags(unsigned operation)
{
	using T = OpcodeTraits;
	constexpr unsigned base = T::valid | T::payload;
	constexpr unsigned only = T::first | T::last;
	constexpr unsigned single = T::valid | only;
	unsigned flags = 0;
	switch (static_cast<Operation>(operation)) {
	case Operation::send_first:
		flags = base | T::first;
		break;
	case Operation::send_middle:
		flags = base;
		break;
	case Operation::send_last:
		flags = base | T::last;
		break;
	case Operation::send_last_imm:
		flags = base | T::last | T::immdt;
		break;
	case Operation::send_only:
		flags = base | only;
		break;
	case Operation::send_only_imm:
		flags = base | only | T::immdt;
		break;
	case Operation::write_first:
		flags = base | T::first | T::reth;
		break;
	case Operation::write_middle:
		flags = base;
		break;
	case Operation::write_last:
		flags = base | T::last;
		break;
	case Operation::write_last_imm:
		flags = base | T::last | T::immdt;
		break;
	case Operation::write_only:
		flags = base | only | T::reth;
		break;
	case Operation::write_only_imm:
		flags = base | only | T::reth | T::immdt;
		break;
	case Operation::read_request:
		flags = single | T::reth;
		break;
	case Operation::read_response_first:
		flags = base | T::first | T::aeth | T::response;
		break;
	case Operation::read_response_middle:
		flags = base | T::response;
		break;
	case Operation::read_response_last:
		flags = base | T::last | T::aeth | T::response;
		break;
	case Operation::read_response_only:
		flags = base | only | T::aeth | T::response;
		break;
	case Operation::ack:
		flags = single | T::aeth | T::response;
		break;
	case Operation::atomic_ack:
		flags = single | T::aeth | T::atomic_ack_eth | T::response;
		break;
	case Operation::compare_swap:
	case Operation::fetch_add:
		flags = single | T::atomic_eth;
		break;
	case Operation::send_last_inv:
		flags = base | T::last | T::ieth;
		break;
	case Operation::send_only_inv:
		flags = base | only | T::ieth;
		break;
	}
	return static_cast<std::uint16_t>(flags);
}

struct OpcodeTable {
	OpcodeTraits traits[256];

	constexpr OpcodeTable() : traits{}
	{
		using T = OpcodeTraits;
		for (unsigned operation = 0; operation < 0x20; operation++) {
			unsigned flags = operation_flags(operation);
			traits[operation].flags = static_cast<std::uint16_t>(flags);
			if (operation <= static_cast<unsigned>(Operation::write_only_imm))
				traits[0x20 | operation].flags = static_cast<std::uint16_t>(flags);
			/* XRC responses name no SRQ. */
			if (flags != 0)
				traits[0xa0 | operation].flags = static_cast<std::uint16_t>(
					flags & T::response ? flags : flags | T::xrceth);
		}
		for (auto op : {opcode_ud_send_only, opcode_ud_send_only_imm})
			traits[op].flags =
				static_cast<std::uint16_t>(operation_flags(op & 0x1f) | T::deth);
		for (auto op : {opcode_rc_masked_compare_swap, opcode_rc_masked_fetch_add})
			traits[op].flags = T::valid | T::first | T::last | T::masked_atomic_eth;
		for (auto op : {opcode_xrc_masked_compare_swap, opcode_xrc_masked_fetch_add})
			traits[op].flags =
				T::valid | T::first | T::last | T::masked_atomic_eth | T::xrceth;
	}
};

inline constexpr OpcodeTable opcode_table{};
} // namespace detail

/* The make-up of an opcode; without the flag `valid` for one that is not known here. */
constexpr OpcodeTraits opcode_traits(std::uint8_t op)
{
	return detail::opcode_table.traits[op];
}

constexpr Transport opcode_transport(std::uint8_t op)
{
	return static_cast<Transport>(op & 0xe0);
}
constexpr Operation opcode_operation(std::uint8_t op)
{
	return static_cast<Operation>(op & 0x1f);
}

static_assert(opcode_traits(opcode_ud_send_only).extension_bytes() == 8);
static_assert(opcode_traits(0x0a).extension_bytes() == 16);
static_assert(!opcode_traits(0x2c).has(OpcodeTraits::valid));

} // namespace ib

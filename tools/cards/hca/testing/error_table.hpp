// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Errors that requester and responder of a reliable connection report for each fault of a request:
// the InfiniBand Architecture Specification's error tables (IBA 9.9.2, 9.9.3, 10.10.2 and 11.6.2),
// as rows that the tests of each card run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "cards/hca/types.hpp"

namespace weft::hca::testing
{

// Fault - what is wrong with a request, or with what it meets at the responder.
enum class Fault : std::uint8_t {
	none,
	// The requester's own buffer.
	local_key_unknown,
	local_key_of_another_pd,
	local_buffer_beyond_its_region,
	local_region_not_writable,
	message_above_the_maximum,
	atomic_buffer_of_4_bytes,
	atomic_buffer_of_7_bytes,
	atomic_buffer_of_9_bytes,
	atomic_buffer_of_16_bytes,
	no_local_buffer,
	data_inside_the_request,
	// The responder's memory.
	remote_key_unknown,
	remote_key_of_another_pd,
	remote_range_beyond_its_region,
	remote_range_beyond_the_address_space,
	remote_key_lacks_the_right,
	remote_qp_lacks_the_right,
	remote_address_misaligned,
	remote_key_unknown_for_no_bytes,
	// The responder's receive queue.
	no_receive,
	receive_too_short,
	receive_key_unknown,
	receive_key_of_another_pd,
	receive_region_not_writable,
	// The key that a SEND with invalidate names.
	invalidated_key_unknown,
	invalidated_key_of_another_pd,
	invalidated_key_not_open_to_the_remote_side,
	invalidated_key_of_an_ordinary_region,
	invalidated_key_of_a_type_1_window,
	// The responder's state.
	responder_in_init,
	responder_in_rtr,
	responder_in_error,
};

// Operations, as a set.
using Operations = std::uint16_t;

constexpr Operations operation_bit(SendOpcode opcode)
{
	return static_cast<Operations>(1u << static_cast<unsigned>(opcode));
}

constexpr Operations sends = operation_bit(SendOpcode::send) | operation_bit(SendOpcode::send_imm) |
			     operation_bit(SendOpcode::send_invalidate);
constexpr Operations send_with_invalidate = operation_bit(SendOpcode::send_invalidate);
constexpr Operations plain_write = operation_bit(SendOpcode::rdma_write);
constexpr Operations write_with_immediate = operation_bit(SendOpcode::rdma_write_imm);
constexpr Operations writes = plain_write | write_with_immediate;
constexpr Operations reads = operation_bit(SendOpcode::rdma_read);
constexpr Operations atomics = operation_bit(SendOpcode::compare_swap) |
			       operation_bit(SendOpcode::fetch_add) |
			       operation_bit(SendOpcode::masked_compare_swap) |
			       operation_bit(SendOpcode::masked_fetch_add);
constexpr Operations without_receive = plain_write | reads | atomics;
constexpr Operations with_receive = sends | write_with_immediate;
constexpr Operations all_operations = sends | writes | reads | atomics;

// ErrorRow - one fault, and what both ends report of it. The responder has one receive posted
// unless the fault is that there is none.
struct ErrorRow {
	Fault fault;
	Operations operations;
	// Completion status of the request.
	Syndrome requester;
	// Completion status of the posted receive; nothing: it stays posted.
	std::optional<Syndrome> receive;
	// Event of the responder's QP.
	std::optional<Event> event;
	// True if the responder's QP goes to the error state. The requester's QP does if its
	// request fails.
	bool responder_fails;
};

constexpr std::optional<Syndrome> stays_posted = std::nullopt;
constexpr std::optional<Event> no_event = std::nullopt;

// clang-format off
constexpr ErrorRow error_rows[] = {
	{Fault::none, with_receive, Syndrome::none, Syndrome::none, no_event, false},
	{Fault::none, without_receive, Syndrome::none, stays_posted, no_event, false},

	// Local protection and length errors end at the requester (IBA 9.9.2.1, 10.10.2.2). Writes
	// and sends have sent nothing by then; the data of a read or an atomic have come.
	{Fault::local_key_unknown, all_operations, Syndrome::local_protection, stays_posted, no_event, false},
	{Fault::local_key_of_another_pd, all_operations, Syndrome::local_protection, stays_posted, no_event, false},
	{Fault::local_buffer_beyond_its_region, all_operations, Syndrome::local_protection, stays_posted, no_event, false},
	{Fault::local_region_not_writable, reads | atomics, Syndrome::local_protection, stays_posted, no_event, false},
	{Fault::local_region_not_writable, with_receive, Syndrome::none, Syndrome::none, no_event, false},
	{Fault::local_region_not_writable, plain_write, Syndrome::none, stays_posted, no_event, false},
	{Fault::message_above_the_maximum, sends | writes | reads, Syndrome::local_length, stays_posted, no_event, false},
	{Fault::atomic_buffer_of_4_bytes, atomics, Syndrome::local_length, stays_posted, no_event, false},
	{Fault::atomic_buffer_of_7_bytes, atomics, Syndrome::local_length, stays_posted, no_event, false},
	{Fault::atomic_buffer_of_9_bytes, atomics, Syndrome::local_length, stays_posted, no_event, false},
	{Fault::atomic_buffer_of_16_bytes, atomics, Syndrome::local_length, stays_posted, no_event, false},
	{Fault::no_local_buffer, atomics, Syndrome::local_length, stays_posted, no_event, false},
	{Fault::no_local_buffer, with_receive, Syndrome::none, Syndrome::none, no_event, false},
	{Fault::no_local_buffer, plain_write | reads, Syndrome::none, stays_posted, no_event, false},
	{Fault::data_inside_the_request, reads | atomics, Syndrome::local_qp_operation, stays_posted, no_event, false},
	{Fault::data_inside_the_request, with_receive, Syndrome::none, Syndrome::none, no_event, false},
	{Fault::data_inside_the_request, plain_write, Syndrome::none, stays_posted, no_event, false},

	// An R_Key violation is a responder error of class C (IBA 9.9.3.1): NAK, and the QP fails.
	// The request that uses a receive completes that in error, a local access error
	// (IBA 11.6.2); of all others an asynchronous event tells (IBA 11.6.3).
	{Fault::remote_key_unknown, without_receive, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_key_unknown, write_with_immediate, Syndrome::remote_access, Syndrome::local_access, no_event, true},
	{Fault::remote_key_of_another_pd, without_receive, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_key_of_another_pd, write_with_immediate, Syndrome::remote_access, Syndrome::local_access, no_event, true},
	{Fault::remote_range_beyond_its_region, without_receive, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_range_beyond_its_region, write_with_immediate, Syndrome::remote_access, Syndrome::local_access, no_event, true},
	{Fault::remote_range_beyond_the_address_space, plain_write | reads, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_range_beyond_the_address_space, write_with_immediate, Syndrome::remote_access, Syndrome::local_access, no_event, true},
	{Fault::remote_key_lacks_the_right, without_receive, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_key_lacks_the_right, write_with_immediate, Syndrome::remote_access, Syndrome::local_access, no_event, true},
	// No key is looked at for no bytes (IBA 9.7.4.1.5).
	{Fault::remote_key_unknown_for_no_bytes, plain_write | reads, Syndrome::none, stays_posted, no_event, false},
	{Fault::remote_key_unknown_for_no_bytes, write_with_immediate, Syndrome::none, Syndrome::none, no_event, false},

	// An operation that the receive queue does not support, and a misaligned atomic, are
	// invalid requests (IBA 9.7.4.1.3, 11.6.2). They are found before a receive is used.
	{Fault::remote_qp_lacks_the_right, writes | reads | atomics, Syndrome::remote_invalid_request, Syndrome::flushed, Event::wq_invalid_request, true},
	{Fault::remote_address_misaligned, atomics, Syndrome::remote_invalid_request, Syndrome::flushed, Event::wq_invalid_request, true},

	// The receive queue (IBA 9.7.5.2.8, 9.9.3.1 classes A, B and C).
	{Fault::no_receive, with_receive, Syndrome::rnr_retry_exceeded, stays_posted, no_event, false},
	{Fault::no_receive, without_receive, Syndrome::none, stays_posted, no_event, false},
	{Fault::receive_too_short, sends, Syndrome::remote_invalid_request, Syndrome::local_length, no_event, true},
	{Fault::receive_key_unknown, sends, Syndrome::remote_operation, Syndrome::local_protection, no_event, true},
	{Fault::receive_key_of_another_pd, sends, Syndrome::remote_operation, Syndrome::local_protection, no_event, true},
	{Fault::receive_region_not_writable, sends, Syndrome::remote_operation, Syndrome::local_protection, no_event, true},
	// The data of a write do not go where its receive says.
	{Fault::receive_too_short, write_with_immediate, Syndrome::none, Syndrome::none, no_event, false},
	{Fault::receive_key_unknown, write_with_immediate, Syndrome::none, Syndrome::none, no_event, false},

	// A key that may not be used at all is an R_Key violation (class C). One that may be, but
	// not invalidated, is a memory management operation error of the receive alone (class J):
	// nothing is sent back, and the requester's retries end.
	{Fault::invalidated_key_unknown, send_with_invalidate, Syndrome::remote_access, Syndrome::remote_access, no_event, true},
	{Fault::invalidated_key_of_another_pd, send_with_invalidate, Syndrome::remote_access, Syndrome::remote_access, no_event, true},
	{Fault::invalidated_key_not_open_to_the_remote_side, send_with_invalidate, Syndrome::remote_access, Syndrome::remote_access, no_event, true},
	{Fault::invalidated_key_of_an_ordinary_region, send_with_invalidate, Syndrome::retry_exceeded, Syndrome::window_bind, no_event, true},
	{Fault::invalidated_key_of_a_type_1_window, send_with_invalidate, Syndrome::retry_exceeded, Syndrome::window_bind, no_event, true},

	// Packets for a QP that does not receive yet, or not any more, are dropped (IBA 10.3.1).
	{Fault::responder_in_init, all_operations, Syndrome::retry_exceeded, stays_posted, no_event, false},
	{Fault::responder_in_rtr, with_receive, Syndrome::none, Syndrome::none, Event::communication_established, false},
	{Fault::responder_in_rtr, without_receive, Syndrome::none, stays_posted, Event::communication_established, false},
	{Fault::responder_in_error, all_operations, Syndrome::retry_exceeded, Syndrome::flushed, no_event, true},
};
// clang-format on

// ErrorCase - one row with one of its operations.
struct ErrorCase {
	SendOpcode opcode = SendOpcode::nop;
	std::size_t row = 0;
};

// Rows with each of their operations that are in @offered.
template<Operations offered>
consteval auto error_cases()
{
	constexpr std::size_t count = [] {
		std::size_t sum = 0;
		for (const ErrorRow &row : error_rows)
			for (unsigned bit = 0; bit < 16; bit++)
				sum += row.operations >> bit & offered >> bit & 1;
		return sum;
	}();
	std::array<ErrorCase, count> cases{};
	std::size_t at = 0;
	for (std::size_t row = 0; row < std::size(error_rows); row++)
		for (unsigned bit = 0; bit < 16; bit++)
			if (error_rows[row].operations >> bit & offered >> bit & 1)
				cases[at++] = {static_cast<SendOpcode>(bit), row};
	return cases;
}

constexpr const char *operation_name(SendOpcode opcode)
{
	switch (opcode) {
	case SendOpcode::send:
		return "send";
	case SendOpcode::send_imm:
		return "send_with_immediate";
	case SendOpcode::send_invalidate:
		return "send_with_invalidate";
	case SendOpcode::rdma_write:
		return "write";
	case SendOpcode::rdma_write_imm:
		return "write_with_immediate";
	case SendOpcode::rdma_read:
		return "read";
	case SendOpcode::compare_swap:
		return "compare_and_swap";
	case SendOpcode::fetch_add:
		return "fetch_and_add";
	case SendOpcode::masked_compare_swap:
		return "masked_compare_and_swap";
	case SendOpcode::masked_fetch_add:
		return "masked_fetch_and_add";
	default:
		return "other";
	}
}

constexpr const char *fault_name(Fault fault)
{
	constexpr const char *names[] = {
		"none",
		"local_key_unknown",
		"local_key_of_another_pd",
		"local_buffer_beyond_its_region",
		"local_region_not_writable",
		"message_above_the_maximum",
		"atomic_buffer_of_4_bytes",
		"atomic_buffer_of_7_bytes",
		"atomic_buffer_of_9_bytes",
		"atomic_buffer_of_16_bytes",
		"no_local_buffer",
		"data_inside_the_request",
		"remote_key_unknown",
		"remote_key_of_another_pd",
		"remote_range_beyond_its_region",
		"remote_range_beyond_the_address_space",
		"remote_key_lacks_the_right",
		"remote_qp_lacks_the_right",
		"remote_address_misaligned",
		"remote_key_unknown_for_no_bytes",
		"no_receive",
		"receive_too_short",
		"receive_key_unknown",
		"receive_key_of_another_pd",
		"receive_region_not_writable",
		"invalidated_key_unknown",
		"invalidated_key_of_another_pd",
		"invalidated_key_not_open_to_the_remote_side",
		"invalidated_key_of_an_ordinary_region",
		"invalidated_key_of_a_type_1_window",
		"responder_in_init",
		"responder_in_rtr",
		"responder_in_error",
	};
	static_assert(std::size(names) == std::size_t(Fault::responder_in_error) + 1);
	return names[static_cast<std::size_t>(fault)];
}

// For the names of parameterised tests.
inline std::string case_name(const ErrorCase &each)
{
	return std::string(operation_name(each.opcode)) + "__" +
	       fault_name(error_rows[each.row].fault);
}

} // namespace weft::hca::testing

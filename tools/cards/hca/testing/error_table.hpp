// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Lists the errors that the requester and the responder of a reliable connection report for each
// fault of a request (IBA 9.9.2, 9.9.3, 10.10.2 and 11.6.2), as a table. The tests of each card run
// every row.
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

// Fault - an error in a request, or a state of the responder in which a request fails.
enum class Fault : std::uint8_t {
	none,
	// Faults of the requester's own buffer.
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
	// Faults of the responder's memory.
	remote_key_unknown,
	remote_key_of_another_pd,
	remote_range_beyond_its_region,
	remote_range_beyond_the_address_space,
	remote_key_lacks_the_right,
	remote_qp_lacks_the_right,
	remote_address_misaligned,
	remote_key_unknown_for_no_bytes,
	// Faults of the responder's receive queue.
	no_receive,
	receive_too_short,
	receive_key_unknown,
	receive_key_of_another_pd,
	receive_region_not_writable,
	// Faults of the key that a SEND with invalidate specifies.
	invalidated_key_unknown,
	invalidated_key_of_another_pd,
	invalidated_key_not_open_to_the_remote_side,
	invalidated_key_of_an_ordinary_region,
	invalidated_key_of_a_type_1_window,
	// States of the responder.
	responder_in_init,
	responder_in_rtr,
	responder_in_error,
};

// A set of operations.
using Operations = std::uint16_t;

constexpr Operations operation_bit(SendOpcode opcode)
{
	return static_cast<Operations>(1u << static_cast<unsigned>(opcode));
}

constexpr Operations kSends = operation_bit(SendOpcode::send) |
			      operation_bit(SendOpcode::send_imm) |
			      operation_bit(SendOpcode::send_invalidate);
constexpr Operations kSendWithInvalidate = operation_bit(SendOpcode::send_invalidate);
constexpr Operations kPlainWrite = operation_bit(SendOpcode::rdma_write);
constexpr Operations kWriteWithImmediate = operation_bit(SendOpcode::rdma_write_imm);
constexpr Operations kWrites = kPlainWrite | kWriteWithImmediate;
constexpr Operations kReads = operation_bit(SendOpcode::rdma_read);
constexpr Operations kAtomics = operation_bit(SendOpcode::compare_swap) |
				operation_bit(SendOpcode::fetch_add) |
				operation_bit(SendOpcode::masked_compare_swap) |
				operation_bit(SendOpcode::masked_fetch_add);
constexpr Operations kWithoutReceive = kPlainWrite | kReads | kAtomics;
constexpr Operations kWithReceive = kSends | kWriteWithImmediate;
constexpr Operations kAllOperations = kSends | kWrites | kReads | kAtomics;

// ErrorRow - one fault, and the error that each end reports. The responder has posted one receive,
// unless the fault is a missing receive.
struct ErrorRow {
	Fault fault;
	Operations operations;
	// The completion status of the request.
	Syndrome requester;
	// The completion status of the posted receive, or nothing if it stays posted.
	std::optional<Syndrome> receive;
	// The event of the responder's QP.
	std::optional<Event> event;
	// True if the responder's QP enters the error state. The requester's QP enters it if its
	// request fails.
	bool responder_fails;
};

constexpr std::optional<Syndrome> kStaysPosted = std::nullopt;
constexpr std::optional<Event> kNoEvent = std::nullopt;

// clang-format off
constexpr ErrorRow kErrorRows[] = {
	{Fault::none, kWithReceive, Syndrome::none, Syndrome::none, kNoEvent, false},
	{Fault::none, kWithoutReceive, Syndrome::none, kStaysPosted, kNoEvent, false},

	// Local protection and length errors are detected by the requester (IBA 9.9.2.1,
	// 10.10.2.2). Writes and sends have sent nothing by then; the data of a read or an atomic
	// has already arrived.
	{Fault::local_key_unknown, kAllOperations, Syndrome::local_protection, kStaysPosted, kNoEvent, false},
	{Fault::local_key_of_another_pd, kAllOperations, Syndrome::local_protection, kStaysPosted, kNoEvent, false},
	{Fault::local_buffer_beyond_its_region, kAllOperations, Syndrome::local_protection, kStaysPosted, kNoEvent, false},
	{Fault::local_region_not_writable, kReads | kAtomics, Syndrome::local_protection, kStaysPosted, kNoEvent, false},
	{Fault::local_region_not_writable, kWithReceive, Syndrome::none, Syndrome::none, kNoEvent, false},
	{Fault::local_region_not_writable, kPlainWrite, Syndrome::none, kStaysPosted, kNoEvent, false},
	{Fault::message_above_the_maximum, kSends | kWrites | kReads, Syndrome::local_length, kStaysPosted, kNoEvent, false},
	{Fault::atomic_buffer_of_4_bytes, kAtomics, Syndrome::local_length, kStaysPosted, kNoEvent, false},
	{Fault::atomic_buffer_of_7_bytes, kAtomics, Syndrome::local_length, kStaysPosted, kNoEvent, false},
	{Fault::atomic_buffer_of_9_bytes, kAtomics, Syndrome::local_length, kStaysPosted, kNoEvent, false},
	{Fault::atomic_buffer_of_16_bytes, kAtomics, Syndrome::local_length, kStaysPosted, kNoEvent, false},
	{Fault::no_local_buffer, kAtomics, Syndrome::local_length, kStaysPosted, kNoEvent, false},
	{Fault::no_local_buffer, kWithReceive, Syndrome::none, Syndrome::none, kNoEvent, false},
	{Fault::no_local_buffer, kPlainWrite | kReads, Syndrome::none, kStaysPosted, kNoEvent, false},
	{Fault::data_inside_the_request, kReads | kAtomics, Syndrome::local_qp_operation, kStaysPosted, kNoEvent, false},
	{Fault::data_inside_the_request, kWithReceive, Syndrome::none, Syndrome::none, kNoEvent, false},
	{Fault::data_inside_the_request, kPlainWrite, Syndrome::none, kStaysPosted, kNoEvent, false},

	// An R_Key violation is a responder error of class C (IBA 9.9.3.1): NAK, and the QP fails.
	// A request that uses a receive completes it with a local access error (IBA 11.6.2); other
	// requests raise an asynchronous event (IBA 11.6.3).
	{Fault::remote_key_unknown, kWithoutReceive, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_key_unknown, kWriteWithImmediate, Syndrome::remote_access, Syndrome::local_access, kNoEvent, true},
	{Fault::remote_key_of_another_pd, kWithoutReceive, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_key_of_another_pd, kWriteWithImmediate, Syndrome::remote_access, Syndrome::local_access, kNoEvent, true},
	{Fault::remote_range_beyond_its_region, kWithoutReceive, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_range_beyond_its_region, kWriteWithImmediate, Syndrome::remote_access, Syndrome::local_access, kNoEvent, true},
	{Fault::remote_range_beyond_the_address_space, kPlainWrite | kReads, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_range_beyond_the_address_space, kWriteWithImmediate, Syndrome::remote_access, Syndrome::local_access, kNoEvent, true},
	{Fault::remote_key_lacks_the_right, kWithoutReceive, Syndrome::remote_access, Syndrome::flushed, Event::wq_access_violation, true},
	{Fault::remote_key_lacks_the_right, kWriteWithImmediate, Syndrome::remote_access, Syndrome::local_access, kNoEvent, true},
	// The key is not checked if the length is zero (IBA 9.7.4.1.5).
	{Fault::remote_key_unknown_for_no_bytes, kPlainWrite | kReads, Syndrome::none, kStaysPosted, kNoEvent, false},
	{Fault::remote_key_unknown_for_no_bytes, kWriteWithImmediate, Syndrome::none, Syndrome::none, kNoEvent, false},

	// An operation that the receive queue does not support, and a misaligned atomic, are
	// invalid requests (IBA 9.7.4.1.3, 11.6.2). They are detected before a receive is used.
	{Fault::remote_qp_lacks_the_right, kWrites | kReads | kAtomics, Syndrome::remote_invalid_request, Syndrome::flushed, Event::wq_invalid_request, true},
	{Fault::remote_address_misaligned, kAtomics, Syndrome::remote_invalid_request, Syndrome::flushed, Event::wq_invalid_request, true},

	// Faults of the receive queue (IBA 9.7.5.2.8, 9.9.3.1 classes A, B and C).
	{Fault::no_receive, kWithReceive, Syndrome::rnr_retry_exceeded, kStaysPosted, kNoEvent, false},
	{Fault::no_receive, kWithoutReceive, Syndrome::none, kStaysPosted, kNoEvent, false},
	{Fault::receive_too_short, kSends, Syndrome::remote_invalid_request, Syndrome::local_length, kNoEvent, true},
	{Fault::receive_key_unknown, kSends, Syndrome::remote_operation, Syndrome::local_protection, kNoEvent, true},
	{Fault::receive_key_of_another_pd, kSends, Syndrome::remote_operation, Syndrome::local_protection, kNoEvent, true},
	{Fault::receive_region_not_writable, kSends, Syndrome::remote_operation, Syndrome::local_protection, kNoEvent, true},
	// The data of a write is not stored in the memory of the receive.
	{Fault::receive_too_short, kWriteWithImmediate, Syndrome::none, Syndrome::none, kNoEvent, false},
	{Fault::receive_key_unknown, kWriteWithImmediate, Syndrome::none, Syndrome::none, kNoEvent, false},

	// A key that may not be used at all is an R_Key violation (class C). A key that may be used
	// but not invalidated is a memory management operation error of the receive only (class J):
	// no response is sent, and the requester's retries are exhausted.
	{Fault::invalidated_key_unknown, kSendWithInvalidate, Syndrome::remote_access, Syndrome::remote_access, kNoEvent, true},
	{Fault::invalidated_key_of_another_pd, kSendWithInvalidate, Syndrome::remote_access, Syndrome::remote_access, kNoEvent, true},
	{Fault::invalidated_key_not_open_to_the_remote_side, kSendWithInvalidate, Syndrome::remote_access, Syndrome::remote_access, kNoEvent, true},
	{Fault::invalidated_key_of_an_ordinary_region, kSendWithInvalidate, Syndrome::retry_exceeded, Syndrome::window_bind, kNoEvent, true},
	{Fault::invalidated_key_of_a_type_1_window, kSendWithInvalidate, Syndrome::retry_exceeded, Syndrome::window_bind, kNoEvent, true},

	// Packets for a QP that does not receive yet, or not any more, are dropped (IBA 10.3.1).
	{Fault::responder_in_init, kAllOperations, Syndrome::retry_exceeded, kStaysPosted, kNoEvent, false},
	{Fault::responder_in_rtr, kWithReceive, Syndrome::none, Syndrome::none, Event::communication_established, false},
	{Fault::responder_in_rtr, kWithoutReceive, Syndrome::none, kStaysPosted, Event::communication_established, false},
	{Fault::responder_in_error, kAllOperations, Syndrome::retry_exceeded, Syndrome::flushed, kNoEvent, true},
};
// clang-format on

// ErrorCase - one row with one of its operations.
struct ErrorCase {
	SendOpcode opcode = SendOpcode::nop;
	std::size_t row = 0;
};

// Returns each row once for each of its operations that is in @offered.
template<Operations offered>
consteval auto error_cases()
{
	constexpr std::size_t count = [] {
		std::size_t sum = 0;
		for (const ErrorRow &row : kErrorRows)
			for (unsigned bit = 0; bit < 16; bit++)
				sum += row.operations >> bit & offered >> bit & 1;
		return sum;
	}();
	std::array<ErrorCase, count> cases{};
	std::size_t at = 0;
	for (std::size_t row = 0; row < std::size(kErrorRows); row++)
		for (unsigned bit = 0; bit < 16; bit++)
			if (kErrorRows[row].operations >> bit & offered >> bit & 1)
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

// Returns a name for a parameterised test.
inline std::string case_name(const ErrorCase &each)
{
	return std::string(operation_name(each.opcode)) + "__" +
	       fault_name(kErrorRows[each.row].fault);
}

} // namespace weft::hca::testing

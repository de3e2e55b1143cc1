// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes an emulated channel adapter with the accesses of a malicious guest: the input selects
// commands, doorbells, register accesses, and writes to queues and tables, with any content and in
// any order. The guest may also remove memory that the card uses, and lose its link. The sanitizers
// detect errors. A reset must always recover the card.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "bus/pci/testing/fake_host.hpp"

namespace weft::testing
{

// Size of the area for mailboxes, and of the area for queues and data.
constexpr std::size_t kMaliciousScratch = 64 << 10;

class Input
{
public:
	explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
	bool empty() const { return bytes_.empty(); }
	template<typename T>
	T take()
	{
		T value{};
		const auto part = take(sizeof(T));
		std::memcpy(&value, part.data(), part.size());
		return value;
	}
	std::span<const std::uint8_t> take(std::size_t size)
	{
		const auto part = bytes_.first(std::min(size, bytes_.size()));
		bytes_ = bytes_.subspan(part.size());
		return part;
	}
	// Changes one byte of a mailbox in some of the calls.
	void mutate(std::span<std::uint8_t> mailbox)
	{
		if (take<std::uint8_t>() % 4 == 0)
			mailbox[take<std::uint8_t>() % mailbox.size()] = take<std::uint8_t>();
	}

private:
	std::span<const std::uint8_t> bytes_;
};

// MaliciousGuest - a driver that is mostly correct, so that its errors reach deep code paths.
// Subject is a driver of the card under test:
//
//	static constexpr std::uint64_t kMemorySize;		// of the guest
//	static constexpr std::uint64_t kBarSizes[6];			// 0: no BAR
//	void start();				// starts a new guest and brings the card up
//	bool comes_back();			// returns true if the card works after a reset
//	FakeHost &host(); PciDevice &card();
//	std::uint64_t scratch(), everything();		// addresses of mailboxes, and of queues and data
//	std::span<std::byte> table(bool which);		// tables that the card reads
//	Opcode any_opcode(std::uint8_t);
//	void raw(Opcode, modifier, op_modifier, in, out, by_event, token);
//	std::uint32_t qpn(std::uint8_t choice);
//	void create_qp(qpn, Input &), post(qpn, Input &), ring(qpn), end(qpn, bool by_error), arm(Input &), consume(Input &);
//	void set_port_active(); void set_cable(bool);
template<class Subject>
class MaliciousGuest
{
public:
	template<class... Arguments>
	explicit MaliciousGuest(Arguments &&...arguments)
	    : subject_(std::forward<Arguments>(arguments)...)
	{
	}
	// The guest is kept between inputs, because creating the card takes longer than an input.
	void run(Input input)
	{
		subject_.start();
		for (unsigned step = 0; step < 64 && !input.empty(); ++step) {
			act(input);
			subject_.host().loop().poll();
		}
		// The next input starts from this state.
		if (!subject_.comes_back())
			std::abort();
	}

private:
	void act(Input &input)
	{
		switch (input.take<std::uint8_t>() % 12) {
		case 0:
			any_command(input);
			break;
		case 1: // queue and data content
		case 2: {
			const auto at = input.take<std::uint16_t>() % kMaliciousScratch;
			const std::uint64_t place = input.take<std::uint8_t>() % 2
							    ? subject_.scratch()
							    : subject_.everything();
			write(place + at, input.take(64));
			break;
		}
		case 3:
			subject_.ring(pick_qp(input));
			break;
		case 4:
			subject_.create_qp(pick_qp(input), input);
			break;
		case 5:
			subject_.post(pick_qp(input), input);
			break;
		case 6:
			any_access(input);
			break;
		case 7: { // the guest writes directly to the tables in its memory
			const std::span<std::byte> table =
				subject_.table(input.take<std::uint8_t>() & 1);
			const std::size_t at = input.take<std::uint16_t>() % (table.size() - 8);
			std::ranges::copy(std::as_bytes(input.take(8)),
					  table.begin() + static_cast<std::ptrdiff_t>(at));
			break;
		}
		case 8:
			disturb(input);
			break;
		case 9:
			subject_.arm(input);
			break;
		case 10:
			subject_.consume(input);
			break;
		case 11: {
			const bool by_error = input.take<std::uint8_t>() % 4 == 0;
			subject_.end(pick_qp(input), by_error);
			break;
		}
		}
	}

	std::uint32_t pick_qp(Input &input) { return subject_.qpn(input.take<std::uint8_t>()); }

	void write(std::uint64_t address, std::span<const std::uint8_t> bytes)
	{
		const auto part = bytes.first(
			std::min<std::size_t>(bytes.size(), Subject::kMemorySize - address));
		std::ranges::copy(std::as_bytes(part),
				  subject_.host().memory(address, part.size()).begin());
	}

	void any_command(Input &input)
	{
		const auto opcode = subject_.any_opcode(input.take<std::uint8_t>());
		const std::uint8_t shape = input.take<std::uint8_t>();
		std::uint32_t modifier = input.take<std::uint32_t>();
		if (shape & 1)
			modifier &= 0xff;
		const std::uint32_t op_modifier = shape & 2 ? input.take<std::uint8_t>() % 16 : 0;
		const std::uint64_t in =
			shape & 4 ? input.take<std::uint64_t>() : subject_.scratch();
		const std::uint64_t out =
			shape & 8 ? input.take<std::uint64_t>() : subject_.scratch() + 4096;
		if (!(shape & 16))
			write(subject_.scratch(), input.take(128));
		subject_.raw(opcode, modifier, op_modifier, in, out, shape & 32,
			     input.take<std::uint16_t>());
	}

	void any_access(Input &input)
	{
		const unsigned bar = input.take<std::uint8_t>() % 3 * 2;
		const std::uint64_t size = Subject::kBarSizes[bar];
		const std::uint64_t offset = input.take<std::uint32_t>() % size;
		const std::uint64_t length =
			std::min<std::uint64_t>(1 + input.take<std::uint8_t>() % 32, size - offset);
		std::vector<std::byte> data(length);
		if (input.take<std::uint8_t>() & 1) {
			subject_.card().region_read(bar, offset, data);
		} else {
			std::ranges::copy(std::as_bytes(input.take(length)), data.begin());
			subject_.card().region_write(bar, offset, data);
		}
	}

	void disturb(Input &input)
	{
		auto &host = subject_.host();
		switch (input.take<std::uint8_t>() % 6) {
		case 0:
			host.set_bus_master(input.take<std::uint8_t>() & 1);
			break;
		case 1: // the guest removes memory that the card uses
			if (host.dma().unmap(0, Subject::kMemorySize))
				subject_.card().memory_changed();
			break;
		case 2:
			subject_.set_cable(true);
			break;
		case 3:
			subject_.set_cable(false);
			break;
		case 4:
			subject_.set_port_active();
			break;
		case 5:
			host.set_msix_enabled(input.take<std::uint8_t>() & 1);
			break;
		}
	}

	Subject subject_;
};

} // namespace weft::testing

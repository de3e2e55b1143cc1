// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fuzzes an emulated Ammasso with the accesses of a malicious guest: the guest writes requests,
// work requests, registers and indices in any order and with any content, and removes memory that
// the card uses. The card is connected to the card of a well-behaved guest. Only registered memory
// of the well-behaved guest may be written, and a reset must recover the card.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "cards/amso1100/testing/two_cards.hpp"
#include "bus/pci/testing/malicious_guest.hpp"

namespace weft::amso1100::testing
{
namespace
{

using namespace std::chrono_literals;
using weft::testing::Input;

constexpr std::uint32_t kRegion = 64 << 10, kGuard = 4096;
constexpr std::byte kUntouched{0x5a};

constexpr MessageId kRequests[] = {
	MessageId::rnic_open,      MessageId::rnic_query,     MessageId::rnic_setconfig,
	MessageId::rnic_close,     MessageId::cq_create,      MessageId::cq_destroy,
	MessageId::qp_connect,     MessageId::qp_create,      MessageId::qp_query,
	MessageId::qp_modify,      MessageId::qp_destroy,     MessageId::stag_alloc,
	MessageId::mr_register,    MessageId::mr_page_list,   MessageId::stag_dealloc,
	MessageId::listen_create,  MessageId::listen_destroy, MessageId::request_accept,
	MessageId::request_reject, MessageId::term,           MessageId::init,
};

// One of the two guests. It has a queue pair, and memory between two guard areas.
struct Party {
	explicit Party(Driver &which) : driver(which), cq(which.create_cq(512))
	{
		const std::uint64_t room = which.allocate(kRegion + 2 * kGuard);
		memory = room + kGuard;
		std::ranges::fill(which.host.memory(room, kRegion + 2 * kGuard), kUntouched);
		stag = which.register_memory(memory, kRegion);
		qp = which.create_qp(cq, cq);
	}
	bool intact()
	{
		const auto whole = [&](std::uint64_t at) {
			return std::ranges::all_of(
				driver.host.memory(at, kGuard),
				[](std::byte each) { return each == kUntouched; });
		};
		return whole(memory - kGuard) && whole(memory + kRegion);
	}

	Driver &driver;
	Driver::Cq cq;
	Driver::Qp qp{};
	std::uint64_t memory = 0;
	std::uint32_t stag = 0;
};

class Game
{
public:
	explicit Game(Input input) : input_(input)
	{
		good_.driver.listen(kPort);
		bad_.driver.connect(bad_.qp, kAddressB, kPort);
		answer();
	}

	void play()
	{
		for (unsigned step = 0; step < 48 && !input_.empty(); ++step) {
			act();
			cards_.loop.poll();
		}
		cards_.until([] { return false; }, 100ms);
		if (!good_.intact())
			std::abort();
		come_back();
	}

private:
	std::uint8_t byte() { return input_.take<std::uint8_t>(); }
	Driver &guest() { return bad_.driver; }

	// The well-behaved guest accepts each connection request, and posts requests on the
	// connection.
	void answer()
	{
		Driver &other = good_.driver;
		cards_.until([&] { return other.word(Driver::kEventWord) != other.events_read; },
			     20ms);
		while (const auto event = other.next_event()) {
			if (Driver::id_of(*event) != wire::EventId::connection_request)
				continue;
			// The guest has only one queue pair, so later requests are rejected.
			static_cast<void>(other.accept(
				good_.qp,
				Driver::field(*event, wire::connection_request::endpoint)));
		}
		for (std::uint64_t i = 0; i < 4; ++i)
			other.receive(good_.qp, i, {{good_.stag, 4096, good_.memory}});
		other.read(good_.qp, 9, {good_.stag, 2000, good_.memory}, bad_.stag, bad_.memory);
		other.write(good_.qp, 10, {{good_.stag, 2000, good_.memory}}, bad_.stag,
			    bad_.memory);
		other.send(good_.qp, 11, {{good_.stag, 100, good_.memory}});
		cards_.loop.poll();
		while (other.poll(good_.cq))
			;
	}

	void act()
	{
		switch (byte() % 11) {
		case 0:
			return access();
		case 1:
		case 2:
			return ask();
		case 3:
		case 4:
			return post();
		case 5:
			return guest().receive(bad_.qp, byte(),
					       {{stag(), byte() * 16u, bad_.memory + byte()}});
		case 6:
			return guest().arm(bad_.cq, static_cast<wire::Notification>(byte() % 5));
		case 7:
			return lie_of_an_index();
		case 8:
			return disturb();
		case 9:
			cards_.until([] { return false; }, std::chrono::milliseconds(byte() * 4));
			return;
		case 10:
			return answer();
		}
	}

	std::uint32_t stag()
	{
		switch (byte() % 4) {
		case 0:
			return 0;
		case 1:
			return input_.take<std::uint32_t>();
		case 2:
			return good_.stag;
		default:
			return bad_.stag;
		}
	}
	// Accesses an offset near one that is in use.
	void access()
	{
		static constexpr std::pair<unsigned, std::uint64_t> kPlaces[] = {
			{0, 0},
			{0, wire::reg::host_hint},
			{0, wire::reg::adapter_hint},
			{4, wire::page_base},
			{4, wire::page_base + 0x1000},
			{4, wire::page_base + 0x2000},
			{4, wire::page_base + 0x10000},
			{4, wire::page_base + 0x400000},
			{4, wire::page_base + 0x4400000 - 64},
			{4, wire::receive_ring},
			{4, wire::transmit_ring},
			{4, wire::rings_end - 16},
		};
		const auto [bar, place] = kPlaces[byte() % std::size(kPlaces)];
		const std::uint64_t offset = place + input_.take<std::uint16_t>() % 1024;
		std::vector<std::byte> data(byte() % 3 ? std::size_t{1} << byte() % 4
						       : 1u + byte() % 64);
		if (byte() % 4 == 0) {
			guest().host.read_register(bar, offset, data);
		} else {
			std::ranges::copy(std::as_bytes(input_.take(data.size())), data.begin());
			guest().host.write_register(bar, offset, data);
		}
	}
	// Most handles are valid, so that the other fields are also checked.
	void ask()
	{
		Driver::Words words;
		const MessageId id = kRequests[byte() % std::size(kRequests)];
		const std::uint32_t handles[] = {bad_.qp.handle, bad_.cq.handle, bad_.stag,
						 guest().rnic, last_endpoint_};
		const std::uint8_t shape = byte();
		std::vector<std::byte> tail;
		if (shape & 1)
			words = Driver::cq_words(guest().rnic, Driver::kFree, Driver::kFree + 4096,
						 2 + byte());
		if (shape & 2)
			words = guest().qp_words(bad_.cq, bad_.cq, 2u + byte() % 16,
						 2u + byte() % 16, 0);
		if (shape & 4)
			words = guest().modify_words(bad_.qp, 1u << byte() % 8);
		if (!(shape & 7))
			words = {{wire::rnic_handle, guest().rnic},
				 {wire::object_handle, handles[byte() % std::size(handles)]},
				 {0x18, handles[byte() % std::size(handles)]},
				 {0x1c, guest().rnic}};
		for (unsigned i = byte() % 4; i > 0; --i)
			words.emplace_back(0x10 + byte() % 60 * 4,
					   shape & 8 ? byte() : input_.take<std::uint32_t>());
		guest().fill(id, words, shape & 16 ? 0 : Driver::kContext);
		guest().ring();
		cards_.loop.poll();
		while (const auto event = guest().next_event())
			if (Driver::id_of(*event) == wire::EventId::connection_request)
				last_endpoint_ =
					Driver::field(*event, wire::connection_request::endpoint);
	}
	void post()
	{
		const auto bytes = std::as_bytes(input_.take(byte() % 96));
		Driver::Slot slot(96, std::byte{0});
		std::ranges::copy(bytes, slot.begin());
		slot[wire::header::id] = static_cast<std::byte>(1 + byte() % 13);
		const std::uint8_t shape = byte();
		if (shape & 1) {
			slot[wire::work::sge_count] = std::byte{1};
			for (const std::size_t at : {wire::send::sges, wire::rdma_write::sges}) {
				store_be<std::uint32_t>(slot, at + wire::sge::stag, stag());
				store_be<std::uint32_t>(slot, at + wire::sge::length, byte());
				store_be<std::uint64_t>(slot, at + wire::sge::offset, bad_.memory);
			}
			store_be<std::uint32_t>(slot,
						slot[wire::header::id] == std::byte{5}
							? wire::rdma_write::total
							: wire::send::total,
						byte());
		}
		if (shape & 2)
			store_be<std::uint32_t>(slot, wire::rdma_write::remote_stag, good_.stag);
		if (shape & 4)
			store_be<std::uint64_t>(slot, wire::rdma_write::remote_offset,
						good_.memory + kRegion - byte());
		guest().post(bad_.qp, slot);
	}
	void lie_of_an_index()
	{
		const std::uint64_t places[] = {guest().shared,       guest().reply_shared,
						guest().event_shared, bad_.cq.shared,
						bad_.qp.sq,           bad_.qp.rq};
		guest().put<std::uint16_t>(places[byte() % std::size(places)] + wire::shared::index,
					   input_.take<std::uint16_t>() >> byte() % 16);
		guest().host.write<std::uint32_t>(0, wire::reg::adapter_hint,
						  input_.take<std::uint32_t>());
	}
	void disturb()
	{
		auto &host = guest().host;
		switch (byte() % 6) {
		case 0:
			return host.set_bus_master(byte() & 1);
		case 1:
			if (host.dma().unmap(0, Driver::kMemory))
				guest().card->function()->memory_changed();
			return;
		case 2:
			return cards_.set({}, false);
		case 3:
			return cards_.set({}, true);
		case 4:
			return guest().card->function()->reset(PciReset::bus);
		case 5:
			host.clear_memory();
			return;
		}
	}
	void come_back()
	{
		guest().host.set_bus_master(true);
		guest().host.clear_memory();
		guest().card->function()->reset(PciReset::bus);
		guest().start();
		guest().initialise();
		if (!guest().open())
			std::abort();
	}

	Input input_;
	TwoCards cards_;
	Party bad_{cards_.a}, good_{cards_.b};
	std::uint32_t last_endpoint_ = 0;
};

} // namespace
} // namespace weft::amso1100::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	weft::amso1100::testing::Game(weft::testing::Input({data, size})).play();
	return 0;
}

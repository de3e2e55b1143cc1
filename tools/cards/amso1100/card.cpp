// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/card.hpp"

#include <algorithm>
#include <cstring>

#include "cards/amso1100/bytes.hpp"
#include "cards/model.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;

namespace
{

PciDescription describe()
{
	PciDescription description;
	description.vendor = description.subsystem_vendor = wire::pci_vendor_id;
	description.device = description.subsystem = wire::pci_device_id;
	description.class_code = 0x020000; // an Ethernet controller
	description.intx = true;
	description.bars[0] = {wire::bar0_size, true, false};
	description.bars[2] = {wire::bar2_size, true, false};
	description.bars[4] = {wire::bar4_size, true, false};
	// The real board has no MSI-X, and the contents of its BAR 2 are not documented.
	description.msix = {wire::vectors, 2, wire::vector_table, 2, wire::pending_vectors};
	return description;
}

// Derives an address with the vendor's OUI 00-0D-B2. The last bit is 0 for the host and 1 for the
// RNIC.
ethernet::Address address_from(std::uint64_t guid)
{
	std::uint64_t mixed = 0xcbf29ce484222325;
	for (unsigned shift = 0; shift < 64; shift += 8)
		mixed = (mixed ^ (guid >> shift & 0xff)) * 0x100000001b3;
	return 0x000db2000000 | ((mixed >> 32 & 0xfffffe));
}

constexpr std::uint64_t kPageEnd = wire::page_base + wire::page::size;
// Offset of the RNIC's queues.
constexpr std::uint64_t kQueues = wire::page_base + MessageQueues::kShared;
constexpr std::uint64_t kQueuesEnd = wire::page_base + MessageQueues::kEnd;
constexpr std::uint64_t kVerbs = wire::page_base + CompletionQueue::kShared;
constexpr std::uint64_t kVerbsEnd = wire::page_base + QueueWindow::kEnd;

} // namespace

Card::Card(std::uint64_t guid, std::shared_ptr<ethernet::Channel> channel)
    : description_(describe()), host_address_(address_from(guid)), channel_(std::move(channel)),
      interrupts_(
	      [this](bool driven) {
		      if (host_)
			      host_->set_intx(driven && !host_->msix_enabled());
	      },
	      [this](wire::Vector vector) {
		      if (host_)
			      host_->raise_msix(static_cast<unsigned>(vector));
	      }),
      rings_(
	      interrupts_, [this](const ethernet::FramePtr &frame) { send(frame); },
	      [this] { return !cable_ || cable_->has_room(); }),
      rnic_(interrupts_, rdma_address(), [this](const ethernet::FramePtr &frame) { send(frame); })
{
}

void Card::send(const ethernet::FramePtr &frame)
{
	if (cable_ && !cable_->send(frame))
		lost_.fetch_add(1, std::memory_order_relaxed);
}

void Card::attach(PciHost &host)
{
	host_ = &host;
	rnic_.attach(host);
	transmit_wakeup_.emplace(host.loop(), [this] { transmit(); });
	request_wakeup_.emplace(host.loop(), [this] { serve(); });
	if (channel_)
		cable_.emplace(
			channel_, ethernet::Channel::kCard, host.loop(),
			[this](const ethernet::FramePtr &frame) { receive(frame); },
			[this] { transmit_wakeup_->signal(); });
}

void Card::detach()
{
	rnic_.reset();
	cable_.reset();
	request_wakeup_.reset();
	transmit_wakeup_.reset();
	host_ = nullptr;
}

void Card::reset(PciReset)
{
	rings_.reset();
	rnic_.reset();
	interrupts_.reset();
}

void Card::bus_master_changed(bool on)
{
	if (!on)
		return;
	transmit_wakeup_->signal();
	request_wakeup_->signal();
}

void Card::serve()
{
	if (rnic_.serve())
		request_wakeup_->signal();
}

void Card::transmit()
{
	if (rings_.transmit(*host_))
		transmit_wakeup_->signal();
}

// Passes a frame to the host or the RNIC. Drops frames to other unicast addresses, because there is
// no promiscuous mode.
void Card::receive(const ethernet::FramePtr &frame)
{
	const ethernet::Address destination = ethernet::destination_of(*frame);
	if (destination == host_address() || ethernet::is_group(destination))
		rings_.receive(*host_, *frame);
	if (destination == rdma_address() || destination == tcp::kBroadcast)
		rnic_.receive(*frame);
}

void Card::region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data)
{
	std::ranges::fill(data, std::byte{0});
	const std::uint64_t end = offset + data.size();
	if (bar == 0 && data.size() == sizeof(std::uint32_t)) {
		const std::uint32_t value = offset == wire::reg::host_hint
						    ? rnic_.queues.pop_hint()
						    : interrupts_.read(offset);
		for (unsigned i = 0; i < sizeof(value); ++i)
			data[i] = static_cast<std::byte>(value >> 8 * i);
	} else if (bar == 4 && offset >= wire::page_base && end <= kPageEnd) {
		read_page(offset - wire::page_base, data);
	} else if (bar == 4 && offset >= kQueues && end <= kQueuesEnd) {
		rnic_.queues.read(offset - kQueues, data);
	} else if (bar == 4 && offset >= kVerbs && end <= kVerbsEnd) {
		rnic_.read(offset - wire::page_base, data);
	} else if (bar == 4 && offset >= wire::receive_ring && end <= wire::rings_end) {
		rings_.read(offset - wire::receive_ring, data);
	}
}

void Card::region_write(unsigned bar, std::uint64_t offset, std::span<const std::byte> data)
{
	const std::uint64_t end = offset + data.size();
	if (bar == 0 && data.size() == sizeof(std::uint32_t)) {
		std::uint32_t value = 0;
		for (unsigned i = 0; i < sizeof(value); ++i)
			value |= static_cast<std::uint32_t>(data[i]) << 8 * i;
		if (offset == wire::reg::adapter_hint) {
			rnic_.ring(value);
			request_wakeup_->signal();
		} else {
			interrupts_.write(offset, value);
		}
	} else if (bar == 4 && offset >= kQueues && end <= kQueuesEnd) {
		if (rnic_.queues.write(offset - kQueues, data))
			request_wakeup_->signal();
	} else if (bar == 4 && offset >= kVerbs && end <= kVerbsEnd) {
		rnic_.write(offset - wire::page_base, data);
	} else if (bar == 4 && offset >= wire::receive_ring && end <= wire::rings_end) {
		if (rings_.write(offset - wire::receive_ring, data))
			transmit_wakeup_->signal();
	}
}

// Builds the page on each read, because parts of it change. Writes to the page are ignored.
void Card::read_page(std::uint64_t offset, std::span<std::byte> data)
{
	std::array<std::byte, wire::page::size> page{};
	std::memcpy(page.data() + wire::page::magic, wire::page_magic, sizeof(wire::page_magic));
	const auto put = [&](std::size_t at, std::uint32_t value) {
		store_be<std::uint32_t>(page, at, value);
	};
	put(wire::page::version, wire::interface_version);
	put(wire::page::ivn, wire::message_version);
	put(wire::page::window_size,
	    static_cast<std::uint32_t>(wire::receive_ring - wire::page_base));
	const auto queue = [&](std::size_t at, unsigned entries, std::uint64_t pool,
			       wire::Queue number) {
		put(at, entries);
		put(at + 4, wire::message_size);
		put(at + 8, static_cast<std::uint32_t>(pool));
		put(at + 12,
		    static_cast<std::uint32_t>(MessageQueues::kShared +
					       static_cast<unsigned>(number) * wire::shared::size));
	};
	queue(wire::page::q0_q_size, wire::request_entries, MessageQueues::kRequests,
	      wire::Queue::requests);
	queue(wire::page::q1_q_size, wire::reply_entries, 0, wire::Queue::replies);
	queue(wire::page::q2_q_size, wire::event_entries, 0, wire::Queue::events);
	store_be<std::uint64_t>(page, wire::page::host_address, host_address() << 16);
	store_be<std::uint64_t>(page, wire::page::rdma_address, rdma_address() << 16);
	put(wire::page::next_transmit, rings_.next_transmit());
	put(wire::page::next_receive, rings_.next_receive());
	std::ranges::copy(std::span(page).subspan(offset, data.size()), data.begin());
}

std::vector<cards::Count> Card::activity() const
{
	const auto of = [](const std::atomic<std::uint64_t> &count) {
		return count.load(std::memory_order_relaxed);
	};
	return {{"transmitted", of(rings_.counts.transmitted)},
		{"received", of(rings_.counts.received)},
		{"bad-transmits", of(rings_.counts.bad_transmits)},
		{"missed", of(rings_.counts.missed)},
		{"overlong", of(rings_.counts.overlong)},
		{"lost", of(lost_)},
		{"verbs-requests", of(rnic_.queues.counts.requests)},
		{"verbs-events", of(rnic_.queues.counts.events)},
		{"completions", of(rnic_.queues.counts.completions)},
		{"connections", of(rnic_.queues.counts.connections)}};
}

namespace
{

const cards::Registration kRegistration{
	{.name = "amso1100",
	 .least_ports = 0,
	 .most_ports = 0,
	 .ethernet = true,
	 .flags = {},
	 .make = [](const cards::Settings &settings, Loop *) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<Card>(settings.guid, settings.ethernet);
	 }}};

} // namespace

} // namespace weft::amso1100

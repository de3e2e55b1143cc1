// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/example/card.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/guest_memory.hpp"
#include "cards/model.hpp"

namespace weft::example
{

namespace wire = hw::example;

namespace
{

// Requests per slice of the loop, so that register accesses of the guest are not delayed for
// longer.
constexpr unsigned kSlice = 16;

constexpr std::string_view kInterruptLost = "interrupt-lost";

PciDescription describe()
{
	PciDescription description;
	description.vendor = wire::pci_vendor_id;
	description.device = wire::pci_device_id;
	description.class_code = 0x088000; // a system peripheral of no specific type
	description.bars[0] = {wire::register_bar_size, false, false};
	description.bars[2] = {wire::msix_bar_size, false, false};
	description.msix.vectors = 1;
	description.msix.table_bar = 2;
	description.msix.pba_bar = 2;
	description.msix.pba_offset = wire::msix_pba_offset;
	return description;
}

} // namespace

ExampleCard::ExampleCard() : description_(describe()) {}

void ExampleCard::attach(PciHost &host)
{
	host_ = &host;
	wakeup_.emplace(host.loop(), [this] { serve(); });
}

void ExampleCard::detach()
{
	wakeup_.reset();
	host_ = nullptr;
}

void ExampleCard::reset(PciReset)
{
	enter(State::idle);
}

// A device without bus mastering must not access memory, so it drops the queue. The next driver
// sets it up again.
void ExampleCard::bus_master_changed(bool on)
{
	if (!on)
		enter(State::idle);
}

void ExampleCard::enter(State state)
{
	state_ = state;
	if (state != State::running) {
		queue_ = 0;
		posted_ = served_ = 0;
	}
}

// The guest may access a register with any size and alignment, but only complete accesses have an
// effect.
void ExampleCard::region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data)
{
	std::ranges::fill(data, std::byte{0});
	if (bar == 0 && offset == wire::doorbell && data.size() == sizeof(std::uint64_t))
		data[0] = static_cast<std::byte>(state_);
}

void ExampleCard::region_write(unsigned bar, std::uint64_t offset, std::span<const std::byte> data)
{
	std::uint64_t value;
	if (bar != 0 || offset != wire::doorbell || data.size() != sizeof(value))
		return;
	std::memcpy(&value, data.data(), sizeof(value));
	doorbells_.fetch_add(1, std::memory_order_relaxed);
	ring(value);
}

std::uint32_t ExampleCard::outstanding() const
{
	return (posted_ - served_) & wire::count_mask;
}

void ExampleCard::ring(std::uint64_t value)
{
	const std::uint64_t queue = value & ~wire::count_mask;
	if (state_ == State::failed)
		return;
	if (!host_->bus_master() || (state_ == State::running && queue != queue_))
		return enter(State::failed);
	enter(State::running);
	queue_ = queue;
	posted_ = static_cast<std::uint32_t>(value & wire::count_mask);
	if (outstanding() > wire::queue_entries)
		return enter(State::failed);
	serve();
}

// Executes posted requests, a slice at a time.
void ExampleCard::serve()
{
	unsigned done = 0;
	while (state_ == State::running && outstanding() != 0 && done < kSlice) {
		const std::uint64_t place = served_ % wire::queue_entries;
		if (!carry_out(queue_ + place * sizeof(wire::Request))) {
			enter(State::failed);
			break;
		}
		served_ = (served_ + 1) & wire::count_mask;
		++done;
	}
	if (done)
		interrupt();
	if (outstanding() != 0)
		wakeup_->signal();
}

// Returns false if the request itself is not in guest memory. It is copied first, because the guest
// may change it meanwhile.
bool ExampleCard::carry_out(std::uint64_t address)
{
	const auto request = host_->dma().read_as<wire::Request>(address);
	if (!request)
		return false;
	requests_.fetch_add(1, std::memory_order_relaxed);
	const auto status = static_cast<std::uint32_t>(carry(*request));
	return host_->dma().store(address + offsetof(wire::Request, status), status);
}

wire::Status ExampleCard::carry(const wire::Request &request)
{
	if (request.length == 0 || request.length > wire::most_bytes)
		return wire::Status::bad_length;
	std::array<std::byte, wire::most_bytes> room;
	const auto bytes = std::span(room).first(request.length);
	GuestMemory &memory = host_->dma();
	if (!memory.read(request.source, bytes) || !memory.write(request.destination, bytes))
		return wire::Status::no_memory;
	return wire::Status::done;
}

void ExampleCard::interrupt()
{
	std::uint32_t left = interrupts_to_lose_.load(std::memory_order_relaxed);
	while (left && !interrupts_to_lose_.compare_exchange_weak(left, left - 1))
		;
	if (left) {
		interrupts_lost_.fetch_add(1, std::memory_order_relaxed);
		return;
	}
	interrupts_.fetch_add(1, std::memory_order_relaxed);
	host_->raise_msix(0);
}

std::vector<cards::Count> ExampleCard::activity() const
{
	return {{"doorbells", doorbells_.load(std::memory_order_relaxed)},
		{"requests", requests_.load(std::memory_order_relaxed)},
		{"interrupts", interrupts_.load(std::memory_order_relaxed)}};
}

std::vector<cards::Count> ExampleCard::faults() const
{
	return {{kInterruptLost, interrupts_lost_.load(std::memory_order_relaxed)}};
}

std::vector<cards::Count> ExampleCard::armed() const
{
	const auto left = interrupts_to_lose_.load(std::memory_order_relaxed);
	if (left == 0)
		return {};
	return {{kInterruptLost, left}};
}

bool ExampleCard::arm_fault(std::string_view name, std::uint32_t count)
{
	if (name != kInterruptLost)
		return false;
	interrupts_to_lose_.store(count, std::memory_order_relaxed);
	return true;
}

namespace
{

// This registration makes model = "example" valid in lab files.
const cards::Registration kRegistration{
	{.name = "example",
	 .least_ports = 0,
	 .most_ports = 0,
	 .flags = {},
	 .make = [](const cards::Settings &, Loop *) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<ExampleCard>();
	 }}};

} // namespace

} // namespace weft::example

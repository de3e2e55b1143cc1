// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Plugs an emulated card into the single bus slot of the kernel simulation, with a subnet manager
// at the other end of its cable. The card and the subnet manager run in a separate task, in virtual
// time. A driver's access to the card takes effect at once, or when the card's task runs the next
// time, as with weftd. The seed determines which other tasks run between two steps of the card's
// task.
#include <cstring>
#include <memory>
#include <optional>
#include <sys/epoll.h>
#include <kern/abi/explore.h>
#include <kern/abi/time.h>
#include <kern/sim/failure.hpp>
#include <kern/sim/pci.hpp>
#include <kern/sim/scheduler.hpp>
#include <spdlog/logger.h>
#include <spdlog/spdlog.h>
#include "base/loop.hpp"
#include "cards/mlx4/card.hpp"
#include "cards/mlx4/card_context.hpp"
#include "net/fabric/fabric.hpp"
#include "cards/mthca/card.hpp"
#include "cards/mthca/card_context.hpp"
#include "bus/pci/endpoint.hpp"
#include "sm/subnet_manager.hpp"

namespace
{

using namespace weft;

constexpr std::uint64_t kMemoryBytes = 32 << 20;
constexpr ib::Guid kCardGuid = 0x0002c90300000100;

/*
 * Provides the time and the random numbers of the run. A thread that waits lets other threads run.
 */
class RunEnvironment final : public Environment
{
public:
	Clock::time_point now() const override
	{
		return Clock::time_point(std::chrono::nanoseconds(sim::scheduler().now()));
	}
	std::chrono::system_clock::time_point date() const override
	{
		return std::chrono::system_clock::time_point(
			std::chrono::nanoseconds(sim::scheduler().now()));
	}
	std::uint64_t random() override { return kern_random_u64(); }
	int wait(int poll, epoll_event *events, int most, Clock::time_point until) override
	{
		const int count = ::epoll_wait(poll, events, most, 0);

		if (count > 0 || until <= now())
			return count;
		sim::scheduler().block(
			this, until == Clock::time_point::max()
				      ? sim::never
				      : static_cast<std::uint64_t>(
						std::chrono::nanoseconds(until.time_since_epoch())
							.count()));
		return 0;
	}
	void wake() { sim::scheduler().wake(this); }
};

/* If the card has two ports, the second one is not connected. */
std::unique_ptr<PciDevice> make_card(kern_explore_card kind, fabric::Fabric &fabric,
				     fabric::Port &port)
{
	if (kind == KERN_EXPLORE_MTHCA)
		return std::make_unique<mthca::Card>(
			mthca::CardConfig{.name = "explored",
					  .node_guid = kCardGuid,
					  .ports = {&port, &fabric.add_port("other")}},
			[](hca::Context &context) { return hca::make_transport(context); });
	return std::make_unique<mlx4::Card>(
		mlx4::CardConfig{.name = "explored",
				 .node_guid = kCardGuid,
				 .description = {},
				 .ports = {&port}},
		[](mlx4::CardContext &context) { return hca::make_transport(context); });
}

/* Exists from plugging in the card until its removal. */
class Slot final : public sim::pci::Function, private pci::Interrupts
{
public:
	explicit Slot(kern_explore_card kind)
	    : loop_("card", Loop::Mode::manual, environment_),
	      fabric_(fabric::Fabric::kDefaultSeed, &loop_.reactor()),
	      port_(fabric_.add_port("card")), far_(fabric_.add_port("manager")),
	      card_(make_card(kind, fabric_, port_)),
	      memory_(MemoryMapping::allocate(kMemoryBytes)), log_("card"),
	      endpoint_(loop_, *card_, *this, std::shared_ptr<spdlog::logger>(&log_, [](auto *) {}),
			1)
	{
		fabric_.connect(port_, far_);
		manager_.emplace(far_, sm::Config{}, &loop_.reactor());
		endpoint_.dma().map(reinterpret_cast<std::uint64_t>(memory_->data()), kMemoryBytes,
				    true, true, memory_);
		card_->memory_changed();
		sim::scheduler().start(sim::Kind::task, "the card", [this] { live(); });
		pci_ = sim::pci::plug(*this, "card");
	}
	~Slot() override
	{
		sim::pci::unplug(pci_);
		pulled_ = true;
		environment_.wake();
		while (!ended_)
			sim::scheduler().block(&ended_);
	}

	void read_config(unsigned int offset, std::span<std::byte> data) override
	{
		endpoint_.region_read(pci::Endpoint::kConfigRegion, offset, data);
		environment_.wake();
	}
	void write_config(unsigned int offset, std::span<const std::byte> data) override
	{
		endpoint_.region_write(pci::Endpoint::kConfigRegion, offset, data);
		environment_.wake();
	}
	std::uint64_t bar_size(unsigned int bar) const override
	{
		return endpoint_.region_size(bar);
	}
	void read(unsigned int bar, std::uint64_t offset, std::span<std::byte> data) override
	{
		endpoint_.region_read(bar, offset, data);
		environment_.wake();
	}
	void write(unsigned int bar, std::uint64_t offset, std::span<const std::byte> data) override
	{
		endpoint_.region_write(bar, offset, data);
		environment_.wake();
	}
	unsigned int vectors() const override { return card_->description().msix.vectors; }
	std::span<std::byte> memory() override { return {memory_->data(), kMemoryBytes}; }

private:
	void live()
	{
		while (!pulled_) {
			loop_.reactor().turn(Clock::time_point::max());
			sim::scheduler().step({"the card's turn", this, nullptr});
		}
		ended_ = true;
		sim::scheduler().wake(&ended_);
	}

	bool carries_intx() const override { return false; }
	void raise_msix(unsigned vector) override { sim::pci::interrupt(*this, vector); }
	bool pending(std::size_t) const override { return false; }
	void clear_pending() override {}
	void set_intx(bool) override {}
	void set_intx_disabled(bool) override {}
	void reset() override {}
	void release() override {}

	RunEnvironment environment_;
	Loop loop_;
	fabric::Fabric fabric_;
	fabric::Port &port_, &far_;
	std::unique_ptr<PciDevice> card_;
	std::shared_ptr<const MemoryMapping> memory_;
	spdlog::logger log_;
	pci::Endpoint endpoint_;
	std::optional<sm::SubnetManager> manager_;
	pci_dev *pci_ = nullptr;
	bool pulled_ = false, ended_ = false;
};

std::unique_ptr<Slot> slot;

} // namespace

extern "C" {

/*
 * In a kernel module, the driver's module.c defines the tables of IDs, and the kernel's build
 * defines __this_module.
 */
extern const pci_device_id weft_mlx4_pci_ids[], weft_mthca_pci_ids[];
const pci_device_id weft_mlx4_pci_ids[] = {{0x15b3, 0x673c}, {}};
const pci_device_id weft_mthca_pci_ids[] = {{0x15b3, 0x6282}, {}};
char __this_module;

void kern_explore_plug_card(kern_explore_card card)
{
	/* Logging is disabled, because the interleaving shows the order of events. */
	spdlog::set_level(spdlog::level::off);
	slot = std::make_unique<Slot>(card);
}

void kern_explore_pull_card(void)
{
	slot.reset();
}
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages the PCI function of a ConnectX-2 or InfiniHost III from probe to remove: reset, start,
// failure and recovery. Each driver instantiates this template with the class of its card.
#pragma once
#include <kern/debugfs.hpp>
#include <kern/lock.hpp>
#include <kern/log.hpp>
#include <kern/pci.hpp>
#include <kern/time.hpp>
#include <kern/work.hpp>
#include "command.hpp"
#include "error_buffer.hpp"

namespace mellanox_icm
{

/*
 * The parameter Card describes a kind of card:
 *
 *	struct Card {
 *		using Hca = …;			// the card's state between two resets
 *		using IbDevice = …;		// the device that is registered with the midlayer
 *		static constexpr const char *name;	// the driver's name
 *		static constexpr size_t bar0_bytes, bar2_bytes;	// minimum sizes of the BARs
 *		static constexpr u32 error_words;		// see ErrorBuffer
 *		// Claim the function; release it; prepare a reset. May sleep.
 *		static kern::Result<> claim(kern::pci::Device pci, const kern::Mmio &bar0);
 *		static void release(const kern::Mmio &bar0);
 *		static kern::Result<> before_reset(kern::pci::Device pci, const kern::Mmio &bar0);
 *	};
 *
 * Lock order: lifecycle_lock_ is the outermost lock. It is held while the card is started, stopped
 * and recovered, and while the device is registered and unregistered. No code that a verb may wait
 * for takes it.
 * registered and unregistered. Nothing that a verb may wait for takes it.
 */
template<class Card>
class Adapter final : public FailureListener
{
public:
	/*
	 * Starts the card and registers its device. May sleep. Errors: those of the start; ENODEV
	 * if another driver instance owns the card.
	 */
	static kern::Result<kern::Owned<Adapter>> probe(kern::pci::Device pci, unsigned long data);
	~Adapter();
	/* Called before a reboot: stops the card's DMA and interrupts. */
	void shutdown();
	/*
	 * Called before and after a reset of the function by the kernel (FLR). They unregister the
	 * device, and register it again. May sleep.
	 */
	void reset_prepare();
	void reset_done();

	/*
	 * Called when the card can no longer be used. Disables the card's access to memory before
	 * it returns, so that the caller may free memory. A work item performs the recovery.
	 * Context: any.
	 */
	void card_failed(const char *why) override;

private:
	explicit Adapter(kern::pci::Device pci);
	/* Resets and starts the card, and registers its device. */
	kern::Result<> start() KERN_REQUIRES(lifecycle_lock_);
	/* Unregisters the device and stops the card. The card cannot access memory afterwards. */
	void stop() KERN_REQUIRES(lifecycle_lock_);
	/*
	 * Stops a card that does not respond any more. First notifies all clients; outstanding
	 * requests are flushed.
	 */
	void abandon() KERN_REQUIRES(lifecycle_lock_);
	kern::Result<> reset_card();
	void set_bus_master(bool on);
	void check_health();
	void recover();
	/* debugfs: shows the card's firmware, counters and objects. */
	void show_summary(kern::debugfs::Output &out);
	/* debugfs: a write of any text has the same effect as a failure of the card. */
	int write_reset(const char *text, size_t size);
	void show_reset(kern::debugfs::Output &out);

	static constexpr int pci_command = 0x04;
	static constexpr u16 pci_command_master = 1 << 2;
	/* Software reset: this register is the same on all cards of the family. */
	static constexpr u64 reset_register = 0xf0010;
	static constexpr u32 reset_bit = 1;
	/* Time after a reset during which a function need not respond (PCI Express 6.6.1). */
	static constexpr unsigned int quiet_after_reset_ms = 100;
	static constexpr unsigned int return_wait_ms = 2000;
	static constexpr unsigned int health_interval_ms = 2000;
	/* A card that fails more often than this within the window is not restarted. */
	static constexpr unsigned int max_recoveries = 5;
	static constexpr u64 recovery_window_ns = 60ull * 1000 * 1000 * 1000;

	kern::pci::Device pci_;
	kern::pci::Enabled enabled_;
	kern::Mmio bar0_;
	kern::Mmio uar_;
	kern::Mutex lifecycle_lock_;
	kern::Owned<typename Card::Hca> hca_ KERN_GUARDED_BY(lifecycle_lock_);
	typename Card::IbDevice *device_ KERN_GUARDED_BY(lifecycle_lock_) = nullptr;
	/* The function was claimed, so the destructor must release it. */
	bool claimed_ = false;
	bool removing_ KERN_GUARDED_BY(lifecycle_lock_) = false;
	/*
	 * True between a successful start and the next stop. Only then does card_failed() start a
	 * recovery.
	 */
	kern::Atomic<bool> running_{false};
	kern::Atomic<bool> failing_{false};
	unsigned int recoveries_ = 0;
	u64 total_recoveries_ KERN_GUARDED_BY(lifecycle_lock_) = 0;
	u64 first_recovery_ = 0;
	kern::DelayedWork health_work_{kern::method<&Adapter::check_health>, this};
	kern::Work recovery_work_{kern::method<&Adapter::recover>, this};
	kern::debugfs::Directory directory_;
	kern::debugfs::File summary_file_{kern::method<&Adapter::show_summary>, this};
	kern::debugfs::File reset_file_{kern::method<&Adapter::show_reset>,
					kern::method<&Adapter::write_reset>, this};
};

/*
 * The directory in debugfs that contains the directories of a driver's cards. It exists from
 * create() to remove(), which module init and exit call.
 */
template<class Card>
struct DebugRoot {
	static constinit kern::Static<kern::debugfs::Directory> directory;

	static void create() { directory.construct(Card::name); }
	static void remove() { directory.destruct(); }
};
template<class Card>
constinit kern::Static<kern::debugfs::Directory> DebugRoot<Card>::directory;

template<class Card>
Adapter<Card>::Adapter(kern::pci::Device pci)
    : pci_(pci), lifecycle_lock_(KERN_LOCK_CLASS("mellanox.lifecycle"))
{
}

template<class Card>
kern::Result<kern::Owned<Adapter<Card>>> Adapter<Card>::probe(kern::pci::Device pci, unsigned long)
{
	auto adapter = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Adapter(pci)));
	adapter->enabled_ = KERN_TRY(kern::pci::Enabled::create(pci, Card::name));
	if (pci.bar_size(0) < Card::bar0_bytes || pci.bar_size(2) < Card::bar2_bytes) {
		kern_dev_error(pci.dev(), "BARs of %#lx and %#lx bytes are too small\n",
			       pci.bar_size(0), pci.bar_size(2));
		return kern::Error{-ENODEV};
	}
	adapter->bar0_ = KERN_TRY(pci.map_bar(0));
	adapter->uar_ = KERN_TRY(pci.map_bar(2));
	KERN_TRY(Card::claim(pci, adapter->bar0_));
	adapter->claimed_ = true;
	{
		kern::Guard guard(adapter->lifecycle_lock_);
		KERN_TRY(adapter->start());
	}
	adapter->directory_ = kern::debugfs::Directory(pci.name(), *DebugRoot<Card>::directory);
	adapter->summary_file_.add("summary", adapter->directory_);
	adapter->reset_file_.add("reset", adapter->directory_);
	return adapter;
}

template<class Card>
Adapter<Card>::~Adapter()
{
	{
		kern::Guard guard(lifecycle_lock_);
		removing_ = true;
	}
	recovery_work_.cancel();
	health_work_.cancel();
	kern::Guard guard(lifecycle_lock_);
	stop();
	if (claimed_)
		Card::release(bar0_);
}

template<class Card>
void Adapter<Card>::shutdown()
{
	kern::Guard guard(lifecycle_lock_);
	removing_ = true;
	// No client has to be notified, but the card must not write to the next kernel's memory.
	set_bus_master(false);
}

template<class Card>
kern::Result<> Adapter<Card>::reset_card()
{
	/*
	 * A card that does not respond has no state. Saving and restoring all ones would keep it
	 * unusable.
	 */
	if (!pci_.present())
		return kern::Error{-ENODEV};
	KERN_TRY(pci_.save_state());
	KERN_TRY(Card::before_reset(pci_, bar0_));
	bar0_.write_be32(reset_register, reset_bit);
	kern::sleep_ms(quiet_after_reset_ms);
	const auto deadline = kern::Deadline::in_ms(return_wait_ms);
	while (!pci_.present()) {
		if (deadline.passed()) {
			kern_dev_error(pci_.dev(), "the card does not respond after its reset\n");
			return kern::Error{-ENODEV};
		}
		kern::sleep_ms(1);
	}
	pci_.restore_state();
	return {};
}

template<class Card>
void Adapter<Card>::set_bus_master(bool on)
{
	const auto command = pci_.read_config16(pci_command);
	if (!command)
		return;
	const u16 value = command.value();
	kern::ignore(pci_.write_config16(
		pci_command,
		static_cast<u16>(on ? value | pci_command_master : value & ~pci_command_master)));
}

template<class Card>
kern::Result<> Adapter<Card>::start()
{
	const u64 begin = kern::now_ns();
	KERN_TRY(reset_card());
	set_bus_master(true);
	failing_.store_relaxed(false);
	hca_ = KERN_TRY(Card::Hca::create(pci_, bar0_, uar_, *this));
	auto device = Card::IbDevice::create(*hca_);
	if (!device) {
		hca_.reset();
		return kern::Error{device.error()};
	}
	device_ = device.take();
	running_.store_release(true);
	if (const auto registered = device_->start(); !registered) {
		stop();
		return registered;
	}
	const auto &firmware = hca_->firmware();
	kern_dev_info(
		pci_.dev(),
		"%s: firmware %u.%u.%u, %u ports, %u completion vectors, started in %lu us with %lu commands\n",
		device_->name(), firmware.major, firmware.minor, firmware.subminor,
		hca_->num_ports(), hca_->completion_vectors(), (kern::now_ns() - begin) / 1000,
		hca_->commands().count());
	health_work_.queue(health_interval_ms);
	return {};
}

template<class Card>
void Adapter<Card>::stop()
{
	running_.store_release(false);
	if (device_) {
		device_->stop();
		Card::IbDevice::destroy(std::exchange(device_, nullptr));
	}
	hca_.reset();
	// The card may still have addresses of host memory, but can no longer access it.
	set_bus_master(false);
}

template<class Card>
void Adapter<Card>::card_failed(const char *why)
{
	// Every caller frees memory that the card could access when this function returns.
	set_bus_master(false);
	if (failing_.exchange(true))
		return;
	if (!running_.load_acquire())
		return;
	kern_dev_error(pci_.dev(), "%s; it will be reset\n", why);
	recovery_work_.queue();
}

template<class Card>
void Adapter<Card>::check_health()
{
	kern::Guard guard(lifecycle_lock_);
	if (removing_ || !hca_)
		return;
	const auto &firmware = hca_->firmware();
	const ErrorBuffer errors(bar0_, firmware.error_buffer_offset, firmware.error_buffer_dwords,
				 Card::error_words);
	if (const u32 error = errors.first_error()) {
		if (error != removed_card)
			errors.for_each([this](u32 index, u32 word) {
				kern_dev_error(pci_.dev(), "error buffer %02x: %08x\n", index,
					       word);
			});
		card_failed(error == removed_card ? "the card does not respond"
						  : "the card reports an internal error");
		return;
	}
	health_work_.queue(health_interval_ms);
}

template<class Card>
void Adapter<Card>::show_reset(kern::debugfs::Output &out)
{
	kern::Guard guard(lifecycle_lock_);
	out.print("%lu\n", total_recoveries_);
}

template<class Card>
int Adapter<Card>::write_reset(const char *, size_t)
{
	// If the card is being started, wait for that: the start needs access to memory.
	kern::Guard guard(lifecycle_lock_);
	if (hca_)
		card_failed("a reset was requested through debugfs");
	return 0;
}

template<class Card>
void Adapter<Card>::show_summary(kern::debugfs::Output &out)
{
	kern::Guard guard(lifecycle_lock_);
	if (!hca_) {
		out.print("not running\n");
		return;
	}
	const auto &firmware = hca_->firmware();
	out.print("firmware %u.%u.%u, %u pages\n", firmware.major, firmware.minor,
		  firmware.subminor, firmware.pages);
	out.print("commands %lu, recoveries %lu\n", hca_->commands().count(), total_recoveries_);
	hca_->dump(out);
}

template<class Card>
void Adapter<Card>::abandon()
{
	total_recoveries_++;
	hca_->commands().fail();
	if (device_)
		device_->report_fatal();
	stop();
}

template<class Card>
void Adapter<Card>::reset_prepare()
{
	// Do not count this as a failure of the card: users may request resets through sysfs as
	// often as they like.
	failing_.store_release(true);
	set_bus_master(false);
	kern::Guard guard(lifecycle_lock_);
	if (hca_)
		abandon();
}

template<class Card>
void Adapter<Card>::reset_done()
{
	kern::Guard guard(lifecycle_lock_);
	if (removing_ || hca_)
		return;
	if (const auto started = start(); !started)
		kern_dev_error(pci_.dev(), "the card cannot be restarted after its reset (%d)\n",
			       started.error());
	else
		kern_dev_info(pci_.dev(), "the card was restarted after its reset\n");
}

template<class Card>
void Adapter<Card>::recover()
{
	kern::Guard guard(lifecycle_lock_);
	if (removing_ || !hca_)
		return;
	abandon();

	const u64 now = kern::now_ns();
	if (now - first_recovery_ > recovery_window_ns) {
		first_recovery_ = now;
		recoveries_ = 0;
	}
	if (++recoveries_ > max_recoveries) {
		kern_dev_error(pci_.dev(), "the card failed too often; it is not restarted\n");
		return;
	}
	if (const auto started = start(); !started)
		kern_dev_error(pci_.dev(), "the card cannot be restarted (%d)\n", started.error());
	else
		kern_dev_info(pci_.dev(), "the card was restarted\n");
}

} // namespace mellanox_icm

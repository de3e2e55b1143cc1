// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "adapter.hpp"
#include <kern/log.hpp>
#include <kern/time.hpp>

namespace connectx {

namespace {

constexpr int pci_command = 0x04;
constexpr u16 pci_command_master = 1 << 2;
constexpr u32 all_ones = 0xffffffff;

constexpr unsigned int semaphore_wait_ms = 10000;
/* PCI Express 6.6.1: how long after a reset a function need not answer. */
constexpr unsigned int quiet_after_reset_ms = 100;
constexpr unsigned int return_wait_ms = 2000;

} // namespace

namespace {

constinit kern::Static<kern::debugfs::Directory> root;

kern::debugfs::Directory &debug_directory()
{
	return *root;
}

} // namespace

void create_debug_directory()
{
	root.construct("weft_connectx");
}

void remove_debug_directory()
{
	root.destruct();
}

Adapter::Adapter(kern::pci::Device pci) : pci_(pci), lifecycle_lock_(KERN_LOCK_CLASS("connectx.lifecycle")) {}

kern::Result<kern::Owned<Adapter>> Adapter::probe(kern::pci::Device pci, unsigned long)
{
	auto adapter = TRY(kern::adopt(new (kern::Gfp::kernel) Adapter(pci)));
	adapter->enabled_ = TRY(kern::pci::Enabled::create(pci, "weft_connectx"));
	if (pci.bar_size(0) < wire::bar0::size || pci.bar_size(2) <= wire::uar::first_usable_page * wire::uar::page_size) {
		kern_dev_error(pci.dev(), "BARs of %#lx and %#lx bytes are too small\n", pci.bar_size(0),
			       pci.bar_size(2));
		return kern::Error{-ENODEV};
	}
	adapter->bar0_ = TRY(pci.map_bar(0));
	adapter->uar_ = TRY(pci.map_bar(2));
	// A read takes possession; another value than 0 says that someone else has.
	if (const u32 owner = adapter->bar0_.read_be32(wire::bar0::ownership)) {
		kern_dev_error(pci.dev(), owner == all_ones ? "the card does not answer\n" :
							      "the card belongs to another driver\n");
		return kern::Error{-ENODEV};
	}
	adapter->owner_ = true;
	{
		kern::Guard guard(adapter->lifecycle_lock_);
		TRY(adapter->start());
	}
	adapter->directory_ = kern::debugfs::Directory(pci.name(), debug_directory());
	adapter->summary_file_.add("summary", adapter->directory_);
	adapter->reset_file_.add("reset", adapter->directory_);
	return adapter;
}

Adapter::~Adapter()
{
	{
		kern::Guard guard(lifecycle_lock_);
		removing_ = true;
	}
	recovery_work_.cancel();
	health_work_.cancel();
	kern::Guard guard(lifecycle_lock_);
	stop();
	if (owner_)
		bar0_.write_be32(wire::bar0::ownership, 0);
}

void Adapter::shutdown()
{
	kern::Guard guard(lifecycle_lock_);
	removing_ = true;
	// Nobody is left to be told; what matters is that the next kernel finds its memory its own.
	set_bus_master(false);
}

kern::Result<> Adapter::reset_card()
{
	TRY(pci_.save_state());
	const auto semaphore_deadline = kern::Deadline::in_ms(semaphore_wait_ms);
	while (const u32 taken = bar0_.read_be32(wire::bar0::semaphore)) {
		if (taken == all_ones || semaphore_deadline.passed()) {
			kern_dev_error(pci_.dev(), "the card's semaphore is not to be had\n");
			return kern::Error{-EAGAIN};
		}
		kern::sleep_ms(1);
	}
	bar0_.write_be32(wire::bar0::reset, wire::bar0::reset_bit);
	kern::sleep_ms(quiet_after_reset_ms);
	const auto deadline = kern::Deadline::in_ms(return_wait_ms);
	while (!pci_.present()) {
		if (deadline.passed()) {
			kern_dev_error(pci_.dev(), "the card does not come back from its reset\n");
			return kern::Error{-ENODEV};
		}
		kern::sleep_ms(1);
	}
	pci_.restore_state();
	return {};
}

void Adapter::set_bus_master(bool on)
{
	const auto command = pci_.read_config16(pci_command);
	if (!command)
		return;
	const u16 value = command.value();
	kern::ignore(pci_.write_config16(pci_command, static_cast<u16>(on ? value | pci_command_master :
									     value & ~pci_command_master)));
}

kern::Result<> Adapter::start()
{
	const u64 begin = kern::now_ns();
	TRY(reset_card());
	set_bus_master(true);
	failing_.store_relaxed(false);
	hca_ = TRY(Hca::create(pci_, bar0_, uar_, *this));
	auto device = IbDevice::create(*hca_);
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
	const Firmware &firmware = hca_->firmware();
	kern_dev_info(pci_.dev(), "%s: firmware %u.%u.%u, %u ports, %u completion vectors, started in %lu us with %lu commands\n",
		      device_->name(), firmware.major, firmware.minor, firmware.subminor, hca_->num_ports(),
		      hca_->completion_vectors(), (kern::now_ns() - begin) / 1000, hca_->commands().count());
	health_work_.queue(health_interval_ms);
	return {};
}

void Adapter::stop()
{
	running_.store_release(false);
	if (device_) {
		device_->stop();
		IbDevice::destroy(std::exchange(device_, nullptr));
	}
	hca_.reset();
	// Whatever the card may still hold of ours, it can no longer reach.
	set_bus_master(false);
}

void Adapter::card_failed(const char *why)
{
	// Whoever returns from here frees what the card was given, the second as well as the first.
	set_bus_master(false);
	if (failing_.exchange(true))
		return;
	if (!running_.load_acquire())
		return;
	kern_dev_error(pci_.dev(), "%s; it will be reset\n", why);
	recovery_work_.queue();
}

void Adapter::check_health()
{
	kern::Guard guard(lifecycle_lock_);
	if (removing_ || !hca_)
		return;
	const Firmware &firmware = hca_->firmware();
	if (firmware.error_buffer_dwords) {
		const u32 first = bar0_.read_be32(firmware.error_buffer_offset);
		if (first) {
			if (first != all_ones)
				for (u32 i = 0; i < firmware.error_buffer_dwords && i < 16; i++)
					kern_dev_error(pci_.dev(), "error buffer %02x: %08x\n", i,
						       bar0_.read_be32(firmware.error_buffer_offset + i * 4));
			card_failed(first == all_ones ? "the card does not answer" : "the card reports an internal error");
			return;
		}
	}
	health_work_.queue(health_interval_ms);
}

void Adapter::show_reset(kern::debugfs::Output &out)
{
	kern::Guard guard(lifecycle_lock_);
	out.print("%lu\n", total_recoveries_);
}

int Adapter::write_reset(const char *, size_t)
{
	// Not while the card starts, which it would be cut off from memory in.
	kern::Guard guard(lifecycle_lock_);
	if (hca_)
		card_failed("a reset is asked for by debugfs");
	return 0;
}

void Adapter::show_summary(kern::debugfs::Output &out)
{
	kern::Guard guard(lifecycle_lock_);
	if (!hca_) {
		out.print("not running\n");
		return;
	}
	const Firmware &firmware = hca_->firmware();
	out.print("firmware %u.%u.%u, %u pages\n", firmware.major, firmware.minor, firmware.subminor, firmware.pages);
	out.print("commands %lu, recoveries %lu\n", hca_->commands().count(), total_recoveries_);
	hca_->dump(out);
}

void Adapter::abandon()
{
	total_recoveries_++;
	hca_->commands().fail();
	if (device_)
		device_->tell_fatal();
	stop();
}

void Adapter::reset_prepare()
{
	// Who asks for resets by sysfs does so as often as he likes: those are no failures of the card.
	failing_.store_release(true);
	set_bus_master(false);
	kern::Guard guard(lifecycle_lock_);
	if (hca_)
		abandon();
}

void Adapter::reset_done()
{
	kern::Guard guard(lifecycle_lock_);
	if (removing_ || hca_)
		return;
	if (const auto started = start(); !started)
		kern_dev_error(pci_.dev(), "the card cannot be restarted after its reset (%d)\n", started.error());
	else
		kern_dev_info(pci_.dev(), "the card is back from its reset\n");
}

void Adapter::recover()
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
		kern_dev_error(pci_.dev(), "the card fails again and again; it is left alone\n");
		return;
	}
	if (const auto started = start(); !started)
		kern_dev_error(pci_.dev(), "the card cannot be restarted (%d)\n", started.error());
	else
		kern_dev_info(pci_.dev(), "the card is back\n");
}

} // namespace connectx

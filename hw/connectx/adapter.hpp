// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The PCI function, from probe to remove: reset, start, failure and recovery.
#pragma once
#include <kern/debugfs.hpp>
#include <kern/lock.hpp>
#include <kern/pci.hpp>
#include <kern/work.hpp>
#include "hca.hpp"
#include "ib_device.hpp"

namespace connectx {

/*
 * Lock order: lifecycle_lock_ is the outermost; it is held while the card is started, stopped and recovered, and while devices are
 * registered and unregistered. Nothing that a verb may wait for takes it.
 */
class Adapter final : public FailureListener {
public:
	/* May sleep. Errors: those of the bring-up; ENODEV where another driver instance owns the card. */
	static kern::Result<kern::Owned<Adapter>> probe(kern::pci::Device pci, unsigned long data);
	~Adapter();
	/* Before a reboot: the card's DMA and interrupts end. */
	void shutdown();
	/* Around a reset of the function that the kernel makes (FLR): the device goes, and comes back. May sleep. */
	void reset_prepare();
	void reset_done();

	/*
	 * The card can no longer be worked with. Its access to memory ends at once, before any of it is freed; the rest happens in a
	 * task. Any context.
	 */
	void card_failed(const char *why) override;

private:
	explicit Adapter(kern::pci::Device pci);
	kern::Result<> start() REQUIRES(lifecycle_lock_);
	void stop() REQUIRES(lifecycle_lock_);
	/* The same for a card that does not answer any more: what is outstanding is flushed. */
	void abandon() REQUIRES(lifecycle_lock_);
	kern::Result<> reset_card();
	void set_bus_master(bool on);
	void check_health();
	void recover();
	/* debugfs: what the card is and does now. */
	void show_summary(kern::debugfs::Output &out);
	/* debugfs: anything written fails the card, as if it had failed of itself. */
	int write_reset(const char *text, size_t size);
	void show_reset(kern::debugfs::Output &out);

	static constexpr unsigned int health_interval_ms = 2000;
	/* A card that fails so often in so long is left alone. */
	static constexpr unsigned int max_recoveries = 5;
	static constexpr u64 recovery_window_ns = 60ull * 1000 * 1000 * 1000;

	kern::pci::Device pci_;
	kern::pci::Enabled enabled_;
	kern::Mmio bar0_;
	kern::Mmio uar_;
	kern::Mutex lifecycle_lock_;
	kern::Owned<Hca> hca_ GUARDED_BY(lifecycle_lock_);
	IbDevice *device_ GUARDED_BY(lifecycle_lock_) = nullptr;
	/* Its readers take no lock of ours. */
	bool owner_ = false;
	bool removing_ GUARDED_BY(lifecycle_lock_) = false;
	/* Between a successful start and the next stop: what card_failed() may start a recovery of. */
	kern::Atomic<bool> running_{false};
	kern::Atomic<bool> failing_{false};
	unsigned int recoveries_ = 0;
	u64 total_recoveries_ GUARDED_BY(lifecycle_lock_) = 0;
	u64 first_recovery_ = 0;
	kern::DelayedWork health_work_{kern::method<&Adapter::check_health>, this};
	kern::Work recovery_work_{kern::method<&Adapter::recover>, this};
	kern::debugfs::Directory directory_;
	kern::debugfs::File summary_file_{kern::method<&Adapter::show_summary>, this};
	kern::debugfs::File reset_file_{kern::method<&Adapter::show_reset>, kern::method<&Adapter::write_reset>, this};
};

/* Where the cards' debugfs directories are; for the life of the module. */
void create_debug_directory();
void remove_debug_directory();

} // namespace connectx

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests MSI-X vectors and their handlers with the interrupts of a network controller that QEMU
// models, an Intel 82574L. Software can trigger each interrupt of this controller by setting the
// interrupt's bit in a register.
#include <kern/completion.hpp>
#include <kern/irq.hpp>
#include <kern/kunit.hpp>
#include <kern/pci.hpp>

extern "C" const struct pci_device_id kern_test_nic_ids[];

namespace
{

/* Registers of BAR 0, and causes (82574 datasheet, 10.2.4). */
namespace nic
{
constexpr u64 icr = 0xc0, ics = 0xc8, ims = 0xd0, imc = 0xd8, eiac = 0xdc, ivar = 0xe4;
constexpr u32 rx_queue_0 = 1u << 20, rx_queue_1 = 1u << 21;
constexpr u32 vectors_0_and_1 = 0x8 | 0x9 << 4; /* valid bit and vector of receive queues 0 and 1 */
} // namespace nic

constexpr unsigned int vector_count = 2;
constexpr u32 causes[vector_count] = {nic::rx_queue_0, nic::rx_queue_1};

/* The handler of one vector. */
struct Line {
	bool handle()
	{
		times.add_relaxed(1);
		happened.complete();
		return true;
	}
	kern::Atomic<unsigned int> times{0};
	kern::Completion happened;
	kern::Irq irq{kern::method<&Line::handle>, this};
};

struct Seen {
	int probed = 0;
	unsigned int given = 0, asked_too_many = 0;
	unsigned int times = 0;
	bool own = true, others = false, after_free = false;
} seen;

class Nic
{
public:
	static kern::Result<kern::Owned<Nic>> probe(kern::pci::Device pci, unsigned long)
	{
		auto nic = KERN_TRY(kern::make<Nic>(kern::Gfp::kernel));
		nic->enabled_ = KERN_TRY(kern::pci::Enabled::create(pci, "weft_kern_test"));
		nic->registers_ = KERN_TRY(pci.map_bar(0));
		/* The device has fewer than 64 vectors. */
		seen.asked_too_many = static_cast<unsigned int>(
			-kern::pci::InterruptVectors::create(pci, 64, 64).error());
		nic->vectors_ = KERN_TRY(
			kern::pci::InterruptVectors::create(pci, vector_count, vector_count));
		seen.given = nic->vectors_.count();
		KERN_TRY(nic->interrupt());
		seen.probed++;
		return nic;
	}
	void shutdown() {}

private:
	kern::Result<> interrupt()
	{
		Line lines[vector_count];
		for (unsigned int i = 0; i < vector_count; i++) {
			KERN_TRY(lines[i].irq.request(vectors_.irq(i), "weft_kern_test"));
			lines[i].irq.set_affinity_hint(0);
		}
		registers_.write32(nic::imc, ~0u);
		registers_.write32(nic::ivar, nic::vectors_0_and_1);
		/* A cause is cleared and masked by the message that it triggers. */
		registers_.write32(nic::eiac, nic::rx_queue_0 | nic::rx_queue_1);
		for (int round = 0; round < 3; round++) {
			raise(causes[0]);
			seen.own = lines[0].happened.wait_for(60'000) && seen.own;
			lines[0].irq.synchronize();
		}
		seen.times = lines[0].times.load_relaxed();
		seen.others = lines[1].times.load_relaxed() != 0;
		/*
		 * One handler is freed. Once the other vector's interrupt has arrived, an earlier
		 * one for the freed handler would have arrived, too.
		 */
		lines[0].irq.free();
		const unsigned int before = lines[0].times.load_relaxed();
		raise(causes[0]);
		raise(causes[1]);
		seen.own = lines[1].happened.wait_for(60'000) && seen.own;
		seen.after_free = lines[0].times.load_relaxed() != before;
		registers_.write32(nic::imc, ~0u);
		return {};
	}
	void raise(u32 cause)
	{
		registers_.write32(nic::icr, ~0u);
		registers_.write32(nic::ims, cause);
		registers_.write32(nic::ics, cause);
	}

	kern::pci::Enabled enabled_;
	kern::Mmio registers_;
	kern::pci::InterruptVectors vectors_;
};

/* Each vector runs its own handler, and none after it has been freed. */
void each_irq_vector_runs_only_its_own_handler(kern::kunit::Test &test)
{
	seen = {};
	kern::pci::Driver<Nic> driver;
	ASSERT_OK(driver.add("weft_kern_test_nic", kern_test_nic_ids, nullptr));
	if (seen.given == 0) {
		test.skip("no Intel 82574L here, or it has a driver");
		return;
	}
	EXPECT_EQ(seen.probed, 1);
	EXPECT_EQ(seen.given, vector_count);
	EXPECT_EQ(seen.asked_too_many, static_cast<unsigned int>(ENOSPC));
	EXPECT_TRUE(seen.own);
	EXPECT_GE(seen.times, 3u);
	EXPECT_FALSE(seen.others);
	EXPECT_FALSE(seen.after_free);
}

} // namespace

KUNIT_SUITE(kern_irq, KUNIT_CASE(each_irq_vector_runs_only_its_own_handler));

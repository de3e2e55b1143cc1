// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a PCI driver's probe is called for each device of its table, and that the driver's
// objects are destroyed when the driver is removed.
#include <kern/atomic.hpp>
#include <kern/kunit.hpp>
#include <kern/pci.hpp>

extern "C" const struct pci_device_id kern_test_pci_ids[];

namespace
{

struct Seen {
	int alive = 0;
	int probed = 0;
	unsigned long data = 0;
	u32 config_id = 0;
	u16 vendor = 0, device = 0;
	bool bad_offset_refused = false;
} seen;

/* Binds to a host bridge, which has no driver of its own, and changes nothing. */
class Probe
{
public:
	static kern::Result<kern::Owned<Probe>> probe(kern::pci::Device pci, unsigned long data)
	{
		seen.probed++;
		seen.data = data;
		seen.config_id = KERN_TRY(pci.read_config32(0));
		seen.vendor = pci.vendor_id();
		seen.device = pci.device_id();
		seen.bad_offset_refused =
			!pci.read_config32(0x1001).ok() && !pci.map_bar(0, 0, ~u64{0}).ok();
		return kern::adopt(new (kern::Gfp::kernel) Probe());
	}
	~Probe() { seen.alive--; }
	void shutdown() {}

private:
	Probe() { seen.alive++; }
};

/*
 * A driver is probed for the devices of its table, with their data. Its objects are destroyed when
 * it is removed.
 */
void pci_driver_is_probed_for_and_removed_from_its_devices(kern::kunit::Test &test)
{
	seen = {};
	{
		kern::pci::Driver<Probe> driver;
		ASSERT_OK(driver.add("weft_kern_test", kern_test_pci_ids, nullptr));
		if (seen.probed == 0) {
			test.skip("no host bridge of QEMU's q35 here, or it has a driver");
			return;
		}
		EXPECT_EQ(seen.alive, seen.probed);
		EXPECT_EQ(seen.data, 42u);
		EXPECT_EQ(seen.config_id, u32{seen.device} << 16 | seen.vendor);
		EXPECT_TRUE(seen.bad_offset_refused);
	}
	EXPECT_EQ(seen.alive, 0);
}

} // namespace

KUNIT_SUITE(kern_pci, KUNIT_CASE(pci_driver_is_probed_for_and_removed_from_its_devices));

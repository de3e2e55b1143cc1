// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the PCI API of include/kern/abi/pci.h. A register window is a range of addresses
// without memory. Each access calls the model of the PCI function; other fibers may run before the
// access.
#include "pci.hpp"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>
#include <kern/abi/pci.h>
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "lock_order.hpp"
#include "memory.hpp"
#include "reset.hpp"
#include "scheduler.hpp"

using namespace sim;

struct pci_dev {
	pci::Function *function;
	device dma;
	kern_pci_driver_item *driver;
	void *data;
	std::vector<std::byte> saved;
	bool enabled;
	unsigned int vectors;
	unsigned int first_irq;
};

namespace
{

constexpr unsigned int vendor_at = 0, device_at = 2, command_at = 4, revision_at = 8,
		       capabilities_at = 0x34, config_bytes = 256, bars = 6;
constexpr u16 command_memory = 1 << 1, command_master = 1 << 2, msix_enable = 1 << 15;
constexpr int capability_msix = 0x11;
// The windows of all BARs are in a range of addresses that is far from all memory.
constexpr std::uint64_t windows_begin = std::uint64_t{0xffff} << 48, window_bytes = 1ull << 32;

struct Registered {
	kern_pci_driver_item *driver;
	const pci_device_id *ids;
};

std::vector<Registered> drivers;
std::vector<pci_dev *> functions;
std::map<std::uint64_t, std::pair<pci_dev *, unsigned int>> windows;
std::map<unsigned int, kern_irq_item *> handlers;
std::uint64_t next_window;
unsigned int next_irq;

template<class T>
T get(pci_dev *pci, unsigned int where)
{
	T value{};

	pci->function->read_config(where, std::as_writable_bytes(std::span(&value, 1)));
	return value;
}

template<class T>
void put(pci_dev *pci, unsigned int where, T value)
{
	pci->function->write_config(where, std::as_bytes(std::span(&value, 1)));
}

template<class T>
int read_config(pci_dev *pci, int where, T *value)
{
	SIM_STEP(pci);
	*value = get<T>(pci, static_cast<unsigned int>(where));
	return 0;
}

template<class T>
int write_config(pci_dev *pci, int where, T value)
{
	SIM_STEP(pci);
	put(pci, static_cast<unsigned int>(where), value);
	return 0;
}

bool is_for(const Registered &registered, pci_dev *pci)
{
	const u16 vendor = get<u16>(pci, vendor_at), device = get<u16>(pci, device_at);

	for (const pci_device_id *id = registered.ids; id->vendor; id++)
		if (id->vendor == vendor && id->device == device)
			return true;
	return false;
}

void probe(const Registered &registered, pci_dev *pci)
{
	if (pci->driver || !is_for(registered, pci))
		return;
	pci->driver = registered.driver;
	if (registered.driver->probe(registered.driver, pci, 0))
		pci->driver = nullptr;
}

/* Removes the driver, and reports resources that it did not release. */
void remove(pci_dev *pci)
{
	kern_pci_driver_item *driver = pci->driver;

	if (!driver)
		return;
	driver->remove(driver, pci);
	pci->driver = nullptr;
	if (pci->enabled)
		fail("a removed driver has not disabled its device", pci->dma.name);
	if (pci->vectors)
		fail("a removed driver has not freed its interrupt vectors", pci->dma.name);
	if (!pci->dma.mapped.empty())
		fail("a removed driver has not unmapped memory",
		     pci->dma.name + ", at " + where(pci->dma.mapped.begin()->second));
	for (const auto &[begin, window] : windows)
		if (window.first == pci)
			fail("a removed driver has not unmapped registers", pci->dma.name);
}

/* Returns the function and the BAR to which an address belongs, and sets the offset in it. */
std::pair<pci_dev *, unsigned int> window_of(const volatile void *address, std::uint64_t &offset)
{
	const auto at = reinterpret_cast<std::uint64_t>(address);
	auto found = windows.upper_bound(at);

	if (found == windows.begin() || at - (--found)->first >= window_bytes)
		fail("access to a register that is not mapped",
		     describe(scheduler().current().place));
	offset = at % window_bytes;
	return found->second;
}

} // namespace

namespace sim
{

void reset_functions()
{
	drivers.clear();
	functions.clear();
	windows.clear();
	handlers.clear();
	next_window = windows_begin;
	next_irq = 1;
}

namespace pci
{

pci_dev *plug(Function &function, std::string name)
{
	auto *pci = new pci_dev{};

	pci->function = &function;
	pci->dma.name = std::move(name);
	pci->dma.arena = std::make_unique<Arena>(function.memory());
	functions.push_back(pci);
	for (const Registered &registered : std::vector(drivers))
		probe(registered, pci);
	return pci;
}

void unplug(pci_dev *pci)
{
	remove(pci);
	std::erase(functions, pci);
	delete pci;
}

void interrupt(const Function &function, unsigned int vector)
{
	const auto pci = std::find_if(functions.begin(), functions.end(), [&](const pci_dev *one) {
		return one->function == &function;
	});
	if (pci == functions.end() || vector >= (*pci)->vectors)
		return;
	const auto found = handlers.find((*pci)->first_irq + vector);
	if (found == handlers.end())
		return;
	kern_irq_item *item = found->second;
	calls::request(item, {.kind = Kind::hard_interrupt, .name = "interrupt", .run = [item] {
				      item->handler(item);
			      }});
}

} // namespace pci
} // namespace sim

extern "C" {

int kern_pci_driver_register(struct kern_pci_driver_item *driver, const char *,
			     const struct pci_device_id *ids, struct module *)
{
	SIM_STEP(driver);
	if (memory::fails(KERN_GFP_KERNEL, __builtin_return_address(0)))
		return -ENOMEM;
	drivers.push_back({driver, ids});
	for (pci_dev *pci : std::vector(functions))
		probe(drivers.back(), pci);
	return 0;
}

void kern_pci_driver_unregister(struct kern_pci_driver_item *driver)
{
	SIM_STEP(driver);
	for (pci_dev *pci : std::vector(functions))
		if (pci->driver == driver)
			remove(pci);
	std::erase_if(drivers, [&](const Registered &one) { return one.driver == driver; });
}

struct device *kern_pci_device(struct pci_dev *pci)
{
	return &pci->dma;
}

const char *kern_pci_name(struct pci_dev *pci)
{
	return pci->dma.name.c_str();
}

void *kern_pci_get_data(struct pci_dev *pci)
{
	return pci->data;
}

void kern_pci_set_data(struct pci_dev *pci, void *data)
{
	pci->data = data;
}

u16 kern_pci_vendor_id(struct pci_dev *pci)
{
	return get<u16>(pci, vendor_at);
}

u16 kern_pci_device_id(struct pci_dev *pci)
{
	return get<u16>(pci, device_at);
}

u8 kern_pci_revision(struct pci_dev *pci)
{
	return get<u8>(pci, revision_at);
}

int kern_pci_node(struct pci_dev *)
{
	return 0;
}

bool kern_pci_present(struct pci_dev *pci)
{
	SIM_STEP(pci);
	return get<u16>(pci, vendor_at) != 0xffff;
}

int kern_pci_enable(struct pci_dev *pci, const char *, unsigned int)
{
	SIM_STEP(pci);
	check_may_sleep("enables a device");
	if (std::exchange(pci->enabled, true))
		return -EBUSY;
	put<u16>(pci, command_at, get<u16>(pci, command_at) | command_memory | command_master);
	return 0;
}

void kern_pci_disable(struct pci_dev *pci)
{
	SIM_STEP(pci);
	pci->enabled = false;
	put<u16>(pci, command_at,
		 static_cast<u16>(get<u16>(pci, command_at) & ~(command_memory | command_master)));
}

int kern_pci_read_config8(struct pci_dev *pci, int where, u8 *value)
{
	return read_config(pci, where, value);
}

int kern_pci_read_config16(struct pci_dev *pci, int where, u16 *value)
{
	return read_config(pci, where, value);
}

int kern_pci_read_config32(struct pci_dev *pci, int where, u32 *value)
{
	return read_config(pci, where, value);
}

int kern_pci_write_config8(struct pci_dev *pci, int where, u8 value)
{
	return write_config(pci, where, value);
}

int kern_pci_write_config16(struct pci_dev *pci, int where, u16 value)
{
	return write_config(pci, where, value);
}

int kern_pci_write_config32(struct pci_dev *pci, int where, u32 value)
{
	return write_config(pci, where, value);
}

u8 kern_pci_find_capability(struct pci_dev *pci, int capability)
{
	for (u8 at = get<u8>(pci, capabilities_at); at; at = get<u8>(pci, at + 1u))
		if (get<u8>(pci, at) == capability)
			return at;
	return 0;
}

int kern_pci_save_state(struct pci_dev *pci)
{
	SIM_STEP(pci);
	pci->saved.resize(config_bytes);
	pci->function->read_config(0, pci->saved);
	return 0;
}

/*
 * Restores all values that a driver may have changed: the command register and the MSI-X enable
 * bit.
 */
void kern_pci_restore_state(struct pci_dev *pci)
{
	SIM_STEP(pci);
	const auto word = [&](unsigned int at) {
		u16 value;
		std::memcpy(&value, pci->saved.data() + at, sizeof(value));
		return value;
	};
	put<u16>(pci, command_at, word(command_at));
	if (const u8 msix = kern_pci_find_capability(pci, capability_msix))
		put<u16>(pci, msix + 2u, word(msix + 2u));
}

u64 kern_pci_bar_size(struct pci_dev *pci, unsigned int bar)
{
	return bar < bars ? pci->function->bar_size(bar) : 0;
}

u64 kern_pci_bar_address(struct pci_dev *, unsigned int)
{
	return 0;
}

void *kern_pci_map_bar(struct pci_dev *pci, unsigned int bar, u64 offset, u64 size, bool)
{
	SIM_STEP(pci);
	const u64 whole = kern_pci_bar_size(pci, bar);
	if (size == 0 || offset > whole || size > whole - offset ||
	    memory::fails(KERN_GFP_KERNEL, __builtin_return_address(0)))
		return nullptr;
	next_window += window_bytes;
	windows[next_window] = {pci, bar};
	return reinterpret_cast<void *>(next_window + offset);
}

void kern_iounmap(void *address)
{
	u64 offset;

	SIM_STEP(address);
	(void)window_of(address, offset);
	windows.erase(reinterpret_cast<std::uint64_t>(address) - offset);
}

u64 kern_mmio_read(const volatile void *address, unsigned int size)
{
	u64 value = 0, offset;

	SIM_STEP(address);
	const auto [pci, bar] = window_of(address, offset);
	pci->function->read(bar, offset, std::as_writable_bytes(std::span(&value, 1)).first(size));
	SIM_STEP(address);
	return value;
}

void kern_mmio_write(volatile void *address, u64 value, unsigned int size)
{
	u64 offset;

	SIM_STEP(address);
	const auto [pci, bar] = window_of(address, offset);
	pci->function->write(bar, offset, std::as_bytes(std::span(&value, 1)).first(size));
	SIM_STEP(address);
}

int kern_pci_alloc_msix(struct pci_dev *pci, unsigned int min, unsigned int max)
{
	SIM_STEP(pci);
	const u8 msix = kern_pci_find_capability(pci, capability_msix);
	const unsigned int count = std::min(max, pci->function->vectors());
	if (!msix || count < min)
		return -ENOSPC;
	if (memory::fails(KERN_GFP_KERNEL, __builtin_return_address(0)))
		return -ENOMEM;
	pci->vectors = count;
	pci->first_irq = std::exchange(next_irq, next_irq + count);
	put<u16>(pci, msix + 2u, get<u16>(pci, msix + 2u) | msix_enable);
	return static_cast<int>(count);
}

int kern_pci_alloc_line(struct pci_dev *)
{
	return -ENOSPC;
}

void kern_pci_free_vectors(struct pci_dev *pci)
{
	SIM_STEP(pci);
	for (unsigned int i = 0; i < pci->vectors; i++)
		if (handlers.contains(pci->first_irq + i))
			fail("an interrupt vector with a handler is freed", pci->dma.name);
	pci->vectors = 0;
	if (const u8 msix = kern_pci_find_capability(pci, capability_msix))
		put<u16>(pci, msix + 2u, static_cast<u16>(get<u16>(pci, msix + 2u) & ~msix_enable));
}

int kern_pci_vector_irq(struct pci_dev *pci, unsigned int vector)
{
	return static_cast<int>(pci->first_irq + vector);
}

int kern_irq_request(struct kern_irq_item *item, unsigned int irq, const char *, bool)
{
	SIM_STEP(item);
	check_may_sleep("requests an interrupt");
	if (memory::fails(KERN_GFP_KERNEL, __builtin_return_address(0)))
		return -ENOMEM;
	item->irq = irq;
	handlers[irq] = item;
	return 0;
}

void kern_irq_free(struct kern_irq_item *item)
{
	SIM_STEP(item);
	handlers.erase(item->irq);
	calls::cancel_and_wait(item, true);
}

void kern_irq_synchronize(struct kern_irq_item *item)
{
	SIM_STEP(item);
	calls::flush(item);
}

void kern_irq_set_affinity_hint(struct kern_irq_item *, unsigned int) {}
}

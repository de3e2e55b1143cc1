// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements protection domains, memory regions and windows of the software device: checks memory
// keys, and copies the data of messages from and to memory.
#include <kern/abi/kunit.h>
#include "device.hpp"

namespace soft
{

namespace
{

/* Returns a 32-bit value that distinguishes PDs, made of the address. */
u32 pd_key(const ib_pd *pd)
{
	return static_cast<u32>(reinterpret_cast<unsigned long>(pd) >> 4);
}

/* Returns the region of a key, or nullptr. The low 8 bits of a key are chosen by the consumer. */
Region *find(SoftDevice &device, u32 key)
{
	Region *region = device.regions->load(key >> 8);

	return region && region->valid && region->key == key ? region : nullptr;
}

/*
 * Translates an address in a region to a CPU address, or returns nullptr. Reduces `length` to the
 * part that is contiguous in the CPU's address space.
 */
void *address_in(const Region &region, u64 address, size_t &length)
{
	if (region.all)
		return region.dma ? kern_kunit_dma_memory(region.dma, address)
				  : reinterpret_cast<void *>(address);
	const u64 offset = address - region.start;
	if (address < region.start || offset >= region.length)
		return nullptr;
	if (length > region.length - offset)
		length = region.length - offset;
	if (!region.pages)
		return reinterpret_cast<void *>(address);
	const u64 in_pages = offset + region.start % region.page_size;
	const u64 in_page = in_pages % region.page_size;
	if (length > region.page_size - in_page)
		length = region.page_size - in_page;
	return reinterpret_cast<void *>(region.pages[in_pages / region.page_size] + in_page);
}

/*
 * Calls body(memory, length) for each contiguous part of a range. Returns false if the range is not
 * entirely in the region.
 */
template<class Body>
bool for_pieces(const Region &region, u64 address, size_t length, Body body)
{
	if (!region.all && (address < region.start || address - region.start > region.length ||
			    length > region.length - (address - region.start)))
		return false;
	while (length > 0) {
		size_t piece = length;
		void *memory = address_in(region, address, piece);
		if (!memory)
			return false;
		body(static_cast<u8 *>(memory), piece);
		address += piece;
		length -= piece;
	}
	return true;
}

bool allows(const Region &region, const ib_pd *pd, int access)
{
	return (!pd || region.pd == pd_key(pd)) && (region.access & access) == access;
}

int publish(SoftDevice &device, MrState &state)
{
	auto index = device.regions->alloc(&state.region, 2, 0xffffff);

	if (!index)
		return index.error();
	state.index = index.take();
	state.region.key = state.index << 8;
	return 0;
}

void withdraw(SoftDevice &device, MrState &state)
{
	kern::Guard guard(fabric->lock);
	device.regions->erase(state.index);
}

int get_dma_mr(ib_mr *mr, int access)
{
	SoftDevice &device = of(mr->device);

	if (int error = device.fault(SOFT_GET_DMA_MR))
		return error;
	MrState &state = Mr::construct(mr, pd_key(mr->pd));
	state.region.access = access;
	state.region.all = true;
	state.region.dma = device.ib.dma_device;
	state.region.valid = true;
	if (int error = publish(device, state)) {
		Mr::destruct(mr);
		return error;
	}
	mr->lkey = mr->rkey = state.region.key;
	return 0;
}

int alloc_mr(ib_mr *mr, ib_mr_type, u32 max_num_sg)
{
	SoftDevice &device = of(mr->device);

	if (int error = device.fault(SOFT_ALLOC_MR))
		return error;
	auto pages = kern::make_array<u64>(kern::Gfp::kernel, max_num_sg);
	if (!pages)
		return pages.error();
	MrState &state = Mr::construct(mr, pd_key(mr->pd));
	if (int error = publish(device, state)) {
		Mr::destruct(mr);
		return error;
	}
	state.region.max_pages = max_num_sg;
	state.pages = pages.take();
	state.region.pages = state.pages.data();
	mr->lkey = mr->rkey = state.region.key;
	return 0;
}

int dereg_mr(ib_mr *mr, ib_udata *)
{
	if (int error = of(mr->device).fault(SOFT_DEREG_MR))
		return error;
	withdraw(of(mr->device), Mr::state(mr));
	Mr::destruct(mr);
	return 0;
}

int set_page(ib_mr *mr, u64 address)
{
	Region &region = Mr::state(mr).region;

	if (region.page_count == region.max_pages)
		return -ENOMEM;
	region.pages[region.page_count++] = address;
	return 0;
}

int map_mr_sg(ib_mr *mr, const ib_dma_segment *sg, int count, unsigned int *offset)
{
	if (int error = of(mr->device).fault(SOFT_MAP_MR_SG))
		return error;
	Mr::state(mr).region.page_count = 0;
	return ib_sg_to_pages(mr, sg, count, offset, set_page);
}

int alloc_mw(ib_mw *mw, ib_udata *)
{
	SoftDevice &device = of(mw->device);

	if (int error = device.fault(SOFT_ALLOC_MW))
		return error;
	MrState &state = Mw::construct(mw, pd_key(mw->pd));
	if (int error = publish(device, state)) {
		Mw::destruct(mw);
		return error;
	}
	mw->rkey = state.region.key;
	return 0;
}

int dealloc_mw(ib_mw *mw)
{
	if (int error = of(mw->device).fault(SOFT_DEALLOC_MW))
		return error;
	withdraw(of(mw->device), Mw::state(mw));
	Mw::destruct(mw);
	return 0;
}

int alloc_pd(ib_pd *pd, ib_udata *)
{
	return of(pd->device).fault(SOFT_ALLOC_PD);
}

int dealloc_pd(ib_pd *, ib_udata *)
{
	return 0;
}

int alloc_xrcd(ib_xrcd *xrcd, ib_udata *)
{
	return of(xrcd->device).fault(SOFT_ALLOC_XRCD);
}

int dealloc_xrcd(ib_xrcd *xrcd, ib_udata *)
{
	return of(xrcd->device).fault(SOFT_DEALLOC_XRCD);
}

/*
 * Returns in `region` what a local key gives access to; local_dma_lkey covers all memory. Returns
 * false if the key does not permit the access.
 */
bool local(SoftDevice &device, const ib_pd &pd, u32 lkey, int access, Region &region)
{
	if (lkey == local_dma_lkey) {
		region.all = true;
		region.dma = device.ib.dma_device;
		return true;
	}
	const Region *found = find(device, lkey);
	if (!found || !allows(*found, &pd, access))
		return false;
	region = *found;
	return true;
}

} // namespace

size_t total(const ib_sge *sges, int count)
{
	size_t length = 0;

	for (int i = 0; i < count; i++)
		length += sges[i].length;
	return length;
}

bool copy_from_local(SoftDevice &device, const ib_pd &pd, const SendEntry &entry, void *to,
		     size_t length)
{
	u8 *out = static_cast<u8 *>(to);

	if (entry.wr.send_flags & IB_SEND_INLINE) {
		__builtin_memcpy(out, entry.inline_data, length);
		return true;
	}
	for (int i = 0; i < entry.wr.num_sge && length > 0; i++) {
		const ib_sge &sge = entry.sges[i];
		const size_t part = sge.length < length ? sge.length : length;
		Region region(0);
		if (!local(device, pd, sge.lkey, 0, region) ||
		    !for_pieces(region, sge.addr, part, [&](const u8 *memory, size_t piece) {
			    __builtin_memcpy(out, memory, piece);
			    out += piece;
		    }))
			return false;
		length -= part;
	}
	return length == 0;
}

bool copy_to_local(SoftDevice &device, const ib_pd &pd, const ib_sge *sges, int count, size_t skip,
		   const void *from, size_t length, int access)
{
	const u8 *in = static_cast<const u8 *>(from);

	for (int i = 0; i < count && length > 0; i++) {
		const ib_sge &sge = sges[i];
		if (skip >= sge.length) {
			skip -= sge.length;
			continue;
		}
		const size_t space = sge.length - skip;
		const size_t part = space < length ? space : length;
		Region region(0);
		if (!local(device, pd, sge.lkey, access, region) ||
		    !for_pieces(region, sge.addr + skip, part, [&](u8 *memory, size_t piece) {
			    __builtin_memcpy(memory, in, piece);
			    in += piece;
		    }))
			return false;
		length -= part;
		skip = 0;
	}
	return length == 0;
}

bool copy_remote(SoftDevice &device, const ib_pd *pd, u32 rkey, u64 address, void *data,
		 size_t length, int access)
{
	const Region *region = find(device, rkey);
	u8 *bytes = static_cast<u8 *>(data);
	const bool writes = access & IB_ACCESS_REMOTE_WRITE;

	if (!region || !allows(*region, pd, access))
		return false;
	return for_pieces(*region, address, length, [&](u8 *memory, size_t piece) {
		if (writes)
			__builtin_memcpy(memory, bytes, piece);
		else
			__builtin_memcpy(bytes, memory, piece);
		bytes += piece;
	});
}

u64 *atomic_target(SoftDevice &device, const ib_pd *pd, u32 rkey, u64 address)
{
	const Region *region = find(device, rkey);
	size_t length = sizeof(u64);

	if (address % sizeof(u64) || !region || !allows(*region, pd, IB_ACCESS_REMOTE_ATOMIC))
		return nullptr;
	void *memory = address_in(*region, address, length);
	return length == sizeof(u64) ? static_cast<u64 *>(memory) : nullptr;
}

bool invalidate(SoftDevice &device, u32 key)
{
	Region *region = find(device, key);

	if (!region || region->all)
		return false;
	region->valid = false;
	return true;
}

bool register_region(const ib_pd &pd, const ib_reg_wr &wr)
{
	Region &region = Mr::state(wr.mr).region;

	if (region.valid || region.pd != pd_key(&pd) || wr.key >> 8 != Mr::state(wr.mr).index)
		return false;
	region.key = wr.key;
	region.access = wr.access;
	region.start = wr.mr->iova;
	region.length = wr.mr->length;
	region.page_size = wr.mr->page_size;
	region.valid = true;
	return true;
}

bool bind_window(SoftDevice &device, const ib_pd &pd, const ib_bind_mw_wr &wr)
{
	const Region *parent = find(device, wr.mr->lkey);
	Region &window = Mw::state(wr.mw).region;
	size_t length = wr.length;

	if (!parent || parent->pages || !allows(*parent, &pd, IB_ACCESS_MW_BIND) ||
	    wr.rkey >> 8 != window.key >> 8 || !address_in(*parent, wr.addr, length) ||
	    length != wr.length)
		return false;
	window.key = wr.rkey;
	window.access = wr.access;
	window.start = wr.addr;
	window.length = wr.length;
	window.valid = true;
	return true;
}

void set_memory_methods(ib_device_ops &ops)
{
	ops.alloc_pd = alloc_pd;
	ops.dealloc_pd = dealloc_pd;
	ops.size_ib_pd = sizeof(ib_pd);
	ops.alloc_xrcd = alloc_xrcd;
	ops.dealloc_xrcd = dealloc_xrcd;
	ops.size_ib_xrcd = sizeof(ib_xrcd);
	ops.get_dma_mr = get_dma_mr;
	ops.alloc_mr = alloc_mr;
	ops.map_mr_sg = map_mr_sg;
	ops.dereg_mr = dereg_mr;
	ops.size_ib_mr = sizeof(Mr);
	ops.alloc_mw = alloc_mw;
	ops.dealloc_mw = dealloc_mw;
	ops.size_ib_mw = sizeof(Mw);
}

} // namespace soft

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "device.hpp"

#include <kern/log.hpp>
#include <kern/time.hpp>

namespace example
{

kern::Result<kern::Owned<Device>> Device::probe(kern::pci::Device pci, unsigned long)
{
	auto device = KERN_TRY(kern::make<Device>(kern::Gfp::kernel, pci));
	KERN_TRY(device->start());
	KERN_TRY(device->self_test());
	return device;
}

kern::Result<> Device::start()
{
	enabled_ = KERN_TRY(kern::pci::Enabled::create(pci_, "weft_example"));
	registers_ = KERN_TRY(pci_.map_bar(0));
	if (registers_.size() < sizeof(u64))
		return kern::Error{-ENODEV};
	queue_ = KERN_TRY(kern::DmaBuffer::create(pci_.dev(), wire::counts));
	memory_ = KERN_TRY(kern::DmaBuffer::create(pci_.dev(), memory_bytes));
	vectors_ = KERN_TRY(kern::pci::InterruptVectors::create(pci_, 1, 1));
	KERN_TRY(irq_.request(vectors_.irq(0), "weft_example"));
	kern::Guard guard(lock_);
	phase_ = Phase::running;
	return {};
}

void Device::shutdown()
{
	kern::Guard guard(lock_);
	phase_ = Phase::ended;
	irq_.free();
	vectors_ = {};
	registers_ = {};
	enabled_ = {};
}

bool Device::interrupt()
{
	interrupted_.complete();
	return true;
}

kern::Result<> Device::send(u32 from, u32 to, u32 length)
{
	if (length == 0 || length > wire::most_bytes || from > memory_bytes - length ||
	    to > memory_bytes - length)
		return kern::Error{-EINVAL};
	kern::Guard guard(lock_);
	return send_locked(from, to, length);
}

kern::Result<> Device::send_locked(u32 from, u32 to, u32 length)
{
	if (phase_ != Phase::running)
		return kern::Error{-ENODEV};
	wire::Request &request = queue_.as<wire::Request>()[posted_ % wire::queue_entries];
	request.source = memory_.address() + from;
	request.destination = memory_.address() + to;
	request.length = length;
	__atomic_store_n(reinterpret_cast<u32 *>(&request.status),
			 static_cast<u32>(wire::Status::posted), __ATOMIC_RELAXED);
	posted_++;
	interrupted_.reinit();
	// write64() orders the write after all earlier writes to memory.
	registers_.write64(wire::doorbell, queue_.address() | (posted_ & wire::count_mask));

	const bool interrupted = interrupted_.wait_for(timeout_ms);
	const u32 status =
		__atomic_load_n(reinterpret_cast<const u32 *>(&request.status), __ATOMIC_ACQUIRE);
	if (static_cast<wire::Status>(status) == wire::Status::done) {
		if (interrupted)
			return {};
		return kern::Error{-ETIMEDOUT};
	}
	const u64 state = registers_.read64(wire::doorbell);
	kern_dev_error_limited(pci_.dev(), "request %u: status %u, state %lu\n", posted_, status,
			       state);
	return kern::Error{-EIO};
}

/*
 * Sends more messages than the queue has entries, of different lengths. Checks that each one is
 * copied completely, and that the bytes after it do not change.
 */
kern::Result<> Device::self_test()
{
	constexpr u32 messages = 2 * wire::queue_entries;
	constexpr u32 target = wire::most_bytes;
	constexpr u8 untouched = 0xee;
	u8 *const bytes = memory_.as<u8>();
	const u64 start_ns = kern::now_ns();

	for (u32 message = 0; message < messages; message++) {
		const u32 length = wire::most_bytes - message * 31;
		for (u32 i = 0; i < length; i++)
			bytes[i] = static_cast<u8>(i * 7 + message);
		__builtin_memset(bytes + target, untouched, wire::most_bytes);
		KERN_TRY(send(0, target, length));
		const bool complete = __builtin_memcmp(bytes, bytes + target, length) == 0;
		if (!complete ||
		    (length < wire::most_bytes && bytes[target + length] != untouched)) {
			kern_dev_error(pci_.dev(), "message %u of %u bytes was corrupted\n",
				       message, length);
			return kern::Error{-EIO};
		}
	}
	kern_dev_info(pci_.dev(), "%u messages in %lu us\n", messages,
		      (kern::now_ns() - start_ns) / 1000);
	return {};
}

} // namespace example

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a fake device that can be registered and has ports but no hardware.
#pragma once
#include <kern/atomic.hpp>
#include <kern/kunit.hpp>
#include <rdma/driver.hpp>

struct FakeDevice {
	ib_device ib;
	/* Returned by query_port. */
	kern::Atomic<int> port_state;
	kern::Atomic<u16> lid;
};

/* Owns a device, whether it is registered or not. */
class FakeDeviceOwner
{
public:
	explicit FakeDeviceOwner(u32 ports = 2);
	~FakeDeviceOwner();
	FakeDeviceOwner(const FakeDeviceOwner &) = delete;
	FakeDeviceOwner &operator=(const FakeDeviceOwner &) = delete;

	/* Returns nullptr if there was no memory. */
	FakeDevice *get() const { return device_; }
	ib_device *ib() const { return &device_->ib; }
	FakeDevice *operator->() const { return device_; }
	/* Returns 0 or a negative errno. */
	int add(const char *name = "fake%d");
	void remove();

private:
	FakeDevice *device_;
	bool registered_ = false;
};

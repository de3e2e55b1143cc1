/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Holds the MAD state of one device: its special QPs, and the SA client's state of each port. */
#pragma once

#include "sa/port.hpp"
#include "special_qp.hpp"

namespace mad
{

/* MAD state of one port. The pointers are empty if the port has no MAD support. */
struct Port {
	kern::Owned<SpecialQp> smi;
	kern::Owned<SpecialQp> gsi;
	kern::Owned<sa::Port> sa;
};

class Device
{
public:
	/* Context: process. Errors: ENOMEM, and the errors of the verbs. */
	static kern::Result<kern::Owned<Device>> create(ib_device *device);
	~Device();

	/*
	 * Returns nullptr if the module has not been notified of the device yet, or does not serve
	 * it. Context: any, while the caller is a client of `device`.
	 */
	static Device *of(ib_device *device);

	/* Returns nullptr if the port has no such QP. */
	SpecialQp *qp(u32 port_num, ib_qp_type type);
	sa::Port *sa(u32 port_num);

private:
	explicit Device(ib_device *device);
	kern::Result<> open();
	Port *port(u32 port_num);
	void on_event(const ib_event &event);

	struct EventHandler : ib_event_handler {
		Device *owner;
	};

	ib_device *const device_;
	const u32 first_port_;
	ib_pd *pd_ = nullptr;
	kern::OwnedArray<Port> ports_;
	EventHandler event_handler_{};
	bool handles_events_ = false;
};

/* Registers the module with the device registry. Context: module init and exit. */
int start();
void stop();

} // namespace mad

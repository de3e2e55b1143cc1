// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Resolves IP addresses with the kernel's interfaces, routes and neighbours. */
#pragma once

#include "resolver.hpp"

namespace rdma_cm
{

/* Returns the kernel's information (kern/abi/ip.h). */
class KernelResolver final : public Resolver
{
public:
	~KernelResolver() { stop(); }
	/*
	 * Subscribes to the kernel's notifications, after which retry_resolutions() and
	 * check_interfaces() are called. Errors: ENOMEM.
	 */
	kern::Result<> start();
	void stop();

	kern_net *enter(bool of_caller) override { return kern_net_get(of_caller); }
	void leave(kern_net &net) override { kern_net_put(&net); }
	u64 number_of(kern_net &net) override { return kern_net_number(&net); }
	kern::Result<Interface> owner(kern_net &net, const Address &address) override;
	kern::Result<Interface> route(kern_net &net, const Address &to, Address &source) override;
	kern::Result<ib_gid> neighbour(kern_net &net, const Address &to,
				       const Interface &interface) override;
	kern::Result<Interface> incoming(const ib_gid &gid, u16 pkey, const Address &to,
					 const Address &peer) override;
	kern::Result<Interface> incoming_ethernet(const ib_gid &gid, const Address &to) override;
	void local_ports(kern_net &net, u16 &first, u16 &last) override;
	bool may_use_low_ports(kern_net &net) override;
	bool v6only(kern_net &net) override;

private:
	kern_ip_watcher *watcher_ = nullptr;
};

} // namespace rdma_cm

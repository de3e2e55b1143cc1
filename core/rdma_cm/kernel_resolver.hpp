// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#pragma once

#include "resolver.hpp"

namespace rdma_cm
{

/* The kernel's answers (kern/abi/ip.h). */
class KernelResolver final : public Resolver
{
public:
	~KernelResolver() { stop(); }
	/* From now on retry_resolutions() and check_interfaces() are called. Errors: ENOMEM. */
	kern::Result<> start();
	void stop();

	kern::Result<Interface> owner(const Address &address) override;
	kern::Result<Interface> route(const Address &to, Address &source) override;
	kern::Result<ib_gid> neighbour(const Address &to, const Interface &interface) override;
	kern::Result<Interface> incoming(const ib_gid &gid, u16 pkey, const Address &to,
					 const Address &peer) override;
	void local_ports(u16 &first, u16 &last) override;
	bool may_use_low_ports() override;
	bool v6only() override;

private:
	kern_ip_watcher *watcher_ = nullptr;
};

} // namespace rdma_cm

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Declares the transport for InfiniBand devices, which uses the communication manager. */
#pragma once

#include "transport.hpp"

namespace rdma_cm
{

/* Connections by InfiniBand's communication manager (rdma/ib_cm.h). */
class IbTransport final : public Transport
{
public:
	kern::Result<kern::Owned<Connection>> create_connection(Id &id) override;
	kern::Result<kern::Owned<Listening>> create_listening(ib_device &device,
							      Service &service) override;
	kern::Result<> idle_attributes(const Id &id, ib_qp_attr &attr, int &mask) override;
	bool has_paths() const override { return true; }
	bool serves(rdma_ucm_port_space) const override { return true; }
};

} // namespace rdma_cm

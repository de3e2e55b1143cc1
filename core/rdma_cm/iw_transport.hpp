// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Declares the transport for RNICs, which uses the iWARP connection manager. */
#pragma once

#include "transport.hpp"

namespace rdma_cm
{

/* Connections of RNICs, which are TCP connections (rdma/iw_cm.h). */
class IwTransport final : public Transport
{
public:
	kern::Result<kern::Owned<Connection>> create_connection(Id &id) override;
	kern::Result<kern::Owned<Listening>> create_listening(ib_device &device,
							      Service &service) override;
	kern::Result<> idle_attributes(const Id &id, ib_qp_attr &attr, int &mask) override;
	bool has_paths() const override { return false; }
	/* The card's TCP has ports of RDMA_PS_TCP only. */
	bool serves(rdma_ucm_port_space space) const override { return space == RDMA_PS_TCP; }
};

} // namespace rdma_cm

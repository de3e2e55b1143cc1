// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements listeners, and the other methods that the connection manager calls.
#pragma once
#include <rdma/iw_cm.h>
#include "rnic.hpp"

namespace amso1100
{

class Listener final : public EventHandler
{
public:
	/*
	 * Starts a listener. Errors: those of requests; EPROTONOSUPPORT for an address that is not
	 * IPv4. May sleep.
	 */
	static kern::Result<kern::Owned<Listener>> create(Rnic &rnic, iw_cm_id &id,
							  unsigned int backlog);
	/* Stops the listener. No request is reported after this returns. May sleep. */
	~Listener();

	void handle_event(const Message &event) override;

	Listener(Rnic &rnic, iw_cm_id &id) : rnic_(rnic), id_(id) {}

private:
	kern::Result<> start(unsigned int backlog);

	Rnic &rnic_;
	iw_cm_id &id_;
	u32 number_ = 0;
	u32 handle_ = 0;
	bool live_ = false;
};

extern const iw_cm_ops connection_ops;

} // namespace amso1100

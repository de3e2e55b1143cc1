// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Starts the RDMA CM when the module is loaded, with the resolver that looks up IP addresses in the
 * kernel (kernel_resolver.hpp) and the transports for InfiniBand and iWARP. Stops it when the
 * module is unloaded.
 */
#include "ib_transport.hpp"
#include "iw_transport.hpp"
#include "kernel_resolver.hpp"
#include "manager.hpp"

namespace rdma_cm
{
namespace
{

constinit kern::Static<KernelResolver> resolver;
constinit IbTransport infiniband;
constinit IwTransport iwarp;

kern::Result<> start()
{
	resolver.construct();
	const auto begun = [&]() -> kern::Result<> {
		KERN_TRY(Manager::start(*resolver, infiniband, iwarp));
		const auto watching = resolver->start();
		if (!watching.ok())
			Manager::stop();
		return watching;
	}();
	if (!begun.ok())
		resolver.destruct();
	return begun;
}

} // namespace
} // namespace rdma_cm

extern "C" int weft_rdma_cm_init()
{
	return rdma_cm::start().error();
}

extern "C" void weft_rdma_cm_exit()
{
	rdma_cm::resolver->stop();
	rdma_cm::Manager::stop();
	rdma_cm::resolver.destruct();
}

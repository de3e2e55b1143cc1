// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates the node /dev/infiniband/rdma_cm when the module is loaded, opens it for programs, and
// removes it when the module is unloaded.
#include <kern/log.hpp>
#include <rdma/ib_resources.h>
#include "abi.hpp"
#include "table.hpp"

using namespace rdma_ucm;

namespace
{

/* State that exists while the module is loaded. */
class Service
{
public:
	/*
	 * Creates the node. Programs may open it before this function returns, so all that they use
	 * must exist by then. Context: process. Errors: EEXIST or EBUSY if another module has
	 * created the node; ENOMEM.
	 */
	kern::Result<> begin()
	{
		KERN_TRY(file_kind().create());
		node_ = KERN_TRY(
			kern::MiscNode::create("rdma_cm", abi::version, file_kind(), this));
		published_.major = node_.major();
		published_.minor = node_.minor();
		ib_publish_node(&published_);
		return {};
	}
	~Service()
	{
		if (published_.major)
			ib_withdraw_node(&published_);
		node_ = {};
		file_kind().destroy();
	}

	/* Opens the node. */
	kern::Result<File *> open(kern_file &native)
	{
		return KERN_TRY(File::create(native, kern_current_user())).release();
	}

	Table ids;

private:
	kern::MiscNode node_;
	/* The entry by which RDMA netlink finds the node. */
	ib_node published_{
		.kind = IB_NODE_RDMA_CM,
		.device = nullptr,
		.port = 0,
		.name = "rdma_cm",
		.major = 0,
		.minor = 0,
		.abi_version = abi::version_as_number,
		.links = {},
	};
};

constinit kern::Static<Service> service;

} // namespace

Table &rdma_ucm::table()
{
	return service->ids;
}

extern "C" int weft_rdma_ucm_init()
{
	const auto begun = service.construct().begin();
	if (!begun) {
		kern_error("no node infiniband/rdma_cm: %d\n", begun.error());
		service.destruct();
	}
	return begun.error();
}

extern "C" void weft_rdma_ucm_exit()
{
	service.destruct();
}

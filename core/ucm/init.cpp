// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/log.hpp>
#include "abi.hpp"
#include "table.hpp"

using namespace ucm;

namespace
{

/* What there is while the module is. */
class Service
{
public:
	/*
	 * From now on programs may open the node, before this returns also: all that they use is
	 * there. Context: process. Errors: EEXIST or EBUSY if someone else has the node; ENOMEM.
	 */
	kern::Result<> begin()
	{
		TRY(file_kind().create());
		node_ = TRY(kern::MiscNode::create("rdma_cm", abi::version, file_kind(), this));
		return {};
	}
	~Service()
	{
		node_ = {};
		file_kind().destroy();
	}

	/* What opens the node. */
	kern::Result<File *> open(kern_file &native)
	{
		return TRY(File::create(native, kern_file_user(&native))).release();
	}

	Table ids;

private:
	kern::MiscNode node_;
};

constinit kern::Static<Service> service;

} // namespace

Table &ucm::table()
{
	return service->ids;
}

extern "C" int weft_ucm_init()
{
	const auto begun = service.construct().begin();
	if (!begun) {
		kern_error("no node infiniband/rdma_cm: %d\n", begun.error());
		service.destruct();
	}
	return begun.error();
}

extern "C" void weft_ucm_exit()
{
	service.destruct();
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <kern/log.hpp>
#include "abi.hpp"
#include "table.hpp"

using namespace ucm;

namespace
{

/* Ids of all programs together: eight files full of them. */
constexpr u32 ids_of_all = 8 * File::ids_max;

/* What there is while the module is. */
class Service {
public:
	/* Context: process. Errors: EEXIST or EBUSY if someone else has the node; ENOMEM. */
	static kern::Result<kern::Owned<Service>> create()
	{
		auto service = TRY(kern::make<Service>(kern::Gfp::kernel));
		TRY(file_kind().create());
		service->node_ = TRY(kern::MiscNode::create("rdma_cm", abi::version, file_kind(), service.get()));
		return service;
	}
	~Service()
	{
		node_ = {};
		file_kind().destroy();
	}

	/* What opens the node. */
	kern::Result<File *> open(kern_file &native) { return TRY(File::create(native)).release(); }

	Table ids{ids_of_all};

private:
	kern::MiscNode node_;
};

constinit kern::Static<kern::Owned<Service>> service;

} // namespace

Table &ucm::table()
{
	return (*service)->ids;
}

extern "C" int weft_ucm_init()
{
	auto made = Service::create();
	if (!made) {
		kern_error("no node infiniband/rdma_cm: %d\n", made.error());
		return made.error();
	}
	service.construct(made.take());
	return 0;
}

extern "C" void weft_ucm_exit()
{
	service.destruct();
}

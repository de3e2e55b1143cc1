// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "port.hpp"
#include <kern/abi/net.h>
#include <kern/log.hpp>
#include <rdma/ib_device_name.h>
#include <rdma/ib_namespaces.h>

namespace umad
{

kern::Result<kern::Ref<Port>> Port::create(ib_device &ib, u32 number)
{
	auto port = KERN_TRY(kern::adopt_ref(new (kern::Gfp::kernel) Port(ib, number)));
	if (const kern::Result<> started = port->start(); !started) {
		/*
		 * One of the nodes may have existed for a moment, and a program may have opened it.
		 */
		port->leave_device();
		return kern::Error{started.error()};
	}
	return port;
}

Port::~Port() = default;

kern::Result<> Port::start()
{
	const kern_class_file files[] = {
		{"ibdev", &shown_device_.native()},
		{"port", &shown_number_.native()},
	};

	manager_ = KERN_TRY(Manager::create(ib_, number_));
	name_ = KERN_TRY(names().numbers.alloc(0, kern::Node::limit - 1));
	kern_format(umad_name_, sizeof(umad_name_), "umad%u", name_);
	kern_format(issm_name_, sizeof(issm_name_), "issm%u", name_);
	umad_ = KERN_TRY(kern::Node::create(names().mad_class, ib_.dma_device, umad_name_, files,
					    names().umad, name_, file_kind(), this));
	issm_ = KERN_TRY(kern::Node::create(names().mad_class, ib_.dma_device, issm_name_, files,
					    names().issm, name_, manager_kind(), manager_.get()));
	publish(published_umad_, IB_NODE_UMAD, umad_name_, names().umad);
	publish(published_issm_, IB_NODE_ISSM, issm_name_, names().issm);
	umad_.announce();
	issm_.announce();
	return {};
}

void Port::publish(ib_node &node, ib_node_kind kind, const char *name,
		   const kern::NodeRegion &region)
{
	node = {
		.kind = kind,
		.device = &ib_,
		.port = number_,
		.name = name,
		.major = region.major(),
		.minor = region.minor(name_),
		.abi_version = abi::version_as_number,
		.links = {},
	};
	ib_publish_node(&node);
}

kern::Result<> Port::show_device(kern::sysfs::Output &out)
{
	char name[IB_DEVICE_NAME_MAX];

	ib_copy_device_name(&ib_, name);
	out.print("%s\n", name);
	return {};
}

kern::Result<> Port::show_number(kern::sysfs::Output &out)
{
	out.print("%u\n", number_);
	return {};
}

kern::Result<File *> Port::open(kern_file &native)
{
	if (!ib_device_in_net(&ib_, kern_net_number_of_caller()))
		return kern::Error{-EPERM};
	return files_.add(KERN_TRY(File::create(*this, native)));
}

void Port::leave_device()
{
	ib_withdraw_node(&published_issm_);
	ib_withdraw_node(&published_umad_);
	/*
	 * This comes first because the removal of the node waits for open() calls, and those may
	 * wait in manager_.
	 */
	if (manager_)
		manager_->leave_device();
	issm_ = {};
	umad_ = {};
	/*
	 * The number can be assigned to another port now, although programs may keep this port's
	 * file open for long.
	 */
	if (name_ < kern::Node::limit)
		names().numbers.free(std::exchange(name_, kern::Node::limit));
	files_.leave_device();
}

} // namespace umad

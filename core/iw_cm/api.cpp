// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the functions of rdma/iw_cm.h. Most of them call a method of the ID (id.cpp). */
#include "manager.hpp"

using iw_cm::Id;
using iw_cm::Manager;

extern "C" {

int iw_cm_add_device(ib_device *device, const iw_cm_ops *ops)
{
	KERN_MIGHT_SLEEP();
	return Manager::get().add(device, ops).error();
}

void iw_cm_remove_device(ib_device *device)
{
	KERN_MIGHT_SLEEP();
	Manager::get().remove(device);
}

iw_cm_id *iw_create_cm_id(ib_device *device, iw_cm_handler cm_handler, void *context)
{
	KERN_MIGHT_SLEEP();
	auto created = Id::create(device, cm_handler, context);
	return created.ok() ? created.take().release() : rdma::err_ptr<iw_cm_id>(created.error());
}

void iw_destroy_cm_id(iw_cm_id *id)
{
	KERN_MIGHT_SLEEP();
	Id::of(id).end();
}

int iw_cm_listen(iw_cm_id *id, unsigned int backlog)
{
	KERN_MIGHT_SLEEP();
	return Id::of(id).listen(backlog).error();
}

void iw_cm_stop_listening(iw_cm_id *id)
{
	KERN_MIGHT_SLEEP();
	Id::of(id).stop_listening();
}

int iw_cm_connect(iw_cm_id *id, const iw_cm_param *param)
{
	KERN_MIGHT_SLEEP();
	return Id::of(id).connect(*param).error();
}

int iw_cm_accept(iw_cm_id *id, const iw_cm_param *param)
{
	KERN_MIGHT_SLEEP();
	return Id::of(id).accept(*param).error();
}

int iw_cm_reject(iw_cm_id *id, const void *private_data, u8 private_data_len)
{
	KERN_MIGHT_SLEEP();
	return Id::of(id).reject(private_data, private_data_len).error();
}

int iw_cm_disconnect(iw_cm_id *id, bool abrupt)
{
	KERN_MIGHT_SLEEP();
	return Id::of(id).disconnect(abrupt).error();
}

} // extern "C"

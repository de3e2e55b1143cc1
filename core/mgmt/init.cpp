// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "device.hpp"
#include "sa/query.hpp"

extern "C" int weft_mad_init()
{
	mgmt::sa::begin_queries();
	const int status = mgmt::start();
	if (status)
		mgmt::sa::end_queries();
	return status;
}

extern "C" void weft_mad_exit()
{
	mgmt::stop();
	mgmt::sa::end_queries();
}

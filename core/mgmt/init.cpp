// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "device.hpp"
#include "sa/query.hpp"

namespace
{

kern::Result<> start()
{
	TRY(mgmt::begin_special_qps());
	mgmt::sa::begin_queries();
	const int status = mgmt::start();
	if (status) {
		mgmt::sa::end_queries();
		mgmt::end_special_qps();
	}
	return kern::check(status);
}

} // namespace

extern "C" int weft_mad_init()
{
	return start().error();
}

extern "C" void weft_mad_exit()
{
	mgmt::stop();
	mgmt::sa::end_queries();
	mgmt::end_special_qps();
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Initialises the special QPs and the SA client when the module is loaded, and registers the MAD
// layer with the midlayer. Both are undone when the module is unloaded.
#include "device.hpp"
#include "sa/query.hpp"

namespace
{

kern::Result<> start()
{
	KERN_TRY(mad::begin_special_qps());
	mad::sa::begin_queries();
	const int status = mad::start();
	if (status) {
		mad::sa::end_queries();
		mad::end_special_qps();
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
	mad::stop();
	mad::sa::end_queries();
	mad::end_special_qps();
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/sink_calls.hpp"

namespace weft::fabric
{

/* The entries of threads without a number are always full, so that begin() needs only one check. */
constexpr SinkCalls::All::All()
{
	for (unsigned number = ThreadNumber::kMost; number < threads.size(); number++)
		threads[number].depth = kMostNested;
}

constinit SinkCalls::All SinkCalls::all_;

bool SinkCalls::in_progress(const Port &port)
{
	for (const OfThread &thread : all_.threads)
		for (const std::atomic<const Port *> &record : thread.ports)
			if (record.load(std::memory_order_seq_cst) == &port)
				return true;
	return false;
}

} // namespace weft::fabric

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What a card's control plane offers to its transport engine. Everything here belongs to the card
// and to its loop; pointers that a lookup gives are good until control returns to the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hca/completion_sink.hpp"
#include "hca/diagnostics.hpp"
#include "hca/groups.hpp"
#include "hca/management.hpp"
#include "hca/memory.hpp"
#include "hca/port.hpp"
#include "hca/queue_pair.hpp"
#include "hca/sparse_table.hpp"
#include "hca/work_source.hpp"

namespace weft
{
class Loop;
}

namespace weft::hca
{

struct Context {
	std::string name; // for logs
	Loop &loop;       // timers and posting
	WorkSource &work;
	CompletionSink &completions;
	Memory &memory;
	Groups &groups;
	ManagementAgent &management;
	Diagnostics &diagnostics;
	std::vector<std::unique_ptr<CardPort>> &ports;
	SparseTable<QueuePair> queue_pairs{0};
	// The first of the special queue pairs; 0 while there are none.
	std::uint32_t special_qp_base = 0;
	// An address vector's PD and port must be the QP's.
	bool check_address_vectors = false;
	// Completions of datagrams tell whether their IP checksums hold.
	bool ipoib_checksum = false;
	// Integers in the host's memory are big-endian (operands of atomics).
	bool big_endian_host = false;

	// Lookup by number, one table access. Null: does not exist.
	QueuePair *queue_pair(std::uint32_t qpn) const
	{
		QueuePair *qp = queue_pairs.find(qpn);
		return qp && qp->qpn == qpn ? qp : nullptr;
	}
	CardPort *port(unsigned number) const
	{
		return number >= 1 && number <= ports.size() ? ports[number - 1].get() : nullptr;
	}
	// QP0 (@number 0) or QP1 of @port, as the driver created it.
	QueuePair *special_queue_pair(unsigned port, unsigned number) const
	{
		return special_qp_base ? queue_pair(special_qp_base + 2 * number + port - 1)
				       : nullptr;
	}
	// Which special queue pair @qpn is: 0 or 1 (SMI, GSI); -1 for an ordinary one.
	int special_number(std::uint32_t qpn) const
	{
		const std::uint32_t index = qpn - special_qp_base;
		return special_qp_base && index < 4 ? static_cast<int>(index / 2) : -1;
	}
};

} // namespace weft::hca

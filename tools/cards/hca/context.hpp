// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface by which the transport engine accesses a card's control plane: its queue
// pairs, memory keys, queues and ports. All members belong to the card and to its loop. Pointers
// from a lookup are valid until control returns to the loop.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cards/hca/completion_sink.hpp"
#include "cards/hca/diagnostics.hpp"
#include "cards/hca/groups.hpp"
#include "cards/hca/management.hpp"
#include "cards/hca/memory.hpp"
#include "cards/hca/port.hpp"
#include "cards/hca/queue_pair.hpp"
#include "cards/hca/sparse_table.hpp"
#include "cards/hca/work_source.hpp"

namespace weft
{
class Loop;
}

namespace weft::hca
{

class ProgramPorts;

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
	// Programs of the host, which get MADs before the driver does. Null if there can be no such
	// programs.
	ProgramPorts *programs = nullptr;
	SparseTable<QueuePair> queue_pairs{0};
	// The driver's numbers of the special queue pairs: first QP0 of each port, then QP1 of each
	// port. 0 if one does not exist.
	static constexpr unsigned kSpecialQps = 4;
	std::array<std::uint32_t, kSpecialQps> special_qpns{};
	// True if an address vector must have the QP's PD and port.
	bool check_address_vectors = false;
	// True if completions of datagrams report correct IP checksums.
	bool ipoib_checksum = false;
	// True if integers in the host's memory are big-endian (operands of atomics).
	bool big_endian_host = false;

	// Look up an object by number, with one table access. Return null if it does not exist.
	QueuePair *queue_pair(std::uint32_t qpn) const
	{
		QueuePair *qp = queue_pairs.find(qpn);
		return qp && qp->qpn == qpn ? qp : nullptr;
	}
	CardPort *port(unsigned number) const
	{
		return number >= 1 && number <= ports.size() ? ports[number - 1].get() : nullptr;
	}
	// Returns QP0 (@number 0) or QP1 of @port, as the driver created it.
	QueuePair *special_queue_pair(unsigned port, unsigned number) const
	{
		const std::uint32_t qpn = special_qpns[2 * number + port - 1];
		return qpn ? queue_pair(qpn) : nullptr;
	}
};

} // namespace weft::hca

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a transport that records calls, for tests of the control plane.
#pragma once

#include <cstdint>
#include <vector>

#include "net/fabric/packet.hpp"
#include "cards/hca/transport.hpp"

namespace weft::hca::testing
{

// RecordingTransport - a data path that only records its calls.
class RecordingTransport final : public Transport
{
public:
	struct Change {
		std::uint32_t qpn;
		QpState from;
		QpState to;
		bool operator==(const Change &) const = default;
	};
	std::vector<std::uint32_t> created;
	std::vector<Change> changes;
	std::vector<std::uint32_t> destroyed;
	std::vector<std::uint32_t> doorbells;
	std::vector<std::uint32_t> gone_keys;
	unsigned key_changes = 0;
	unsigned received = 0;

	void qp_created(QueuePair &qp) override { created.push_back(qp.qpn); }
	void qp_changed(QueuePair &qp, QpState from) override
	{
		changes.push_back({qp.qpn, from, qp.state});
	}
	void qp_destroyed(QueuePair &qp) override { destroyed.push_back(qp.qpn); }
	QueuePairProgress progress(const QueuePair &qp) const override
	{
		QueuePairProgress progress;
		progress.next_send_psn = qp.initial_send_psn;
		progress.next_receive_psn = qp.initial_receive_psn;
		return progress;
	}
	void send_doorbell(QueuePair &qp) override { doorbells.push_back(qp.qpn); }
	void key_gone(std::uint32_t index) override { gone_keys.push_back(index); }
	void keys_changed() override { key_changes++; }
	void events_wanted() override {}
	void receive(unsigned, fabric::Packet &&) override { ++received; }
	void credit_available(unsigned, std::uint8_t) override {}
	void port_changed(unsigned) override {}
};

} // namespace weft::hca::testing

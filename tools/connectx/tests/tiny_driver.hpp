// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A card in a fake machine, with a driver small enough for a test.
#pragma once

#include <cstdint>
#include <vector>

#include "connectx/card.hpp"
#include "connectx/card_context.hpp"
#include "connectx/testing/card_driver.hpp"
#include "hca/transport.hpp"
#include "fabric/fabric.hpp"
#include "pci/testing/fake_host.hpp"

namespace weft::connectx::testing
{

// RecordingTransport - a data path that only notes what it is told.
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
	std::vector<std::uint32_t> gone_cqs;
	std::vector<std::uint32_t> gone_srqs;
	std::vector<std::uint32_t> gone_keys;
	unsigned key_changes = 0;
	unsigned received = 0;

	void qp_created(hca::QueuePair &qp) override { created.push_back(qp.qpn); }
	void qp_changed(hca::QueuePair &qp, QpState from) override
	{
		changes.push_back({qp.qpn, from, qp.state});
	}
	void qp_destroyed(hca::QueuePair &qp) override { destroyed.push_back(qp.qpn); }
	QueuePairProgress progress(const hca::QueuePair &qp) const override
	{
		QueuePairProgress progress;
		progress.next_send_psn = qp.initial_send_psn;
		progress.next_receive_psn = qp.initial_receive_psn;
		return progress;
	}
	void send_doorbell(hca::QueuePair &qp) override { doorbells.push_back(qp.qpn); }
	void cq_gone(std::uint32_t cqn) override { gone_cqs.push_back(cqn); }
	void key_gone(std::uint32_t index) override { gone_keys.push_back(index); }
	void keys_changed() override { key_changes++; }
	void srq_gone(std::uint32_t srqn) override { gone_srqs.push_back(srqn); }
	void receive(unsigned, fabric::Packet &&) override { ++received; }
	void credit_available(unsigned, std::uint8_t) override {}
	void port_changed(unsigned) override {}
};

// What there is before the driver: a machine, and the ends of the card's links.
struct TinyMachine {
	fabric::Fabric fabric;
	weft::testing::FakeHost host{CardDriver::kMemorySize};
	std::vector<fabric::Port *> peers; // the other ends of the card's links
};

class TinyDriver : public TinyMachine, public CardDriver
{
public:
	// A card with @ports ports, each with a link to a port of the test's own. Its data path
	// only records what it is told, unless @make_transport makes another.
	explicit TinyDriver(unsigned ports = 1, TransportFactory make_transport = {},
			    bool trusted = true);
	~TinyDriver();

	testing::RecordingTransport &transport() { return *transport_; }
	CardContext &context() { return *card.context(); }

	// As if made anew: the card reset, all memory zero and free, interrupts and bus mastering on.
	// Only the links' other ends are as they were.
	void start_over();

private:
	RecordingTransport *transport_ = nullptr;

public:
	Card card;
};

} // namespace weft::connectx::testing

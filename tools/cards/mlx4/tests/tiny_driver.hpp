// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a card in a simulated guest, with a minimal driver, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "cards/mlx4/card.hpp"
#include "cards/mlx4/card_context.hpp"
#include "cards/mlx4/testing/card_driver.hpp"
#include "cards/hca/testing/recording_transport.hpp"
#include "net/fabric/fabric.hpp"
#include "bus/pci/testing/fake_host.hpp"

namespace weft::mlx4::testing
{

using hca::testing::RecordingTransport;

// A guest and the peers of the card's links, without a driver.
struct TinyMachine {
	fabric::Fabric fabric;
	weft::testing::FakeHost host{CardDriver::kMemorySize};
	std::vector<fabric::Port *> peers; // the peers of the card's links
};

class TinyDriver : public TinyMachine, public CardDriver
{
public:
	// Creates a card with @ports ports, each linked to a port of the test. Its data path only
	// records its calls, unless @make_transport creates another.
	explicit TinyDriver(unsigned ports = 1, TransportFactory make_transport = {},
			    bool trusted = true);
	~TinyDriver();

	RecordingTransport &transport() { return *transport_; }
	CardContext &context() { return *card.context(); }

	// Resets the card, zeroes and frees all memory, and enables interrupts and bus mastering.
	// Only the peers of the links keep their state.
	void start_over();

private:
	RecordingTransport *transport_ = nullptr;

public:
	Card card;
};

} // namespace weft::mlx4::testing

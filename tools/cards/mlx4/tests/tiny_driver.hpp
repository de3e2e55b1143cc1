// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A card in a simulated guest, with a minimal driver for tests.
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

// The fixture without a driver: a guest, and the other ends of the card's links.
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

	RecordingTransport &transport() { return *transport_; }
	CardContext &context() { return *card.context(); }

	// Starts anew: the card is reset, all memory is zero and free, interrupts and bus mastering
	// are on. Only the other ends of the links stay as they are.
	void start_over();

private:
	RecordingTransport *transport_ = nullptr;

public:
	Card card;
};

} // namespace weft::mlx4::testing

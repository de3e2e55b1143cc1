// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides, for tests, a host with a TCP stack on a port of an Ethernet link, and a user of a TCP
// connection that records received data and other callbacks.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/ethernet/link.hpp"
#include "net/tcp/stack.hpp"

namespace weft::tcp::testing
{

constexpr Ip kNetwork = 0x0a000000;
constexpr Ip kMask = 0xffffff00;

struct Client final : User {
	void connected() override { ++connections; }
	void received(View bytes) override
	{
		input.insert(input.end(), bytes.begin(), bytes.end());
	}
	void writable() override { send(); }
	void peer_closed() override
	{
		closed_by_peer = true;
		if (closes_back)
			connection->close();
	}
	void ended(End how) override { end = how; }

	// Passes the rest of the output to the connection in pieces of @piece bytes, as far as its
	// buffer permits.
	void send()
	{
		while (done < output.size()) {
			const View rest = View(output).subspan(done);
			const View part = rest.first(std::min(piece, rest.size()));
			if (!connection->write(part))
				return;
			done += part.size();
		}
		if (closes_when_sent)
			connection->close();
	}

	ConnectionPtr connection;
	Bytes input, output;
	std::size_t done = 0;
	std::size_t piece = 1460;
	unsigned connections = 0;
	bool closed_by_peer = false, closes_back = true, closes_when_sent = false;
	std::optional<End> end;
};

struct Host {
	Host(Loop &loop, unsigned number)
	    : address(kNetwork | number), port(std::to_string(number),
					       // Posted, because the receiver may reply while it is
					       // called.
					       [this, &loop](const ethernet::FramePtr &frame) {
						       loop.post([this, frame] {
							       ++frames;
							       stack.receive(*frame);
						       });
					       }),
	      stack(loop, {.mac = Mac{0x020000000000} | number}, [this](Bytes frame) {
		      port.send(std::make_shared<const ethernet::Frame>(std::move(frame)));
	      })
	{
	}

	const Ip address;
	std::size_t frames = 0; // received
	ethernet::Port port;
	Stack stack;
};

} // namespace weft::tcp::testing

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Represents a port of a node, and the programs that are attached to it. Delivers each received MAD
// to the agent to which it is addressed.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "attach/claim.hpp"
#include "base/loop.hpp"
#include "net/fabric/local_access.hpp"

namespace weft::attach
{

class OpenedPort;

// Limit of received MADs that wait for the server's thread, for all programs on the port together.
// MADs beyond it are dropped.
constexpr std::size_t kMostIncoming = 16384;

// Used on the server's loop, except for the receiver's functions.
class NodePort
{
public:
	// @access must outlive this object. @trusted: programs may send and receive SMPs.
	NodePort(Loop &loop, fabric::LocalAccess &access, bool trusted);
	~NodePort();
	NodePort(const NodePort &) = delete;
	NodePort &operator=(const NodePort &) = delete;

	bool trusted() const { return trusted_; }
	fabric::LocalAccess &access() const { return access_; }
	// Returns the last known attributes of the port, or null if they are not known yet.
	const fabric::PortView *view() const { return view_ ? &*view_ : nullptr; }
	// Requests the port's attributes and calls @known with them. @known is not called if this
	// object is destroyed first.
	void with_view(std::function<void(const fabric::PortView &)> known);

	// Adds an agent's claim and assigns the upper half of its transaction IDs. Returns false if
	// another agent has registered for one of the MADs.
	bool add_claim(Claim &claim, OpenedPort &owner);
	void remove_claim(std::uint32_t hi_tid);

private:
	class Receiver;
	struct Claimed {
		Claim claim;
		OpenedPort *owner;
	};

	void take_incoming();

	Loop &loop_;
	fabric::LocalAccess &access_;
	const bool trusted_;
	std::optional<fabric::PortView> view_;
	std::vector<std::function<void(const fabric::PortView &)>> waiting_;
	std::vector<Claimed> claimed_;
	std::uint32_t last_hi_tid_;
	const std::shared_ptr<Receiver> receiver_;
	Wakeup incoming_;
};

} // namespace weft::attach

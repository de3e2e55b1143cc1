// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Accepts connections on a loop.
#pragma once

#include <functional>
#include <memory>

#include "base/unix_listener.hpp"

namespace weft
{

class Loop;

// Acceptor - takes the connections that come to a listener, on a loop. Made, used and destroyed on
// the loop's thread.
//
// While the process has no descriptor for a connection, it stays in the listener's queue and is
// tried again later: it keeps the listener readable, and waiting for that alone would keep the
// thread busy.
class Acceptor
{
public:
	using Connected = std::function<void(FileDescriptor)>;

	Acceptor(Loop &loop, UnixListener listener, Connected connected);
	// This closes the listener as well.
	~Acceptor();
	Acceptor(const Acceptor &) = delete;
	Acceptor &operator=(const Acceptor &) = delete;

private:
	struct State;
	std::unique_ptr<State> state_;
};

} // namespace weft

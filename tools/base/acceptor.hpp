// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Accepts the connections of a listening socket on an event loop.
#pragma once

#include <functional>
#include <memory>

#include "base/unix_listener.hpp"

namespace weft
{

class Loop;

// Acceptor - accepts connections of a listener, on a loop. Created, used and destroyed on the
// loop's thread.
//
// If the process has no descriptor for a connection, the connection stays in the listener's queue
// and the acceptor tries again later. Meanwhile it does not poll the listener, because the waiting
// connection keeps the listener readable, and the thread would never sleep.
class Acceptor
{
public:
	using Connected = std::function<void(FileDescriptor)>;

	Acceptor(Loop &loop, UnixListener listener, Connected connected);
	// Also closes the listener.
	~Acceptor();
	Acceptor(const Acceptor &) = delete;
	Acceptor &operator=(const Acceptor &) = delete;

private:
	struct State;
	std::unique_ptr<State> state_;
};

} // namespace weft

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/acceptor.hpp"

#include <cerrno>
#include <chrono>

#include "base/loop.hpp"

namespace weft
{

namespace
{

constexpr std::chrono::milliseconds kRetry{100};

} // namespace

struct Acceptor::State {
	State(Loop &loop, UnixListener l, Connected c)
	    : listener(std::move(l)), connected(std::move(c)),
	      waiting(loop, listener.fd(), Watch::kReadable, [this](unsigned) { accept(); }),
	      retry(loop, [this] { accept(); })
	{
	}

	void accept()
	{
		FileDescriptor socket = listener.accept();
		if (!socket &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
			waiting.want(Watch::kNothing);
			return retry.arm(kRetry);
		}
		waiting.want(Watch::kReadable);
		// This must be the last statement, because the handler may destroy the acceptor.
		if (socket)
			connected(std::move(socket));
	}

	UnixListener listener;
	const Connected connected;
	Watch waiting;
	Timer retry;
};

Acceptor::Acceptor(Loop &loop, UnixListener listener, Connected connected)
    : state_(std::make_unique<State>(loop, std::move(listener), std::move(connected)))
{
}

Acceptor::~Acceptor() = default;

} // namespace weft

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/acceptor.hpp"

#include <cerrno>
#include <chrono>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>

#include "base/loop.hpp"

namespace weft
{

namespace
{

constexpr std::chrono::milliseconds kRetry{100};

} // namespace

struct Acceptor::State : std::enable_shared_from_this<State> {
	State(Loop &loop, UnixListener l, Connected c)
	    : listener(std::move(l)), connected(std::move(c)), waiting(loop.io(), listener.fd()),
	      retry(loop, [this] { accept(); })
	{
	}
	// The listener keeps and closes its descriptor; here it is only waited for.
	~State() { waiting.release(); }

	void wait()
	{
		waiting.async_wait(asio::posix::stream_descriptor::wait_read,
				   [weak = weak_from_this()](std::error_code error) {
					   const auto self = weak.lock();
					   if (!error && self)
						   self->accept();
				   });
	}

	void accept()
	{
		FileDescriptor socket = listener.accept();
		if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
				errno == ENOMEM))
			return retry.arm(kRetry);
		wait();
		// The last: it may destroy the acceptor.
		if (socket)
			connected(std::move(socket));
	}

	UnixListener listener;
	const Connected connected;
	asio::posix::stream_descriptor waiting;
	Timer retry;
};

Acceptor::Acceptor(Loop &loop, UnixListener listener, Connected connected)
    : state_(std::make_shared<State>(loop, std::move(listener), std::move(connected)))
{
	state_->wait();
}

Acceptor::~Acceptor() = default;

} // namespace weft

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Carries an iWARP stream over a TCP connection: moves the bytes, one FPDU per segment, and
// enforces the time limits that neither the stream nor TCP implements.
//
// Everything runs on one loop. The owner may call all functions from within a callback of the
// stream. The connection changes only after the callback has returned, so that no function of
// owner, stream or connection is called while another one of the same object is running. The
// carrier must not be destroyed in a callback.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>

#include "base/loop.hpp"
#include "net/iwarp/stream.hpp"
#include "net/tcp/stack.hpp"

namespace weft::iwarp
{

class Carrier final : private Host, private tcp::User
{
public:
	// The peer must answer the connection request within kConnecting, and its request or reply
	// must be complete within kStarting. The owner must end a request that waits for accept()
	// or reject().
	static constexpr Clock::duration kConnecting = std::chrono::seconds(30);
	static constexpr Clock::duration kStarting = std::chrono::seconds(10);
	// Time limits for close() without any progress, and for the peer to close after an error.
	static constexpr Clock::duration kClosing = std::chrono::seconds(10);
	static constexpr Clock::duration kLingering = std::chrono::seconds(5);

	// @owner receives the calls of a stream's host. ended() is called even if no stream has
	// begun. @over is called when the carrier does no more work and may be destroyed, but not
	// within the call.
	Carrier(Loop &loop, const StreamConfig &config, Host &owner, std::function<void()> over);
	// Resets the connection if it is still open.
	~Carrier() override;
	Carrier(const Carrier &) = delete;
	Carrier &operator=(const Carrier &) = delete;

	// Connects as initiator. Either this function or adopt() must be called once. Returns false
	// if there is no route or no free connection.
	bool connect(tcp::Stack &stack, const tcp::Endpoint &remote);
	// For a responder: uses a connection that a peer has opened.
	void adopt(tcp::ConnectionPtr connection);

	// Replaces the owner. If it is null, there are no more callbacks, and received data is not
	// stored.
	void set_owner(Host *owner) { owner_ = owner; }

	void accept(const Bytes &private_data, std::size_t ird, std::size_t ord);
	void reject(const Bytes &private_data);
	void post(Request request);
	// Closes the connection in an orderly way when all posted requests have completed. The
	// connection ends when the peer closes it, or after a time limit.
	void close();
	// Resets the connection immediately.
	void abort();

	// Valid once connected.
	const tcp::Pair &pair() const { return connection_->pair(); }
	bool started() const { return stream_.has_value(); }
	// Returns why TCP has ended the connection, if this has ended the stream.
	std::optional<tcp::End> tcp_end() const { return tcp_end_; }
	bool over() const { return over_; }

private:
	// Host.
	void requested(const StartFrame &request) override;
	void established(const StartFrame &reply) override;
	void refused(const StartFrame &reply) override;
	Access place(Stag stag, std::uint64_t offset, View payload) override;
	Access fetch(Stag stag, std::uint64_t offset, std::span<std::uint8_t> into) override;
	Access invalidate(Stag stag) override;
	Access place_response(Stag stag, std::uint64_t offset, View payload) override;
	std::optional<std::uint64_t> next_receive() override;
	bool place_message(std::uint64_t offset, View payload) override;
	void received(std::uint64_t length, bool solicited,
		      std::optional<Stag> invalidated) override;
	void completed(std::uint64_t id) override;
	void ended(const End &end) override;

	// tcp::User.
	void connected() override;
	void received(tcp::View bytes) override;
	void writable() override { pump(); }
	void peer_closed() override;
	void ended(tcp::End how) override;

	void begin();
	void pump();
	void run();
	void time_is_over();

	StreamConfig config_;
	Host *owner_;
	const std::function<void()> notify_closed_;
	tcp::ConnectionPtr connection_;
	std::optional<Stream> stream_; // once connected
	Bytes pending_;                // output that the connection has not accepted yet
	std::optional<tcp::End> tcp_end_;
	bool closing_ = false; // close() was called
	bool closed_ = false;  // the connection's close() was called
	bool aborting_ = false;
	bool over_ = false;
	Timer timer_;
	Wakeup wakeup_;
};

} // namespace weft::iwarp

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements one connection of a trunk: a stream socket on which both ends do the handshake, and
// then exchange frames in encrypted records.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_descriptor.hpp"
#include "base/loop.hpp"
#include "net/trunk/address.hpp"
#include "net/trunk/frame.hpp"
#include "net/trunk/frame_reader.hpp"
#include "net/trunk/handshake.hpp"
#include "net/trunk/record.hpp"

namespace weft::trunk
{

// Time limit for connecting and the handshake together.
constexpr std::chrono::seconds kHandshakeTime{5};
// An end that has no other data to send sends a keepalive at this interval.
constexpr std::chrono::seconds kAlivePeriod{1};
// A peer that sends nothing for this time, or does not read data that waits for it, is considered
// lost.
constexpr std::chrono::seconds kSilenceTime{10};
// While more than this number of bytes waits for the socket, no packets are taken from the fabric.
constexpr std::size_t kMostUnsent = 256 << 10;

// Created, used and destroyed on the loop's thread.
class Connection
{
public:
	struct Handlers {
		// Called when the peer has proved that it has the key. Returns a reason to refuse
		// it nevertheless, or `none`. The handler may destroy other connections, but not
		// this one.
		std::function<Reason()> authenticated;
		// The authenticated peer has sent a frame. Returns what is wrong with it, or null.
		std::function<const char *(const Frame &)> frame;
		// Returns true if no more frames should be taken now; see resume().
		std::function<bool()> full{};
		// Appends frames to be sent, with about @room bytes of packets. Returns their
		// number of bytes.
		std::function<std::size_t(std::deque<Buffer> &out, std::size_t room)> fill;
		// Called when the connection has closed. @violation is true if the peer broke the
		// protocol. The handler destroys the connection.
		std::function<void(const std::string &why, bool violation)> closed;
	};

	// @socket is connected or connecting to @peer. @kind: what the trunk connects. @name is the
	// trunk's name. @key must outlive the connection.
	Connection(Loop &loop, FileDescriptor socket, const Address &peer, Kind kind, Role role,
		   const std::string &name, const Key &key, Handlers handlers);
	Connection(const Connection &) = delete;
	Connection &operator=(const Connection &) = delete;

	bool authenticated() const { return authenticated_; }
	// Returns the peer's address.
	const std::string &peer() const { return peer_; }
	const std::string &network() const { return network_; }
	Clock::time_point last_received() const { return last_received_; }
	// Must be called if there may be something to send. Calls fill() until it returns nothing
	// or the socket is full.
	void send();
	// Must be called if full() may return false again, and if there may be something to send.
	// May close the connection.
	void resume();
	// Notifies the peer of the reason, if the socket has space for it. The owner then destroys
	// the connection.
	void say_goodbye(Reason reason) noexcept;

private:
	void ready(unsigned what);
	// These return false if the connection is closed, and possibly destroyed.
	bool read();
	// Takes the frames that have been read, until the owner is full.
	bool take_frames();
	bool take(const Frame &frame);
	bool greet(const Frame &frame);
	std::size_t unsent() const { return out_bytes_ + wire_.size() - wire_sent_; }
	// Appends a frame to wire_: as it is during the handshake, and then in a separate record.
	void append(const Buffer &frame);
	bool flush();
	bool close(const std::string &why, Reason reason);
	void want(bool writable);
	void tick();

	Loop &loop_;
	const FileDescriptor socket_;
	const std::string peer_, network_;
	const Key &key_;
	const Handlers handlers_;
	Handshake handshake_;
	FrameReader reader_;
	// After the handshake, frames that wait for a record.
	std::deque<Buffer> out_;
	std::size_t out_bytes_ = 0;
	std::optional<RecordSealer> sealer_;
	// Data for the socket, and how much of it was sent.
	Buffer wire_;
	std::size_t wire_sent_ = 0;
	bool authenticated_ = false;
	bool paused_ = false;      // nothing is read, because the owner is full
	bool sent_lately_ = false; // since the last tick
	Clock::time_point last_received_;
	Clock::time_point last_sent_; // or the last time when no data was waiting
	Timer timer_;
	Watch watch_;
};

} // namespace weft::trunk

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A port that a program has opened: the program's agents, its sends until they are answered or time
// out, RMPP in both directions, and received messages that the program has not read. It behaves as
// umad does, uses no socket, and runs on the server's loop.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "attach/claim.hpp"
#include "attach/message.hpp"
#include "attach/reception.hpp"
#include "base/loop.hpp"
#include "core/mad/rmpp.hpp"

namespace weft::attach
{

class NodePort;

// Bounds of one opened port; Documentation/limits.rst. Sends that wait for an answer or whose
// outcome the program has not received: with as many, no more is read from the program.
constexpr std::size_t kMostSends = 8192;
// Unsolicited MADs that the program has not received. Beyond this number they are dropped.
constexpr std::size_t kMostUnread = 8192;
// RMPP messages that are being sent, in bytes; with as many, no more is read from the program.
constexpr std::size_t kMostSentBytes = std::size_t{64} << 20;
// Bytes of messages that the program has not received. Beyond this number, unsolicited MADs are
// dropped, and a send whose response is an RMPP message is returned with ENOBUFS.
constexpr std::size_t kMostUnreadBytes = std::size_t{64} << 20;

class OpenedPort
{
public:
	// @output: there is something for the program, or may_take() has become true.
	OpenedPort(Loop &loop, std::shared_ptr<NodePort> port, std::function<void()> output);
	~OpenedPort();
	OpenedPort(const OpenedPort &) = delete;
	OpenedPort &operator=(const OpenedPort &) = delete;

	// Each returns 0 or the errno that umad gives: EINVAL, EPERM, ENOMEM.
	int add_agent(const AgentRequest &request, std::uint32_t &id);
	int remove_agent(std::uint32_t id);

	// False: the program has as much under way as it may.
	bool may_take() const;
	// Takes a message of the program. If it cannot be sent, it is returned with its errno if a
	// response is awaited, and dropped otherwise.
	void take(const Message &message);

	// The first message for the program; null if there is none. The program has received it.
	const Message *first() const { return unread_.empty() ? nullptr : &unread_.front(); }
	void received_first();

	// A MAD came in for the agent with that claim.
	void receive(std::uint32_t hi_tid, const fabric::AddressedMad &mad);

private:
	struct Agent {
		Claim claim;
		bool does_rmpp = false; // or the program does, in classes that have it
	};
	struct Send;
	// The key is the transaction id. A response may have the same one as another that goes to
	// another peer.
	using Sends = std::multimap<std::uint64_t, Send>;
	// A send that is not over.
	struct Send {
		Sends::iterator self;
		std::uint32_t agent = 0;
		UserMad header{};
		fabric::MadAddress to;
		ib::Mad mad{};               // or the headers of an RMPP message,
		std::vector<std::byte> data; // and what is behind them
		std::optional<mad::RmppSender> rmpp;
		std::uint32_t tries_left = 0;
		bool awaits_answer = false;
		Clock::time_point due = Clock::time_point::max();
	};

	int start(const Message &message);
	int address_of(const Agent &agent, const UserMad &header, fabric::MadAddress &to) const;
	void refuse(const Message &message, int error);
	// Sends what is not waited for, or keeps it.
	void begin(Send &&send);
	bool is_duplicate(const Send &send) const;
	void transmit(Send &send);
	ib::Mad segment_of(const Send &send, std::uint32_t segment) const;
	void set_due(Send &send, Clock::time_point due);
	void end(Sends::iterator send);
	// Ends it with an outcome for the program, if that awaits one.
	void fail(Sends::iterator send, int error);
	// Repeats or fails some of the sends that are due.
	void expire();
	void arm();
	Sends::iterator find(const fabric::AddressedMad &mad);
	std::uint32_t agent_of(std::uint32_t hi_tid) const;

	void receive_rmpp(std::uint32_t id, const fabric::AddressedMad &mad);
	void receive_data(std::uint32_t id, const fabric::AddressedMad &mad);
	void receive_ack(const fabric::AddressedMad &mad);
	void answer_rmpp(const fabric::AddressedMad &mad, ib::RmppHeader::Type type,
			 std::uint8_t status, std::uint32_t segment, std::uint32_t window);
	// Gives the program a MAD, or an RMPP message that begins with it.
	void deliver(std::uint32_t id, const fabric::AddressedMad &mad,
		     std::span<const std::byte> bytes);
	UserMad describe(const fabric::AddressedMad &mad) const;
	void push(Message &&message);

	Loop &loop_;
	const std::shared_ptr<NodePort> port_;
	const std::function<void()> output_;
	std::array<std::optional<Agent>, kMostAgents> agents_;
	Sends sends_;
	std::set<std::pair<Clock::time_point, Send *>> due_;
	std::size_t sent_bytes_ = 0;
	Receptions receptions_;
	std::deque<Message> unread_;
	std::size_t outcomes_ = 0; // of those
	std::size_t unread_bytes_ = 0;
	Timer timer_;
	Wakeup expire_more_;
};

} // namespace weft::attach

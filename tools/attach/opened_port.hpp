// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Represents a port that a program has opened: the program's agents, its sends until they are
// answered or time out, RMPP in both directions, and received messages that the program has not
// read. An opened port behaves like an open umad file of Linux. This code uses no sockets, and runs
// on the server's event loop.
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

// Limits of one opened port (Documentation/limits.rst). The first is the number of sends that wait
// for a response, or whose outcome the program has not received. At the limit, no messages are read
// from the program.
constexpr std::size_t kMostSends = 8192;
// Number of unsolicited MADs that the program has not received. MADs beyond it are dropped.
constexpr std::size_t kMostUnread = 8192;
// Bytes of RMPP messages that are being sent. At the limit, no messages are read from the program.
constexpr std::size_t kMostSentBytes = std::size_t{64} << 20;
// Bytes of messages that the program has not received. Beyond the limit, unsolicited MADs are
// dropped, and a send whose response is an RMPP message is returned with ENOBUFS.
constexpr std::size_t kMostUnreadBytes = std::size_t{64} << 20;

class OpenedPort
{
public:
	// @output is called when there is a message for the program, or when may_take() has become
	// true.
	OpenedPort(Loop &loop, std::shared_ptr<NodePort> port, std::function<void()> output);
	~OpenedPort();
	OpenedPort(const OpenedPort &) = delete;
	OpenedPort &operator=(const OpenedPort &) = delete;

	// Return 0 or the errno that umad returns: EINVAL, EPERM or ENOMEM.
	int add_agent(const AgentRequest &request, std::uint32_t &id);
	int remove_agent(std::uint32_t id);

	// Returns false if the program has reached a limit of pending sends.
	bool may_take() const;
	// Handles a message of the program. If it cannot be sent, it is returned with an errno if
	// it expects a response, and dropped otherwise.
	void take(const Message &message);

	// Returns the first message for the program, or null if there is none. received_first()
	// removes it.
	const Message *first() const { return unread_.empty() ? nullptr : &unread_.front(); }
	void received_first();

	// Handles a MAD for the agent with that claim.
	void receive(std::uint32_t hi_tid, const fabric::AddressedMad &mad);

private:
	struct Agent {
		Claim claim;
		bool does_rmpp = false; // if false, the program itself implements RMPP
	};
	struct Send;
	// The key is the transaction ID. Responses to different peers may have the same one.
	using Sends = std::multimap<std::uint64_t, Send>;
	// A pending send.
	struct Send {
		Sends::iterator self;
		std::uint32_t agent = 0;
		UserMad header{};
		fabric::MadAddress to;
		ib::Mad mad{};               // for RMPP, the headers
		std::vector<std::byte> data; // for RMPP, the data after the headers
		std::optional<mad::RmppSender> rmpp;
		std::uint32_t tries_left = 0;
		bool awaits_answer = false;
		Clock::time_point due = Clock::time_point::max();
	};

	int start(const Message &message);
	int address_of(const Agent &agent, const UserMad &header, fabric::MadAddress &to) const;
	void refuse(const Message &message, int error);
	// Sends a message that expects no response, or adds it to the pending sends.
	void begin(Send &&send);
	bool is_duplicate(const Send &send) const;
	void transmit(Send &send);
	ib::Mad segment_of(const Send &send, std::uint32_t segment) const;
	void set_due(Send &send, Clock::time_point due);
	void end(Sends::iterator send);
	// Ends the send, and reports the outcome to the program if it expects one.
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
	// Delivers a MAD to the program, or an RMPP message that begins with it.
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
	std::size_t outcomes_ = 0; // number of messages in unread_ that are outcomes
	std::size_t unread_bytes_ = 0;
	Timer timer_;
	Wakeup expire_more_;
};

} // namespace weft::attach

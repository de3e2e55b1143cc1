// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages the card's listeners, and the connection requests to them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <hw/amso1100/events.hpp>

#include "cards/amso1100/connections.hpp"
#include "cards/amso1100/handles.hpp"
#include "cards/amso1100/message_queues.hpp"
#include "net/tcp/stack.hpp"

namespace weft::amso1100
{

class QueuePair;

class Endpoints
{
public:
	static constexpr std::size_t kMostListeners = tcp::Stack::kMostListeners;
	// Limit of requests that are incomplete or that the host has not answered. Beyond it, the
	// oldest incomplete request from the address with the most incomplete requests is dropped,
	// because an incomplete request costs its sender almost nothing.
	static constexpr std::size_t kMostRequests = 256;
	// Time after which a request that the host does not answer is dropped.
	static constexpr Clock::duration kAnswerTimeout = std::chrono::seconds(60);

	// @context is the user context of RNIC_OPEN.
	Endpoints(Loop &loop, MessageQueues &queues, tcp::Stack &stack, Connections &connections,
		  std::uint64_t context);
	~Endpoints();

	// Handlers of the host's request messages. destroy() returns the number of the last event
	// that refers to the listener.
	hw::amso1100::Status listen(const Message &request, Message &reply);
	std::optional<std::uint64_t> destroy(std::uint32_t listener);
	// @qp may be null. If the connection request was reported to the host, it is removed even
	// if an error is returned.
	hw::amso1100::Status accept(const Message &request, QueuePair *qp);
	hw::amso1100::Status reject(std::uint32_t request);

private:
	struct Listener {
		Listener(std::uint32_t own, std::uint16_t, std::uint64_t user_context,
			 const tcp::Endpoint &where, std::size_t most)
		    : handle(own), context(user_context), local(where), backlog(most)
		{
		}
		const std::uint32_t handle;
		const std::uint64_t context;
		const tcp::Endpoint local;
		const std::size_t backlog;
		std::uint64_t last_event = 0;
	};
	// A connection to a listener that the host has not accepted yet.
	class Request final : public SilentHost
	{
	public:
		enum class State {
			starting, // the MPA request is incomplete
			reported, // the host has not answered yet
			lost,     // the connection has ended, and the host has not answered yet
			over,     // must be removed
		};

		Request(std::uint32_t own, std::uint16_t, Endpoints &endpoints,
			std::uint32_t its_listener, std::uint64_t its_number,
			tcp::ConnectionPtr connection);
		~Request() override;

		const std::uint32_t handle;
		const std::uint32_t listener;
		const tcp::Ip peer;
		const std::uint64_t number; // in the order of arrival
		State state = State::starting;
		iwarp::Carrier *carrier; // null once the carrier has ended or was passed on

		void drop();

	private:
		void requested(const iwarp::StartFrame &request) override;
		void ended(const iwarp::End &end) override;

		Endpoints &endpoints_;
		Timer timer_;
	};

	void take(std::uint32_t listener, const tcp::ConnectionPtr &connection);
	// Returns the number of requests of a listener that the host has not answered.
	std::size_t reported(std::uint32_t listener);
	void make_room();
	bool report(Request &request, const iwarp::StartFrame &start);
	bool listen_anywhere(tcp::Endpoint &local,
			     const std::function<void(const tcp::ConnectionPtr &)> &taken);
	void reap();

	Loop &loop_;
	MessageQueues &queues_;
	tcp::Stack &stack_;
	Connections &connections_;
	const std::uint64_t context_;
	Handles<Listener, kMostListeners> listeners_;
	Handles<Request, kMostRequests> requests_;
	std::uint64_t came_ = 0;
	Wakeup reaper_;
};

} // namespace weft::amso1100

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The first of the three interfaces that the transport engine needs from a card: the source of work
// requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cards/hca/requests.hpp"

namespace weft::hca
{

struct QueuePair;

enum class Taken : std::uint8_t {
	yes,    // there is work
	none,   // none is posted
	broken, // the queue cannot be read: its memory or page list is not there
};

// SharedReceiveQueue - what the transport knows of one; the card has the rest.
class SharedReceiveQueue
{
public:
	SharedReceiveQueue(const SharedReceiveQueue &) = delete;
	SharedReceiveQueue &operator=(const SharedReceiveQueue &) = delete;

	std::uint32_t number() const { return number_; }
	std::uint32_t pd() const { return pd_; }
	std::uint16_t xrc_domain() const { return xrc_domain_; }
	// Completion queue of XRC receives.
	std::uint32_t cqn() const { return cqn_; }

protected:
	SharedReceiveQueue(std::uint32_t number, std::uint32_t pd, std::uint16_t xrc_domain = 0,
			   std::uint32_t cqn = 0)
	    : number_(number), pd_(pd), xrc_domain_(xrc_domain), cqn_(cqn)
	{
	}
	~SharedReceiveQueue() = default;

private:
	const std::uint32_t number_;
	const std::uint32_t pd_;
	const std::uint16_t xrc_domain_;
	const std::uint32_t cqn_;
};

class WorkSource
{
public:
	virtual ~WorkSource() = default;

	/**
	 * take_send() - read a send request
	 * @index: free-running; of the request that is due
	 * @request: filled in, as far as it is any good
	 * @failure: with what the request must complete; none if it is good
	 */
	virtual Taken take_send(const QueuePair &qp, std::uint16_t index, SendRequest &request,
				Syndrome &failure) = 0;
	// Receive requests that are posted and not taken, of which @next is due; 0 for a QP without
	// a receive queue.
	virtual std::uint32_t receives_posted(const QueuePair &qp, std::uint16_t next) const = 0;
	/**
	 * take_receive() - take the next receive request of a QP
	 * @next: free-running index of the one that is due in the QP's own queue; moved on if it
	 * comes from there
	 * @xrc_srq: for XRC the queue that the packet names; null otherwise
	 * @work: filled in, up to the pieces; on broken too, but for those
	 */
	virtual Taken take_receive(const QueuePair &qp, std::uint16_t &next,
				   SharedReceiveQueue *xrc_srq, ReceiveWork &work) = 0;
	/**
	 * take_datagram() - take a receive request for a datagram of a steered queue pair
	 * @payload: of the datagram, all of it
	 * @bytes: for which the request must have room
	 * @work: filled in, up to the pieces and with what was found
	 *
	 * Returns none if no queue has one for it. A queue that cannot be read stops by itself.
	 */
	virtual Taken take_datagram(const QueuePair &, std::span<const std::byte> /* payload */,
				    std::uint64_t /* bytes */, ReceiveWork & /* work */)
	{
		return Taken::none;
	}
	// Stops the queue of a request of take_datagram(), because its memory cannot be written.
	virtual void stop_receives(const QueuePair &, const ReceiveWork &) {}
	// Null: does not exist.
	virtual SharedReceiveQueue *shared_receive_queue(std::uint32_t srqn) const = 0;
};

} // namespace weft::hca

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface through which the transport engine reads work requests from a card's
// queues. Each card implements this interface, because each card has its own format of work queue
// entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cards/hca/requests.hpp"

namespace weft::hca
{

struct QueuePair;

enum class Taken : std::uint8_t {
	yes,    // a request was taken
	none,   // no request is posted
	broken, // the memory or page list of the queue is not accessible
};

// SharedReceiveQueue - the part of an SRQ that the transport uses; cards derive from it.
class SharedReceiveQueue
{
public:
	SharedReceiveQueue(const SharedReceiveQueue &) = delete;
	SharedReceiveQueue &operator=(const SharedReceiveQueue &) = delete;

	std::uint32_t number() const { return number_; }
	std::uint32_t pd() const { return pd_; }
	std::uint16_t xrc_domain() const { return xrc_domain_; }
	// Returns the completion queue of XRC receives.
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
	 * @index: free-running index of the next request
	 * @request: is filled in as far as the request is valid
	 * @failure: the syndrome with which the request must complete; none if it is valid
	 */
	virtual Taken take_send(const QueuePair &qp, std::uint16_t index, SendRequest &request,
				Syndrome &failure) = 0;
	// Returns the number of posted receives from index @next on, or 0 for a QP without a
	// receive queue.
	virtual std::uint32_t receives_posted(const QueuePair &qp, std::uint16_t next) const = 0;
	/**
	 * take_receive() - take the next receive request of a QP
	 * @next: free-running index of the next one in the QP's own queue; advanced if the request
	 * is taken from that queue
	 * @xrc_srq: for XRC, the SRQ whose number is in the packet; null otherwise
	 * @work: is filled in including the pieces; if the result is broken, without them
	 */
	virtual Taken take_receive(const QueuePair &qp, std::uint16_t &next,
				   SharedReceiveQueue *xrc_srq, ReceiveWork &work) = 0;
	/**
	 * take_datagram() - take a receive request for a datagram of a steered queue pair
	 * @payload: the whole payload of the datagram
	 * @bytes: number of bytes for which the request must have space
	 * @work: is filled in including the pieces and the result of steering
	 *
	 * Returns none if no queue has a request for the datagram. A queue that cannot be read
	 * is stopped.
	 */
	virtual Taken take_datagram(const QueuePair &, std::span<const std::byte> /* payload */,
				    std::uint64_t /* bytes */, ReceiveWork & /* work */)
	{
		return Taken::none;
	}
	// Stops the queue of a request of take_datagram() because the request's memory cannot be
	// written.
	virtual void stop_receives(const QueuePair &, const ReceiveWork &) {}
	// Returns the SRQ, or null if it does not exist.
	virtual SharedReceiveQueue *shared_receive_queue(std::uint32_t srqn) const = 0;
};

} // namespace weft::hca

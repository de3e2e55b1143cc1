// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines one QP with its resources, and the operations that tests perform on it. It corresponds to
// an endpoint of the test module weft_traffic.ko.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "tests/traffic/arguments.hpp"
#include "tests/traffic/events.hpp"

namespace weft::traffic
{

// A command that failed; the message goes into its answer.
struct Failure : std::runtime_error {
	using std::runtime_error::runtime_error;
};

template<auto Destroy>
struct Destroyer {
	template<typename T>
	void operator()(T *object) const
	{
		Destroy(object);
	}
};
template<typename T, auto Destroy>
using Handle = std::unique_ptr<T, Destroyer<Destroy>>;

// The library's own function is static inline, so it cannot be a template argument.
inline int close_xrc_domain(ibv_xrcd *domain)
{
	return ibv_close_xrcd(domain);
}

/*
 * Memory: a region to send from, and one to receive into, each of `size` bytes in `depth` slots or
 * as a whole, as the command specifies. Byte k of a message with seed s is pattern(s, k), on both
 * sides of every test.
 */
class Endpoint
{
public:
	// Arguments: type, depth, size, cqe, srq, port. Throws Failure, as all of it.
	Endpoint(ibv_context *context, const Arguments &arguments);

	// Each executes a command and returns the response.
	std::string describe() const;
	std::string connect(const Arguments &arguments);
	std::string post_receives(const Arguments &arguments);
	std::string send(const Arguments &arguments);
	std::string receive(const Arguments &arguments);
	std::string verify(const Arguments &arguments) const;
	std::string word(const Arguments &arguments);
	// Reports the state of the QP, and the events of the QP, its SRQ and its CQs.
	std::string state(const Arguments &arguments);
	// The SRQ raises its event when fewer than `limit` receives are left.
	std::string limit(const Arguments &arguments);
	// Counts a device event if it belongs to this endpoint, and returns whether it does.
	bool take(const ibv_async_event &event);
	std::string resize(const Arguments &arguments);
	// Sends `count` messages in bursts at random times determined by `seed`. The last message
	// of each burst is solicited.
	std::string burst(const Arguments &arguments);

private:
	static std::uint8_t pattern(std::uint32_t seed, std::uint32_t at)
	{
		return static_cast<std::uint8_t>(seed * 167 + at + (at >> 8) * 13);
	}
	void create_queue_pair(const Arguments &arguments);
	void create_extended();
	void connect(ibv_qp &qp, std::uint32_t remote_qpn, const Arguments &arguments);
	void modify(ibv_qp_attr &attr, int mask);
	void post_receive(std::uint32_t slot);
	// Posts one list of requests. In a burst only the last one is signaled and solicited.
	void post_batch(const Arguments &arguments, std::uint32_t first, std::uint32_t count,
			bool burst = false);
	// Returns the next completion, after waiting for its event.
	ibv_wc wait_completion(ibv_cq *cq);
	// Returns the offset of the first wrong byte, or @size.
	std::uint32_t check(std::uint32_t offset, std::uint32_t size, std::uint32_t seed) const;

	ibv_context *const context_;
	const ibv_qp_type type_;
	const std::uint8_t port_;
	const std::uint32_t depth_;
	const std::uint32_t size_;
	std::uint32_t receive_size_ = 0;
	std::uint32_t remote_qpn_ = 0;
	std::uint32_t remote_srqn_ = 0;
	std::vector<std::uint8_t> send_memory_, receive_memory_;
	// Destroyed from the last to the first.
	Handle<ibv_pd, ibv_dealloc_pd> pd_;
	Handle<ibv_mr, ibv_dereg_mr> send_region_, receive_region_;
	Handle<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
	Handle<ibv_cq, ibv_destroy_cq> send_cq_, receive_cq_;
	Handle<ibv_xrcd, close_xrc_domain> xrc_domain_;
	Handle<ibv_srq, ibv_destroy_srq> srq_;
	Handle<ibv_ah, ibv_destroy_ah> ah_;
	EventCounts events_;
	// For type xrc the first sends, the other receives.
	Handle<ibv_qp, ibv_destroy_qp> qp_, target_;
};

} // namespace weft::traffic

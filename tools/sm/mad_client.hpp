// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Requests and their answers over a MadPort, on one loop. Requests go out in batches, several at
 * once; lost ones are repeated. What arrives meanwhile and answers no request goes to a handler.
 */
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/loop.hpp"
#include "fabric/mad_port.hpp"
#include "sm/config.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/* A directed-route request and, after perform(), its answer. */
struct SmpRequest {
	SmpRequest() = default;
	SmpRequest(const Path &to, ib::MadMethod m, std::uint16_t attr, std::uint32_t mod = 0)
	    : path(to), method(m), attribute(attr), modifier(mod)
	{
	}
	template<class Attribute>
	SmpRequest &with(const Attribute &value)
	{
		static_assert(sizeof(Attribute) <= ib::smp_data_bytes);
		__builtin_memcpy(data, &value, sizeof(value));
		return *this;
	}

	Path path;
	ib::MadMethod method = ib::MadMethod::get;
	std::uint16_t attribute = 0;
	std::uint32_t modifier = 0;
	std::uint64_t mkey = 0;
	std::uint8_t data[ib::smp_data_bytes] = {};

	/* Nobody answered: see status otherwise. */
	bool answered = false;
	std::uint16_t status = 0;

	bool ok() const { return answered && status == 0; }
	template<class Attribute>
	const Attribute &answer() const
	{
		static_assert(sizeof(Attribute) <= ib::smp_data_bytes && alignof(Attribute) == 1);
		return *reinterpret_cast<const Attribute *>(data);
	}
};

class MadClient
{
public:
	/*
	 * @other: gets what answers no request, on the loop, within take_arrived() or perform().
	 * @arrived: runs on the loop when there is something to take, or somebody called wake().
	 */
	MadClient(Loop &loop, fabric::Port &port, const Config &config,
		  std::function<void(fabric::AddressedMad &&)> other,
		  std::function<void()> arrived);

	fabric::MadPort &mads() { return *mads_; }
	/* On the loop, outside of all the others, as the last. */
	void close();

	Clock::time_point now() const { return loop_.now(); }

	/*
	 * Send the requests and wait until each was answered or given up. Whatever else is on the
	 * loop's reactor has its turns meanwhile.
	 */
	void perform(std::vector<SmpRequest> &batch);
	void perform(SmpRequest &request);

	/* Handle what has arrived; false if nothing has. */
	bool take_arrived();
	/* Any thread. */
	void wake() { arrived_->signal(); }
	/* Any thread: perform() gives up at once from now on. */
	void stop();
	bool stopped() const { return stopped_.load(std::memory_order_acquire); }

	/* Send a MAD by LID to a QP1 (or QP0 for SMPs) without waiting for anything. */
	void send(const fabric::MadAddress &address, const ib::Mad &mad)
	{
		mads_->send(address, mad);
	}
	std::uint64_t next_tid() { return ++tid_; }

	/* Requests since the start, and of them those that were given up. */
	std::uint64_t requests() const { return requests_; }
	std::uint64_t timeouts() const { return timeouts_; }

private:
	struct Pending {
		std::uint64_t tid;
		SmpRequest *request;
		unsigned tries_left;
		Clock::time_point due;
	};

	void transmit(const Pending &pending);
	bool take_answer(const fabric::AddressedMad &mad);
	void expire();
	void wait_for_answer();

	Loop &loop_;
	const Config &config_;
	const std::function<void(fabric::AddressedMad &&)> other_;
	std::mutex mutex_;
	std::vector<fabric::AddressedMad> inbox_;
	std::optional<Wakeup> arrived_; /* until close() */
	std::atomic<bool> stopped_{false};

	/* On the loop only. */
	/* No more than the window. */
	std::vector<Pending> pending_;
	/* What take_arrived() takes the inbox into, for its room. */
	std::vector<fabric::AddressedMad> taken_;
	std::uint64_t tid_;
	std::uint64_t requests_ = 0;
	std::uint64_t timeouts_ = 0;

	/* Last: its callbacks use what is above. */
	std::optional<fabric::MadPort> mads_;
};

} // namespace weft::sm

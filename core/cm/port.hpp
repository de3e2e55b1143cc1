// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines a port that the communication manager serves: the MAD agent on QP1, the addresses of
 * peers, and the message counters.
 */
#pragma once

#include <ib/cm.hpp>
#include <kern/atomic.hpp>
#include <kern/ref.hpp>
#include <rdma/ib_cm.h>
#include <rdma/objects.hpp>

namespace cm
{

class Device;

/* A received message, which this object owns. */
class Received
{
public:
	Received() = default;
	explicit Received(ib_mad_recv_wc *wc) : wc_(wc) {}
	Received(Received &&other) noexcept : wc_(std::exchange(other.wc_, nullptr)) {}
	Received &operator=(Received &&other) noexcept
	{
		std::swap(wc_, other.wc_);
		return *this;
	}
	~Received()
	{
		if (wc_)
			ib_free_recv_mad(wc_);
	}

	const ib::Mad &mad() const { return *reinterpret_cast<const ib::Mad *>(wc_->recv_buf.mad); }
	const ib_wc &wc() const { return *wc_->wc; }
	const ib_grh *grh() const { return wc_->recv_buf.grh; }
	template<class Message>
	const Message &message() const
	{
		return ib::cm_message<Message>(mad());
	}

private:
	ib_mad_recv_wc *wc_ = nullptr;
};

/*
 * The destination of messages, and of a QP's path. Pending sends hold references, too. The last
 * reference must be dropped in process context.
 */
class Address : public kern::RefCounted<Address>
{
public:
	/* Errors: those of rdma_create_ah(). Context: process. */
	static kern::Result<kern::Ref<Address>> create(kern::Ref<rdma::Pd> pd,
						       const rdma_ah_attr &attr, u32 qpn,
						       u16 pkey_index, const ib_gid &gid = {});

	ib_ah *ah() const { return ah_.get(); }

	const rdma_ah_attr attr;
	const u32 qpn;
	const u16 pkey_index;
	const ib_gid gid; /* GID of the peer's port; zero if it is not known */

private:
	Address(rdma::AddressHandle &&ah, const rdma_ah_attr &attr, u32 qpn, u16 pkey_index,
		const ib_gid &gid);
	rdma::AddressHandle ah_;
};

class Port
{
public:
	/*
	 * Why a message is sent. Responses to messages without a valid ID (asked) are limited by
	 * asked_max. The first message of an ID (begins) is not sent if own_max messages are
	 * pending, because the ID may be destroyed before its message has been sent, and be
	 * followed by any number of others. All other messages (own) are limited by the number of
	 * IDs.
	 */
	enum class Cause : std::uint8_t { begins, own, asked };
	static constexpr int asked_max = 512, own_max = 4096;

	/*
	 * The caller holds the device's lock. Messages may arrive before this function returns;
	 * they wait for the lock. Errors: those of ib_register_mad_agent(); ENOMEM.
	 */
	static kern::Result<kern::Owned<Port>> create(Device &device, u32 number);
	/*
	 * Cancels outstanding sends and stops receiving. Context: process, without the device's
	 * lock.
	 */
	~Port();

	Device &device() const { return device_; }
	u32 number() const { return number_; }
	u32 hi_tid() const { return agent_->hi_tid; }

	/*
	 * Sends a message. The outcome is not reported, because messages that need a response are
	 * retransmitted. The caller holds the device's lock. Errors: ENOBUFS, which is counted;
	 * ENOMEM; those of ib_post_send_mad().
	 */
	kern::Result<> send(const ib::Mad &mad, const kern::Ref<Address> &to, Cause cause,
			    bool again = false);

	/* Protected by the device's lock. */
	ib_cm_counters counters{};

private:
	Port(Device &device, u32 number) : device_(device), number_(number) {}
	static void on_sent(ib_mad_agent *agent, ib_mad_send_wc *how);
	static void on_received(ib_mad_agent *agent, ib_mad_send_buf *, ib_mad_recv_wc *received);
	void set_served_flag(bool served);

	Device &device_;
	const u32 number_;
	ib_mad_agent *agent_ = nullptr;
	kern::Atomic<int> &in_flight(Cause cause) { return cause == Cause::asked ? asked_ : own_; }

	/* Numbers of messages that have been passed to the agent and have not completed. */
	kern::Atomic<int> own_{0}, asked_{0};
};

/* Returns the index of a message in the arrays of ib_cm_counters. */
constexpr std::size_t counter_of(const ib::Mad &mad)
{
	return static_cast<std::size_t>(mad.header.attr_id.value() -
					static_cast<std::uint16_t>(ib::CmAttribute::req));
}

} // namespace cm

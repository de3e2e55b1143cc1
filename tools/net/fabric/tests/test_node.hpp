// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides two types of nodes for tests: one records the packets that it receives, the other
// records the MADs.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "base/loop.hpp"
#include "net/fabric/fabric.hpp"
#include "net/fabric/mad_port.hpp"
#include "net/fabric/switch.hpp"

namespace weft::fabric::testing
{

constexpr auto kDeadline = std::chrono::seconds(5);

// A queue that another thread fills, and from which the test takes items.
template<class Item>
class Collected
{
public:
	void push(Item item)
	{
		const MutexLock lock(mutex_);
		items_.push_back(std::move(item));
		changed_.notify_all();
	}
	// @loop is the loop that the test runs while it waits, or null if other threads do the
	// work.
	explicit Collected(Loop *loop = nullptr) : loop_(loop) {}

	// Returns the next item, or nothing if the deadline passes.
	std::optional<Item> next()
	{
		if (loop_ && !loop_->run_until([this] { return size() != 0; }, kDeadline))
			return std::nullopt;
		MutexLock lock(mutex_);
		if (!changed_.wait_for(lock, kDeadline,
				       [&]() WEFT_REQUIRES(mutex_) { return !items_.empty(); }))
			return std::nullopt;
		Item item = std::move(items_.front());
		items_.pop_front();
		return item;
	}
	bool wait_for_count(std::size_t count)
	{
		MutexLock lock(mutex_);
		return changed_.wait_for(lock, kDeadline, [&]() WEFT_REQUIRES(mutex_) {
			return items_.size() >= count;
		});
	}
	std::size_t size()
	{
		const MutexLock lock(mutex_);
		return items_.size();
	}
	void clear()
	{
		std::deque<Item> dropped;
		const MutexLock lock(mutex_);
		dropped.swap(items_);
	}

private:
	Loop *const loop_;
	Mutex mutex_;
	ConditionVariable changed_;
	std::deque<Item> items_ WEFT_GUARDED_BY(mutex_);
};

class PacketNode : public PortSink
{
public:
	explicit PacketNode(Port &p) : port(p)
	{
		port.attach(*this);
		port.enable();
	}
	~PacketNode() override { port.detach(); }
	void receive(Packet &&packet) override { packets.push(std::move(packet)); }
	void link_changed(bool up) override { links.push(up); }
	void credit_available(std::uint8_t vl) override { credits.push(vl); }

	Port &port;
	Collected<Packet> packets;
	Collected<bool> links;
	Collected<std::uint8_t> credits;
};

struct MadNode {
	explicit MadNode(Port &port, ib::Guid guid = 0x100, Loop *loop = nullptr)
	    : received(loop),
	      mads(port, {.description = "test", .node_guid = guid},
		   {.received = [this](AddressedMad &&mad) { received.push(std::move(mad)); },
		    .port_changed = {}})
	{
	}

	// Sends a directed-route SMP and waits for the response.
	std::optional<ib::Smp> ask(std::initializer_list<int> path, ib::MadMethod method,
				   std::uint16_t attribute, std::uint32_t modifier = 0,
				   const std::function<void(ib::Smp &)> &fill = {})
	{
		ib::Smp smp{};
		smp.header.base_version = 1;
		smp.header.mgmt_class =
			static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
		smp.header.class_version = 1;
		smp.header.method = static_cast<std::uint8_t>(method);
		smp.header.hop_cnt = static_cast<std::uint8_t>(path.size());
		smp.header.tid = ++tid;
		smp.header.attr_id = attribute;
		smp.header.attr_mod = modifier;
		smp.dr_slid = ib::lid_permissive;
		smp.dr_dlid = ib::lid_permissive;
		unsigned hop = 0;
		for (int out : path)
			smp.initial_path[++hop] = static_cast<std::uint8_t>(out);
		if (fill)
			fill(smp);
		if (!mads.send_directed(smp))
			return std::nullopt;
		auto answer = received.next();
		if (!answer || answer->mad.header.tid != tid)
			return std::nullopt;
		return reinterpret_cast<ib::Smp &>(answer->mad);
	}
	// Returns the status without the direction bit.
	static unsigned status(const ib::Smp &smp) { return smp.header.status & 0x7fff; }

	std::uint64_t tid = 0;
	Collected<AddressedMad> received;
	MadPort mads;
};

inline Packet ud_packet(ib::Lid slid, ib::Lid dlid, std::size_t bytes, std::uint32_t psn = 0)
{
	packet::Headers headers;
	headers.lrh.slid = slid;
	headers.lrh.dlid = dlid;
	headers.bth.opcode = ib::opcode_ud_send_only;
	headers.bth.pkey = ib::pkey_default_full;
	headers.bth.set_dest_qp(0x48);
	headers.bth.set_psn(psn);
	std::vector<std::byte> data(bytes);
	for (std::size_t i = 0; i < bytes; i++)
		data[i] = static_cast<std::byte>(i * 7 + psn);
	return std::move(*Packet::make(headers, Payload::copy_of(data)));
}

} // namespace weft::fabric::testing

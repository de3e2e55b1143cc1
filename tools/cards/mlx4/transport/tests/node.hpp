// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Provides one card's data path in a simulated guest, and a minimal driver for tests: it creates
 * queues and keys, posts work requests, and polls completions as a guest does, through guest
 * memory.
 */
#pragma once

#include <map>
#include <vector>

#include "base/mutex.hpp"
#include "cards/mlx4/card_context.hpp"
#include "cards/mellanox_icm/icm_map.hpp"
#include "cards/hca/transport.hpp"
#include "cards/mlx4/transport/tests/wqe_builder.hpp"
#include "net/fabric/fabric.hpp"
#include "bus/pci/testing/fake_host.hpp"

namespace weft::mlx4::transport
{

/* An agent that passes all SMPs to the driver's QP0, and records key violations. */
class NoAgent final : public ManagementAgent
{
public:
	std::optional<ib::Smp> wire_smp(unsigned, const ib::Smp &, std::uint16_t, bool &) override
	{
		return std::nullopt;
	}
	void key_violation(unsigned, ib::TrapNumber trap, const packet::Headers &) override
	{
		violations.push_back(trap);
	}

	std::vector<ib::TrapNumber> violations;
};

struct Completion {
	bool is_send = false;
	bool is_error = false;
	std::uint8_t opcode = 0;
	hw::mlx4::CqeSyndrome syndrome = hw::mlx4::CqeSyndrome::none;
	std::uint32_t qpn = 0;
	std::uint16_t wqe_index = 0;
	std::uint32_t byte_count = 0;
	std::uint32_t immediate = 0;
	hw::mlx4::Cqe raw{};
};

struct Event {
	EventType type;
	std::uint32_t number;
};

/* A range of guest memory with a key for it. */
struct Region {
	std::uint64_t address = 0;
	std::uint64_t length = 0;
	std::uint32_t key = 0;

	WqeData piece(std::uint64_t offset, std::uint64_t bytes) const
	{
		return {static_cast<std::uint32_t>(bytes), key, address + offset};
	}
	WqeData piece() const { return piece(0, length); }
};

constexpr std::uint32_t kAllRights = 0x3f;

struct QpOptions {
	ServiceType service = ServiceType::rc;
	std::uint32_t qpn = 0; /* 0 selects the next free number */
	unsigned log_send = 6;
	unsigned log_receive = 6;
	std::uint32_t pd = 7;
	std::uint32_t srqn = 0;
	std::uint16_t xrc_domain = 0;
	ib::Mtu mtu = ib::Mtu::mtu_1024;
	std::uint8_t ack_timeout = 10; /* 4 ms */
	std::uint8_t retry_count = 7;
	std::uint8_t rnr_retry = 7;
	std::uint8_t min_rnr_timer = 1;
	std::uint8_t log_reads = 2;
	std::uint32_t first_psn = 0xfffff0; /* so that every test wraps */
	std::uint32_t qkey = 0x1111;
};

class Node final : public fabric::PortSink
{
public:
	Node(fabric::Port &port, ib::Lid lid);
	~Node() override;

	/* --- the fabric's side --- */
	void receive(fabric::Packet &&packet) override;
	void link_changed(bool) override {}
	void credit_available(std::uint8_t vl) override;

	/* Runs all tasks that are ready. Returns true if there were any. */
	bool poll();
	/* Only passes received packets to the card. */
	bool deliver();

	/* --- memory --- */
	std::uint64_t allocate(std::uint64_t bytes, std::uint64_t alignment = 4096);
	std::span<std::byte> bytes(std::uint64_t address, std::size_t count)
	{
		return host_.memory(address, count);
	}
	std::span<std::byte> bytes(const Region &region)
	{
		return bytes(region.address, region.length);
	}
	weft::testing::FakeHost &host() { return host_; }
	MemoryTable &memory() { return memory_; }
	/* Registers a region whose virtual addresses are bus addresses. */
	Region region(std::uint64_t length, std::uint32_t rights = kAllRights,
		      std::uint32_t pd = 7);
	/* Registers a region of scattered pages at @virtual_address. */
	Region paged_region(std::uint64_t length, std::uint64_t virtual_address,
			    std::vector<std::uint64_t> &pages);
	/* Returns a free key for fast registration of up to @pages pages. */
	std::uint32_t free_key(unsigned pages);
	void write_mpt(std::uint32_t key, const hw::mlx4::MptEntry &entry);
	/* Destroys a key as HW2SW_MPT does. */
	void destroy_key(std::uint32_t key);
	/* Restores all keys as they were created, because the card may have changed them. */
	void restore_keys();

	/* --- queues --- */
	CompletionQueue &create_cq(unsigned log_size = 10);
	QueuePair &create_qp(const QpOptions &options, CompletionQueue &send_cq,
			     CompletionQueue &receive_cq);
	SharedReceiveQueue &create_srq(unsigned log_size, std::uint16_t limit = 0,
				       std::uint16_t xrc_domain = 0, std::uint32_t cqn = 0);
	void modify(QueuePair &qp, QpState state);
	/* Moves a QP to RTS, or to @last before it, connected to a QP of another node. */
	void connect(QueuePair &qp, const Node &peer, const QueuePair &peer_qp,
		     const QpOptions &options, QpState last = QpState::rts);
	void destroy(QueuePair &qp);

	/* Writes a WQE without ringing the doorbell, and returns its free-running index. */
	std::uint16_t post(QueuePair &qp, std::vector<std::byte> wqe);
	void zero_send_queue(const QueuePair &qp);
	void ring(QueuePair &qp) { transport_->send_doorbell(qp); }
	std::uint16_t post_send(QueuePair &qp, std::vector<std::byte> wqe)
	{
		auto index = post(qp, std::move(wqe));
		ring(qp);
		return index;
	}
	void post_receive(QueuePair &qp, const std::vector<WqeData> &pieces);
	void post_srq(SharedReceiveQueue &srq, const std::vector<WqeData> &pieces);

	std::optional<Completion> poll_cq(CompletionQueue &cq);
	/* Asynchronous events since the last call. */
	std::vector<Event> take_events();
	/* From now on, the event queue does not wrap around, so events are lost when it is full. */
	void bound_event_queue(unsigned log_size);
	/* Reports to the card which events have been consumed. */
	void acknowledge_events();
	/* Returns a value of eq_status. */
	std::uint32_t event_queue_status() const { return events_.find(0)->status(); }

	CardContext &card() { return context_; }
	Transport &transport() { return *transport_; }
	CardPort &port() { return *context_.port(1); }
	/* Key violations that the manager would be notified of. */
	const std::vector<ib::TrapNumber> &violations() const { return agent_.violations; }

private:
	struct QueueMemory {
		QueueBuffer buffer;
		std::uint64_t address;
		std::uint64_t size;
	};
	/* Returns zeroed memory, which may have belonged to a destroyed QP of the same size. */
	QueueMemory queue_memory(std::uint64_t size);
	void create_event_queue(bool endless);
	std::uint64_t new_mtts(std::span<const std::uint64_t> pages);

	struct DriverCq {
		std::uint64_t address, record;
		unsigned log_size;
		std::uint32_t consumer = 0;
	};
	struct DriverQp {
		std::uint64_t address;
		QueueMemory memory;
		std::uint16_t sent = 0, received = 0;
	};
	struct DriverSrq {
		std::uint64_t address, record;
		std::uint16_t tail = 0, posted = 0;
	};

	weft::testing::FakeHost host_{256 << 20};
	IcmMap icm_;
	MemoryTable memory_;
	EventQueues events_;
	MulticastTable multicast_;
	NoAgent agent_;
	Diagnostics diagnostics_;
	std::vector<std::unique_ptr<CardPort>> ports_;
	CardContext context_;
	std::unique_ptr<Transport> transport_;

	Mutex inbox_mutex_;
	std::vector<fabric::Packet> inbox_ WEFT_GUARDED_BY(inbox_mutex_);
	unsigned credits_ = 0; /* a bit for each VL */

	std::uint64_t free_memory_;
	std::uint64_t free_mtt_ = 0;
	std::uint32_t next_number_ = 1;
	std::uint32_t next_key_ = 1;
	std::map<std::uint32_t, hw::mlx4::MptEntry> keys_;
	std::map<std::uint32_t, DriverCq> cqs_;
	std::map<std::uint32_t, DriverQp> qps_;
	std::multimap<std::uint64_t, QueueMemory> spare_queues_;
	std::map<std::uint32_t, DriverSrq> srqs_;
	unsigned log_events_ = 10;
	std::uint64_t eq_address_ = 0;
	std::uint32_t eq_consumer_ = 0;
};

} // namespace weft::mlx4::transport

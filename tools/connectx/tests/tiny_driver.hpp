// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A driver small enough for a test: brings a card up over a fake machine, issues commands, makes
// queues, and looks into the guest's memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hw/connectx/commands.hpp>
#include <hw/connectx/contexts.hpp>
#include <hw/connectx/eqe.hpp>
#include <hw/connectx/registers.hpp>
#include <ib/mad.hpp>

#include "connectx/card.hpp"
#include "connectx/card_context.hpp"
#include "connectx/transport.hpp"
#include "fabric/fabric.hpp"
#include "vfio-user/testing/fake_host.hpp"

namespace weft::connectx::testing
{

using hw::connectx::Opcode;
using hw::connectx::Status;
using Mailbox = std::vector<std::uint8_t>;

// RecordingTransport - a data path that only notes what it is told.
class RecordingTransport final : public Transport
{
public:
	struct Change {
		std::uint32_t qpn;
		QpState from;
		QpState to;
		bool operator==(const Change &) const = default;
	};
	std::vector<std::uint32_t> created;
	std::vector<Change> changes;
	std::vector<std::uint32_t> destroyed;
	std::vector<std::uint32_t> doorbells;
	std::vector<std::uint32_t> gone_cqs;
	std::vector<std::uint32_t> gone_srqs;
	std::vector<std::uint32_t> gone_keys;
	unsigned key_changes = 0;
	unsigned received = 0;

	void qp_created(QueuePair &qp) override { created.push_back(qp.qpn); }
	void qp_changed(QueuePair &qp, QpState from) override
	{
		changes.push_back({qp.qpn, from, qp.state});
	}
	void qp_destroyed(QueuePair &qp) override { destroyed.push_back(qp.qpn); }
	QueuePairProgress progress(const QueuePair &qp) const override
	{
		QueuePairProgress progress;
		progress.next_send_psn = qp.initial_send_psn;
		progress.next_receive_psn = qp.initial_receive_psn;
		return progress;
	}
	void send_doorbell(QueuePair &qp) override { doorbells.push_back(qp.qpn); }
	void cq_gone(std::uint32_t cqn) override { gone_cqs.push_back(cqn); }
	void key_gone(std::uint32_t index) override { gone_keys.push_back(index); }
	void keys_changed() override { key_changes++; }
	void srq_gone(std::uint32_t srqn) override { gone_srqs.push_back(srqn); }
	void receive(unsigned, fabric::Packet &&) override { ++received; }
	void credit_available(unsigned, std::uint8_t) override {}
	void port_changed(unsigned) override {}
};

class TinyDriver
{
public:
	static constexpr std::uint64_t kMemorySize = 16 << 20;
	static constexpr std::uint32_t kAsyncEq = 4;
	static constexpr std::uint32_t kCompletionEq = 5;
	static constexpr unsigned kLogQps = 10;
	static constexpr unsigned kLogCqs = 9;
	static constexpr unsigned kLogSrqs = 8;
	static constexpr unsigned kLogEqs = 5;
	static constexpr unsigned kLogMpts = 10;
	static constexpr std::uint32_t kFirstQp = 64;
	static constexpr std::uint32_t kFirstCq = 128;
	static constexpr std::uint32_t kFirstSrq = 64;
	static constexpr std::uint32_t kFirstMpt = 16;
	static constexpr std::uint32_t kUarPage = 128;
	static constexpr std::uint64_t kIcmSize = 2 << 20;
	static constexpr std::uint64_t kQpcBase = 0;
	static constexpr std::uint64_t kCqcBase = 0x80000;
	static constexpr std::uint64_t kSrqcBase = 0xc0000;
	static constexpr std::uint64_t kEqcBase = 0xe0000;
	static constexpr std::uint64_t kDmptBase = 0x100000;
	static constexpr std::uint64_t kMttBase = 0x180000;

	// A card with @ports ports, each with a link to a port of the test's own. Its data path
	// only records what it is told, unless @make_transport makes another.
	explicit TinyDriver(unsigned ports = 1, TransportFactory make_transport = {},
			    bool trusted = true);
	~TinyDriver();

	testing::RecordingTransport &transport() { return *transport_; }
	CardContext &context() { return *card.context(); }

	// One command, to its end.
	struct Result {
		Status status;
		std::uint64_t value; // out_param
		Mailbox out;
	};
	Result command(Opcode opcode, std::uint32_t in_modifier = 0, std::uint32_t op_modifier = 0,
		       std::span<const std::uint8_t> in = {}, std::size_t out_size = 0);
	Result immediate(Opcode opcode, std::uint32_t in_modifier, std::uint64_t value,
			 std::uint32_t op_modifier = 0);
	// With mailboxes wherever the test wants them.
	Result raw(Opcode opcode, std::uint32_t in_modifier, std::uint32_t op_modifier,
		   std::uint64_t in_param, std::uint64_t out_param, bool event = false,
		   std::uint16_t token = 0xffff);

	// As if made anew: the card reset, all memory zero and free, interrupts and bus mastering
	// on. Only the links' other ends are as they were.
	void start_over();
	// QUERY_FW to INIT_HCA, ICM mapped; each step must succeed.
	void bring_up();
	hw::connectx::InitHca init_hca_mailbox() const;
	void map_icm(std::uint64_t icm, std::uint64_t bus, unsigned log_pages);
	// Also two event queues: one that gets all asynchronous events, and one for completions.
	void bring_up_events();

	// Guest memory that nothing else uses, zero, aligned.
	std::uint64_t allocate(std::uint64_t size, std::uint64_t alignment = 4096);
	// A buffer of whole pages and the MTT entries that name them; gives the MTT offset.
	struct Buffer {
		std::uint64_t bus;
		std::uint64_t mtt_offset;
		std::uint64_t size;
	};
	Buffer make_buffer(std::uint64_t size);
	void write_mtt(std::uint64_t mtt_offset, std::uint64_t entry);
	std::uint64_t icm_bus(std::uint64_t icm) const { return icm_bus_ + icm; }

	struct EventQueueMemory {
		std::uint32_t number = 0;
		Buffer buffer{};
		unsigned log_size = 0;
		std::uint32_t consumer = 0;
	};
	EventQueueMemory create_eq(std::uint32_t eqn, unsigned log_size, unsigned vector);
	// The next entry that the card wrote, if there is one.
	std::optional<hw::connectx::Eqe> poll(EventQueueMemory &eq);
	void eq_doorbell(const EventQueueMemory &eq, bool arm);

	struct Cq {
		std::uint32_t number = 0;
		Buffer buffer{};
		unsigned log_size = 0;
		std::uint64_t record = 0;
		std::uint32_t consumer = 0;
	};
	hw::connectx::CqContext cq_context(const Cq &cq) const;
	Cq make_cq(std::uint32_t cqn, unsigned log_size);   // memory only
	Cq create_cq(std::uint32_t cqn, unsigned log_size); // and SW2HW_CQ
	void set_consumer(Cq &cq, std::uint32_t consumer);
	void arm(const Cq &cq, std::uint32_t command, std::uint32_t consumer);

	// A mailbox for RST2INIT of an RC queue pair on @cq.
	Mailbox qp_mailbox(const Cq &cq, ServiceType service = ServiceType::rc);

	ib::Mad mad(ib::MgmtClass mgmt_class, ib::MadMethod method, std::uint16_t attribute,
		    std::uint32_t modifier = 0) const;
	// By MAD_IFC; the answer.
	ib::Mad ask(unsigned port, const ib::Mad &request, std::uint32_t op_modifier = 3);

	fabric::Fabric fabric;
	weft::testing::FakeHost host{kMemorySize};
	std::vector<fabric::Port *> peers; // the other ends of the card's links

private:
	RecordingTransport *transport_ = nullptr;

public:
	Card card;
	EventQueueMemory async;
	EventQueueMemory completions;

private:
	static constexpr std::uint64_t kFirstFree = 0x100000;

	void take_mailboxes();

	std::uint32_t toggle_ = 0;
	std::uint64_t next_free_ = kFirstFree;
	std::uint64_t next_mtt_ = 0;
	std::uint64_t icm_bus_ = 0;
	std::uint64_t in_mailbox_ = 0;
	std::uint64_t out_mailbox_ = 0;
};

} // namespace weft::connectx::testing

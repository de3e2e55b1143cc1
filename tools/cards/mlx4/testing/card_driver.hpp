// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a minimal driver of the ConnectX-2, which brings the card up, issues commands and
// creates queues. Tests use it, and programs that act as a guest without an operating system. It
// accesses card and guest memory through Machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hw/mlx4/commands.hpp>
#include <hw/mlx4/contexts.hpp>
#include <hw/mlx4/eqe.hpp>
#include <hw/mlx4/registers.hpp>
#include <ib/mad.hpp>

#include "bus/pci/testing/machine.hpp"

namespace weft::mlx4::testing
{

using hw::mlx4::Opcode;
using hw::mlx4::ServiceType;
using hw::mlx4::Status;
using Mailbox = std::vector<std::uint8_t>;

class CardDriver
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

	// @machine is the guest, which must outlive the driver. The constructor does not access it.
	explicit CardDriver(weft::testing::Machine &machine);

	// Result of a completed command.
	struct Result {
		Status status;
		std::uint64_t value; // out_param
		Mailbox out;
	};
	Result command(Opcode opcode, std::uint32_t in_modifier = 0, std::uint32_t op_modifier = 0,
		       std::span<const std::uint8_t> in = {}, std::size_t out_size = 0);
	Result immediate(Opcode opcode, std::uint32_t in_modifier, std::uint64_t value,
			 std::uint32_t op_modifier = 0);
	// Executes a command with mailboxes at any address.
	Result raw(Opcode opcode, std::uint32_t in_modifier, std::uint32_t op_modifier,
		   std::uint64_t in_param, std::uint64_t out_param, bool event = false,
		   std::uint16_t token = 0xffff);

	// Frees all memory, as after a reset of the card.
	void forget_memory();
	// Executes the commands from QUERY_FW to INIT_HCA and maps ICM; each must succeed.
	void bring_up();
	hw::mlx4::InitHca init_hca_mailbox() const;
	void map_icm(std::uint64_t icm, std::uint64_t bus, unsigned log_pages);
	// Brings the card up and creates two event queues: one for all asynchronous events, and one
	// for completions.
	void bring_up_events();

	// Returns zeroed and aligned guest memory that is not used otherwise.
	std::uint64_t allocate(std::uint64_t size, std::uint64_t alignment = 4096);
	// A buffer of whole pages, with the offset of its MTT entries.
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
	// Returns the next entry that the card has written, if there is one.
	std::optional<hw::mlx4::Eqe> poll(EventQueueMemory &eq);
	void eq_doorbell(const EventQueueMemory &eq, bool arm);

	struct Cq {
		std::uint32_t number = 0;
		Buffer buffer{};
		unsigned log_size = 0;
		std::uint64_t record = 0;
		std::uint32_t consumer = 0;
	};
	hw::mlx4::CqContext cq_context(const Cq &cq) const;
	Cq make_cq(std::uint32_t cqn, unsigned log_size);   // memory only
	Cq create_cq(std::uint32_t cqn, unsigned log_size); // and SW2HW_CQ
	void set_consumer(Cq &cq, std::uint32_t consumer);
	void arm(const Cq &cq, std::uint32_t command, std::uint32_t consumer);

	// Returns a mailbox for RST2INIT of an RC QP on @cq.
	Mailbox qp_mailbox(const Cq &cq, ServiceType service = ServiceType::rc);

	ib::Mad mad(ib::MgmtClass mgmt_class, ib::MadMethod method, std::uint16_t attribute,
		    std::uint32_t modifier = 0) const;
	// Sends @request by MAD_IFC and returns the response.
	ib::Mad ask(unsigned port, const ib::Mad &request, std::uint32_t op_modifier = 3);

	EventQueueMemory async;
	EventQueueMemory completions;

private:
	static constexpr std::uint64_t kFirstFree = 0x100000;

	void take_mailboxes();

	weft::testing::Machine &machine_;
	std::uint32_t toggle_ = 0;
	std::uint64_t next_free_ = kFirstFree;
	std::uint64_t next_mtt_ = 0;
	std::uint64_t icm_bus_ = 0;
	std::uint64_t in_mailbox_ = 0;
	std::uint64_t out_mailbox_ = 0;
};

} // namespace weft::mlx4::testing

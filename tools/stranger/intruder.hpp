// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A neighbour with a card of its own and no driver that would hold it back: what a hostile guest can do to the daemon that
// emulates the cards of all, and to the others' traffic, in turns from a seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ib/types.hpp>

#include "connectx/testing/card_driver.hpp"
#include "stranger/remote_machine.hpp"

namespace weft::stranger
{

// One of those whose traffic is to be disturbed.
struct Victim {
	std::uint16_t lid;
	std::uint64_t port_guid;
};

struct IntruderOptions {
	std::filesystem::path card;
	std::vector<Victim> victims;
	std::uint64_t seed = 1;
	unsigned turns = 100;
};

class Intruder
{
public:
	explicit Intruder(IntruderOptions options);
	~Intruder();

	// All turns. What the card refuses, or that it hangs up, is what is expected; a card that cannot be had again by a new
	// machine is not: std::runtime_error.
	void run();

	struct Act {
		const char *name;
		void (Intruder::*carry_out)();
		unsigned done = 0;
	};
	const std::vector<Act> &acts() const { return acts_; }
	// How often the card hung up on its machine.
	unsigned cards_lost() const { return cards_lost_; }

private:
	struct Queue {
		std::uint32_t qpn;
		connectx::testing::CardDriver::Buffer buffer;
		std::uint32_t posted = 0;
	};

	void plug_in();
	// The port as the manager has left it; waits until it is active.
	void await_active_port();
	Queue create_queue(std::uint32_t qpn, connectx::testing::ServiceType service, std::uint16_t remote_lid = 0,
			   std::uint32_t remote_qpn = 0);
	void post(Queue &queue, std::vector<std::byte> wqe);
	// Lets the card work for a little while, its completions thrown away.
	void let_it_work();
	// A packet of whole headers from QP1's number, as only the driver of the card may send.
	void send_raw_packet(std::uint16_t dlid, std::uint32_t dest_qp, std::uint16_t pkey, bool vl15,
			     std::span<const std::byte> payload);
	std::uint32_t below(std::uint32_t end) { return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random_); }
	const Victim &victim() { return options_.victims[below(static_cast<std::uint32_t>(options_.victims.size()))]; }

	// The acts.
	void send_giants();
	void map_all_memory();
	void split_windows();
	void truncate_memory();
	void take_descriptors();
	void trap_by_the_thousand();
	void join_and_leave_for_others();
	void use_foreign_pkeys();
	void send_vl15_to_data_qps();
	void guess_keys();
	void write_anything();

	const IntruderOptions options_;
	std::mt19937_64 random_;
	std::unique_ptr<RemoteMachine> machine_;
	std::unique_ptr<connectx::testing::CardDriver> driver_;
	connectx::testing::CardDriver::Cq cq_;
	std::uint64_t scratch_ = 0;
	std::uint16_t lid_ = 0;
	std::uint16_t manager_lid_ = 0;
	Queue special_{};
	std::vector<Act> acts_;
	unsigned cards_lost_ = 0;
};

} // namespace weft::stranger

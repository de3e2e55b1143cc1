// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a malicious guest with a card of its own, unrestricted by a driver. It performs
// actions against weftd, which emulates the cards of all guests, and against other guests' traffic,
// in an order determined by a seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <ib/mad.hpp>
#include <ib/pma.hpp>
#include <ib/smp.hpp>
#include <ib/types.hpp>

#include "cards/mlx4/testing/card_driver.hpp"
#include "tests/malicious_guest/remote_machine.hpp"

namespace weft::malicious_guest
{

// A host whose traffic the intruder tries to disturb.
struct Victim {
	std::uint16_t lid;
	std::uint64_t port_guid;
};

struct IntruderOptions {
	std::filesystem::path card;
	std::vector<Victim> victims;
	std::filesystem::path ethernet; // the socket of its Ethernet attachment
	std::uint64_t seed = 1;
	unsigned turns = 100;
};

class Intruder
{
public:
	explicit Intruder(IntruderOptions options);
	~Intruder();

	// State of the guest after an action.
	enum class Ending {
		keeps,    // the next action uses the same connection
		leaves,   // the intruder disconnects, and leaves its objects on the card behind
		loses_it, // the daemon must close the connection
	};
	struct Action {
		const char *name;
		Ending ending;
		void (Intruder::*carry_out)();
		unsigned turns = 0;
		// Effects of all executions, keyed by the name of the counter.
		std::map<std::string, std::uint64_t> effects{};
	};

	// Executes all rounds. An action fails if it does not end as expected or does not have its
	// effect: if a connection is closed or kept against expectation, if a command is refused or
	// accepted against expectation, or if a packet is not sent. In this case throws
	// std::runtime_error with the name of the action.
	void run();
	const std::vector<Action> &actions() const { return actions_; }

private:
	using HungUp = testing::FakeClient::HungUp;
	// The protection domain of all objects, and the key of the scratch memory.
	static constexpr std::uint32_t kPd = 7;
	static constexpr std::uint32_t kKey = 20 << 8;

	struct Queue {
		std::uint32_t qpn;
		mlx4::testing::CardDriver::Buffer buffer;
		std::uint32_t posted = 0;
	};

	void carry_out(Action &action);
	// Returns the actions of the next round, each once, in an order that the seed determines.
	std::vector<Action *> draw_round();
	void unplug();
	void plug_in();
	// Waits until the subnet manager has made the port active; returns its PortInfo.
	ib::PortInfo await_active_port(unsigned port);
	Queue create_queue(std::uint32_t qpn, mlx4::testing::ServiceType service,
			   std::uint16_t remote_lid = 0, std::uint32_t remote_qpn = 0,
			   unsigned port = 1);
	void post(Queue &queue, std::vector<std::byte> wqe);
	// Polls all existing completions, and counts those of the special queue.
	void reap();
	// Gives the card a little time to work.
	void run_card();
	// Sends a packet with complete headers on behalf of QP1, as only the driver of the card
	// may. Waits for space in the queue.
	void send_raw_packet(std::uint16_t dlid, std::uint32_t dest_qp, std::uint16_t pkey,
			     bool vl15, std::span<const std::byte> payload);
	// Waits until this number of requests of the special queue have completed.
	void await_completions(std::uint32_t number);
	// Waits until all packets of send_raw_packet() in this action have been sent, and counts
	// them.
	void await_raw_packets();
	// The counters of a port, by PMA (IBA 16.1.4.1).
	ib::PortCountersExtended counters_of(unsigned port);
	std::uint64_t packets_sent() { return counters_of(1).xmit_packets; }
	// Asks the subnet manager to have port 1 join or leave the broadcast group for a port.
	void ask_for_membership(ib::MadMethod method, std::uint64_t port_guid);
	// Posts large sends to the broadcast group, with a Q_Key that no IPoIB interface has.
	void post_to_everybody(Queue &queue, unsigned port);
	// Attaches the queue pairs to the broadcast group in the card's multicast table.
	void attach_to_everybody(std::uint32_t first_qpn, std::uint32_t last_qpn);
	// Waits until the port has sent @packets more than @before, and adds these to the total.
	void await_packets(std::uint64_t before, std::uint64_t packets);
	// Check that the card has executed or refused a command.
	void must(const mlx4::testing::CardDriver::Result &result, const char *what);
	void must_refuse(const mlx4::testing::CardDriver::Result &result, const char *what);
	void count(const char *effect, std::uint64_t number = 1)
	{
		current_->effects[effect] += number;
	}
	std::uint32_t below(std::uint32_t end)
	{
		return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random_);
	}
	const Victim &victim()
	{
		return options_.victims[below(static_cast<std::uint32_t>(options_.victims.size()))];
	}

	// The actions.
	void take_the_last_descriptors();
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
	void ask_for_all_paths();
	void send_to_everybody();
	void break_queues();
	void serve_many_members();
	void flood_ethernet();

	const IntruderOptions options_;
	std::mt19937_64 random_;
	std::unique_ptr<RemoteMachine> machine_;
	std::unique_ptr<mlx4::testing::CardDriver> driver_;
	mlx4::testing::CardDriver::Cq cq_;
	std::uint64_t scratch_ = 0;
	std::uint16_t lid_ = 0;
	std::uint16_t manager_lid_ = 0;
	Queue special_{};
	// Requests of the special queue that have completed, and those counted as an effect.
	std::uint32_t completed_ = 0;
	std::uint32_t counted_ = 0;
	std::vector<Action> actions_;
	Action *current_ = nullptr;
};

} // namespace weft::malicious_guest

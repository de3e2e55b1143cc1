// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A neighbour with a card of its own and no driver that would hold it back: what a hostile guest
// can do to the daemon that emulates the cards of all, and to the others' traffic, in turns from a
// seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
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

	// What is left of the machine when an act is over.
	enum class Ending {
		keeps,    // the next act is on the same machine
		leaves,   // it goes away, with whatever it has made of its card
		loses_it, // the daemon has to end the connection
	};
	struct Act {
		const char *name;
		Ending ending;
		void (Intruder::*carry_out)();
		unsigned turns = 0;
		// What it has done in all its turns, by the names of what it counts.
		std::map<std::string, std::uint64_t> effects{};
	};

	// All turns. An act that does not end as it should, or does not have its effect, is a
	// failure: the connection that ends where it should go on, a command that is refused where
	// it should be carried out, or the other way round, a packet that does not leave. Throws
	// std::runtime_error, which says in which act.
	void run();
	const std::vector<Act> &acts() const { return acts_; }

private:
	using HungUp = testing::FakeClient::HungUp;
	// The protection domain of all that it has, and the key of its scratch memory.
	static constexpr std::uint32_t kPd = 7;
	static constexpr std::uint32_t kKey = 20 << 8;

	struct Queue {
		std::uint32_t qpn;
		connectx::testing::CardDriver::Buffer buffer;
		std::uint32_t posted = 0;
	};

	void carry_out(Act &act);
	void unplug();
	void plug_in();
	// The port as the manager has left it; waits until it is active.
	void await_active_port();
	Queue create_queue(std::uint32_t qpn, connectx::testing::ServiceType service,
			   std::uint16_t remote_lid = 0, std::uint32_t remote_qpn = 0);
	void post(Queue &queue, std::vector<std::byte> wqe);
	// Takes the completions that are there. Those of the special queue are counted.
	void reap();
	// Lets the card work for a little while.
	void let_it_work();
	// A packet of whole headers from QP1's number, as only the driver of the card may send;
	// waits for room in the queue.
	void send_raw_packet(std::uint16_t dlid, std::uint32_t dest_qp, std::uint16_t pkey,
			     bool vl15, std::span<const std::byte> payload);
	// Waits until so many of the special queue's requests have completed.
	void await_completions(std::uint32_t number);
	// Waits until all that send_raw_packet() was given in this act has left, and counts it.
	void await_raw_packets();
	// What the port has sent, by its own counter.
	std::uint64_t packets_sent();
	// Waits until the port has sent @packets since it had sent @before, and counts those that
	// it has.
	void await_packets(std::uint64_t before, std::uint64_t packets);
	// A command that the card has to carry out, or to refuse.
	void must(const connectx::testing::CardDriver::Result &result, const char *what);
	void must_refuse(const connectx::testing::CardDriver::Result &result, const char *what);
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

	// The acts.
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

	const IntruderOptions options_;
	std::mt19937_64 random_;
	std::unique_ptr<RemoteMachine> machine_;
	std::unique_ptr<connectx::testing::CardDriver> driver_;
	connectx::testing::CardDriver::Cq cq_;
	std::uint64_t scratch_ = 0;
	std::uint16_t lid_ = 0;
	std::uint16_t manager_lid_ = 0;
	Queue special_{};
	// Of the special queue's requests: completed, and counted as an effect.
	std::uint32_t completed_ = 0;
	std::uint32_t counted_ = 0;
	std::vector<Act> acts_;
	Act *current_ = nullptr;
};

} // namespace weft::stranger

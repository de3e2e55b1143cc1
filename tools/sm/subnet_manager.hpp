// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the subnet manager (IBA 14.4) on one event loop, attached to an end port of the
 * fabric. This manager uses only MADs, so any other manager may replace it. While another manager
 * has a higher priority, or the same priority and a lower GUID, this one is standby.
 */
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "base/mutex.hpp"
#include "sm/config.hpp"
#include "sm/configurator.hpp"
#include "sm/lid_file.hpp"
#include "sm/lid_table.hpp"
#include "sm/mad_client.hpp"
#include "sm/subnet.hpp"
#include "sm/subnet_administration.hpp"
#include "sm/trap_budget.hpp"

namespace weft::sm
{

/* Returns an unpredictable key that is not 0. */
std::uint64_t random_mkey(Environment &environment = Environment::host());

class SubnetManager
{
public:
	/*
	 * Starts at once, on @reactor or on its own thread. The port must outlive the manager, and
	 * must have no other node attached.
	 */
	SubnetManager(fabric::Port &port, Config config, Reactor *reactor = nullptr);
	SubnetManager(const SubnetManager &) = delete;
	SubnetManager &operator=(const SubnetManager &) = delete;
	~SubnetManager();

	struct Status {
		ib::SmState state = ib::SmState::discovering;
		/* Number of complete sweeps, and whether the last one has reached all nodes. */
		std::uint64_t sweeps = 0;
		bool complete = false;
		/* Total number of SMPs that sweeps have requested. */
		std::uint64_t requests = 0;
		/*
		 * Work done for other nodes since the start, mainly for requests to subnet
		 * administration, in units of work.hpp, and the maximum without a pause.
		 */
		std::int64_t served = 0;
		std::int64_t served_at_once = 0;
		/* Result of the last sweep; null before the first. */
		std::shared_ptr<const Subnet> subnet;
	};

	/* Thread-safe. */
	void request_sweep();
	/* Requests a sweep that gives every port new LIDs, including the manager's own. */
	void request_renumbering();
	/*
	 * A disabled manager keeps its port, but does not manage the subnet (SMInfo state
	 * NOT-ACTIVE).
	 */
	void set_enabled(bool enabled);
	/* Corrupts answers of subnet administration, to test clients. */
	ReplyCorrupter &reply_corrupter() { return sa_.reply_corrupter(); }
	Status status() const;
	/*
	 * Waits until the status satisfies `condition`. Returns false after the time limit. If no
	 * other thread runs the manager, this function runs it.
	 */
	bool wait_for(const std::function<bool(const Status &)> &condition,
		      std::chrono::milliseconds timeout);

private:
	/* Handles timeouts and received MADs. */
	void work();
	void step();
	void wait_for_work();
	/* Extent of a sweep: only changes of links, or everything. */
	enum class Extent : std::uint8_t { changes, everything };
	void sweep(Extent extent);
	void look_at_rival_again();
	/* Discovers the subnet, and reads as little as @extent and earlier results permit. */
	Subnet discover_subnet(Extent extent);
	void light_sweep();
	void poll_master();
	void flush_multicast();
	void become(ib::SmState state);
	void publish(std::shared_ptr<const Subnet> subnet, bool complete);

	/* Decision after querying the other managers. */
	enum class Verdict { manage, stand_by };
	Verdict meet_others(const Subnet &subnet);
	bool outranks(const ib::SmInfo &other) const;

	/* Handles requests of other nodes until the budget is used up or there is nothing to do. */
	void serve(Work &work);
	bool busy();
	std::optional<Job> receive(fabric::AddressedMad &&mad, Work &work);
	void receive_trap(const fabric::AddressedMad &mad);
	void receive_sm_info(fabric::AddressedMad &&mad);
	std::uint16_t control(std::uint32_t order, const ib::SmInfo &from);
	ib::SmInfo sm_info() const;

	Loop loop_;
	const Config config_;
	/* Used on the loop only. Declared before the client, which may call at once. */
	enum class Turn : std::uint8_t { not_begun, waiting, working };
	Turn turn_ = Turn::not_begun;
	MadClient client_;
	Configurator configurator_;
	SubnetAdministration sa_;
	LidTable lids_;
	LidFile lid_file_;

	std::atomic<bool> sweep_requested_{true};
	std::atomic<bool> renumbering_requested_{false};
	std::atomic<bool> enabled_{true};

	mutable Mutex status_mutex_;
	mutable ConditionVariable status_changed_;
	Status status_ WEFT_GUARDED_BY(status_mutex_);

	std::atomic<std::int64_t> served_{0};
	std::atomic<std::int64_t> served_at_once_{0};

	/* Used on the loop only. */

	ib::SmState state_ = ib::SmState::discovering;
	std::shared_ptr<const Subnet> subnet_;
	/* True if the last sweep was complete, so that the next one can be incremental. */
	bool well_known_ = false;
	/* True if a link has changed since then. */
	bool link_changed_ = false;
	bool disabled_by_order_ = false;
	/* The manager whose HANDOVER has not been acknowledged yet. */
	ib::Guid handover_from_ = 0;
	ib::PortState own_state_ = ib::PortState::nop;
	Path master_path_;
	unsigned polls_without_master_ = 0;
	std::uint32_t act_count_ = 0;
	Clock::time_point next_light_sweep_{};
	Clock::time_point next_poll_{};
	/* Time of the next attempt after an incomplete sweep. The intervals increase. */
	Clock::time_point next_retry_ = Clock::time_point::max();
	std::chrono::milliseconds retry_delay_{0};
	/*
	 * True if another manager was discovering or master during the last sweep. The time until
	 * the next look at it increases.
	 */
	bool rival_ = false;
	std::chrono::milliseconds rival_delay_{0};
	Clock::time_point last_sweep_{};
	TrapBudget trap_budget_;
	LineBudget sweep_log_;
	/* True if requests are served before their results are sent. The order alternates. */
	bool requests_first_ = false;

	std::optional<Timer> timer_; /* until the manager stops */
};

} // namespace weft::sm

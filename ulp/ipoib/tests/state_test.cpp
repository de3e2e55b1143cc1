// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the states of an interface and of its queues: every transition is made, with a failure in
// each of its steps.
#include "fixture.hpp"

using namespace ipoib;
using namespace ipoib::fixture;

namespace
{

/* An owner that records its steps, and fails at one of them. */
struct Climber {
	enum class State : u8 { a, b, c, d };

	kern::Result<> step_up(State to)
	{
		steps++;
		held |= 1u << static_cast<u8>(to);
		if (to == fails_at)
			return kern::Error{-EIO};
		return {};
	}
	State step_down(State from)
	{
		steps++;
		twice = twice || !(held & 1u << static_cast<u8>(from));
		held &= ~(1u << static_cast<u8>(from));
		return static_cast<State>(static_cast<u8>(from) - 1);
	}
	/* True if it holds exactly the resources of its state. */
	bool agrees() const
	{
		return held == (2u << static_cast<u8>(bring_up.state())) - 2 && !twice;
	}

	State fails_at = State::a;
	unsigned held = 0, steps = 0;
	bool twice = false;
	BringUp<Climber, State> bring_up{*this};
};

/*
 * From each state to each other state, with no failure or a failure at any state: no step is taken
 * or undone twice, and a failed step is undone.
 */
void multi_step_state_transition_stops_in_the_last_state_reached_before_a_failed_step(Test &test)
{
	using State = Climber::State;
	for (u8 from = 0; from < 4; from++) {
		for (u8 to = 0; to < 4; to++) {
			for (u8 fails = 0; fails < 4; fails++) {
				Climber climber;
				EXPECT_OK(climber.bring_up.to(static_cast<State>(from)));
				climber.steps = 0;
				climber.fails_at = static_cast<State>(fails);
				const bool fell = fails > from && fails <= to;
				EXPECT_EQ(climber.bring_up.to(static_cast<State>(to)).ok(), !fell);
				EXPECT_EQ(static_cast<u8>(climber.bring_up.state()),
					  fell ? fails - 1 : to);
				EXPECT_TRUE(climber.agrees());
				if (!fell)
					EXPECT_EQ(climber.steps,
						  from < to ? static_cast<unsigned>(to - from)
							    : static_cast<unsigned>(from - to));
			}
		}
	}
}

constexpr soft_method queue_methods[] = {SOFT_QUERY_PORT, SOFT_CREATE_CQ, SOFT_CREATE_QP,
					 SOFT_MODIFY_QP, SOFT_POST_RECV};

/* Queues without a running interface: they replace those of an interface that is down. */
class Bench
{
public:
	explicit Bench(soft_notify notify = SOFT_NOTIFY_FIRES) : host_(lid, notify)
	{
		if (!module_.ok() || !host_.ok())
			return;
		pd_ = ib_alloc_pd(host_.device(), 0);
		auto made =
			kern::make<Queues>(kern::Gfp::kernel, host_.device(), 1u, recovery_work_);
		if (rdma::is_err(pd_) || !made.ok())
			return;
		queues_ = made.take();
		queues_->set_pd(pd_);
		queues_->set_depths(64, 64);
		kern::RtnlGuard rtnl;
		ok_ = queues_->attach(host_.dev(), group_).ok();
	}
	~Bench()
	{
		if (queues_) {
			kern::RtnlGuard rtnl;
			(void)queues_->to(Queues::State::none);
			queues_->detach();
		}
		queues_.reset();
		if (pd_ && !rdma::is_err(pd_))
			ib_dealloc_pd(pd_);
	}
	Bench(const Bench &) = delete;
	Bench &operator=(const Bench &) = delete;

	bool ok() const { return ok_; }
	ib_device *device() const { return host_.device(); }
	Queues &queues() { return *queues_; }
	/* Returns true if no object uses the PD. */
	bool is_empty() const { return pd_->usecnt == 0; }
	/* Sends a datagram from another QP of the device, and waits until it has arrived. */
	bool send_to(const ib_qp *qp, u32 length) const
	{
		auto pd = rdma::Pd::create(host_.device());
		auto cq = rdma::CompletionQueue::create(host_.device(), nullptr, nullptr, 4);
		if (!pd.ok() || !cq.ok())
			return false;
		ib_qp_init_attr attr = ::fixture::qp_attr(IB_QPT_UD);
		auto sender = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr);
		if (!sender.ok() || ::fixture::connect_datagram(sender.value().get(), 0))
			return false;
		rdma_ah_attr where{};
		where.type = RDMA_AH_ATTR_TYPE_IB;
		rdma_ah_set_dlid(&where, lid);
		rdma_ah_set_port_num(&where, 1);
		ib_ah *ah = rdma_create_ah(pd.value()->get(), &where, 0);
		if (rdma::is_err(ah))
			return false;
		const u8 bytes[64]{};
		ib_sge sge{reinterpret_cast<u64>(bytes), length, 0};
		ib_ud_wr wr{};
		wr.wr.sg_list = &sge;
		wr.wr.num_sge = 1;
		wr.wr.opcode = IB_WR_SEND;
		wr.wr.send_flags = IB_SEND_INLINE;
		wr.ah = ah;
		wr.remote_qpn = qp->qp_num;
		const unsigned int posted = soft_posted_receives(const_cast<ib_qp *>(qp));
		const bool sent =
			sender.value().post_send(&wr.wr) == 0 && eventually([&] {
				return soft_posted_receives(const_cast<ib_qp *>(qp)) < posted;
			});
		ib_wc wc;
		const bool completed = sent && ::fixture::next(cq.value(), wc);
		rdma_destroy_ah(ah, 0);
		return completed;
	}

private:
	static constexpr u16 lid = 2;

	void recover() {}

	Module module_;
	Host host_;
	ib::Gid group_{};
	ib_pd *pd_ = nullptr;
	kern::DelayedWork recovery_work_{kern::method<&Bench::recover>, this};
	kern::Owned<Queues> queues_;
	bool ok_ = false;
};

constexpr Queues::State all_of_queues[] = {Queues::State::none, Queues::State::made,
					   Queues::State::ready, Queues::State::running};

/*
 * Returns true if the queues may be in the state @now after a failed transition between two states.
 */
bool may_be_left(Queues::State from, Queues::State to, Queues::State now)
{
	return from < to ? now < to : now <= to;
}

/*
 * `arm` makes the nth call or allocation fail, and `disarm` returns whether that call was reached.
 * In any case the queues are in a state between the two, and every other state can be reached from
 * there.
 */
template<class Arm, class Disarm>
void walk_failing(Test &test, Bench &bench, Arm arm, Disarm disarm)
{
	Queues &queues = bench.queues();
	kern::RtnlGuard rtnl;
	for (const Queues::State from : all_of_queues) {
		for (const Queues::State to : all_of_queues) {
			bool failed = true;
			for (unsigned nth = 1; failed && nth < 1000; nth++) {
				ASSERT_OK(queues.to(from));
				arm(nth);
				const auto moved = queues.to(to);
				failed = disarm();
				if (!failed || moved.ok())
					EXPECT_TRUE(queues.state() == to ||
						    may_be_left(from, to, queues.state()));
				if (!moved.ok())
					EXPECT_TRUE(from < to &&
						    may_be_left(from, to, queues.state()));
				EXPECT_EQ(queues.qp() == nullptr,
					  queues.state() == Queues::State::none);
				ASSERT_OK(queues.to(Queues::State::running));
				ASSERT_OK(queues.to(Queues::State::none));
				ASSERT_TRUE(bench.is_empty());
			}
		}
	}
}

void queues_can_be_started_and_freed_after_any_single_driver_call_of_a_transition_failed(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	for (const soft_method method : queue_methods) {
		kern::Owned<FailNth> fault;
		walk_failing(
			test, bench,
			[&](unsigned nth) {
				auto made = kern::make<FailNth>(kern::Gfp::kernel, bench.device(),
								method, nth);
				if (made.ok())
					fault = made.take();
			},
			[&] {
				const bool failed = fault->failed();
				fault.reset();
				return failed;
			});
	}
}

/* The queues also survive the failure of the nth allocation. */
void queues_can_be_started_and_freed_after_any_single_allocation_of_a_transition_failed(Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench.ok());
	walk_failing(
		test, bench, [](unsigned nth) { kern_fail_allocation(nth); },
		[] {
			const bool failed = kern_allocation_failed();
			kern_fail_allocation(0);
			return failed;
		});
	/* There are no pages for receive buffers either. */
	kern::RtnlGuard rtnl;
	ASSERT_OK(bench.queues().to(Queues::State::made));
	kern_fail_pages(true);
	EXPECT_ERROR(bench.queues().to(Queues::State::running), -ENOMEM);
	kern_fail_pages(false);
	EXPECT_EQ(bench.queues().state(), Queues::State::made);
	EXPECT_OK(bench.queues().to(Queues::State::running));
	EXPECT_OK(bench.queues().to(Queues::State::none));
}

/*
 * The CQ is still armed from the last time that the queues ran. A packet that arrives before NAPI
 * is enabled uses up this arm, and its event has no effect. The packet is received nevertheless,
 * also on hardware that raises no second event for it.
 */
void notify_03_packet_that_arrives_before_napi_is_enabled_is_received(Test &test)
{
	for (const soft_notify notify :
	     {SOFT_NOTIFY_FIRES, SOFT_NOTIFY_REPORTS, SOFT_NOTIFY_FIRES_ONCE}) {
		Bench bench(notify);
		ASSERT_TRUE(bench.ok());
		Queues &queues = bench.queues();
		kern::RtnlGuard rtnl;
		ASSERT_OK(queues.to(Queues::State::running));
		ASSERT_OK(queues.to(Queues::State::ready));
		const u64 before = queues.received().too_short;
		/* A datagram with only the encapsulation header counts as too short. */
		ASSERT_TRUE(bench.send_to(queues.qp(), sizeof(Header)));
		ASSERT_OK(queues.to(Queues::State::running));
		EXPECT_TRUE(eventually([&] { return queues.received().too_short == before + 1; }));
		ASSERT_OK(queues.to(Queues::State::none));
	}
}

/* If any step of creating an interface fails, nothing is left of it. */
void failed_interface_creation_frees_all_resources(Test &test)
{
	Module module;
	kern::kunit::FakeDevice dma{"ipoib_making"};
	::fixture::Device device({.vectors = 4, .lid = 2, .dma_device = dma.native()});
	ASSERT_TRUE(module.ok() && dma.native() && device.ok());
	kern::RtnlGuard rtnl;
	for (const soft_method method :
	     {SOFT_ALLOC_PD, SOFT_QUERY_PORT, SOFT_CREATE_CQ, SOFT_CREATE_QP}) {
		bool failed = true;
		unsigned made = 0;
		for (unsigned nth = 1; failed && nth < 100; nth++) {
			FailNth fault(device.get(), method, nth);
			auto interface =
				Interface::create(device.get(), 1, 0xffff, nullptr, nullptr);
			failed = fault.failed();
			if (interface.ok()) {
				made++;
				EXPECT_EQ(interface.value()->state(), Interface::State::down);
				interface.value()->remove();
			} else {
				EXPECT_TRUE(failed);
			}
		}
		EXPECT_FALSE(failed);
		EXPECT_GE(made, 1u);
	}
}

/* An interface that could not be opened is down, and can be opened later. */
void interface_that_failed_to_open_can_be_opened_later(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	for (const soft_method method : {SOFT_MODIFY_QP, SOFT_POST_RECV}) {
		bool failed = true;
		unsigned nth = 0;
		while (failed && nth < 100) {
			{
				FailNth fault(pair.a.device(), method, ++nth);
				const int status = pair.a.up();
				failed = fault.failed();
				if (status)
					EXPECT_EQ(pair.a.interface().state(),
						  Interface::State::down);
				else
					EXPECT_GE(pair.a.interface().state(),
						  Interface::State::halted);
			}
			pair.a.down();
			ASSERT_EQ(pair.a.interface().state(), Interface::State::down);
			ASSERT_EQ(pair.a.up(), 0);
			ASSERT_TRUE(pair.a.runs());
			pair.a.down();
			if (nth > 3 * 5 * Interface::transmit_queues_wanted())
				break;
		}
	}
	EXPECT_TRUE(pair.begin());
}

/*
 * An interface that could not be restarted has no carrier, and is restarted later without a
 * command.
 */
void failed_interface_restart_is_retried_automatically(Test &test)
{
	Pair pair;
	ASSERT_TRUE(pair.ok());
	ASSERT_TRUE(pair.begin());
	const unsigned queues = Interface::transmit_queues_wanted();
	/*
	 * One command each fails: to ERR, RESET, INIT and RTS, and the one that sets the broadcast
	 * group's Q_Key.
	 */
	for (const unsigned nth :
	     {1u, queues + 1, 2 * queues + 1, 4 * queues + 1, 5 * queues + 1}) {
		FailNth fault(pair.a.device(), SOFT_MODIFY_QP, nth);
		pair.a.restart();
		EXPECT_TRUE(eventually([&] { return fault.failed(); }));
		EXPECT_TRUE(eventually(
			[&] { return pair.a.interface().state() == Interface::State::active; }));
		EXPECT_TRUE(pair.a.reaches(pair.b));
	}
}

} // namespace

SOFT_SUITES(
	ipoib_states,
	KUNIT_CASE(
		multi_step_state_transition_stops_in_the_last_state_reached_before_a_failed_step),
	KUNIT_CASE(
		queues_can_be_started_and_freed_after_any_single_driver_call_of_a_transition_failed),
	KUNIT_CASE(
		queues_can_be_started_and_freed_after_any_single_allocation_of_a_transition_failed),
	KUNIT_CASE(notify_03_packet_that_arrives_before_napi_is_enabled_is_received),
	KUNIT_CASE(failed_interface_creation_frees_all_resources),
	KUNIT_CASE(interface_that_failed_to_open_can_be_opened_later),
	KUNIT_CASE(failed_interface_restart_is_retried_automatically));

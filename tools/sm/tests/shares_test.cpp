// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that subnet administration limits the resources of each port, so that one port cannot
// prevent other ports from using subnet administration.
#include <set>

#include <gtest/gtest.h>

#include "sm/mc_groups.hpp"
#include "sm/services.hpp"
#include "sm/subscriptions.hpp"
#include "sm/tests/sa_lab.hpp"

namespace weft::sm
{
namespace
{

using namespace testing;

// One port cannot use up the resources of others.
TEST_F(SaTest, NumberOfServiceRecordsPerPortIsLimited)
{
	using Service = ib::ServiceRecord;
	const auto ask = [](Host &host, MadMethod method, std::size_t id) {
		ib::SaMad mad = host.request(method, ib::attr_service_record,
					     component(Service::c_id) | component(Service::c_gid) |
						     component(Service::c_pkey) |
						     component(Service::c_lease));
		auto &record = Host::record<Service>(mad);
		record.id = std::uint64_t{id};
		record.gid = host.gid();
		record.pkey = ib::pkey_default_full;
		record.lease = Service::lease_forever;
		return host.ask_sa(mad)->header.status.value();
	};
	for (std::size_t i = 0; i < Services::kServicesOfOne; i++)
		ASSERT_EQ(0, ask(a, MadMethod::set, i)) << i;
	EXPECT_EQ(ib::sa_status_no_resources, ask(a, MadMethod::set, 1 << 20));
	EXPECT_EQ(0, ask(a, MadMethod::set, 7)) << "it has that one";
	EXPECT_EQ(0, ask(b, MadMethod::set, 7));
	EXPECT_EQ(0, ask(a, MadMethod::remove, 7));
	EXPECT_EQ(0, ask(a, MadMethod::set, 1 << 20));
}

TEST_F(SaTest, NumberOfGroupMembershipsPerPortIsLimited)
{
	constexpr auto all = McGroups::kMembershipsOfOne;
	const auto status = [](const std::optional<ib::SaMad> &answer) {
		return answer->header.status.value();
	};
	ASSERT_EQ(0, status(join(b, group(0), kCreateMask)));
	ASSERT_EQ(0, status(join(a, group(0), kCreateMask, Mc::non_member)));
	for (std::uint32_t i = 1; i < all; i++)
		ASSERT_EQ(0, status(join(a, group(i), kCreateMask))) << i;
	EXPECT_EQ(ib::sa_status_no_resources, status(join(a, group(all), kCreateMask)));
	ASSERT_EQ(0, status(join(b, group(all), kCreateMask)));
	EXPECT_EQ(ib::sa_status_no_resources, status(join(a, group(all), kCreateMask)));
	EXPECT_EQ(0, status(join(a, group(7), kCreateMask))) << "it is in that one";
	EXPECT_EQ(0, status(leave(a, group(7))));
	EXPECT_EQ(0, status(join(a, group(all), kCreateMask)));

	// Destroying a group also removes memberships that did not keep it alive.
	EXPECT_EQ(ib::sa_status_no_resources, status(join(a, group(7), kCreateMask)));
	EXPECT_EQ(0, status(leave(b, group(0))));
	EXPECT_EQ(0, status(join(a, group(7), kCreateMask)));
	EXPECT_EQ(ib::sa_status_no_resources, status(join(a, group(0), kCreateMask)));

	// A port that was disconnected is no longer a member.
	const auto sweeps = [this] { return sm.status().sweeps; };
	for (bool plugged : {false, true}) {
		const auto before = sweeps();
		lab.links[0]->set_plugged(plugged);
		ASSERT_TRUE(Lab::settled(sm, before));
	}
	for (std::uint32_t i = 0; i < all; i++)
		ASSERT_EQ(0, status(join(a, group(i), kCreateMask))) << i;
}

// IBA 15.2.5.17.2: the SA assigns an MGID that no group has, even if hosts have created groups with
// chosen MGIDs.
TEST_F(SaTest, SaAssignsAnMgidThatIsNotInUse)
{
	const auto made = join(a, group(1), kCreateMask);
	ASSERT_EQ(0, made->header.status);
	const ib::Lid mlid = record_of<Mc>(*made).mlid;
	// The MGIDs that would follow from the next MLID, and from the one after it, are already in
	// use.
	for (ib::Lid next = 2; next <= 3; next++) {
		const auto by_hand = ib::Gid::from_parts(0xff12a01b00000000, mlid + next);
		ASSERT_EQ(0, join(a, by_hand, kCreateMask)->header.status);
	}
	std::set<ib::Gid> chosen;
	for (int i = 0; i < 3; i++) {
		const auto answer = join(b, ib::Gid{}, kCreateMask);
		ASSERT_EQ(0, answer->header.status) << i;
		chosen.insert(record_of<Mc>(*answer).mgid);
	}
	EXPECT_EQ(3u, chosen.size());
}

// Each subscription has different criteria, all of which match a port that disappears.
std::uint16_t subscribe(Host &host, std::size_t which, std::uint8_t wanted = 1)
{
	ib::SaMad mad = host.request(MadMethod::set, ib::attr_inform_info, 0);
	auto &info = Host::record<ib::InformInfo>(mad);
	info.lid_end = static_cast<std::uint16_t>(which);
	info.is_generic = 1;
	info.subscribe = wanted;
	info.type = ib::InformInfo::any;
	info.trap_number = std::uint16_t{ib::trap_gid_out_of_service};
	info.producer = ib::InformInfo::any_producer;
	return host.ask_sa(mad)->header.status;
}

TEST_F(SaTest, NumberOfSubscriptionsAndReportsPerPortIsLimited)
{
	for (std::size_t i = 0; i < Subscriptions::kSubscriptionsOfOne; i++)
		ASSERT_EQ(0, subscribe(a, i)) << i;
	EXPECT_EQ(ib::sa_status_no_resources, subscribe(a, 0x7000));
	EXPECT_EQ(0, subscribe(b, 0x7000));
	EXPECT_EQ(0, subscribe(a, 7, 0));
	EXPECT_EQ(0, subscribe(a, 0x7000));

	// Two ports disappear, and no subscriber responds.
	lab.links[1]->set_plugged(false);
	lab.links[2]->set_plugged(false);
	std::set<std::uint64_t> reports;
	while (const auto report = a.next_sa())
		reports.insert(report->header.tid);
	EXPECT_EQ(Subscriptions::kReportsToOne, reports.size());
}

// The number of ports that subscribe to an event exceeds the limit of kept reports, and none of
// them answers.
TEST(SaLimits, SubscriberOmittedAtTheLimitOfUnansweredReportsGetsTheReportOfTheNextEvent)
{
	constexpr auto silent = Subscriptions::kReportsMax / Subscriptions::kSubscriptionsOfOne;
	Lab lab;
	fabric::Switch &middle = lab.fabric.add_switch({.name = "middle"});
	SubnetManager &sm = lab.start(middle, 36);
	for (unsigned i = 0; i < silent + 2; i++)
		lab.add_host(middle, i + 1);
	ASSERT_TRUE(Lab::settled(sm));
	for (unsigned host = 0; host < silent; host++)
		for (std::size_t i = 0; i < Subscriptions::kSubscriptionsOfOne; i++)
			ASSERT_EQ(0, subscribe(*lab.hosts[host], i)) << host << ' ' << i;
	Host &last = *lab.hosts[silent];
	ASSERT_EQ(0, subscribe(last, 0));

	const auto events = [&] {
		const auto before = sm.status().sweeps;
		lab.links[silent + 1]->set_plugged(false);
		EXPECT_TRUE(Lab::settled(sm, before));
		lab.links[silent + 1]->set_plugged(true);
		EXPECT_TRUE(Lab::settled(sm, before + 1));
	};
	events();
	EXPECT_FALSE(last.next_sa()) << "none is left for it, and those before it give up";
	events();
	EXPECT_TRUE(last.next_sa());
}

} // namespace
} // namespace weft::sm

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a fabric in virtual time, to which tests add hosts and subnet managers.
#pragma once

#include <memory>
#include <vector>

#include "net/fabric/tests/test_node.hpp"
#include "sm/records.hpp"
#include "sm/subnet_manager.hpp"

namespace weft::sm::testing
{

using fabric::testing::MadNode;
using namespace std::chrono_literals;

constexpr auto kTimeLimit = 20s;

// A software end node that sends SA requests.
struct Host : MadNode {
	Host(fabric::Port &port, ib::Guid guid, Loop &loop) : MadNode(port, guid, &loop) {}

	ib::Gid gid() const { return mads.gid(); }
	ib::Lid lid() const { return mads.port_info().lid; }
	bool active() const { return mads.port_info().state() == ib::PortState::active; }

	ib::SaMad request(ib::MadMethod method, std::uint16_t attribute, std::uint64_t mask) const
	{
		ib::SaMad mad{};
		mad.header.base_version = 1;
		mad.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_adm);
		mad.header.class_version = 2;
		mad.header.method = static_cast<std::uint8_t>(method);
		mad.header.attr_id = attribute;
		mad.component_mask = mask;
		return mad;
	}
	template<class Record>
	static Record &record(ib::SaMad &mad)
	{
		return *reinterpret_cast<Record *>(mad.data);
	}

	fabric::MadAddress sa_address() const
	{
		fabric::MadAddress to;
		to.dlid = mads.port_info().sm_lid;
		to.src_qp = 1;
		to.dest_qp = 1;
		to.qkey = ib::qkey_gsi;
		return to;
	}
	void send_sa(ib::SaMad &mad)
	{
		mad.header.tid = ++tid;
		mads.send(sa_address(), reinterpret_cast<ib::Mad &>(mad));
	}
	// Returns the next MAD of class SubnAdm.
	std::optional<ib::SaMad> next_sa()
	{
		for (;;) {
			auto got = received.next();
			if (!got)
				return std::nullopt;
			if (got->mad.header.cls() == ib::MgmtClass::subn_adm)
				return reinterpret_cast<ib::SaMad &>(got->mad);
		}
	}
	// Sends a request and waits for the response. Retries once a second, as clients do.
	std::optional<ib::SaMad> ask_sa(ib::SaMad mad)
	{
		send_sa(mad);
		for (;;) {
			auto got = next_sa();
			if (!got ||
			    (got->header.tid == mad.header.tid && got->header.is_response()))
				return got;
		}
	}
	// Requests a table and acknowledges its segments. Returns the bytes of the records and the
	// size of each.
	struct Table {
		std::vector<std::uint8_t> bytes;
		std::size_t stride = 0;
		std::size_t segments = 0;
		std::size_t count() const { return stride ? bytes.size() / stride : 0; }
	};
	std::optional<Table> ask_table(ib::SaMad mad, unsigned window = 4)
	{
		send_sa(mad);
		Table table;
		std::uint32_t expected = 1;
		std::uint32_t total = 0;
		for (;;) {
			auto got = next_sa();
			if (!got)
				return std::nullopt;
			if (got->header.tid != mad.header.tid ||
			    got->rmpp.type != ib::RmppHeader::data || got->rmpp.segment > expected)
				continue;
			bool fresh = got->rmpp.segment == expected;
			bool last = fresh && (got->rmpp.flags() & ib::RmppHeader::last) != 0;
			if (fresh) {
				if (expected == 1)
					total = got->rmpp.length_or_window;
				std::size_t part = last ? got->rmpp.length_or_window - 20u : 200u;
				table.bytes.insert(table.bytes.end(), got->data, got->data + part);
				table.stride = got->attr_offset * 8u;
			}
			// This segment has already been acknowledged, and the acknowledgement was
			// lost.
			ib::SaMad ack = mad;
			ack.header.method =
				static_cast<std::uint8_t>(ib::MadMethod::get_table_resp);
			ack.rmpp.version = 1;
			ack.rmpp.type = ib::RmppHeader::ack;
			ack.rmpp.time_flags = ib::RmppHeader::active;
			ack.rmpp.segment = fresh ? expected : expected - 1;
			ack.rmpp.length_or_window = ack.rmpp.segment + window;
			mads.send(sa_address(), reinterpret_cast<ib::Mad &>(ack));
			if (last) {
				table.segments = expected;
				// The first segment announced the whole length.
				if (total != table.bytes.size() + 20u * expected)
					return std::nullopt;
				return table;
			}
			expected += fresh ? 1 : 0;
		}
	}
};

struct Lab {
	explicit Lab(std::uint64_t seed = fabric::Fabric::kDefaultSeed) : fabric(seed, &reactor) {}

	Host &add_host(fabric::Switch &sw, unsigned port)
	{
		auto number = hosts.size() + 1;
		fabric::Port &end = fabric.add_port("host" + std::to_string(number));
		links.push_back(&fabric.connect(end, sw.port(port)));
		hosts.push_back(std::make_unique<Host>(end, 0x1000 * number, loop));
		return *hosts.back();
	}
	SubnetManager &start(fabric::Switch &sw, unsigned port, Config config = {})
	{
		fabric::Port &end = fabric.add_port("sm" + std::to_string(port));
		fabric.connect(end, sw.port(port));
		managers.push_back(
			std::make_unique<SubnetManager>(end, std::move(config), &reactor));
		return *managers.back();
	}
	// Waits until a sweep is complete after `count` other sweeps.
	static bool settled(SubnetManager &sm, std::uint64_t count = 0)
	{
		return sm.wait_for(
			[&](const SubnetManager::Status &status) {
				return status.sweeps > count && status.complete;
			},
			kTimeLimit);
	}

	// Everything runs on the test's thread, in virtual time.
	VirtualEnvironment environment;
	Reactor reactor{"lab", Reactor::Drive::manual, environment};
	Loop loop{"test", reactor};
	fabric::Fabric fabric;
	std::vector<fabric::Link *> links;
	std::vector<std::unique_ptr<Host>> hosts;
	// Declared last, because subnet managers must be destroyed first.
	std::vector<std::unique_ptr<SubnetManager>> managers;
};

} // namespace weft::sm::testing

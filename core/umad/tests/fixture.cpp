// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fixture.hpp"
#include <kern/user.hpp>

namespace umad_fixture
{

namespace
{

constinit kern::Static<umad::Names> shared;

} // namespace

Service::Service()
{
	shared.construct();
	ok_ = begin();
}

bool Service::begin()
{
	/* The device numbers that the module uses in a kernel. */
	if (!umad::file_kind().create(nullptr) || !umad::manager_kind().create(nullptr) ||
	    !shared->umad.create(231, 0, "infiniband_mad") ||
	    !shared->issm.create(231, 64, "infiniband_mad"))
		return false;
	auto made = kern::DeviceClass::create(
		"infiniband_mad", {.abi_version = "5", .node_mode = 0600, .reports_name = false});
	if (!made)
		return false;
	shared->mad_class = made.take();
	return true;
}

Service::~Service()
{
	shared.destruct();
	umad::manager_kind().destroy();
	umad::file_kind().destroy();
}

Bench::Bench()
{
	if (!process || !service.ok() || !near.ok() || !far.ok())
		return;
	auto made = umad::Port::create(*near.device(), 1);
	if (made)
		port = made.take();
}

Bench::~Bench()
{
	if (port)
		port->leave_device();
}

Program::Program(Bench &bench) : bench_(bench)
{
	if (!native_.native())
		return;
	auto opened = bench.port->open(*native_.native());
	if (opened)
		file_ = opened.value();
}

Program::~Program()
{
	if (file_)
		file_->release();
}

u32 Program::add(u8 mgmt_class, u8 methods, u8 rmpp_version)
{
	const u64 at = bench_.memory.address();
	umad::abi::RegisterAgent2 asked{};

	asked.qpn = 1;
	asked.mgmt_class = mgmt_class;
	asked.mgmt_class_version = mgmt_class ? 1 : 0;
	asked.method_mask[0] = methods ? u64{1} << methods : 0;
	asked.oui = mgmt_class == vendor_rmpp_class ? 1 : 0;
	asked.rmpp_version = rmpp_version;
	if (!kern::copy_out(at, &asked, sizeof(asked)) ||
	    !file_->control(umad::abi::register_agent2, at) ||
	    !kern::copy_in(&asked, at, sizeof(asked)))
		return no_agent;
	return asked.id;
}

long Program::remove(u32 agent)
{
	const u64 at = bench_.memory.address();
	const auto copied = kern::copy_out(at, &agent, sizeof(agent));
	return copied ? file_->control(umad::abi::unregister_agent, at).error() : copied.error();
}

long Program::write(const Record &record, std::size_t mad_size)
{
	const u64 at = bench_.memory.address();

	if (!kern::copy_out(at, &record, sizeof(record)))
		return -EFAULT;
	const auto written = file_->write(at, sizeof(record.header) + mad_size);
	return written ? 0 : written.error();
}

long Program::ask(u32 agent, u16 lid, u32 tid, u32 timeout_ms, u8 mgmt_class, u8 method)
{
	return write(question(agent, lid, tid, timeout_ms, mgmt_class, method));
}

Record question(u32 agent, u16 lid, u32 tid, u32 timeout_ms, u8 mgmt_class, u8 method)
{
	Record record;

	record.header.id = agent;
	record.header.qpn = 1;
	record.header.lid = lid;
	record.header.timeout_ms = timeout_ms;
	ib_mad_hdr &header = record.mad.mad_hdr;
	header.base_version = IB_MGMT_BASE_VERSION;
	header.mgmt_class = mgmt_class;
	header.class_version = 1;
	header.method = method;
	header.tid = u64{tid};
	return record;
}

long Program::read(Record &record, bool wait, std::size_t buffer_size)
{
	const u64 at = bench_.memory.address();
	const auto got = file_->read(at, sizeof(record.header) + buffer_size, wait);

	if (!got)
		return got.error();
	return kern::copy_in(&record, at, sizeof(record)) ? static_cast<long>(got.value())
							  : -EFAULT;
}

Program::Read Program::read_all()
{
	Read all;
	Record record;

	while (read(record, false, Bench::memory_size - sizeof(record.header)) > 0)
		(record.header.status == ETIMEDOUT ? all.timed_out : all.received)++;
	return all;
}

void wait_ms(Test &test, Bench &bench, u32 ms)
{
	Program program(bench);
	Record record;
	ASSERT_TRUE(program.ok());
	ASSERT_EQ(program.ask(program.add(), unused_lid, 1, ms), 0);
	EXPECT_EQ(program.read(record, true), unanswered);
}

} // namespace umad_fixture

umad::Names &umad::names()
{
	return *umad_fixture::shared;
}

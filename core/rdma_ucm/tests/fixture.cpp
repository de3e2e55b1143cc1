// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fixture.hpp"

namespace ucm_fixture
{

namespace
{

constinit kern::Static<rdma_ucm::Table> shared;

} // namespace

Bench::Bench(u32 ids, u32 memberships)
{
	fake::reset();
	shared.construct(ids, memberships);
	ok_ = bool(rdma_ucm::file_kind().create(nullptr));
}

Bench::~Bench()
{
	rdma_ucm::file_kind().destroy();
	shared.destruct();
}

Program::Program(Bench &bench, const kern_user &user) : bench_(bench)
{
	if (!native_.native())
		return;
	if (auto made = rdma_ucm::File::create(*native_.native(), user))
		file_ = made.take().release();
}

void Program::close()
{
	if (file_)
		std::exchange(file_, nullptr)->release();
}

long Program::write(abi::Header header, const void *request, std::size_t written)
{
	const u64 at = bench_.requests();
	if (!kern::copy_out(at, &header, sizeof(header)) ||
	    (written > sizeof(header) &&
	     !kern::copy_out(at + sizeof(header), request, written - sizeof(header))))
		return -EFAULT;
	const auto taken = file_->write(at, written);
	return taken ? 0 : taken.error();
}

long Program::create(u32 &id, u64 uid, fake::Cm **cm, u16 ps)
{
	abi::Made made{};
	const long done = ask(
		abi::create_id,
		abi::CreateId{
			.uid = uid, .response = 0, .ps = ps, .qp_type = IB_QPT_RC, .reserved = {}},
		made);
	if (done)
		return done;
	id = made.id;
	fake::newest()->resolve();
	if (cm)
		*cm = fake::newest();
	return 0;
}

long Program::accept(u32 id, u64 uid)
{
	abi::Accept request{};
	request.id = id;
	request.uid = uid;
	request.conn_param.valid = 1;
	return command(abi::accept, request);
}

long Program::join(u32 id, u64 uid, u8 last_byte, u32 &membership, u64 to)
{
	abi::JoinMcast request{};
	const rdma_sockaddr_in group = {
		.family = RDMA_AF_INET, .port = u16{0}, .addr = {239, 0, 0, last_byte}, .zero = {}};
	request.uid = uid;
	request.id = id;
	request.addr_size = sizeof(group);
	__builtin_memcpy(request.addr, &group, sizeof(group));
	abi::Made made{};
	const long done = ask(abi::join_mcast, request, made, to);
	membership = made.id;
	return done;
}

long Program::end(u32 number, u32 id, u32 &read)
{
	abi::Ended ended{};
	const long done =
		ask(number, abi::DestroyId{.response = 0, .id = id, .reserved = 0}, ended);
	read = ended.events_reported;
	return done;
}

} // namespace ucm_fixture

rdma_ucm::Table &rdma_ucm::table()
{
	return *ucm_fixture::shared;
}

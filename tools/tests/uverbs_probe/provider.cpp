// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tests/uverbs_probe/provider.hpp"

#include <cstring>
#include <fstream>
#include <string>

#include <rdma/mlx4-abi.h>
#include <rdma/mthca-abi.h>

#include "tests/uverbs_probe/program.hpp"

namespace weft::uverbs
{

namespace
{

template<class Words>
std::vector<char> bytes_of(const Words &words)
{
	std::vector<char> bytes(sizeof(words));

	std::memcpy(bytes.data(), &words, sizeof(words));
	return bytes;
}

/* Queues and their records are named by addresses. */
class ConnectX final : public Provider
{
public:
	std::uint32_t driver() const override { return 2; }

	std::vector<char> new_cq(const Program &) const override
	{
		return bytes_of(mlx4_ib_create_cq{.buf_addr = Program::ring(),
						  .db_addr = Program::doorbells()});
	}
	std::vector<char> resized_cq(const Program &, std::uint64_t ring) const override
	{
		return bytes_of(mlx4_ib_resize_cq{.buf_addr = ring});
	}
	std::vector<char> new_qp(const Program &, std::uint32_t) const override
	{
		mlx4_ib_create_qp words{};

		words.buf_addr = Program::ring();
		words.db_addr = Program::doorbells() + 64;
		words.log_sq_bb_count = 6;
		words.log_sq_stride = 6;
		return bytes_of(words);
	}
	std::vector<char> new_srq(const Program &, std::uint32_t) const override
	{
		return bytes_of(mlx4_ib_create_srq{.buf_addr = Program::ring(),
						   .db_addr = Program::doorbells() + 128});
	}
};

/*
 * Queues are in regions of their PD, or for a CQ in a region of the library's own PD. Doorbell
 * records are in the first page of the context's table.
 */
class Mthca final : public Provider
{
public:
	std::uint32_t driver() const override { return 1; }

	std::vector<char> new_cq(const Program &program) const override
	{
		const Program::Domain &domain = program.own_domain();

		return bytes_of(mthca_create_cq{
			.lkey = program.register_ring(domain.handle, Program::ring()),
			.pdn = domain.number,
			.arm_db_page = Program::doorbells(),
			.set_db_page = Program::doorbells(),
			.arm_db_index = 0,
			.set_db_index = 1});
	}
	std::vector<char> resized_cq(const Program &program, std::uint64_t ring) const override
	{
		return bytes_of(mthca_resize_cq{
			.lkey = program.register_ring(program.own_domain().handle, ring),
			.reserved = 0});
	}
	std::vector<char> new_qp(const Program &program, std::uint32_t pd) const override
	{
		return bytes_of(mthca_create_qp{.lkey = program.register_ring(pd, Program::ring()),
						.reserved = 0,
						.sq_db_page = Program::doorbells(),
						.rq_db_page = Program::doorbells(),
						.sq_db_index = 2,
						.rq_db_index = 3});
	}
	std::vector<char> new_srq(const Program &program, std::uint32_t pd) const override
	{
		return bytes_of(mthca_create_srq{.lkey = program.register_ring(pd, Program::ring()),
						 .db_index = 4,
						 .db_page = Program::doorbells()});
	}
};

} // namespace

const Provider &Provider::of_node()
{
	static const ConnectX kMlx4;
	static const Mthca kMthca;
	static const bool kIsMthca = [] {
		std::string device;
		std::ifstream("/sys/class/infiniband_verbs/uverbs0/ibdev") >> device;
		return device.starts_with("mthca");
	}();

	if (kIsMthca)
		return kMthca;
	return kMlx4;
}

} // namespace weft::uverbs

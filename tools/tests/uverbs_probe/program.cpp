// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tests/uverbs_probe/program.hpp"

#include "tests/uverbs_probe/provider.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace weft::uverbs
{

namespace
{

int failed = 0;

/* The headers that name these are another's: IBV_QPT_RC, IBV_ACCESS_LOCAL_WRITE. */
constexpr std::uint32_t kAccessLocalWrite = 1;
constexpr std::uint32_t kSrqTypeXrc = 1;

constexpr std::size_t kRingBytes = 1 << 16;

/* Returns a request followed by the data of the card's library. */
template<class Request>
std::vector<char> with(const Request &request, const std::vector<char> &driver)
{
	std::vector<char> bytes(sizeof(request));

	std::memcpy(bytes.data(), &request, sizeof(request));
	bytes.insert(bytes.end(), driver.begin(), driver.end());
	return bytes;
}

} // namespace

void expect(const std::string &what, long got, long expected)
{
	if (got == expected)
		return;
	std::printf("FAILED %s: got %ld (%s), expected %ld (%s)\n", what.c_str(), got,
		    std::strerror(static_cast<int>(got)), expected,
		    std::strerror(static_cast<int>(expected)));
	failed++;
}

int failures()
{
	return failed;
}

Descriptor &Descriptor::operator=(Descriptor &&other) noexcept
{
	std::swap(number_, other.number_);
	return *this;
}

void Descriptor::reset()
{
	if (number_ >= 0)
		::close(number_);
	number_ = -1;
}

Program::Program(bool context) : file_(::open(kNode, O_RDWR | O_CLOEXEC))
{
	if (file_.number() < 0) {
		std::perror(kNode);
		std::exit(2);
	}
	if (context)
		expect("GET_CONTEXT", make_context(), 0);
}

long Program::make_context()
{
	/* async_fd, num_comp_vectors, and the provider's. */
	std::array<std::uint32_t, 2 + sizeof(mlx4_ib_alloc_ucontext_resp) / 4> answer{};

	const long failed = command(IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context{}, answer);
	if (!failed)
		events_ = Descriptor(static_cast<int>(answer[0]));
	return failed;
}

long Program::write(const void *bytes, std::size_t size) const
{
	const ssize_t written = ::write(file_.number(), bytes, size);

	if (written < 0)
		return errno;
	return static_cast<std::size_t>(written) == size ? 0 : EPROTO;
}

long Program::plain(unsigned number, const void *request, std::size_t size,
		    std::size_t answer) const
{
	const std::size_t whole = sizeof(ib_uverbs_cmd_hdr) + size;
	const ib_uverbs_cmd_hdr header = {.command = number,
					  .in_words = static_cast<std::uint16_t>(whole / 4),
					  .out_words = static_cast<std::uint16_t>(answer / 4)};
	std::vector<char> bytes(whole);

	std::memcpy(bytes.data(), &header, sizeof(header));
	std::memcpy(bytes.data() + sizeof(header), request, size);
	return write(bytes.data(), bytes.size());
}

std::uint64_t Program::ring()
{
	static void *const kMemory = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return reinterpret_cast<std::uintptr_t>(kMemory);
}

std::uint64_t Program::doorbells()
{
	return ring() + kRingBytes - 4096;
}

const Program::Domain &Program::own_domain() const
{
	std::call_once(domain_->made, [this] { alloc_pd(domain_->handle, domain_->number); });
	return *domain_;
}

std::uint32_t Program::register_ring(std::uint32_t pd, std::uint64_t ring) const
{
	ib_uverbs_reg_mr request{};
	ib_uverbs_reg_mr_resp answer{};

	request.start = ring;
	request.length = kRingBytes;
	request.pd_handle = pd;
	request.access_flags = kAccessLocalWrite;
	return command(IB_USER_VERBS_CMD_REG_MR, request, answer) ? 0 : answer.lkey;
}

long Program::alloc_pd(std::uint32_t &made) const
{
	std::uint32_t number;

	return alloc_pd(made, number);
}

long Program::alloc_pd(std::uint32_t &made, std::uint32_t &number) const
{
	/* pd_handle, and the provider's. */
	std::array<std::uint32_t, 1 + sizeof(mlx4_ib_alloc_pd_resp) / 4> answer{};
	const long error = command(IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, answer);

	made = answer[0];
	number = answer[1];
	return error;
}

long Program::dealloc_pd(std::uint32_t handle) const
{
	return command(IB_USER_VERBS_CMD_DEALLOC_PD, ib_uverbs_dealloc_pd{.pd_handle = handle});
}

long Program::create_channel(Descriptor &made) const
{
	ib_uverbs_create_comp_channel_resp answer{};
	const long error = command(IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL,
				   ib_uverbs_create_comp_channel{}, answer);

	made = Descriptor(error ? -1 : static_cast<int>(answer.fd));
	return error;
}

long Program::create_cq(int channel, std::uint32_t &made) const
{
	ib_uverbs_create_cq request{};
	/* cq_handle, cqe, and the provider's. */
	std::array<std::uint32_t, 2 + sizeof(mlx4_ib_create_cq_resp) / 4> answer{};

	request.response = reinterpret_cast<std::uintptr_t>(&answer);
	request.cqe = 15;
	request.comp_channel = channel;
	const auto both = with(request, Provider::of_node().new_cq(*this));
	const long error =
		plain(IB_USER_VERBS_CMD_CREATE_CQ, both.data(), both.size(), sizeof(answer));
	made = answer[0];
	return error;
}

long Program::destroy_cq(std::uint32_t handle, ib_uverbs_destroy_cq_resp &answer) const
{
	return command(IB_USER_VERBS_CMD_DESTROY_CQ,
		       ib_uverbs_destroy_cq{.response = 0, .cq_handle = handle, .reserved = 0},
		       answer);
}

long Program::create_qp(std::uint32_t pd, std::uint32_t cq, std::uint32_t &made,
			std::uint8_t type) const
{
	std::uint32_t number;

	return create_qp(pd, cq, made, number, type);
}

long Program::create_qp(std::uint32_t pd, std::uint32_t cq, std::uint32_t &made,
			std::uint32_t &number, std::uint8_t type) const
{
	ib_uverbs_create_qp request{};
	ib_uverbs_create_qp_resp answer{};

	request.response = reinterpret_cast<std::uintptr_t>(&answer);
	request.pd_handle = pd;
	request.send_cq_handle = cq;
	request.recv_cq_handle = cq;
	request.max_send_wr = 4;
	request.max_recv_wr = 4;
	request.max_send_sge = 1;
	request.max_recv_sge = 1;
	request.qp_type = type;
	const auto both = with(request, Provider::of_node().new_qp(*this, pd));
	const long error =
		plain(IB_USER_VERBS_CMD_CREATE_QP, both.data(), both.size(), sizeof(answer));
	made = answer.qp_handle;
	number = answer.qpn;
	return error;
}

long Program::attach(std::uint32_t qp, std::uint16_t lid, const MulticastGid &gid) const
{
	ib_uverbs_attach_mcast request{};

	std::memcpy(request.gid, gid.data(), gid.size());
	request.qp_handle = qp;
	request.mlid = lid;
	return command(IB_USER_VERBS_CMD_ATTACH_MCAST, request);
}

long Program::modify_qp(std::uint32_t handle, std::uint64_t state, std::uint32_t mask) const
{
	ib_uverbs_modify_qp request{};

	request.dest.port_num = request.port_num = request.alt_port_num = 1;
	request.dest.dlid = 1;
	request.path_mtu = 2;
	request.qp_handle = handle;
	request.qp_state = static_cast<std::uint8_t>(state);
	request.attr_mask = mask;
	return modify_qp(request);
}

long Program::resize_cq(std::uint32_t handle, std::uint32_t entries, std::uint64_t ring) const
{
	ib_uverbs_resize_cq request{};
	ib_uverbs_resize_cq_resp answer{};

	request.response = reinterpret_cast<std::uintptr_t>(&answer);
	request.cq_handle = handle;
	request.cqe = entries;
	const auto both = with(request, Provider::of_node().resized_cq(*this, ring));
	return plain(IB_USER_VERBS_CMD_RESIZE_CQ, both.data(), both.size(), sizeof(answer));
}

long Program::open_domain(int file, int flags, std::uint32_t &made) const
{
	ib_uverbs_open_xrcd_resp answer{};
	const ib_uverbs_open_xrcd request = {.response = 0,
					     .fd = static_cast<std::uint32_t>(file),
					     .oflags = static_cast<std::uint32_t>(flags)};
	const long error = command(IB_USER_VERBS_CMD_OPEN_XRCD, request, answer);

	made = answer.xrcd_handle;
	return error;
}

long Program::destroy_qp(std::uint32_t handle) const
{
	ib_uverbs_destroy_qp_resp answer{};

	return command(IB_USER_VERBS_CMD_DESTROY_QP,
		       ib_uverbs_destroy_qp{.response = 0, .qp_handle = handle, .reserved = 0},
		       answer);
}

long Program::create_xrc_srq(std::uint32_t pd, std::uint32_t xrcd, std::uint32_t cq,
			     std::uint32_t &made, std::uint32_t &number) const
{
	ib_uverbs_create_xsrq request{};
	std::array<std::uint32_t, 4 + sizeof(mlx4_ib_create_srq_resp) / 4> answer{};

	request.response = reinterpret_cast<std::uintptr_t>(&answer);
	request.srq_type = kSrqTypeXrc;
	request.pd_handle = pd;
	request.xrcd_handle = xrcd;
	request.cq_handle = cq;
	request.max_wr = 3;
	request.max_sge = 1;
	const auto both = with(request, Provider::of_node().new_srq(*this, pd));
	const long error =
		plain(IB_USER_VERBS_CMD_CREATE_XSRQ, both.data(), both.size(), sizeof(answer));
	made = answer[0];
	number = answer[3];
	return error;
}

long Program::destroy_srq(std::uint32_t handle) const
{
	ib_uverbs_destroy_srq_resp answer{};

	return command(IB_USER_VERBS_CMD_DESTROY_SRQ,
		       ib_uverbs_destroy_srq{.response = 0, .srq_handle = handle, .reserved = 0},
		       answer);
}

long Program::register_memory(std::uint32_t pd, void *start, std::size_t length,
			      std::uint32_t &made) const
{
	ib_uverbs_reg_mr request{};
	ib_uverbs_reg_mr_resp answer{};

	request.start = request.hca_va = reinterpret_cast<std::uintptr_t>(start);
	request.length = length;
	request.pd_handle = pd;
	request.access_flags = kAccessLocalWrite;
	const long error = command(IB_USER_VERBS_CMD_REG_MR, request, answer);
	made = answer.mr_handle;
	return error;
}

long Program::register_again(std::uint32_t handle, std::uint32_t flags, std::uint32_t pd,
			     void *start, std::size_t length) const
{
	ib_uverbs_rereg_mr request{};
	ib_uverbs_rereg_mr_resp answer{};

	request.mr_handle = handle;
	request.flags = flags;
	request.start = request.hca_va = reinterpret_cast<std::uintptr_t>(start);
	request.length = length;
	request.pd_handle = pd;
	request.access_flags = kAccessLocalWrite;
	return command(IB_USER_VERBS_CMD_REREG_MR, request, answer);
}

long Program::deregister_memory(std::uint32_t handle) const
{
	return command(IB_USER_VERBS_CMD_DEREG_MR, ib_uverbs_dereg_mr{.mr_handle = handle});
}

} // namespace weft::uverbs

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains the main function of weft-malicious-guest. It sends an IPoIB interface random datagrams
 * from a queue pair of its own, as any process that may open an InfiniBand device can.
 */
#include <cstring>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>
#include <infiniband/verbs.h>

#include "tests/malicious_guest/frames.hpp"

namespace
{

using weft::malicious_guest::make_frame;
using weft::malicious_guest::Random;

constexpr std::uint32_t kMulticastQp = 0xffffff;
/* Largest payload of a port with an MTU of 2048. */
constexpr std::size_t kLargest = 2048;
constexpr unsigned kDepth = 64;

struct Options {
	std::string address;
	unsigned lid = 0;
	unsigned multicast_lid = 0;
	std::uint32_t qkey = 0x0b1b;
	std::uint64_t seed = 1;
	unsigned long count = 10'000;
};

template<typename T>
T *checked(T *made, const char *what)
{
	if (!made)
		throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
	return made;
}

void check(int status, const char *what)
{
	if (status)
		throw std::runtime_error(std::string(what) + ": " + std::strerror(status));
}

template<auto Destroy>
struct Destroyer {
	template<typename T>
	void operator()(T *object) const
	{
		Destroy(object);
	}
};
template<typename T, auto Destroy>
using Handle = std::unique_ptr<T, Destroyer<Destroy>>;

std::array<std::uint8_t, 20> parse_address(const std::string &text)
{
	std::array<std::uint8_t, 20> address{};
	std::istringstream in(text);
	std::string byte;
	std::size_t count = 0;
	while (std::getline(in, byte, ':') && count < address.size())
		address[count++] = static_cast<std::uint8_t>(std::stoul(byte, nullptr, 16));
	if (count != address.size() || in.peek() != EOF)
		throw std::runtime_error("'" + text + "' is not a hardware address of 20 bytes");
	return address;
}

class MaliciousGuest
{
public:
	explicit MaliciousGuest(const Options &options)
	    : options_(options), address_(parse_address(options.address)), random_(options.seed)
	{
		int count = 0;
		Handle<ibv_device *, ibv_free_device_list> devices(
			checked(ibv_get_device_list(&count), "devices"));
		if (count == 0)
			throw std::runtime_error("there is no InfiniBand device");
		context_.reset(checked(ibv_open_device(devices.get()[0]), "open"));
		pd_.reset(checked(ibv_alloc_pd(context_.get()), "protection domain"));
		cq_.reset(
			checked(ibv_create_cq(context_.get(), kDepth, nullptr, nullptr, 0), "CQ"));
		buffer_.resize(kDepth * kLargest);
		mr_.reset(checked(ibv_reg_mr(pd_.get(), buffer_.data(), buffer_.size(), 0),
				  "region"));
		make_queue_pair();
		make_address_handles();
	}

	void run()
	{
		for (unsigned long sent = 0; sent < options_.count; sent++) {
			while (sent - completed_ == kDepth)
				reap();
			send(sent);
		}
		while (completed_ < options_.count)
			reap();
	}

private:
	void make_queue_pair()
	{
		ibv_qp_init_attr init{};
		init.send_cq = init.recv_cq = cq_.get();
		init.qp_type = IBV_QPT_UD;
		init.sq_sig_all = 1;
		init.cap = {.max_send_wr = kDepth,
			    .max_recv_wr = 1,
			    .max_send_sge = 1,
			    .max_recv_sge = 1,
			    .max_inline_data = 0};
		qp_.reset(checked(ibv_create_qp(pd_.get(), &init), "queue pair"));
		ibv_qp_attr attr{};
		attr.qp_state = IBV_QPS_INIT;
		attr.port_num = 1;
		attr.qkey = options_.qkey;
		check(ibv_modify_qp(qp_.get(), &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		      "INIT");
		attr.qp_state = IBV_QPS_RTR;
		check(ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE), "RTR");
		attr.qp_state = IBV_QPS_RTS;
		check(ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
	}

	/*
	 * Creates address handles for the port with and without a GRH, one of them with a GID that
	 * is not its own, and for the multicast group.
	 */
	void make_address_handles()
	{
		ibv_ah_attr attr{};
		attr.dlid = static_cast<std::uint16_t>(options_.lid);
		attr.port_num = 1;
		plain_.reset(checked(ibv_create_ah(pd_.get(), &attr), "address handle"));
		attr.is_global = 1;
		std::memcpy(attr.grh.dgid.raw, address_.data() + 4, 16);
		global_.reset(checked(ibv_create_ah(pd_.get(), &attr), "address handle"));
		attr.grh.dgid.raw[15] ^= 0x55;
		lying_.reset(checked(ibv_create_ah(pd_.get(), &attr), "address handle"));
		/* The broadcast group of the full default partition, RFC 4391 section 4. */
		static constexpr std::uint8_t kGroup[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff,
							    0,    0,    0,    0,    0,    0,
							    0xff, 0xff, 0xff, 0xff};
		std::memcpy(attr.grh.dgid.raw, kGroup, sizeof(kGroup));
		attr.dlid = static_cast<std::uint16_t>(options_.multicast_lid);
		multicast_.reset(checked(ibv_create_ah(pd_.get(), &attr), "address handle"));
	}

	void send(unsigned long number)
	{
		auto *at = buffer_.data() + number % kDepth * kLargest;
		const auto frame = make_frame(random_, kLargest, address_);
		std::copy(frame.begin(), frame.end(), at);
		ibv_sge sge{reinterpret_cast<std::uint64_t>(at),
			    static_cast<std::uint32_t>(frame.size()), mr_->lkey};
		ibv_send_wr wr{}, *bad = nullptr;
		wr.sg_list = &sge;
		wr.num_sge = 1;
		wr.opcode = random_() % 16 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
		ibv_ah *const handles[] = {plain_.get(), global_.get(), lying_.get(),
					   multicast_.get()};
		wr.wr.ud.ah = handles[random_() % std::size(handles)];
		wr.wr.ud.remote_qpn = wr.wr.ud.ah == multicast_.get() ? kMulticastQp : qpn();
		/* Without its top bit, the Q_Key of the request is used (IBA 10.2.5). */
		wr.wr.ud.remote_qkey = random_() % 16
					       ? options_.qkey
					       : static_cast<std::uint32_t>(random_()) & 0x7fffffff;
		check(ibv_post_send(qp_.get(), &wr, &bad), "send");
	}

	std::uint32_t qpn() const
	{
		return std::uint32_t{address_[1]} << 16 | std::uint32_t{address_[2]} << 8 |
		       address_[3];
	}

	void reap()
	{
		ibv_wc wc[kDepth];
		const int count = ibv_poll_cq(cq_.get(), kDepth, wc);
		if (count < 0)
			throw std::runtime_error("poll failed");
		for (int i = 0; i < count; i++)
			if (wc[i].status != IBV_WC_SUCCESS)
				throw std::runtime_error(ibv_wc_status_str(wc[i].status));
		completed_ += static_cast<unsigned long>(count);
	}

	const Options options_;
	const std::array<std::uint8_t, 20> address_;
	Random random_;
	unsigned long completed_ = 0;
	std::vector<std::uint8_t> buffer_;
	Handle<ibv_context, ibv_close_device> context_;
	Handle<ibv_pd, ibv_dealloc_pd> pd_;
	Handle<ibv_cq, ibv_destroy_cq> cq_;
	Handle<ibv_mr, ibv_dereg_mr> mr_;
	Handle<ibv_qp, ibv_destroy_qp> qp_;
	Handle<ibv_ah, ibv_destroy_ah> plain_, global_, lying_, multicast_;
};

} // namespace

int main(int argc, char **argv)
{
	CLI::App app("Sends an IPoIB interface random datagrams, from plain noise to packets that "
		     "are right but for one lie.",
		     "weft-malicious-guest");
	Options options;
	app.add_option("--address", options.address,
		       "the interface's hardware address, as ip link shows it")
		->required();
	app.add_option("--lid", options.lid, "its port's LID")
		->required()
		->check(CLI::Range(1, 0xbfff));
	app.add_option("--multicast-lid", options.multicast_lid, "the LID of its broadcast group")
		->required()
		->check(CLI::Range(0xc000, 0xfffe));
	app.add_option("--qkey", options.qkey, "the Q_Key of its broadcast group")
		->capture_default_str();
	app.add_option("--seed", options.seed, "repeats the same datagrams")->capture_default_str();
	app.add_option("--count", options.count, "how many")->capture_default_str();
	CLI11_PARSE(app, argc, argv);
	try {
		MaliciousGuest(options).run();
	} catch (const std::exception &error) {
		std::cerr << "weft-malicious-guest: " << error.what() << '\n';
		return 1;
	}
	std::cout << options.count << " datagrams sent\n";
	return 0;
}

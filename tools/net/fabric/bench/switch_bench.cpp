// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Measures how fast a switch forwards packets, and how many instructions a packet costs.
//
//   switch_bench rate THREADS
//   switch_bench shared THREADS
//   switch_bench count
//
// With "rate", THREADS threads send packets at the same time, each to a different output port. With
// "shared", they all send to the same output port. The program prints "packets": how many packets
// per second all threads together have sent; and "cpu": the CPU time of a packet in nanoseconds,
// which depends less on other load of the host. With "count", one thread sends packets. The program
// prints how many user-space instructions a packet takes ("instructions"), and how many of them are
// atomic ("atomics"). A packet is sent, forwarded, received and destroyed. Its payload has 64
// bytes, which are not copied.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spdlog/spdlog.h>

#include "net/fabric/tests/test_node.hpp"

namespace
{

using namespace weft;
using namespace weft::fabric;
using fabric::testing::MadNode;
using BenchClock = std::chrono::steady_clock;

constexpr unsigned kMostThreads = 16;
constexpr std::chrono::seconds kTime{1};
constexpr unsigned kWarmUp = 1000;
constexpr unsigned kCounted = 50;

// Receives packets and destroys them at once.
class Drain final : public PortSink
{
public:
	explicit Drain(Port &port) : port_(port)
	{
		port_.attach(*this);
		port_.enable();
	}
	~Drain() override { port_.detach(); }
	Drain(const Drain &) = delete;
	Drain &operator=(const Drain &) = delete;

	void receive(Packet &&packet) override { const Packet received(std::move(packet)); }
	void link_changed(bool) override {}

private:
	Port &port_;
};

// A switch with a subnet manager and pairs of ports: what the first of a pair sends arrives at the
// second.
class Pairs
{
public:
	explicit Pairs(unsigned count)
	    : sw_(fabric_.add_switch({.name = "switch", .ports = 2 * count + 1})),
	      manager_(fabric_.add_port("manager"))
	{
		fabric_.connect(manager_, sw_.port(1));
		mads_ = std::make_unique<MadNode>(manager_);
		for (unsigned i = 0; i < 2 * count; i++) {
			Port &port = fabric_.add_port("node" + std::to_string(i));
			fabric_.connect(port, sw_.port(2 + i));
			ports_.push_back(&port);
			nodes_.push_back(std::make_unique<Drain>(port));
		}
		set(ib::attr_linear_forwarding, 0, [&](ib::Smp &smp) {
			for (unsigned i = 0; i < 2 * count; i++)
				smp.data[lid(i)] = static_cast<std::uint8_t>(2 + i);
		});
		for (unsigned port = 2; port < 2 + 2 * count; port++)
			for (const auto state : {ib::PortState::armed, ib::PortState::active}) {
				const auto answer = mads_->ask({1}, ib::MadMethod::get,
							       ib::attr_port_info, port);
				if (!answer)
					std::abort();
				auto info = ib::smp_attribute<ib::PortInfo>(*answer);
				info.set_state(state);
				info.set_phys_state(ib::PhysState::nop);
				set(ib::attr_port_info, port, [&](ib::Smp &smp) {
					ib::smp_attribute<ib::PortInfo>(smp) = info;
				});
			}
	}

	// Sends from the first port of a pair to the second one of a pair.
	void send(unsigned from, unsigned to)
	{
		packet::Headers headers;
		headers.lrh.slid = lid(2 * from);
		headers.lrh.dlid = lid(2 * to + 1);
		headers.bth.opcode = ib::opcode_ud_send_only;
		headers.bth.pkey = ib::pkey_default_full;
		Payload payload;
		payload.append({bytes_.data(), static_cast<std::uint32_t>(bytes_.size()), nullptr});
		Packet packet = std::move(*Packet::make(headers, std::move(payload)));
		while (ports_[2 * from]->send(packet) == Sent::no_credit)
			std::this_thread::yield();
	}
	std::uint64_t received(unsigned pair) const
	{
		return ports_[2 * pair + 1]->counters().rcv_packets.load();
	}

private:
	static ib::Lid lid(unsigned node) { return static_cast<ib::Lid>(10 + node); }
	void set(std::uint16_t attribute, unsigned modifier,
		 const std::function<void(ib::Smp &)> &fill)
	{
		const auto answer = mads_->ask({1}, ib::MadMethod::set, attribute, modifier, fill);
		if (!answer || MadNode::status(*answer) != 0)
			std::abort();
	}

	const std::vector<std::byte> bytes_ = std::vector<std::byte>(64);
	Fabric fabric_;
	Switch &sw_;
	Port &manager_;
	std::unique_ptr<MadNode> mads_;
	std::vector<Port *> ports_;
	std::vector<std::unique_ptr<Drain>> nodes_;
};

void measure_rate(unsigned threads, bool shared)
{
	Pairs pairs(threads);
	std::atomic<bool> stop = false;
	std::atomic<std::int64_t> cpu_time = 0;
	std::vector<std::thread> senders;
	const auto start = BenchClock::now();
	for (unsigned pair = 0; pair < threads; pair++)
		senders.emplace_back([&, pair] {
			while (!stop.load(std::memory_order_relaxed))
				pairs.send(pair, shared ? 0 : pair);
			timespec time{};
			::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
			cpu_time += time.tv_sec * 1'000'000'000 + time.tv_nsec;
		});
	std::this_thread::sleep_for(kTime);
	stop = true;
	for (std::thread &sender : senders)
		sender.join();
	const std::chrono::duration<double> seconds = BenchClock::now() - start;
	std::uint64_t packets = 0;
	for (unsigned pair = 0; pair < threads; pair++)
		packets += pairs.received(pair);
	std::printf("packets %.0f\ncpu %.1f\n", static_cast<double>(packets) / seconds.count(),
		    static_cast<double>(cpu_time) / static_cast<double>(packets));
}

// Returns true if the instruction at @address of a traced process locks the bus: it has the prefix
// LOCK, or exchanges a register with memory.
bool is_atomic(pid_t process, unsigned long long address)
{
	union {
		long word;
		unsigned char bytes[sizeof(long)];
	} code{::ptrace(PTRACE_PEEKTEXT, process, address, nullptr)};
	const unsigned char *at = code.bytes;
	// Prefixes of operand size and registers.
	for (; at < code.bytes + 4 && (*at == 0x66 || (*at & 0xf0) == 0x40); at++) {
	}
	return *at == 0xf0 || ((*at == 0x86 || *at == 0x87) && at[1] < 0xc0);
}

// A child sends packets between two signals that it sends itself; meanwhile, this process lets it
// execute one instruction at a time.
int count_instructions()
{
	const pid_t child = ::fork();
	if (child < 0)
		throw std::system_error(errno, std::generic_category(), "fork");
	if (child == 0) {
		Pairs pairs(1);
		for (unsigned i = 0; i < kWarmUp; i++)
			pairs.send(0, 0);
		if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0)
			::_exit(1);
		::raise(SIGUSR1);
		for (unsigned i = 0; i < kCounted; i++)
			pairs.send(0, 0);
		::raise(SIGUSR1);
		::_exit(pairs.received(0) == kWarmUp + kCounted ? 0 : 1);
	}
	unsigned long instructions = 0, atomics = 0;
	unsigned long long previous = 0;
	int status = 0;
	const auto stopped_by = [&](int signal) {
		return ::waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
		       WSTOPSIG(status) == signal;
	};
	if (!stopped_by(SIGUSR1))
		return 1;
	do {
		user_regs_struct registers{};
		::ptrace(PTRACE_GETREGS, child, nullptr, &registers);
		// Each iteration of a string instruction is a step.
		if (std::exchange(previous, registers.rip) != registers.rip) {
			instructions++;
			atomics += is_atomic(child, registers.rip);
		}
		::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
	} while (stopped_by(SIGTRAP));
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGUSR1)
		return 1;
	::ptrace(PTRACE_CONT, child, nullptr, nullptr);
	::waitpid(child, &status, 0);
	std::printf("instructions %.2f\natomics %.2f\n",
		    static_cast<double>(instructions) / kCounted,
		    static_cast<double>(atomics) / kCounted);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

} // namespace

int main(int argc, char **argv)
{
	spdlog::set_level(spdlog::level::warn);
	const std::string_view what = argc > 1 ? argv[1] : "";
	if (what == "count" && argc == 2)
		return count_instructions();
	const unsigned long threads = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 0;
	if ((what != "rate" && what != "shared") || threads == 0 || threads > kMostThreads)
		return 2;
	measure_rate(static_cast<unsigned>(threads), what == "shared");
	return 0;
}

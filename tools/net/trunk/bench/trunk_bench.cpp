// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Measures a trunk between two processes on this host, and for comparison a link inside one
// process, or a plain TCP connection between two processes.
//
//   trunk_bench trunk|link|tcp|records
//
// With "trunk" and "link", each end is an endpoint that works like a card: it has a thread of its
// own, sends messages of 64 KiB as a card sends RDMA writes (a packet run of 15 packets, and the
// last packet), and copies the data that it receives. Each process of a trunk has its own fabric,
// as two weftds have. With "tcp", the processes send the same bytes by blocking system calls; with
// "records", they also encrypt them as a trunk does. If there are two processes, each has one CPU.
//
// The program prints "small" and "large", the median time in microseconds that one message of 64
// bytes and of 64 KiB takes in one direction, and "stream", the throughput of 64 KiB messages in
// one direction, in megabytes per second.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <sched.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spdlog/spdlog.h>

#include "base/loop.hpp"
#include "base/mutex.hpp"
#include "net/fabric/fabric.hpp"
#include "net/trunk/record.hpp"
#include "net/trunk/trunk.hpp"

namespace
{

using namespace weft;
using BenchClock = std::chrono::steady_clock;

constexpr std::uint32_t kSmall = 64;
constexpr std::uint32_t kLarge = 64 << 10;
constexpr std::uint32_t kMtu = 4096;
constexpr unsigned kWarmUp = 200;
constexpr unsigned kSmallRounds = 5000;
constexpr unsigned kLargeRounds = 2000;
constexpr unsigned kStreamed = 16000;
// The destination QP selects what the other endpoint does with a message.
constexpr std::uint32_t kEchoQp = 2;
constexpr std::uint32_t kDropQp = 3;
constexpr std::uint32_t kAnswerQp = 4;

double since(BenchClock::time_point start)
{
	return std::chrono::duration<double>(BenchClock::now() - start).count();
}

void print(const char *name, double value)
{
	std::printf("%s %.3f\n", name, value);
	std::fflush(stdout);
}

// Collects the times of round trips, without the first ones.
class RoundTrips
{
public:
	explicit RoundTrips(unsigned rounds) : left_(kWarmUp + rounds), rounds_(rounds) {}

	bool done() const { return left_ == 0; }
	void begin() { start_ = BenchClock::now(); }
	void end()
	{
		if (left_-- <= rounds_)
			times_.push_back(since(start_));
	}
	// Prints the median of one way in microseconds.
	void print_one_way(const char *name)
	{
		const auto middle = times_.begin() + static_cast<std::ptrdiff_t>(times_.size() / 2);
		std::ranges::nth_element(times_, middle);
		print(name, *middle / 2 * 1e6);
	}

private:
	unsigned left_;
	const unsigned rounds_;
	BenchClock::time_point start_;
	std::vector<double> times_;
};

// A card that sends and receives messages on one thread.
class Endpoint final : private fabric::PortSink
{
public:
	Endpoint(fabric::Port &port, const char *name) : port_(port), loop_(name)
	{
		loop_.run(
			[this] { wakeup_ = std::make_unique<Wakeup>(loop_, [this] { work(); }); });
		port_.attach(*this);
		port_.enable();
	}
	~Endpoint() override
	{
		port_.detach();
		loop_.run([this] {
			wakeup_.reset();
			sending_.clear();
		});
	}
	Endpoint(const Endpoint &) = delete;
	Endpoint &operator=(const Endpoint &) = delete;

	void wait_up() const { up_.wait(false); }
	// Sends messages of @bytes; each answer releases the next one.
	void measure_one_way(const char *name, std::uint32_t bytes, unsigned rounds)
	{
		RoundTrips trips(rounds);
		run_until_done([&] {
			trips.begin();
			post(kEchoQp, bytes);
			answered_ = [&, bytes] {
				trips.end();
				if (trips.done())
					return finish();
				trips.begin();
				post(kEchoQp, bytes);
			};
		});
		trips.print_one_way(name);
	}
	// Sends messages that the other endpoint does not answer, and then one that it does.
	void measure_stream(const char *name)
	{
		for (const unsigned count : {kWarmUp, kStreamed}) {
			const auto start = BenchClock::now();
			run_until_done([&] {
				streaming_ = count;
				answered_ = [this] { finish(); };
			});
			if (count == kStreamed)
				print(name, count * double{kLarge} / since(start) / 1e6);
		}
	}

private:
	void receive(fabric::Packet &&packet) override
	{
		{
			const MutexLock lock(mutex_);
			arrived_.push_back(std::move(packet));
		}
		wakeup_->signal();
	}
	void link_changed(bool up) override
	{
		up_ = up;
		up_.notify_all();
	}
	void credit_available(std::uint8_t) override { wakeup_->signal(); }

	// Runs @begin on the endpoint's thread, and waits for finish().
	void run_until_done(const std::function<void()> &begin)
	{
		done_ = false;
		loop_.post([&] {
			begin();
			work();
		});
		done_.wait(false);
	}
	void finish()
	{
		done_ = true;
		done_.notify_all();
	}

	void post(std::uint32_t qp, std::uint32_t bytes)
	{
		packet::Headers headers;
		headers.lrh.slid = 1;
		headers.lrh.dlid = 2;
		headers.bth.pkey = ib::pkey_default_full;
		headers.bth.set_dest_qp(qp);
		const auto set = [&](ib::Operation operation) {
			headers.bth.opcode = ib::opcode(ib::Transport::rc, operation);
		};
		const auto payload = [&](std::uint32_t size) {
			fabric::Payload all;
			all.append({memory_.data(), size, memory_owner_});
			return all;
		};
		headers.reth.length = bytes;
		if (bytes <= kMtu) {
			set(ib::Operation::write_only);
			sending_.push_back(*fabric::Packet::make(headers, payload(bytes)));
			return;
		}
		set(ib::Operation::write_first);
		sending_.push_back(*fabric::Packet::make_run(headers, payload(bytes - kMtu),
							     bytes / kMtu - 1));
		set(ib::Operation::write_last);
		sending_.push_back(*fabric::Packet::make(headers, payload(kMtu)));
	}

	void take(fabric::Packet &packet)
	{
		static_cast<void>(packet.payload().copy_to(
			{destination_.data() + received_, packet.payload().size()}));
		received_ += packet.payload().size();
		if (packet.bth().opcode ==
		    ib::opcode(ib::Transport::rc, ib::Operation::write_first))
			return;
		const std::uint32_t bytes = std::exchange(received_, 0);
		if (packet.bth().dest_qp() == kEchoQp)
			return post(kAnswerQp, bytes);
		if (packet.bth().dest_qp() == kAnswerQp)
			answered_();
	}

	void work()
	{
		std::deque<fabric::Packet> arrived;
		{
			const MutexLock lock(mutex_);
			arrived.swap(arrived_);
		}
		while (!arrived.empty()) {
			take(arrived.front());
			arrived.pop_front();
		}
		for (;;) {
			if (sending_.empty() && streaming_ != 0)
				post(--streaming_ == 0 ? kEchoQp : kDropQp, kLarge);
			if (sending_.empty() ||
			    port_.send(sending_.front()) == fabric::Sent::no_credit)
				return;
			sending_.pop_front();
		}
	}

	fabric::Port &port_;
	std::vector<std::byte> memory_ = std::vector<std::byte>(kLarge, std::byte{0x5a});
	const std::shared_ptr<const void> memory_owner_{memory_.data(), [](const void *) {}};
	std::vector<std::byte> destination_ = std::vector<std::byte>(kLarge);
	std::atomic<bool> up_ = false;
	std::atomic<bool> done_ = false;

	Mutex mutex_;
	std::deque<fabric::Packet> arrived_ WEFT_GUARDED_BY(mutex_);

	// Used on the endpoint's thread.
	std::deque<fabric::Packet> sending_;
	std::function<void()> answered_; // handles the next answer
	unsigned streaming_ = 0;         // messages of the stream that are not in sending_ yet
	std::uint32_t received_ = 0;

	Loop loop_;
	std::unique_ptr<Wakeup> wakeup_;
};

void measure(Endpoint &endpoint)
{
	endpoint.measure_one_way("small", kSmall, kSmallRounds);
	endpoint.measure_one_way("large", kLarge, kLargeRounds);
	endpoint.measure_stream("stream");
}

void measure_link()
{
	fabric::Fabric fabric;
	fabric::Port &a = fabric.add_port("a"), &b = fabric.add_port("b");
	fabric.connect(a, b);
	Endpoint first(a, "card-a"), second(b, "card-b");
	first.wait_up();
	measure(first);
}

// An endpoint and its half of a trunk.
struct Half {
	Half(trunk::Role role, const std::string &address)
	    : link(fabric.connect(near, far)), endpoint(near, "card"),
	      trunk(loop, far, {"bench", role, trunk::Address::parse(address)},
		    trunk::Key(trunk::SecretBytes(trunk::Key::kLeastBytes, std::byte{1})))
	{
	}

	fabric::Fabric fabric;
	fabric::Port &near = fabric.add_port("near");
	fabric::Port &far = fabric.add_port("far");
	fabric::Link &link;
	Endpoint endpoint;
	Loop loop{"trunk"};
	trunk::Trunk trunk;
};

// Restricts the calling process, which has only one thread, to the first or second of its CPUs.
// Otherwise the scheduler often puts both ends on the same one.
void use_one_cpu(unsigned number)
{
	cpu_set_t all, one;
	if (::sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) < 2)
		return;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && number-- == 0)
			CPU_SET(cpu, &one);
	::sched_setaffinity(0, sizeof(one), &one);
}

// Runs @child in another process, which gets a line of text from this one and exits at the end of
// the file.
class OtherProcess
{
public:
	explicit OtherProcess(const std::function<void(const std::string &line, int end)> &child)
	{
		int pipe[2];
		if (::pipe(pipe) != 0)
			throw std::system_error(errno, std::generic_category(), "pipe");
		child_ = ::fork();
		if (child_ < 0)
			throw std::system_error(errno, std::generic_category(), "fork");
		if (child_ == 0) {
			::close(pipe[1]);
			use_one_cpu(1);
			char line[64] = {};
			if (::read(pipe[0], line, sizeof(line) - 1) > 0)
				child(line, pipe[0]);
			::_exit(0);
		}
		use_one_cpu(0);
		::close(pipe[0]);
		pipe_ = pipe[1];
	}
	~OtherProcess()
	{
		::close(pipe_);
		::waitpid(child_, nullptr, 0);
	}
	OtherProcess(const OtherProcess &) = delete;
	OtherProcess &operator=(const OtherProcess &) = delete;

	void tell(const std::string &line) const
	{
		if (::write(pipe_, line.data(), line.size()) < 0)
			throw std::system_error(errno, std::generic_category(), "write");
	}

private:
	pid_t child_;
	int pipe_;
};

void wait_for_end(int fd)
{
	char byte;
	while (::read(fd, &byte, 1) > 0) {
	}
}

void measure_trunk()
{
	// The process is created before any thread.
	const OtherProcess other([](const std::string &address, int end) {
		const Half half(trunk::Role::connects, address);
		wait_for_end(end);
	});
	Half half(trunk::Role::listens, "127.0.0.1:0");
	other.tell(half.trunk.state().address);
	half.endpoint.wait_up();
	measure(half.endpoint);
}

template<class Transfer>
void transfer_all(Transfer &&transfer, int fd, std::span<std::byte> bytes)
{
	for (std::size_t done = 0; done < bytes.size();) {
		const auto some = transfer(fd, bytes.data() + done, bytes.size() - done);
		if (some <= 0)
			::_exit(1);
		done += static_cast<std::size_t>(some);
	}
}

// One end of a plain TCP connection.
class Stream
{
public:
	Stream(int fd, bool encrypts) : fd_(fd), encrypts_(encrypts)
	{
		const int on = 1;
		::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	}
	void send(std::size_t count)
	{
		std::span<std::byte> bytes = std::span(bytes_).first(count);
		if (encrypts_) {
			record_.clear();
			frames_.emplace_back(bytes.begin(), bytes.end());
			sealer_.seal(frames_, record_);
			bytes = record_;
		}
		transfer_all(::write, fd_, bytes);
	}
	void receive(std::size_t count)
	{
		if (!encrypts_)
			return transfer_all(::read, fd_, std::span(bytes_).first(count));
		record_.resize(sizeof(trunk::RecordHeader) + count + trunk::kTagBytes);
		transfer_all(::read, fd_, record_);
		const trunk::RecordHeader header{
			static_cast<std::uint32_t>(count + trunk::kTagBytes)};
		const auto opened =
			opener_.open(header, std::span(record_).subspan(sizeof(header)));
		if (!opened)
			::_exit(1);
		std::ranges::copy(*opened, bytes_.begin());
	}

private:
	const int fd_;
	const bool encrypts_;
	std::vector<std::byte> bytes_ = std::vector<std::byte>(kLarge, std::byte{0x5a});
	trunk::Buffer record_;
	std::deque<trunk::Buffer> frames_;
	trunk::RecordSealer sealer_{trunk::SessionKey()};
	trunk::RecordOpener opener_{trunk::SessionKey()};
};

void measure_tcp(bool encrypts)
{
	const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
	sockaddr_in place{};
	place.sin_family = AF_INET;
	place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	socklen_t size = sizeof(place);
	auto *const address = reinterpret_cast<sockaddr *>(&place);
	if (::bind(listener, address, size) || ::listen(listener, 1) ||
	    ::getsockname(listener, address, &size))
		throw std::system_error(errno, std::generic_category(), "listen");
	const OtherProcess other([&](const std::string &, int) {
		const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
		if (::connect(fd, address, size))
			return;
		Stream stream(fd, encrypts);
		for (unsigned i = 0; i < kWarmUp + kSmallRounds; i++) {
			stream.receive(kSmall);
			stream.send(kSmall);
		}
		for (unsigned i = 0; i < kWarmUp + kLargeRounds; i++) {
			stream.receive(kLarge);
			stream.send(kLarge);
		}
		for (const unsigned count : {kWarmUp, kStreamed}) {
			for (unsigned i = 0; i < count; i++)
				stream.receive(kLarge);
			stream.send(kLarge);
		}
	});
	other.tell("begin");
	Stream stream(::accept(listener, nullptr, nullptr), encrypts);
	const auto measure_one_way = [&](const char *name, std::size_t bytes, unsigned rounds) {
		RoundTrips trips(rounds);
		while (!trips.done()) {
			trips.begin();
			stream.send(bytes);
			stream.receive(bytes);
			trips.end();
		}
		trips.print_one_way(name);
	};
	measure_one_way("small", kSmall, kSmallRounds);
	measure_one_way("large", kLarge, kLargeRounds);
	for (const unsigned count : {kWarmUp, kStreamed}) {
		const auto start = BenchClock::now();
		for (unsigned i = 0; i < count; i++)
			stream.send(kLarge);
		stream.receive(kLarge);
		if (count == kStreamed)
			print("stream", count * double{kLarge} / since(start) / 1e6);
	}
}

} // namespace

int main(int argc, char **argv)
{
	const std::string_view what = argc == 2 ? argv[1] : "";
	spdlog::set_level(spdlog::level::warn);
	if (what == "trunk")
		measure_trunk();
	else if (what == "link")
		measure_link();
	else if (what == "tcp")
		measure_tcp(false);
	else if (what == "records")
		measure_tcp(true);
	else
		return 2;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Measures how long a request to the control socket and a path query to subnet administration wait
// for their answers while the daemon of a large lab is busy with something else:
//
//   control_bench LAB SECONDS
//
// LAB is a lab file whose hosts are endpoints. The program prints, in milliseconds, the median, the
// 99th percentile and the maximum of both times ("control" and "path"): while the daemon is idle
// ("idle"), while the subnet manager sweeps without a pause ("sweeps"), and while other clients
// request fabric.show or complete answers to fabric.sample without a pause ("show", "sample"). It
// also prints the duration of these sweeps and of the answers to these requests.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <spdlog/spdlog.h>

#include <ib/sa.hpp>

#include "base/file_descriptor.hpp"
#include "base/mutex.hpp"
#include "cards/card.hpp"
#include "sm/subnet_manager.hpp"
#include "weftd/control.hpp"
#include "weftd/lab_runtime.hpp"

namespace
{

using namespace weft;
using namespace std::chrono_literals;
using BenchClock = std::chrono::steady_clock;
using Times = std::vector<double>; // in ms

// Time between two measurements.
constexpr auto kPause = 2ms;

double since(BenchClock::time_point start)
{
	return std::chrono::duration<double, std::milli>(BenchClock::now() - start).count();
}

void print(const std::string &name, Times times)
{
	std::ranges::sort(times);
	const auto at = [&](double share) {
		return times.empty() ? 0
				     : times[static_cast<std::size_t>(
					       share * static_cast<double>(times.size() - 1))];
	};
	std::printf("%s-median %.3f\n%s-p99 %.3f\n%s-max %.3f\n%s-count %zu\n", name.c_str(),
		    at(0.5), name.c_str(), at(0.99), name.c_str(), at(1), name.c_str(),
		    times.size());
}

// A client of the control socket.
class Client
{
public:
	explicit Client(const std::filesystem::path &path)
	    : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))
	{
		sockaddr_un address{};
		address.sun_family = AF_UNIX;
		std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
		if (::connect(socket_.get(), reinterpret_cast<const sockaddr *>(&address),
			      sizeof(address)))
			throw std::runtime_error("connect");
	}
	void ask(std::string_view command)
	{
		const std::string line = "{\"command\":\"" + std::string(command) + "\"}\n";
		if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0)
			throw std::runtime_error("send");
		std::vector<char> bytes(1 << 16);
		ssize_t size = 0;
		do
			size = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
		while (size > 0 && bytes[static_cast<std::size_t>(size) - 1] != '\n');
	}

private:
	const FileDescriptor socket_;
};

// A program on an endpoint, which sends path queries.
class Requester final : public fabric::LocalReceiver
{
public:
	bool receive(const fabric::AddressedMad &mad) override
	{
		const MutexLock lock(mutex_);
		answered_ = mad.mad.header.tid;
		changed_.notify_all();
		return true;
	}
	void port_changed() override {}

	// Returns false if there is no answer within 30 s.
	bool ask(fabric::LocalAccess &port, const fabric::PortView &own,
		 const fabric::PortView &other)
	{
		ib::SaMad mad{};
		mad.header.base_version = 1;
		mad.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::subn_adm);
		mad.header.class_version = 2;
		mad.header.method = static_cast<std::uint8_t>(ib::MadMethod::get);
		mad.header.attr_id = ib::attr_path_record;
		mad.header.tid = ++tid_;
		mad.component_mask = ib::component(ib::PathRecord::c_dgid) |
				     ib::component(ib::PathRecord::c_sgid) |
				     ib::component(ib::PathRecord::c_num_path);
		auto &record = *reinterpret_cast<ib::PathRecord *>(mad.data);
		record.dgid = gid_of(other);
		record.sgid = gid_of(own);
		record.reversible_num_path = 1;
		fabric::MadAddress to;
		to.slid = own.port.lid;
		to.dlid = own.port.sm_lid;
		to.vl = 0;
		to.src_qp = 1;
		to.dest_qp = 1;
		to.qkey = ib::qkey_gsi;
		port.send_mad(to, 0, reinterpret_cast<ib::Mad &>(mad));
		MutexLock lock(mutex_);
		return changed_.wait_for(lock, 30s,
					 [&]() WEFT_REQUIRES(mutex_) { return answered_ == tid_; });
	}

private:
	static ib::Gid gid_of(const fabric::PortView &view)
	{
		return ib::Gid::from_parts(view.port.gid_prefix, view.guids[0]);
	}

	Mutex mutex_;
	ConditionVariable changed_;
	std::uint64_t tid_ = 0;
	std::uint64_t answered_ WEFT_GUARDED_BY(mutex_) = 0; // TID of the last answer
};

fabric::PortView view_of(fabric::LocalAccess &port)
{
	std::promise<fabric::PortView> result;
	port.describe([&](fabric::PortView &&view) { result.set_value(std::move(view)); });
	return result.get_future().get();
}

class Bench
{
public:
	Bench(weftd::LabRuntime &runtime, std::filesystem::path socket, BenchClock::duration time)
	    : runtime_(runtime), socket_(std::move(socket)), time_(time)
	{
		port_->set_receiver(requester_);
	}
	~Bench() { port_->set_receiver(nullptr); }

	// Measures both times while another thread calls @other without a pause.
	void measure(const std::string &name, const std::function<void()> &other)
	{
		std::atomic<bool> stop{false};
		Times control, path, others;
		std::thread busy([&] {
			while (other && !stop)
				timed(others, other);
		});
		std::thread asking([&] {
			while (!stop) {
				timed(path, [&] {
					if (!requester_->ask(*port_, own_, other_))
						throw std::runtime_error("no answer to a query");
				});
				std::this_thread::sleep_for(kPause);
			}
		});
		Client client(socket_);
		for (const auto end = BenchClock::now() + time_; BenchClock::now() < end;) {
			timed(control, [&] { client.ask("none"); });
			std::this_thread::sleep_for(kPause);
		}
		stop = true;
		busy.join();
		asking.join();
		print(name + "-control", control);
		print(name + "-path", path);
		if (other)
			print(name, others);
	}

private:
	static void timed(Times &times, const std::function<void()> &what)
	{
		const auto start = BenchClock::now();
		what();
		times.push_back(since(start));
	}

	weftd::LabRuntime &runtime_;
	const std::filesystem::path socket_;
	const BenchClock::duration time_;
	fabric::LocalAccess *const port_ = runtime_.hosts().front()->card->local_access().front();
	const std::shared_ptr<Requester> requester_ = std::make_shared<Requester>();
	const fabric::PortView own_ = view_of(*port_),
			       other_ = view_of(
				       *runtime_.hosts().back()->card->local_access().front());
};

} // namespace

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	spdlog::set_level(spdlog::level::warn);
	const auto text = weftd::read_lab_text(argv[1]);
	const std::chrono::seconds time(std::strtol(argv[2], nullptr, 10));
	std::string directory = std::filesystem::temp_directory_path() / "control_bench-XXXXXX";
	if (!::mkdtemp(directory.data()))
		return 1;
	{
		weftd::LabRuntime runtime(weftd::parse_lab(text.text, text.source, "bench"),
					  directory);
		const auto socket = std::filesystem::path(directory) / "control.sock";
		Loop loop("control");
		weftd::ControlServer server(loop, runtime, socket, [] {});
		auto &manager = *runtime.subnet_manager();
		const auto swept = [&](std::uint64_t before) {
			return manager.wait_for(
				[&](const auto &status) {
					return status.sweeps > before && status.complete &&
					       status.subnet->end_ports.size() >
						       runtime.hosts().size();
				},
				5min);
		};
		if (!swept(0))
			return 1;
		Bench bench(runtime, socket, time);
		Client busy(socket);
		bench.measure("idle", {});
		bench.measure("sweeps", [&] {
			const auto before = manager.status().sweeps;
			manager.request_sweep();
			swept(before);
		});
		bench.measure("show", [&] { busy.ask("fabric.show"); });
		bench.measure("sample", [&] { busy.ask("fabric.sample"); });
	}
	std::filesystem::remove_all(directory);
	return 0;
}

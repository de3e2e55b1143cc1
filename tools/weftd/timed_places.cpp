// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/timed_places.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "base/loop.hpp"
#include "base/reactor.hpp"
#include "virtual_time/round_member.hpp"
#include "virtual_time/round_server.hpp"
#include "virtual_time/scheduler.hpp"
#include "virtual_time/shared_time.hpp"
#include "weftd/control.hpp"
#include "weftd/lab_part.hpp"
#include "weftd/lab_runtime.hpp"
#include "weftd/log.hpp"
#include "weftd/plan_text.hpp"
#include "weftd/scripted_events.hpp"

namespace weft::weftd
{

namespace
{

// Time that the places of other processes get to end, after a signal or an error has ended those of
// this process.
constexpr std::chrono::seconds kOthersEnd{5};

// FNV-1a
std::uint64_t hash_of(std::string_view text, std::uint64_t seed)
{
	std::uint64_t hash = 0xcbf29ce484222325 ^ seed;
	for (const unsigned char c : text)
		hash = (hash ^ c) * 0x100000001b3;
	return hash;
}

FileDescriptor make_event()
{
	FileDescriptor fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (!fd)
		throw std::system_error(errno, std::generic_category(), "eventfd");
	return fd;
}

void signal_event(const FileDescriptor &event)
{
	const std::uint64_t one = 1;
	[[maybe_unused]] const auto written = ::write(event.get(), &one, sizeof(one));
}

// What all places of the lab have in common.
struct Common {
	const TimedPlaces &config;
	std::uint64_t lab = 0; // identifies the lab
	std::shared_ptr<LogHistory> log;
};

// Returns the events without a place, and those of this place.
std::vector<ScriptedEvent> events_of(const Common &common, const std::string &place)
{
	if (common.config.events.empty())
		return {};
	auto events = load_events(common.config.events);
	std::erase_if(events, [&](const ScriptedEvent &event) {
		const auto request = nlohmann::json::parse(event.request);
		const auto at = request.find("place");
		return at != request.end() && *at != place;
	});
	return events;
}

// Throws std::invalid_argument if an event is for a place that does not exist.
void check_events(const Plan &plan, const std::filesystem::path &file)
{
	if (file.empty())
		return;
	for (const ScriptedEvent &event : load_events(file)) {
		const auto request = nlohmann::json::parse(event.request);
		if (const auto place = request.find("place"); place != request.end())
			plan.find(place->is_string() ? place->get<std::string>() : place->dump());
	}
}

// One place. Everything except stop() runs on the thread that calls run().
class TimedPlace final : private TimedTransport
{
public:
	TimedPlace(const Common &common, Lab part, std::string name, std::uint16_t index)
	    : common_(common), part_(std::move(part)), name_(std::move(name)), index_(index),
	      directory_(common.config.directory / name_), events_(events_of(common, name_)),
	      stop_(make_event())
	{
		for (LabHost &host : part_.hosts) {
			host.bus = LabBus::vhost_user;
			if (host.model->pluggable)
				guests_.push_back(host.name);
		}
		part_.bus = LabBus::vhost_user;
		guests_left_ = guests_;
	}

	void stop() { signal_event(stop_); }

	// Returns false if the lab has failed.
	bool run()
	{
		using namespace virtual_time;
		// Places must not draw the same numbers, for example for transactions.
		SharedTime time(hash_of(name_, part_.seed));
		Reactor reactor("weftd " + name_, Reactor::Drive::manual, time);
		Loop loop("weftd", reactor);
		std::optional<Scheduler> scheduler;
		LabRuntime *lab = nullptr;
		Watch on_stop(loop, stop_.get(), Watch::kReadable, [&](unsigned) {
			if (scheduler && !scheduler->awaited().empty())
				spdlog::info("waited for {}", scheduler->awaited());
			scheduler.reset(); // from now on, no guest's time slice is waited for
			leave({true, fmt::format("place {} was stopped", name_)});
			on_stop.want(Watch::kNothing);
		});
		RoundMember member(
			loop, time, index_, common_.lab, common_.config.directory / "rounds.sock",
			{.arrive =
				 [&](std::uint32_t trunk, std::span<const std::byte> frame) {
					 return lab->arrive(trunk, frame);
				 },
			 .finished = [this] { return finished(); },
			 .ended = [this](const RoundEnd &end) { note_end(end); }});
		member_ = &member;
		LabRuntime runtime(part_, directory_, &reactor, nullptr, this);
		lab = &runtime;
		if (!guests_.empty())
			scheduler.emplace(
				loop, time, guests_, directory_ / "time.sock",
				[this](const std::string &reason) { leave({true, reason}); });
		Loop control_loop("control", reactor);
		ControlServer control(
			control_loop, runtime, directory_ / "control.sock",
			[this] { leave({false, "a client requests it"}); }, common_.log);
		std::optional<ScriptedEvents> events;
		if (!events_.empty())
			events.emplace(control_loop, runtime, events_,
				       [this](ScriptedEvents::End how, const std::string &reason) {
					       leave({how == ScriptedEvents::End::failed, reason});
				       });
		spdlog::info("place {}: {} hosts, {} switches, {} links, {} trunks", name_,
			     part_.hosts.size(), part_.switches.size(), part_.links.size(),
			     part_.trunks.size());
		while (!ended_)
			reactor.turn(Clock::time_point::max());
		scheduler.reset(); // members are not notified of the following destruction
		member_ = nullptr;
		return !ended_->failed;
	}

private:
	void send(const LabTrunk::Timed &trunk, std::span<const std::byte> frame) override
	{
		if (member_ && !ended_)
			member_->send(trunk.index, trunk.delay, frame);
	}

	// Ends this place, and thereby the lab when the others have done this round.
	void leave(const virtual_time::RoundEnd &end)
	{
		if (ended_)
			return;
		member_->end(end);
		note_end(end);
	}

	// The first reason counts.
	void note_end(const virtual_time::RoundEnd &end)
	{
		if (ended_)
			return;
		ended_ = end;
		spdlog::log(end.failed ? spdlog::level::err : spdlog::level::info,
			    "place {}: ends: {}", name_, end.reason);
	}

	// Checked once in each round, so the answer depends on the guests' virtual time only.
	bool finished()
	{
		if (common_.config.finished_file.empty())
			return false;
		const auto scripts = common_.config.finished_file.parent_path() / name_;
		std::error_code none;
		std::erase_if(guests_left_, [&](const std::string &guest) {
			return std::filesystem::exists(scripts / guest / "status", none);
		});
		return guests_left_.empty();
	}

	const Common &common_;
	Lab part_;
	const std::string name_;
	const std::uint16_t index_;
	const std::filesystem::path directory_;
	const std::vector<ScriptedEvent> events_;
	const FileDescriptor stop_;
	std::vector<std::string> guests_;
	// Those whose scripts have not ended.
	std::vector<std::string> guests_left_;
	virtual_time::RoundMember *member_ = nullptr;
	std::optional<virtual_time::RoundEnd> ended_;
};

// Waits until all threads have ended; a signal ends the places.
void await(const FileDescriptor &signals, const FileDescriptor &all_ended,
	   const std::function<void()> &stop, const virtual_time::RoundServer *server)
{
	for (;;) {
		pollfd ready[] = {{signals.get(), POLLIN, 0}, {all_ended.get(), POLLIN, 0}};
		if (::poll(ready, std::size(ready), -1) < 0 && errno != EINTR)
			throw std::system_error(errno, std::generic_category(), "poll");
		if (ready[1].revents)
			return;
		signalfd_siginfo signal{};
		if (!ready[0].revents ||
		    ::read(signals.get(), &signal, sizeof(signal)) != sizeof(signal))
			continue;
		spdlog::info("ends on {}", ::strsignal(static_cast<int>(signal.ssi_signo)));
		if (server && !server->awaited().empty())
			spdlog::info("the round of the lab waited for {}", server->awaited());
		stop();
	}
}

// Waits until the places of other processes have ended. They may still be in the round in which
// those of this process have ended, which takes as long as their guests compute. @stopped: a signal
// or an error has ended the places of this process.
void await_others(const virtual_time::RoundServer &server, const FileDescriptor &signals,
		  bool stopped)
{
	constexpr std::chrono::milliseconds step{100};
	while (!stopped && !server.await_end(step)) {
		pollfd ready{signals.get(), POLLIN, 0};
		stopped = ::poll(&ready, 1, 0) > 0;
	}
	if (stopped && !server.await_end(kOthersEnd))
		spdlog::warn("the places of other processes have not ended");
}

} // namespace

int run_timed_places(const Lab &lab, const TimedPlaces &config, std::vector<FileDescriptor> locks,
		     const FileDescriptor &signals, const std::shared_ptr<LogHistory> &log)
{
	const Plan plan = make_plan(lab, config.plan);
	const auto delays = trunk_delays(lab, plan);
	check_events(plan, config.events);
	std::string identity = lab.name + describe(lab, plan, {}).dump();
	for (const auto delay : delays)
		identity += fmt::format(" {}", delay.count());
	const Common common{config, hash_of(identity, lab.seed), log};
	std::vector<std::unique_ptr<TimedPlace>> places;
	bool serves = false;
	for (const std::string &name : config.places) {
		const std::size_t index = plan.find(name);
		serves |= index == 0;
		places.push_back(std::make_unique<TimedPlace>(
			common, part_of(lab, {name, config.plan, "", true}), name,
			static_cast<std::uint16_t>(index)));
	}
	std::optional<virtual_time::RoundServer> server;
	if (serves) {
		std::vector<std::string> names;
		for (const LabPlace &place : plan.places)
			names.push_back(place.name);
		std::vector<virtual_time::RoundTrunk> trunks;
		for (std::size_t i = 0; i < plan.trunks.size(); ++i)
			trunks.push_back(
				{{plan.trunks[i].listens, plan.trunks[i].connects}, delays[i]});
		server.emplace(std::move(names), std::move(trunks), common.lab,
			       config.directory / "rounds.sock");
	}
	std::atomic<bool> stopped = false;
	const auto stop = [&] {
		stopped = true;
		for (const auto &place : places)
			place->stop();
	};
	const FileDescriptor all_ended = make_event();
	std::atomic<std::size_t> running = places.size();
	std::atomic<bool> failed = false;
	// Each loop has a thread, on which it runs only one task: to drive the loops of a place.
	std::vector<std::unique_ptr<Loop>> threads;
	for (const auto &place : places) {
		threads.push_back(std::make_unique<Loop>("place"));
		threads.back()->post([&, &place = *place] {
			try {
				if (!place.run())
					failed = true;
			} catch (const std::exception &reason) {
				spdlog::error("ends: {}", reason.what());
				failed = true;
				stop();
			}
			if (--running == 0)
				signal_event(all_ended);
		});
	}
	await(signals, all_ended, stop, server ? &*server : nullptr);
	threads.clear();
	if (server)
		await_others(*server, signals, stopped);
	locks.clear();
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

} // namespace weft::weftd

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/trunk.hpp"

#include <algorithm>
#include <cerrno>
#include <list>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

#include <sys/socket.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/line_budget.hpp"
#include "base/mutex.hpp"
#include "net/trunk/admission.hpp"
#include "net/trunk/connection.hpp"
#include "net/trunk/ethernet_end.hpp"
#include "net/trunk/trunk_port.hpp"

namespace weft::trunk
{

// Runs on the loop, except for state().
class Trunk::Impl
{
public:
	// Makes the end, which calls the given function when it has something to do.
	using MakeEnd = std::function<std::unique_ptr<End>(std::function<void()> wake)>;
	Impl(Loop &loop, Kind kind, const MakeEnd &make_end, Config config, Key key);
	~Impl();

	State state() const
	{
		const MutexLock lock(mutex_);
		return state_;
	}

private:
	using Connections = std::list<Connection>;

	void accept();
	void connect();
	void start(FileDescriptor socket, const Address &peer);
	Reason authenticated(Connections::iterator connection);
	void closed(Connections::iterator connection, const std::string &why, bool violation);
	void failed(const std::string &what);
	void retry_later();
	Connections::iterator most_crowded();
	void refused(const std::string &peer, const std::string &why, bool violation);
	void log_failure(LineBudget &budget, const std::string &peer, const std::string &why);
	template<class Change>
	void change(Change &&change_of)
	{
		const MutexLock lock(mutex_);
		change_of(state_);
	}

	Loop &loop_;
	const Kind kind_;
	const Config config_;
	const Key key_;
	Wakeup wakeup_;
	const std::unique_ptr<End> end_;
	// Connections in the handshake, oldest first, and the authenticated one.
	Connections connections_;
	Connection *current_ = nullptr;
	FileDescriptor listener_;
	std::optional<Watch> listening_;
	Admission admission_;
	// At the listening end, the timer for the end of admission_'s window. At the other end, the
	// timer for the next connection attempt.
	Timer timer_;
	std::chrono::milliseconds retry_ = kFirstRetry;
	Clock::time_point connected_at_{};
	// Separate limits, so that clients without the key cannot suppress other lines.
	LineBudget log_budget_, refusals_log_budget_;

	mutable Mutex mutex_;
	State state_ WEFT_GUARDED_BY(mutex_);
};

Trunk::Impl::Impl(Loop &loop, Kind kind, const MakeEnd &make_end, Config config, Key key)
    : loop_(loop), kind_(kind), config_(std::move(config)), key_(std::move(key)),
      wakeup_(loop,
	      [this] {
		      if (current_)
			      current_->resume();
	      }),
      end_(make_end([this] { wakeup_.signal(); })), timer_(loop, [this] {
	      if (config_.role == Role::connects)
		      return connect();
	      admission_.begin_window();
	      listening_->want(Watch::kReadable);
      })
{
	change([&](State &state) {
		state.address = config_.address.text();
		state.last_reason = "it has not been connected yet";
	});
	if (config_.role == Role::connects) {
		connect();
	} else {
		listener_ = config_.address.listen(kBacklog);
		change([&](State &state) {
			state.address = Address::local(listener_.get()).text();
		});
		spdlog::info("trunk {}: listens at {}", config_.name, state().address);
		listening_.emplace(loop, listener_.get(), Watch::kReadable,
				   [this](unsigned) { accept(); });
	}
	// This must come last, because the constructor may throw before.
	loop_.contain([this](const std::string &what) { failed(what); });
}

Trunk::Impl::~Impl()
{
	loop_.contain({});
	for (Connection &connection : connections_)
		connection.say_goodbye(Reason::removed);
}

void Trunk::Impl::accept()
{
	FileDescriptor socket(
		::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
	const int error = errno;
	if (!timer_.armed())
		timer_.arm(kAdmissionWindow);
	if (!socket) {
		// If there is no descriptor or memory for the connection, it stays in the queue.
		if (error != EAGAIN && error != EINTR && error != ECONNABORTED)
			listening_->want(Watch::kNothing);
		return;
	}
	try {
		const Address peer = Address::peer(socket.get());
		if (admission_.admit(peer.network()))
			start(std::move(socket), peer);
		else
			refused(peer.text(), "it opens too many connections", false);
	} catch (const std::exception &reason) {
		// For example, there is not enough memory.
		refused("a client", reason.what(), false);
	}
	if (admission_.full())
		listening_->want(Watch::kNothing);
}

void Trunk::Impl::connect()
{
	try {
		start(config_.address.connect(), config_.address);
	} catch (const std::exception &reason) {
		log_failure(log_budget_, config_.address.text(), reason.what());
		retry_later();
	}
}

void Trunk::Impl::retry_later()
{
	timer_.arm(retry_);
	retry_ = std::min(2 * retry_, kLastRetry);
}

// Returns the oldest handshake of the network that has the most handshakes, so that a client does
// not displace those of other clients.
Trunk::Impl::Connections::iterator Trunk::Impl::most_crowded()
{
	std::map<std::string_view, unsigned> counts;
	for (const Connection &each : connections_)
		if (&each != current_)
			counts[each.network()]++;
	unsigned most = 0;
	for (const auto &[network, count] : counts)
		most = std::max(most, count);
	return std::ranges::find_if(connections_, [&](const Connection &each) {
		return &each != current_ && counts.at(each.network()) == most;
	});
}

void Trunk::Impl::start(FileDescriptor socket, const Address &peer)
{
	if (connections_.size() - (current_ ? 1 : 0) >= kMostHandshakes)
		closed(most_crowded(), "too many connections are in the handshake", false);
	// The handlers need the iterator, which only exists after the connection.
	const auto self = std::make_shared<Connections::iterator>();
	connections_.emplace_back(
		loop_, std::move(socket), peer, kind_, config_.role, config_.name, key_,
		Connection::Handlers{
			.authenticated = [this, self] { return authenticated(*self); },
			.frame = [this](const Frame &frame) { return end_->take(frame); },
			.full = [this] { return end_->full(); },
			.fill =
				[this, self](std::deque<Buffer> &out, std::size_t room) {
					return &**self == current_ ? end_->serve(out, room)
								   : std::size_t{0};
				},
			.closed = [this, self](const std::string &why,
					       bool violation) { closed(*self, why, violation); }});
	*self = std::prev(connections_.end());
}

Reason Trunk::Impl::authenticated(Connections::iterator connection)
{
	if (current_) {
		if (loop_.now() - current_->last_received() < kReplaceTime)
			return Reason::in_use;
		current_->say_goodbye(Reason::replaced);
		const auto old = std::ranges::find_if(
			connections_, [this](const auto &each) { return &each == current_; });
		closed(old, std::string(text_of(Reason::replaced)), false);
	}
	current_ = &*connection;
	connected_at_ = loop_.now();
	const std::string peer = connection->peer();
	change([&](State &state) {
		state.connected = true;
		state.peer = peer;
		state.last_reason.clear();
		state.connections++;
	});
	if (const auto taken = log_budget_.take(loop_.now()); taken.allowed)
		spdlog::info("trunk {}: connected to {}{}", config_.name, peer,
			     withheld_text(taken.withheld));
	end_->connected();
	return Reason::none;
}

void Trunk::Impl::closed(Connections::iterator connection, const std::string &why, bool violation)
{
	const std::string peer = connection->peer();
	const bool was_current = &*connection == current_;
	if (was_current) {
		current_ = nullptr;
		// The interval must also increase if a peer closes each connection at once.
		if (loop_.now() - connected_at_ > kLastRetry)
			retry_ = kFirstRetry;
	}
	// Any client can connect to the listening end, but the other end connects only to the
	// configured address.
	const bool from_client = !was_current && config_.role == Role::listens;
	if (from_client) {
		connections_.erase(connection);
		return refused(peer, why, violation);
	}
	change([&](State &state) {
		state.last_reason = why;
		state.violations += violation;
		state.refused += !was_current;
		if (was_current) {
			state.connected = false;
			state.peer.clear();
		}
	});
	// Notify the end after the state was set, so that the reason is available when the link
	// goes down.
	if (was_current)
		end_->disconnected();
	connections_.erase(connection);
	log_failure(log_budget_, peer, why);
	if (config_.role == Role::connects && connections_.empty())
		retry_later();
}

// Handles a client that has not proved that it has the key. The displayed state of the trunk does
// not change.
void Trunk::Impl::refused(const std::string &peer, const std::string &why, bool violation)
{
	change([&](State &state) {
		state.last_refusal = fmt::format("{}: {}", peer, why);
		state.violations += violation;
		state.refused++;
	});
	log_failure(refusals_log_budget_, peer, why);
}

// Restarts the trunk after a handler of the loop has thrown an exception, because of a lack of
// memory or a defect here or in the fabric. All state that may be inconsistent belongs to
// connections, so the trunk restarts without any connection.
void Trunk::Impl::failed(const std::string &what)
{
	const std::string why = fmt::format("internal error: {}", what);
	current_ = nullptr;
	change([&](State &state) {
		state.last_reason = why;
		state.connected = false;
		state.peer.clear();
	});
	end_->disconnected();
	connections_.clear();
	if (const auto taken = log_budget_.take(loop_.now()); taken.allowed)
		spdlog::error("trunk {}: {}; the connection is closed{}", config_.name, why,
			      withheld_text(taken.withheld));
	if (config_.role == Role::connects)
		return retry_later();
	// The exception may have come from the handler that resumes accepting.
	admission_.begin_window();
	listening_->want(Watch::kReadable);
}

void Trunk::Impl::log_failure(LineBudget &budget, const std::string &peer, const std::string &why)
{
	if (const auto taken = budget.take(loop_.now()); taken.allowed)
		spdlog::warn("trunk {}: {}: {}{}", config_.name, peer, why,
			     withheld_text(taken.withheld));
}

Trunk::Trunk(Loop &loop, fabric::Port &port, Config config, Key key)
    : loop_(loop), role_(config.role)
{
	loop.run([&] {
		impl_ = std::make_unique<Impl>(
			loop, Kind::infiniband,
			[&](std::function<void()> wake) {
				return std::make_unique<TrunkPort>(port, std::move(wake));
			},
			std::move(config), std::move(key));
	});
}

Trunk::Trunk(Loop &loop, std::shared_ptr<ethernet::Channel> channel, Config config, Key key)
    : loop_(loop), role_(config.role)
{
	loop.run([&] {
		impl_ = std::make_unique<Impl>(
			loop, Kind::ethernet,
			[&](std::function<void()> wake) {
				return std::make_unique<EthernetEnd>(loop, std::move(channel),
								     std::move(wake));
			},
			std::move(config), std::move(key));
	});
}

Trunk::~Trunk()
{
	loop_.run([this] { impl_.reset(); });
}

State Trunk::state() const
{
	return impl_->state();
}

} // namespace weft::trunk

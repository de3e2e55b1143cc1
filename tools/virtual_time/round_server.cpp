// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "virtual_time/round_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <optional>
#include <utility>

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "base/acceptor.hpp"
#include "base/loop.hpp"
#include "base/mutex.hpp"
#include "base/unix_listener.hpp"

namespace weft::virtual_time
{

class RoundServer::Impl
{
public:
	Impl(std::vector<std::string> places, std::vector<RoundTrunk> trunks, std::uint64_t lab,
	     const std::filesystem::path &socket)
	    : rounds_(std::move(places), std::move(trunks)), lab_(lab), loop_("rounds")
	{
		update();
		loop_.run([&] {
			acceptor_.emplace(loop_, UnixListener(socket),
					  [this](FileDescriptor fd) { welcome(std::move(fd)); });
		});
	}

	~Impl()
	{
		loop_.run([this] {
			acceptor_.reset();
			peers_.clear();
		});
	}

	bool await_end(std::chrono::milliseconds limit) const
	{
		MutexLock lock(mutex_);
		return changed_.wait_for(lock, limit,
					 [this]() WEFT_REQUIRES(mutex_) { return gone_; });
	}

	std::string awaited() const
	{
		const MutexLock lock(mutex_);
		return awaited_;
	}

	std::uint64_t rounds() const
	{
		const MutexLock lock(mutex_);
		return round_;
	}

private:
	struct Peer {
		explicit Peer(FileDescriptor fd) : socket(std::move(fd)) {}

		const FileDescriptor socket;
		std::optional<Watch> watch; // destroyed before the socket is closed
		RoundFrameReader reader;
		RoundBuffer out;
		std::size_t sent = 0; // bytes of @out
		std::optional<std::size_t> place;
	};
	using Peers = std::list<Peer>;

	void update()
	{
		const MutexLock lock(mutex_);
		awaited_ = ended_ ? "" : rounds_.awaited();
		round_ = rounds_.round();
		gone_ = ended_ && peers_.empty();
		changed_.notify_all();
	}

	void welcome(FileDescriptor fd)
	{
		const auto unidentified =
			std::ranges::count_if(peers_, [](const Peer &each) { return !each.place; });
		if (static_cast<std::size_t>(unidentified) >= kMostUnidentified || ended_)
			return;
		const auto peer = peers_.emplace(peers_.end(), std::move(fd));
		peer->watch.emplace(loop_, peer->socket.get(), Watch::kReadable,
				    [this, peer](unsigned ready) { serve(peer, ready); });
	}

	void serve(Peers::iterator peer, unsigned ready)
	{
		if ((ready & Watch::kWritable) != 0)
			flush(*peer);
		if ((ready & Watch::kReadable) == 0)
			return;
		const auto got =
			::recv(peer->socket.get(), input_.data(), input_.size(), MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0)
			return remove(peer, "has left the lab");
		if (ended_)
			return; // the place may still be in its round
		peer->reader.add(std::span(input_).first(static_cast<std::size_t>(got)));
		while (const auto frame = peer->reader.next()) {
			const std::string wrong = take(*peer, *frame);
			if (!wrong.empty())
				return remove(peer,
					      "breaks the protocol of the rounds (" + wrong + ")");
			if (ended_)
				return;
		}
		if (peer->reader.malformed())
			return remove(peer,
				      "breaks the protocol of the rounds (a malformed frame)");
	}

	std::string take(Peer &peer, const RoundFrame &frame)
	{
		if (!peer.place)
			return greet(peer, frame);
		std::string wrong;
		switch (frame.type) {
		case RoundFrameType::packet: {
			auto packet = read_round_packet(frame.body);
			return packet ? rounds_.take_packet(*peer.place, std::move(*packet))
				      : "a malformed packet";
		}
		case RoundFrameType::report: {
			const auto report = read_report(frame.body);
			wrong = report ? rounds_.take_report(*peer.place, *report)
				       : "a malformed report";
			break;
		}
		case RoundFrameType::end: {
			auto end = read_end(frame.body);
			wrong = end ? rounds_.take_end(*peer.place, std::move(*end))
				    : "a malformed end";
			break;
		}
		default:
			return "an unexpected frame";
		}
		if (wrong.empty())
			advance();
		return wrong;
	}

	std::string greet(Peer &peer, const RoundFrame &frame)
	{
		const auto hello =
			frame.type == RoundFrameType::hello ? read_hello(frame.body) : std::nullopt;
		if (!hello)
			return "its first frame is not a hello";
		if (hello->version != kRoundVersion)
			return "it speaks another version of the protocol";
		if (hello->lab != lab_)
			return "it belongs to another lab";
		if (hello->place >= rounds_.places())
			return "there is no such place";
		const std::string wrong = rounds_.join(hello->place);
		if (wrong.empty())
			peer.place = hello->place;
		update();
		return wrong;
	}

	void advance()
	{
		if (const auto end = rounds_.end())
			return finish(*end);
		const auto grant = rounds_.advance();
		update();
		if (!grant)
			return;
		for (Peer &each : peers_) {
			if (!each.place || rounds_.ended(*each.place))
				continue;
			for (const RoundPacket &packet : grant->packets[*each.place])
				append_packet(each.out, packet);
			append_grant(each.out, grant->round, grant->limit);
			flush(each);
		}
	}

	// Ends the lab at all places that have not ended.
	void finish(const RoundEnd &end)
	{
		if (std::exchange(ended_, true))
			return;
		spdlog::info("rounds: the lab ends after {} rounds: {}", rounds_.round(),
			     end.reason);
		acceptor_.reset();
		std::erase_if(peers_, [](const Peer &each) { return !each.place; });
		for (Peer &each : peers_)
			if (!rounds_.ended(*each.place)) {
				append_end(each.out, end);
				flush(each);
			}
		update();
	}

	// A failure is noticed when the descriptor is read.
	void flush(Peer &peer)
	{
		while (peer.sent < peer.out.size()) {
			const auto sent =
				::send(peer.socket.get(), peer.out.data() + peer.sent,
				       peer.out.size() - peer.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (sent < 0)
				break;
			peer.sent += static_cast<std::size_t>(sent);
		}
		const bool done = peer.sent == peer.out.size();
		if (done) {
			peer.out.clear();
			peer.sent = 0;
		}
		peer.watch->want(done ? Watch::kReadable : Watch::kReadable | Watch::kWritable);
	}

	// Disconnects a peer. If it is a place that has not ended, the lab ends.
	void remove(Peers::iterator peer, const std::string &how)
	{
		const auto place = peer->place;
		peers_.erase(peer);
		if (!place) {
			if (!ended_ && logged_++ < kMostLogged)
				spdlog::warn("rounds: a client {}", how);
		} else if (!rounds_.ended(*place)) {
			finish({true, "place " + rounds_.name(*place) + " " + how +
					      ", in the round until " +
					      seconds_text(rounds_.limit()) + " s"});
		}
		update();
	}

	static constexpr unsigned kMostLogged = 8;

	virtual_time::Rounds rounds_;
	const std::uint64_t lab_;
	Loop loop_;
	// Used on the loop.
	std::optional<Acceptor> acceptor_;
	Peers peers_;
	std::array<std::byte, 64 << 10> input_;
	unsigned logged_ = 0;
	bool ended_ = false;

	mutable Mutex mutex_;
	mutable ConditionVariable changed_;
	std::string awaited_ WEFT_GUARDED_BY(mutex_);
	std::uint64_t round_ WEFT_GUARDED_BY(mutex_) = 0;
	bool gone_ WEFT_GUARDED_BY(mutex_) = false;
};

RoundServer::RoundServer(std::vector<std::string> places, std::vector<RoundTrunk> trunks,
			 std::uint64_t lab, const std::filesystem::path &socket)
    : impl_(std::make_unique<Impl>(std::move(places), std::move(trunks), lab, socket))
{
}

RoundServer::~RoundServer() = default;

bool RoundServer::await_end(std::chrono::milliseconds limit) const
{
	return impl_->await_end(limit);
}

std::string RoundServer::awaited() const
{
	return impl_->awaited();
}

std::uint64_t RoundServer::rounds() const
{
	return impl_->rounds();
}

} // namespace weft::virtual_time

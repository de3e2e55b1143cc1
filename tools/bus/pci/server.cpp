// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/pci/server.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/acceptor.hpp"
#include "base/loop.hpp"
#include "bus/pci/connection.hpp"
#include "bus/pci/endpoint.hpp"
#include "base/rated_sink.hpp"

namespace weft::pci
{

namespace
{

// Delay before another attempt to plug in a card that has failed: the process may have more
// resources by then.
constexpr auto kPause = std::chrono::milliseconds(100);

std::shared_ptr<spdlog::logger> make_log(Loop &loop, const std::string &name)
{
	const auto all = spdlog::default_logger();
	auto log = std::make_shared<spdlog::logger>(
		name, std::make_shared<RatedSink>(loop.environment(), name, all->sinks()));
	log->set_level(all->level());
	log->flush_on(all->flush_level());
	return log;
}

} // namespace

class Server::Impl
{
public:
	Impl(Loop &loop, PciDevice &device, const std::string &name, MakeProtocol make_protocol,
	     std::size_t most_mappings)
	    : loop_(loop), device_(device), name_(name), make_protocol_(std::move(make_protocol)),
	      most_mappings_(most_mappings), log_(make_log(loop, name)),
	      retry_(std::in_place, loop, [this] { plug_again(); })
	{
		plug();
		loop_.contain([this](const std::string &what) { failed(what); });
	}

	void listen(UnixListener listener)
	{
		log_->info("waits for a guest at {}", listener.path().string());
		acceptor_.emplace(loop_, std::move(listener),
				  [this](FileDescriptor socket) { serve(std::move(socket)); });
	}

	void serve(FileDescriptor socket)
	{
		const int fd = socket.get();
		// Random, because the keeper has connections of earlier processes as well.
		std::string id =
			keeper_ ? fmt::format("{:016x}", loop_.environment().random()) : "";
		if (begin(std::move(socket), std::move(id)) && keeper_)
			keeper_->connected(name_, id_, fd);
	}

	// The keeper still has the messages of the other process. An error of this card must not
	// reach the caller, who adopts the clients of other cards as well.
	void adopt(FileDescriptor socket, std::vector<KeptMessage> setup, std::string id)
	{
		try {
			if (begin(std::move(socket), id))
				repeat(setup);
			else
				refuse_adopted(id);
		} catch (const std::exception &error) {
			// If the client is connected already, failed() notifies the keeper.
			if (!connection_)
				refuse_adopted(id);
			failed(error.what());
		}
	}

	void keep(Keeper &keeper) { keeper_ = &keeper; }

	bool connected() const { return connected_.load(std::memory_order_relaxed); }

	void shut_down()
	{
		loop_.contain({});
		retry_.reset();
		acceptor_.reset();
		unplug();
	}

private:
	// Returns true if a client is served over @socket from now on. @id: see pci::Keeper.
	bool begin(FileDescriptor socket, std::string id)
	{
		if (!endpoint_)
			return false;
		// A new connection may be noticed before the end of the previous one.
		if (connection_ && connection_->hung_up())
			connection_->drop("it closed the connection");
		if (connection_) {
			log_->warn("another client refused: the card is in use");
			return false;
		}
		try {
			endpoint_->admit();
		} catch (const std::system_error &error) {
			log_->warn("a client refused: {}", error.what());
			return false;
		}
		log_->info("client connected");
		session_ = protocol_->begin(*endpoint_, log_);
		Connection::Callbacks callbacks;
		callbacks.message = [this](Message &message) { return handle(message); };
		callbacks.closed = [this](const std::string &reason) { client_gone(reason); };
		connection_ = std::make_shared<Connection>(
			loop_, std::move(socket), protocol_->framing(), std::move(callbacks));
		id_ = std::move(id);
		connected_.store(true, std::memory_order_relaxed);
		connection_->start();
		watch_memory();
		return true;
	}

	// Notifies the keeper, which would otherwise keep the connection open, and the client would
	// wait for answers. Without an ID, the keeper could mistake another client, which is
	// connected, for the refused one.
	void refuse_adopted(const std::string &id)
	{
		if (keeper_ && !(id.empty() && connection_))
			keeper_->gone(name_, id);
	}

	// Handles the messages to which another process has already replied, and sends no replies.
	void repeat(std::vector<KeptMessage> &setup)
	{
		const std::size_t header_size = protocol_->framing().header_size;
		for (KeptMessage &kept : setup) {
			const std::span<const std::byte> bytes(kept.bytes);
			if (bytes.size() < header_size)
				continue;
			Message message{bytes.first(header_size), bytes.subspan(header_size),
					std::move(kept.fds)};
			session_->handle(message);
			if (session_->ended())
				return connection_->drop(session_->end_reason());
		}
	}

	// Exceptions of a card's thread are handled here. The device may be in any state, so it is
	// unplugged and plugged in again, which removes the card from its guest; the next guest
	// finds it in the state after power-on. Other cards are not affected.
	void failed(const std::string &what)
	{
		log_->error("the card has failed ({}); its guest loses it", what);
		plug_again();
	}

	// Plugs the device in again, and retries until that succeeds. Meanwhile, guests that
	// connect are disconnected.
	void plug_again()
	{
		try {
			// If the keeper did not close its duplicate, the connection would stay open
			// and the guest would wait for answers.
			if (keeper_ && connection_)
				keeper_->gone(name_, id_);
			unplug();
			plug();
		} catch (const std::exception &again) {
			log_->critical("the card cannot be had now ({})", again.what());
			retry_->arm(kPause);
		}
	}

	void plug()
	{
		protocol_ = make_protocol_(loop_, device_.description());
		endpoint_.emplace(loop_, device_, protocol_->interrupts(), log_, most_mappings_);
	}

	void unplug()
	{
		unwatch_memory();
		if (connection_)
			connection_->close();
		connection_.reset();
		session_.reset();
		connected_.store(false, std::memory_order_relaxed);
		endpoint_.reset();
		protocol_.reset();
	}

	Connection::Reply handle(Message &message)
	{
		if (keeper_ && protocol_->is_setup(message))
			keeper_->received(name_, message);
		const Connection::Reply reply{session_->handle(message),
					      session_->reply_descriptor()};
		// This may destroy the session. It has no reply then.
		if (session_->ended())
			connection_->drop(session_->end_reason());
		return reply;
	}

	// Any thread may detect that a page of the client's shared memory is lost.
	void watch_memory()
	{
		const auto &lender = endpoint_->lender();
		// The lender owns the descriptor; this object only waits for it.
		memory_lost_.emplace(loop_, lender->event(), Watch::kReadable, [this](unsigned) {
			connection_->drop("shared memory is not accessible any more");
		});
	}

	void unwatch_memory() { memory_lost_.reset(); }

	void client_gone(const std::string &reason)
	{
		log_->info("client disconnected: {}", reason);
		if (keeper_)
			keeper_->gone(name_, id_);
		unwatch_memory();
		connection_.reset();
		endpoint_->release();
		session_.reset();
		connected_.store(false, std::memory_order_relaxed);
	}

	Loop &loop_;
	PciDevice &device_;
	const std::string name_;
	Keeper *keeper_ = nullptr;
	const MakeProtocol make_protocol_;
	const std::size_t most_mappings_;
	std::shared_ptr<spdlog::logger> log_;
	std::optional<Timer> retry_; // exists until the server is destroyed
	std::unique_ptr<Protocol> protocol_;
	std::optional<Endpoint> endpoint_;
	std::optional<Acceptor> acceptor_;
	std::unique_ptr<Session> session_; // the session of the present connection
	std::shared_ptr<Connection> connection_;
	std::string id_;                     // ID of the connection, for the keeper
	std::atomic<bool> connected_{false}; // true while there is a client; read by other threads
	std::optional<Watch> memory_lost_;   // while there is a client
};

Server::Server(Loop &loop, PciDevice &device, const std::string &name, MakeProtocol make_protocol,
	       std::size_t most_mappings)
    : loop_(loop)
{
	loop_.run([&] {
		impl_ = std::make_unique<Impl>(loop, device, name, std::move(make_protocol),
					       most_mappings);
	});
}

Server::~Server()
{
	loop_.run([this] { impl_->shut_down(); });
}

void Server::listen(const std::filesystem::path &path)
{
	UnixListener listener(path, UnixListener::Access::directory_group);
	loop_.run([&] { impl_->listen(std::move(listener)); });
}

void Server::serve(FileDescriptor socket)
{
	loop_.run([&] { impl_->serve(std::move(socket)); });
}

void Server::keep(Keeper &keeper)
{
	loop_.run([&] { impl_->keep(keeper); });
}

void Server::adopt(FileDescriptor socket, std::vector<KeptMessage> setup, std::string id)
{
	loop_.run([&] { impl_->adopt(std::move(socket), std::move(setup), std::move(id)); });
}

bool Server::connected() const
{
	return impl_->connected();
}

} // namespace weft::pci

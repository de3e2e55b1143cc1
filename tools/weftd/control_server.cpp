// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <istream>
#include <list>
#include <optional>

#include <asio/io_context.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read_until.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <spdlog/spdlog.h>

#include "base/acceptor.hpp"
#include "weftd/control.hpp"

namespace weft::weftd
{

namespace
{

// Beyond this a line is not a request.
constexpr std::size_t kLongestLine = 64 << 10;

// Clients at a time; one more is turned away.
constexpr std::size_t kMostClients = 64;

} // namespace

class ControlServer::Impl : public std::enable_shared_from_this<Impl>
{
public:
	Impl(Loop &loop, World &world, std::function<void()> shut_down)
	    : loop_(loop), world_(world), shut_down_(std::move(shut_down))
	{
	}

	void listen(UnixListener listener)
	{
		acceptor_.emplace(loop_, std::move(listener),
				  [this](FileDescriptor socket) { serve(std::move(socket)); });
	}

	void shut_down()
	{
		acceptor_.reset();
		for (const auto &client : clients_)
			client->socket.close();
		clients_.clear();
	}

private:
	// One request is answered before the next is read, so a client that does not read its
	// answers only holds up itself.
	struct Client {
		Client(Loop &loop, int fd, World &world, const std::function<void()> &shut_down)
		    : socket(loop.io(), asio::local::stream_protocol(), fd),
		      session(world, shut_down)
		{
		}
		asio::local::stream_protocol::socket socket;
		asio::streambuf input{kLongestLine};
		std::string output;
		ControlSession session;
	};

	void serve(FileDescriptor fd)
	{
		if (clients_.size() >= kMostClients) {
			spdlog::warn("control: more than {} clients, one turned away",
				     kMostClients);
			return;
		}
		clients_.push_back(std::make_shared<Client>(loop_, fd.get(), world_, shut_down_));
		fd.release();
		read(clients_.back());
	}

	void read(const std::shared_ptr<Client> &client)
	{
		asio::async_read_until(
			client->socket, client->input, '\n',
			[self = shared_from_this(), client](std::error_code error, std::size_t) {
				if (error)
					return self->drop(client);
				std::string line;
				std::istream stream(&client->input);
				std::getline(stream, line);
				client->output = client->session.handle(line) + '\n';
				self->write(client);
			});
	}

	void write(const std::shared_ptr<Client> &client)
	{
		asio::async_write(
			client->socket, asio::buffer(client->output),
			[self = shared_from_this(), client](std::error_code error, std::size_t) {
				if (error)
					return self->drop(client);
				self->read(client);
			});
	}

	// With the client's session go the captures that it began.
	void drop(const std::shared_ptr<Client> &client) { clients_.remove(client); }

	Loop &loop_;
	World &world_;
	std::function<void()> shut_down_;
	std::optional<Acceptor> acceptor_;
	std::list<std::shared_ptr<Client>> clients_;
};

ControlServer::ControlServer(Loop &loop, World &world, const std::filesystem::path &path,
			     std::function<void()> shut_down)
    : loop_(loop)
{
	loop_.run([&] {
		impl_ = std::make_shared<Impl>(loop, world, std::move(shut_down));
		impl_->listen(UnixListener(path));
	});
}

ControlServer::~ControlServer()
{
	loop_.run([this] { impl_->shut_down(); });
}

} // namespace weft::weftd

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "attach/server.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <string_view>

#include <sys/socket.h>

#include <spdlog/spdlog.h>

#include "attach/message.hpp"
#include "attach/node_port.hpp"
#include "attach/opened_port.hpp"
#include "base/acceptor.hpp"

namespace weft::attach
{

namespace
{

// Number of messages that are read from or written to one connection before others are served.
constexpr unsigned kSlice = 64;

// Returns the rate in Gb/s, as the kernel reports it, from the encodings of PortInfo.
std::uint32_t rate_of(const ib::PortInfo &port)
{
	// Rate of one lane, in units of 0.1 Gb/s.
	unsigned lane = 25;
	switch (port.speed_ext_active()) {
	case 1:
		lane = 140;
		break;
	case 2:
		lane = 250;
		break;
	default:
		lane = port.speed_active() == ib::speed_qdr   ? 100
		       : port.speed_active() == ib::speed_ddr ? 50
							      : 25;
	}
	const unsigned lanes = port.link_width_active == ib::width_1x    ? 1
			       : port.link_width_active == ib::width_4x  ? 4
			       : port.link_width_active == ib::width_8x  ? 8
			       : port.link_width_active == ib::width_12x ? 12
									 : 0;
	return lanes * lane / 10;
}

PortDescription description_of(std::uint32_t number, const fabric::PortView &view)
{
	PortDescription port{};
	port.number = number;
	port.lid = view.port.lid;
	port.lmc = view.port.lmc();
	port.sm_lid = view.port.sm_lid;
	port.sm_sl = view.port.sm_sl();
	port.state = static_cast<std::uint32_t>(view.port.state());
	port.phys_state = static_cast<std::uint32_t>(view.port.phys_state());
	port.rate = rate_of(view.port);
	port.capability_mask = view.port.capability_mask;
	port.pkeys =
		static_cast<std::uint32_t>(std::min<std::size_t>(view.pkeys.size(), kMostPkeys));
	std::copy_n(view.pkeys.begin(), port.pkeys, port.pkey);
	port.gid_prefix = view.port.gid_prefix;
	port.port_guid = view.guids[0];
	return port;
}

void describe_node(const fabric::PortView &view, Description &description)
{
	description.node_type = static_cast<std::uint32_t>(view.node.type());
	description.device_id = view.node.device_id;
	description.revision = view.node.revision;
	description.node_guid = view.node.node_guid;
	description.system_guid = view.node.system_image_guid;
}

} // namespace

class Server::Impl
{
public:
	explicit Impl(Loop &loop) : loop_(loop) {}
	~Impl()
	{
		for (auto &[name, node] : nodes_)
			node.ends = true;
	}

	void listen(UnixListener listener)
	{
		acceptor_.emplace(loop_, std::move(listener),
				  [this](FileDescriptor socket) { serve(std::move(socket)); });
	}

	void add_node(const std::string &name, std::vector<fabric::LocalAccess *> ports,
		      std::uint32_t first_number, bool trusted)
	{
		remove_node(name);
		Node &node = nodes_[name];
		node.trusted = trusted;
		node.first_number = first_number;
		for (fabric::LocalAccess *access : ports)
			node.ports.push_back({access, {}, nullptr, {}});
	}

	void remove_node(const std::string &name)
	{
		const auto found = nodes_.find(name);
		if (found == nodes_.end())
			return;
		found->second.ends = true;
		std::erase_if(connections_,
			      [&](const auto &each) { return each->node() == &found->second; });
		nodes_.erase(found);
	}

	void serve(FileDescriptor socket)
	{
		if (connections_.size() >= kMostConnections) {
			spdlog::warn("attach: more than {} connections, one turned away",
				     kMostConnections);
			return;
		}
		const auto place = connections_.emplace(connections_.end());
		*place = std::make_unique<Connection>(*this, std::move(socket), place);
	}

private:
	class Connection;
	using Connections = std::list<std::unique_ptr<Connection>>;

	struct Port {
		fabric::LocalAccess *access;
		// NodePort of the port, which exists while a connection uses it.
		std::weak_ptr<NodePort> used;
		const Connection *manager; // the connection of the port's subnet manager
		std::list<Connection *> managers_waiting;
	};
	struct Node {
		bool trusted = true;
		// true if no program can become the port's subnet manager any more
		bool ends = false;
		std::uint32_t first_number = 1;
		std::vector<Port> ports;
	};

	class Connection
	{
	public:
		Connection(Impl &owner, FileDescriptor socket, Connections::iterator place)
		    : owner_(owner), place_(place), socket_(std::move(socket)),
		      watch_(owner.loop_, socket_.get(), Watch::kReadable,
			     [this](unsigned ready) { work(ready); })
		{
		}
		~Connection()
		{
			if (opened_)
				owner_.opened_.erase(token_);
			owner_.leave_manager(*this);
		}

		const Node *node() const { return node_; }
		Port *port() const { return port_; }

		// Called when the connection has become the subnet manager of its port.
		bool grant_manager()
		{
			port_->access->set_is_sm(true);
			return reply({});
		}

	private:
		// Must be the last call, because it destroys this object.
		void end() { owner_.connections_.erase(place_); }

		void work(unsigned ready)
		{
			if (!(opened_ ? exchange(ready) : requested_ ? still_there() : request()))
				end();
		}

		// Returns false if the peer has sent anything. A peer that waits, or that only
		// keeps the connection open, must not send.
		bool still_there()
		{
			char byte;
			const auto got = ::recv(socket_.get(), &byte, sizeof(byte), MSG_DONTWAIT);
			return got < 0 && (errno == EAGAIN || errno == EINTR);
		}

		bool request()
		{
			Request asked{};
			const auto size = ::recv(socket_.get(), &asked, sizeof(asked),
						 MSG_DONTWAIT | MSG_TRUNC);
			if (size < 0)
				return errno == EAGAIN || errno == EINTR;
			requested_ = true;
			if (size != sizeof(asked) || asked.version != kVersion)
				return refuse(EPROTO);
			switch (asked.kind) {
			case Kind::add_agent:
			case Kind::remove_agent:
				return change_agent(asked);
			case Kind::describe:
			case Kind::open:
			case Kind::become_sm:
				break;
			default:
				return refuse(EPROTO);
			}
			const std::string_view name(asked.node,
						    ::strnlen(asked.node, sizeof(asked.node)));
			const auto found = owner_.nodes_.find(name);
			if (found == owner_.nodes_.end())
				return asked.kind == Kind::describe ? reply_description(ENODEV)
								    : refuse(ENODEV);
			node_ = &found->second;
			if (asked.kind == Kind::describe)
				return describe();
			const std::uint32_t index = asked.port - node_->first_number;
			if (index >= node_->ports.size())
				return refuse(ENODEV);
			port_ = &node_->ports[index];
			return asked.kind == Kind::open ? open()
							: become_manager(asked.reserved != 0);
		}

		bool change_agent(const Request &asked)
		{
			const auto opened = owner_.opened_.find(asked.token);
			if (opened == owner_.opened_.end())
				return refuse(EIO);
			Reply answer{};
			OpenedPort &port = *opened->second;
			answer.error = asked.kind == Kind::add_agent
					       ? port.add_agent(asked.agent, answer.agent)
					       : port.remove_agent(asked.agent.id);
			reply(answer);
			return false;
		}

		// The attributes of each port arrive asynchronously.
		bool describe()
		{
			description_.emplace();
			for (Port &port : node_->ports) {
				const auto used = owner_.use(*node_, port);
				described_.push_back(used);
				used->with_view([self = std::weak_ptr(self_),
						 &port](const fabric::PortView &view) {
					if (const auto alive = self.lock())
						(*alive)->describe(port, view);
				});
			}
			return true;
		}

		void describe(const Port &port, const fabric::PortView &view)
		{
			const auto index = static_cast<std::uint32_t>(&port - node_->ports.data());
			describe_node(view, *description_);
			description_->port[index] =
				description_of(node_->first_number + index, view);
			if (++description_->ports < node_->ports.size())
				return;
			// The client closes the connection.
			reply_description(0);
		}

		bool open()
		{
			used_ = owner_.use(*node_, *port_);
			used_->with_view([self = std::weak_ptr(self_)](const fabric::PortView &) {
				if (const auto alive = self.lock())
					(*alive)->opened_now();
			});
			return true;
		}

		void opened_now()
		{
			do
				token_ = owner_.loop_.random();
			while (owner_.opened_.contains(token_));
			opened_.emplace(owner_.loop_, std::move(used_), [this] { output(); });
			owner_.opened_.emplace(token_, &*opened_);
			Reply answer{};
			answer.token = token_;
			reply(answer);
		}

		bool become_manager(bool waits)
		{
			if (!node_->trusted)
				return refuse(EPERM);
			if (!port_->manager) {
				port_->manager = this;
				return grant_manager();
			}
			if (!waits)
				return refuse(EAGAIN);
			port_->managers_waiting.push_back(this);
			return true;
		}

		void want()
		{
			watch_.want(Watch::kClosed |
				    (opened_->may_take() ? Watch::kReadable : Watch::kNothing) |
				    (opened_->first() ? Watch::kWritable : Watch::kNothing));
		}

		bool exchange(unsigned ready)
		{
			// If the program has exited, its sends are dropped. If fewer sends than the
			// maximum are pending, messages that it has sent before may still be
			// handled.
			if ((ready & Watch::kClosed) && !opened_->may_take())
				return false;
			flushing_ = true;
			const bool alive = (!(ready & Watch::kReadable) || take()) && flush();
			flushing_ = false;
			if (alive)
				want();
			return alive;
		}

		// Handles messages of the program. Returns false if the connection must be closed.
		bool take()
		{
			Message message;
			for (unsigned i = 0; i < kSlice && opened_->may_take(); ++i) {
				const int error = receive_message(socket_.get(), message);
				if (error == EAGAIN)
					break;
				if (error)
					return false;
				opened_->take(message);
			}
			return true;
		}

		// Sends messages to the program. Returns false if the connection must be closed.
		bool flush()
		{
			for (unsigned i = 0; i < kSlice; ++i) {
				const Message *const first = opened_->first();
				if (!first)
					break;
				const int error =
					send_message(socket_.get(), first->header,
						     first->bytes.data(), first->bytes.size());
				if (error == EAGAIN)
					break;
				if (error)
					return false;
				opened_->received_first();
			}
			return true;
		}

		// Called when there is a message for the program, or when more of its messages may
		// be read. Sends the message at once, because the socket rarely has no space. After
		// an error, the message stays queued, and exchange() closes the connection.
		void output()
		{
			if (flushing_)
				return;
			flushing_ = true;
			flush();
			flushing_ = false;
			want();
		}

		bool refuse(int error)
		{
			Reply answer{};
			answer.error = error;
			reply(answer);
			return false;
		}

		bool reply_description(int error)
		{
			Description none{};
			Description &description = description_ ? *description_ : none;
			description.error = error;
			return send(&description, sizeof(description)) && error == 0;
		}

		bool reply(const Reply &answer) { return send(&answer, sizeof(answer)); }

		// This is the first message on the connection, so there is space.
		bool send(const void *bytes, std::size_t size)
		{
			return ::send(socket_.get(), bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) ==
			       static_cast<ssize_t>(size);
		}

		Impl &owner_;
		// Callbacks have a weak reference to this pointer, by which they check whether this
		// object still exists.
		const std::shared_ptr<Connection *> self_ = std::make_shared<Connection *>(this);
		const Connections::iterator place_;
		const FileDescriptor socket_;
		bool requested_ = false;
		Node *node_ = nullptr;
		Port *port_ = nullptr;
		std::optional<Description> description_;
		std::vector<std::shared_ptr<NodePort>> described_;
		std::shared_ptr<NodePort> used_; // null after the port was opened
		std::uint64_t token_ = 0;
		std::optional<OpenedPort> opened_;
		bool flushing_ = false;
		Watch watch_;
	};

	std::shared_ptr<NodePort> use(const Node &node, Port &port)
	{
		auto used = port.used.lock();
		if (!used) {
			used = std::make_shared<NodePort>(loop_, *port.access, node.trusted);
			port.used = used;
		}
		return used;
	}

	void leave_manager(Connection &connection)
	{
		Port *const port = connection.port();
		if (!port)
			return;
		port->managers_waiting.remove(&connection);
		if (port->manager != &connection)
			return;
		port->manager = nullptr;
		if (port->managers_waiting.empty() || connection.node()->ends)
			return port->access->set_is_sm(false);
		Connection *const next = port->managers_waiting.front();
		port->managers_waiting.pop_front();
		port->manager = next;
		next->grant_manager();
	}

	Loop &loop_;
	std::map<std::string, Node, std::less<>> nodes_;
	std::map<std::uint64_t, OpenedPort *> opened_;
	Connections connections_;
	std::optional<Acceptor> acceptor_;
};

Server::Server(Loop &loop, const std::filesystem::path &path) : loop_(loop)
{
	loop_.run([&] {
		impl_ = std::make_unique<Impl>(loop);
		if (!path.empty())
			impl_->listen(UnixListener(path, UnixListener::Access::owner,
						   UnixListener::Type::messages));
	});
}

Server::~Server()
{
	loop_.run([this] { impl_.reset(); });
}

void Server::add_node(const std::string &name, std::vector<fabric::LocalAccess *> ports,
		      std::uint32_t first_number, bool trusted)
{
	loop_.run([&] { impl_->add_node(name, std::move(ports), first_number, trusted); });
}

void Server::remove_node(const std::string &name)
{
	loop_.run([&] { impl_->remove_node(name); });
}

void Server::serve(FileDescriptor socket)
{
	loop_.run([&] { impl_->serve(std::move(socket)); });
}

} // namespace weft::attach

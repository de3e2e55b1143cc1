// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/endpoints.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cards/amso1100/bytes.hpp"
#include "cards/amso1100/event_messages.hpp"
#include "cards/amso1100/queue_pair.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;
using wire::EventId;
using wire::QpState;
using wire::Status;

namespace
{

// The dynamic ports, which are not assigned to any service (RFC 6335).
constexpr std::uint16_t kFirstPort = 49152;
constexpr unsigned kPorts = 16384;

// Returns a responder's configuration. accept() sets the limits for reads, from the queue pair.
iwarp::StreamConfig responder()
{
	return {};
}

} // namespace

Endpoints::Request::Request(std::uint32_t own, std::uint16_t, Endpoints &endpoints,
			    std::uint32_t its_listener, std::uint64_t its_number,
			    tcp::ConnectionPtr connection)
    : handle(own), listener(its_listener), peer(connection->pair().remote.address),
      number(its_number), carrier(&endpoints.connections_.make(responder(), *this)),
      endpoints_(endpoints), timer_(endpoints.loop_, [this] {
	      state = State::over;
	      endpoints_.reaper_.signal();
      })
{
	carrier->adopt(std::move(connection));
}

Endpoints::Request::~Request()
{
	drop();
}

void Endpoints::Request::drop()
{
	if (iwarp::Carrier *const left = std::exchange(carrier, nullptr)) {
		left->set_owner(nullptr);
		left->abort();
	}
}

void Endpoints::Request::requested(const iwarp::StartFrame &request)
{
	if (request.private_data.size() > wire::most_private_data) {
		// Send a reject and close the connection. The host gets no event.
		iwarp::Carrier *const refused = std::exchange(carrier, nullptr);
		refused->set_owner(nullptr);
		refused->reject({});
		state = State::over;
		return endpoints_.reaper_.signal();
	}
	if (!endpoints_.report(*this, request)) {
		state = State::over;
		return endpoints_.reaper_.signal();
	}
	state = State::reported;
	timer_.arm(kAnswerTimeout);
}

void Endpoints::Request::ended(const iwarp::End &)
{
	carrier = nullptr;
	state = state == State::reported ? State::lost : State::over;
	endpoints_.reaper_.signal();
}

Endpoints::Endpoints(Loop &loop, MessageQueues &queues, tcp::Stack &stack, Connections &connections,
		     std::uint64_t context)
    : loop_(loop), queues_(queues), stack_(stack), connections_(connections), context_(context),
      reaper_(loop, [this] { reap(); })
{
}

Endpoints::~Endpoints()
{
	listeners_.for_each([&](Listener &each) { stack_.stop_listening(each.local); });
}

void Endpoints::reap()
{
	std::vector<std::uint32_t> over;
	requests_.for_each([&](Request &each) {
		if (each.state == Request::State::over)
			over.push_back(each.handle);
	});
	for (const std::uint32_t handle : over)
		requests_.erase(handle);
}

Status Endpoints::listen(const Message &request, Message &reply)
{
	namespace field = wire::listen_create;
	tcp::Endpoint local{load_be<std::uint32_t>(request, field::address),
			    load_be<std::uint16_t>(request, field::port)};
	const std::size_t backlog = load_be<std::uint32_t>(request, field::backlog);
	if (local.address && !stack_.owns(local.address))
		return Status::address_not_available;
	if (listeners_.size() == kMostListeners)
		return Status::insufficient_resources;
	// The callback needs the listener's handle, which exists only after the listener was
	// created.
	const auto handle = std::make_shared<std::uint32_t>(0);
	const auto taken = [this, handle](const tcp::ConnectionPtr &connection) {
		take(*handle, connection);
	};
	if (local.port ? !stack_.listen(local, taken) : !listen_anywhere(local, taken))
		return Status::address_in_use;
	Listener &listener = *listeners_.make(load_be<std::uint64_t>(request, field::user_context),
					      local, std::max<std::size_t>(backlog, 1));
	*handle = listener.handle;
	store_be<std::uint32_t>(reply, field::reply_handle, listener.handle);
	store_be<std::uint16_t>(reply, field::reply_port, local.port);
	return Status::ok;
}

bool Endpoints::listen_anywhere(tcp::Endpoint &local,
				const std::function<void(const tcp::ConnectionPtr &)> &taken)
{
	const auto first = static_cast<std::uint32_t>(loop_.random());
	for (std::uint32_t i = 0; i < kPorts; ++i) {
		local.port = static_cast<std::uint16_t>(kFirstPort + (first + i) % kPorts);
		if (stack_.listen(local, taken))
			return true;
	}
	return false;
}

// Destroys a listener. The host must still answer requests that were reported to it.
std::optional<std::uint64_t> Endpoints::destroy(std::uint32_t handle)
{
	Listener *const listener = listeners_.find(handle);
	if (!listener)
		return std::nullopt;
	const std::uint64_t last = listener->last_event;
	stack_.stop_listening(listener->local);
	requests_.for_each([&](Request &each) {
		if (each.listener == handle && each.state == Request::State::starting)
			each.state = Request::State::over;
	});
	reap();
	listeners_.erase(handle);
	return last;
}

std::size_t Endpoints::reported(std::uint32_t listener)
{
	std::size_t waiting = 0;
	requests_.for_each([&](const Request &each) {
		waiting += each.listener == listener && (each.state == Request::State::reported ||
							 each.state == Request::State::lost);
	});
	return waiting;
}

// Handles a new connection. A connection beyond the backlog can be reset only after it was
// established. The backlog counts requests that the host has to answer, so a silent caller does not
// count.
void Endpoints::take(std::uint32_t handle, const tcp::ConnectionPtr &connection)
{
	const Listener *const listener = listeners_.find(handle);
	if (!listener || reported(handle) >= listener->backlog)
		return connection->abort();
	make_room();
	if (!requests_.make(*this, handle, ++came_, connection))
		connection->abort();
}

void Endpoints::make_room()
{
	if (requests_.size() < kMostRequests)
		return;
	std::map<tcp::Ip, std::size_t> counts;
	std::size_t most = 0;
	requests_.for_each([&](const Request &each) {
		if (each.state == Request::State::starting)
			most = std::max(most, ++counts[each.peer]);
	});
	Request *oldest = nullptr;
	requests_.for_each([&](Request &each) {
		if (each.state == Request::State::starting && counts[each.peer] == most &&
		    (!oldest || each.number < oldest->number))
			oldest = &each;
	});
	if (oldest)
		requests_.erase(oldest->handle);
}

// Returns false if the listener no longer exists or may not get another event.
bool Endpoints::report(Request &request, const iwarp::StartFrame &start)
{
	Listener *const listener = listeners_.find(request.listener);
	if (!listener || queues_.crowded() || reported(request.listener) >= listener->backlog)
		return false;
	Message message =
		event_message(EventId::connection_request, context_,
			      {wire::ResourceType::endpoint, listener->handle, listener->context});
	store_be<std::uint32_t>(message, wire::connection_request::endpoint, request.handle);
	put_connection(message, wire::connection_request::local_address, request.carrier->pair(),
		       start.private_data);
	listener->last_event = queues_.event(message);
	return true;
}

Status Endpoints::accept(const Message &message, QueuePair *qp)
{
	namespace field = wire::request_accept;
	const auto handle = load_be<std::uint32_t>(message, field::endpoint);
	Request *const request = requests_.find(handle);
	if (!request ||
	    (request->state != Request::State::reported && request->state != Request::State::lost))
		return Status::invalid_endpoint;
	const auto length = load_be<std::uint32_t>(message, field::private_length);
	Status status = Status::ok;
	if (!qp)
		status = Status::invalid_qp;
	else if (qp->state() != QpState::idle)
		status = Status::invalid_qp_state;
	else if (length > wire::most_private_data)
		status = Status::invalid_private_data_length;
	else if (request->state == Request::State::lost)
		status = Status::connection_reset;
	if (status == Status::ok) {
		iwarp::Bytes data(length);
		std::ranges::copy(std::span(message).subspan(field::private_data, length),
				  std::as_writable_bytes(std::span(data)).begin());
		qp->accept(*std::exchange(request->carrier, nullptr), data);
	}
	requests_.erase(handle);
	return status;
}

Status Endpoints::reject(std::uint32_t handle)
{
	Request *const request = requests_.find(handle);
	if (!request ||
	    (request->state != Request::State::reported && request->state != Request::State::lost))
		return Status::invalid_endpoint;
	if (iwarp::Carrier *const carrier = std::exchange(request->carrier, nullptr)) {
		carrier->set_owner(nullptr);
		carrier->reject({});
	}
	requests_.erase(handle);
	return Status::ok;
}

} // namespace weft::amso1100

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests trunks over TCP between two fabrics in one process.
#include "net/trunk/trunk.hpp"

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/fabric/tests/test_node.hpp"
#include "net/trunk/admission.hpp"
#include "net/trunk/connection.hpp"

namespace weft::trunk
{

namespace
{

using namespace fabric;
using fabric::testing::MadNode;

Key key_of(std::uint8_t fill = 1)
{
	return Key(SecretBytes(Key::kLeastBytes, std::byte{fill}));
}

// Other threads do the work, so the state is polled.
bool becomes_true(const std::function<bool()> &condition)
{
	using namespace std::chrono_literals;
	Loop waiting("test", Loop::Mode::manual);
	Timer timer(waiting, [&] { timer.arm(1ms); });
	timer.arm(1ms);
	return waiting.run_until(condition, 30s);
}

// A node, a switch, and a trunk on its port 2.
struct Side {
	explicit Side(ib::Guid guid)
	    : sw(fabric.add_switch({.name = "switch", .ports = 2, .guid = guid})),
	      node_link(fabric.connect(port, sw.port(1))),
	      trunk_link(fabric.connect(sw.port(2), far)), node(port, guid + 0x10)
	{
	}
	void start(Role role, const std::string &address, Key key = key_of(),
		   const std::string &name = "west")
	{
		trunk.emplace(loop, far, Config{name, role, Address::parse(address)},
			      std::move(key));
	}

	Fabric fabric;
	Switch &sw;
	Port &port = fabric.add_port("node/1");
	Port &far = fabric.add_port("west/1");
	Link &node_link;
	Link &trunk_link;
	MadNode node;
	Loop loop{"trunk"};
	std::optional<Trunk> trunk;
};

class TrunkTest : public ::testing::Test
{
public:
	void listen() { a.start(Role::listens, "127.0.0.1:0"); }
	std::string address() { return a.trunk->state().address; }
	bool comes_up()
	{
		return becomes_true([&] { return a.trunk_link.up() && b.trunk_link.up(); });
	}

	Side a{0x100}, b{0x200};
};

// A client without the key.
class Client
{
public:
	// @from is one of the host's own addresses.
	explicit Client(const std::string &address, const char *from = "127.0.0.1")
	    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))
	{
		const auto colon = address.rfind(':');
		const auto at = [](const char *host, unsigned long port) {
			sockaddr_in place{};
			place.sin_family = AF_INET;
			place.sin_port = htons(static_cast<std::uint16_t>(port));
			::inet_pton(AF_INET, host, &place.sin_addr);
			return place;
		};
		const sockaddr_in own = at(from, 0);
		const sockaddr_in server =
			at(address.substr(0, colon).c_str(), std::stoul(address.substr(colon + 1)));
		EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr *>(&own),
				 sizeof(own)),
			  0);
		::connect(socket_.get(), reinterpret_cast<const sockaddr *>(&server),
			  sizeof(server));
	}
	void say(std::span<const std::byte> bytes) const
	{
		becomes_true([&] {
			return ::send(socket_.get(), bytes.data(), bytes.size(),
				      MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
		});
	}
	bool was_closed() const
	{
		std::array<std::byte, 256> bytes{};
		for (;;) {
			const auto got =
				::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
			if (got <= 0)
				return got == 0 || errno == ECONNRESET;
		}
	}

private:
	FileDescriptor socket_;
};

} // namespace

TEST_F(TrunkTest, MadsCrossTheTrunkToNodesOfTheOtherDaemon)
{
	listen();
	b.start(Role::connects, address());
	ASSERT_TRUE(comes_up());
	const auto answer = a.node.ask({1, 2}, ib::MadMethod::get, ib::attr_node_info);
	ASSERT_TRUE(answer);
	ib::NodeInfo info;
	std::memcpy(&info, answer->data, sizeof(info));
	EXPECT_EQ(info.node_guid, 0x200u);
	const auto beyond = a.node.ask({1, 2, 1}, ib::MadMethod::get, ib::attr_node_info);
	ASSERT_TRUE(beyond);
	std::memcpy(&info, beyond->data, sizeof(info));
	EXPECT_EQ(info.node_guid, 0x210u);
}

TEST_F(TrunkTest, LinkGoesDownIfTheOtherDaemonExitsAndComesUpWhenItRestarts)
{
	listen();
	const std::string place = address();
	b.start(Role::connects, place);
	ASSERT_TRUE(comes_up());
	for (unsigned round = 1; round <= 2; round++) {
		a.trunk.reset();
		EXPECT_TRUE(becomes_true([&] { return !b.trunk_link.up(); })) << round;
		EXPECT_FALSE(b.trunk->state().connected);
		a.start(Role::listens, place);
		ASSERT_TRUE(comes_up()) << round;
		EXPECT_EQ(b.sw.port(2).counters().link_downed, round);
	}
	b.trunk.reset();
	EXPECT_TRUE(becomes_true([&] { return !a.trunk_link.up(); }));
	EXPECT_THAT(a.trunk->state().last_reason, ::testing::HasSubstr("daemon exited"));
}

// The exception is the same as for a lack of memory. The process continues, and so does the trunk.
TEST_F(TrunkTest, TrunkReconnectsAfterAnExceptionInAnEventLoopCallback)
{
	listen();
	b.start(Role::connects, address());
	unsigned downs = 0;
	for (Side *const side : {&a, &b}) {
		ASSERT_TRUE(comes_up());
		side->loop.post([] { throw std::runtime_error("injected"); });
		downs++;
		EXPECT_TRUE(
			becomes_true([&] { return a.trunk->state().connections == 1 + downs; }));
	}
	ASSERT_TRUE(comes_up());
	EXPECT_EQ(a.sw.port(2).counters().link_downed, downs);
	EXPECT_TRUE(a.node.ask({1, 2}, ib::MadMethod::get, ib::attr_node_info));
	// The reason is shown while there is no connection.
	b.trunk.reset();
	EXPECT_TRUE(becomes_true([&] { return !a.trunk->state().connected; }));
	a.loop.post([] { throw std::runtime_error("injected"); });
	EXPECT_TRUE(becomes_true(
		[&] { return a.trunk->state().last_reason == "internal error: injected"; }));
}

TEST_F(TrunkTest, PeerWithADifferentKeyOrTrunkNameIsRefused)
{
	listen();
	b.start(Role::connects, address(), key_of(2));
	EXPECT_TRUE(becomes_true([&] { return a.trunk->state().refused != 0; }));
	EXPECT_THAT(a.trunk->state().last_refusal,
		    ::testing::MatchesRegex("127\\.0\\.0\\.1:[0-9]+: .*different keys"));
	EXPECT_TRUE(becomes_true([&] { return b.trunk->state().refused != 0; }));
	EXPECT_THAT(b.trunk->state().last_reason, ::testing::HasSubstr("different keys"));
	b.trunk.reset();
	b.start(Role::connects, address(), key_of(), "east");
	EXPECT_TRUE(becomes_true([&] {
		return a.trunk->state().last_refusal.find("different trunk names") !=
		       std::string::npos;
	}));
	EXPECT_FALSE(a.trunk_link.up());
	EXPECT_EQ(a.trunk->state().connections, 0u);
	b.trunk.reset();
	b.start(Role::connects, address());
	EXPECT_TRUE(comes_up());
}

TEST_F(TrunkTest, UnauthenticatedClientsDoNotInterruptAnAuthenticatedConnection)
{
	listen();
	b.start(Role::connects, address());
	ASSERT_TRUE(comes_up());
	const std::vector<std::byte> noise(1000, std::byte{0x5a});
	const Client loud(address());
	loud.say(noise);
	EXPECT_TRUE(becomes_true([&] { return loud.was_closed(); }));
	EXPECT_EQ(a.trunk->state().violations, 1u);
	// If there are more handshakes than permitted, the oldest is closed.
	std::vector<std::unique_ptr<Client>> silent;
	EXPECT_TRUE(becomes_true([&] {
		silent.push_back(std::make_unique<Client>(address()));
		return silent.front()->was_closed();
	}));
	EXPECT_GT(silent.size(), kMostHandshakes);
	EXPECT_TRUE(a.trunk_link.up());
	EXPECT_TRUE(a.node.ask({1, 2}, ib::MadMethod::get, ib::attr_node_info));
	EXPECT_EQ(a.sw.port(2).counters().link_downed, 0u);
}

TEST_F(TrunkTest, UnauthenticatedClientsDoNotChangeTheReportedReasonWhyATrunkIsDown)
{
	listen();
	EXPECT_EQ(a.trunk->state().last_reason, "it has not been connected yet");
	const std::vector<std::byte> noise(1000, std::byte{0x5a});
	const auto refuse_one = [&] {
		const auto before = a.trunk->state().refused;
		const Client loud(address());
		loud.say(noise);
		EXPECT_TRUE(becomes_true([&] { return a.trunk->state().refused > before; }));
		EXPECT_THAT(a.trunk->state().last_refusal, ::testing::HasSubstr("malformed frame"));
	};
	refuse_one();
	EXPECT_EQ(a.trunk->state().last_reason, "it has not been connected yet");
	b.start(Role::connects, address());
	ASSERT_TRUE(comes_up());
	b.trunk.reset();
	EXPECT_TRUE(becomes_true([&] { return !a.trunk->state().connected; }));
	refuse_one();
	EXPECT_THAT(a.trunk->state().last_reason, ::testing::HasSubstr("daemon exited"));
}

// Keeps many connections open, and replaces each that is closed at once.
class Flood
{
public:
	Flood(const std::string &address, const char *from)
	    : thread_([this, address, from] {
		      std::vector<std::unique_ptr<Client>> clients(100);
		      while (!stop_)
			      for (auto &client : clients)
				      if (!client || client->was_closed()) {
					      client = std::make_unique<Client>(address, from);
					      opened_++;
				      }
	      })
	{
	}
	~Flood()
	{
		stop_ = true;
		thread_.join();
	}
	unsigned opened() const { return opened_; }

private:
	std::atomic<bool> stop_ = false;
	std::atomic<unsigned> opened_ = 0;
	std::thread thread_;
};

// The first attempt of the other daemon succeeds.
TEST_F(TrunkTest, FloodOfConnectionsFromOneAddressDoesNotDelayADaemonAtAnotherAddress)
{
	listen();
	const Flood flood(address(), "127.0.0.2");
	ASSERT_TRUE(becomes_true([&] { return a.trunk->state().refused >= 500; }));
	for (unsigned round = 1; round <= 3; round++) {
		b.start(Role::connects, address());
		EXPECT_TRUE(becomes_true([&] { return b.trunk->state().connected; }));
		EXPECT_EQ(b.trunk->state().refused, 0u) << round;
		EXPECT_EQ(a.trunk->state().connections, round);
		EXPECT_TRUE(comes_up());
		b.trunk.reset();
		EXPECT_TRUE(becomes_true([&] { return !a.trunk->state().connected; }));
	}
}

// A client that opens many connections displaces its own connections, and not an older one of
// another client. Since all handshakes have the same time limit, the older one would be closed
// first without this rule.
TEST_F(TrunkTest, TooManyConnectionsFromOneAddressDoNotCloseAConnectionFromAnotherAddress)
{
	listen();
	const Client other(address(), "127.0.0.2");
	std::vector<std::unique_ptr<Client>> many;
	EXPECT_TRUE(becomes_true([&] {
		many.push_back(std::make_unique<Client>(address()));
		return many.front()->was_closed();
	}));
	EXPECT_FALSE(other.was_closed());
}

// Two daemons have a copy of the same lab file. They must not displace each other repeatedly.
TEST_F(TrunkTest, SecondDaemonForTheSameTrunkIsRefusedUntilTheFirstDisconnects)
{
	listen();
	b.start(Role::connects, address());
	ASSERT_TRUE(comes_up());
	Side c{0x300};
	c.start(Role::connects, address());
	EXPECT_TRUE(becomes_true([&] { return c.trunk->state().refused >= 2; }));
	EXPECT_THAT(c.trunk->state().last_reason, ::testing::HasSubstr("another daemon"));
	EXPECT_FALSE(c.trunk_link.up());
	EXPECT_EQ(a.trunk->state().connections, 1u);
	EXPECT_EQ(b.sw.port(2).counters().link_downed, 0u);
	EXPECT_EQ(a.sw.port(2).counters().link_downed, 0u);
	b.trunk.reset();
	EXPECT_TRUE(becomes_true([&] { return a.trunk_link.up() && c.trunk_link.up(); }));
}

TEST(TrunkAdmission, EachClientNetworkIsAllowedSomeHandshakesEvenIfTheTotalLimitIsReached)
{
	Admission admission;
	unsigned first = 0, second = 0;
	for (unsigned i = 0; i < kMostOfNetwork + 1; i++)
		first += admission.admit("192.0.2.1");
	for (unsigned i = 0; i < kMostOfNetwork + 1; i++)
		second += admission.admit("192.0.2.2");
	EXPECT_EQ(first, kMostOfNetwork);
	EXPECT_EQ(second, kMostAdmitted - kMostOfNetwork);
	for (const char *const network : {"192.0.2.3", "192.0.2.4"}) {
		unsigned admitted = 0;
		for (unsigned i = 0; i < kMostOfNetwork; i++)
			admitted += admission.admit(network);
		EXPECT_EQ(admitted, kAlwaysOfNetwork);
	}
	for (unsigned i = 0; !admission.full(); i++) {
		ASSERT_LT(i, kMostAccepted);
		admission.admit("192.0.2.1");
	}
	admission.begin_window();
	EXPECT_FALSE(admission.full());
	EXPECT_TRUE(admission.admit("192.0.2.1"));
}

TEST(TrunkAddress, NetworkOfAnAddressIsTheIpv4AddressOrTheIpv6Slash64Prefix)
{
	EXPECT_EQ(Address::parse("192.0.2.1:7470").network(), "192.0.2.1");
	EXPECT_EQ(Address::parse("[2001:db8:1:2:3:4:5:6]:7470").network(), "2001:db8:1:2::/64");
	EXPECT_EQ(Address().network(), "unknown");
}

TEST(TrunkAddress, TcpPortOfAnAddressCanBeReplaced)
{
	EXPECT_EQ(Address::parse("192.0.2.1:7470").port(), 7470u);
	EXPECT_EQ(Address::parse("[2001:db8::1]:65535").port(), 65535u);
	EXPECT_FALSE(Address::parse("192.0.2.1:0").has_port());
	EXPECT_EQ(Address::parse("192.0.2.1:7470").with_port(7471).text(), "192.0.2.1:7471");
	EXPECT_EQ(Address::parse("[2001:db8::1]:1").with_port(2).text(), "[2001:db8::1]:2");
}

TEST(TrunkAddress, ResolveAcceptsHostNamesAndParseAcceptsOnlyIpAddresses)
{
	EXPECT_THROW(Address::parse("localhost:1"), std::invalid_argument);
	EXPECT_EQ(Address::resolve("localhost:7470").text(), "127.0.0.1:7470");
	EXPECT_EQ(Address::resolve("[::1]:7470").text(), "[::1]:7470");
	EXPECT_THROW(Address::resolve("localhost"), std::invalid_argument);
	EXPECT_THROW(Address::resolve("no host:1"), std::invalid_argument);
}

TEST_F(TrunkTest, ListeningOnAnAddressInUseFails)
{
	listen();
	EXPECT_THROW(b.start(Role::listens, address()), std::system_error);
}

// A peer that has the key. It sends only keepalives, and reads nothing after the handshake.
class LazyPeer
{
public:
	LazyPeer(Loop &loop, FileDescriptor socket, const Key &key)
	    : socket_(std::move(socket)), handshake_(Kind::infiniband, Role::connects, "west", key),
	      timer_(loop, [this] { work(); })
	{
		send(handshake_.hello());
		timer_.arm(std::chrono::milliseconds(1));
	}

private:
	void send(const Buffer &bytes) const
	{
		ASSERT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
			  static_cast<ssize_t>(bytes.size()));
	}
	void take(FrameType type, std::size_t body_bytes, std::vector<Buffer> &answers)
	{
		Buffer frame(sizeof(FrameHeader) + body_bytes);
		ASSERT_EQ(::recv(socket_.get(), frame.data(), frame.size(), MSG_DONTWAIT),
			  static_cast<ssize_t>(frame.size()));
		ASSERT_NE(handshake_.take({type, std::span(frame).subspan(sizeof(FrameHeader))},
					  answers),
			  Handshake::Progress::refused);
	}
	void work()
	{
		std::vector<Buffer> answers;
		timer_.arm(kAlivePeriod);
		if (std::exchange(greeted_, true) == false) {
			take(FrameType::hello, sizeof(HelloBody), answers);
			ASSERT_EQ(answers.size(), 1u);
			send(answers[0]);
			// Wait for the proof of the other end.
			timer_.arm(std::chrono::milliseconds(1));
			return;
		}
		if (!sealer_) {
			take(FrameType::proof, sizeof(ProofBody), answers);
			sealer_.emplace(handshake_.session_keys().sending);
		}
		std::deque<Buffer> frames{make_frame(FrameType::alive)};
		Buffer record;
		sealer_->seal(frames, record);
		send(record);
	}

	const FileDescriptor socket_;
	Handshake handshake_;
	bool greeted_ = false;
	std::optional<RecordSealer> sealer_;
	Timer timer_;
};

// Runs in virtual time, which advances while nothing happens.
TEST(TrunkConnection, PeerThatReadsNothingIsDisconnected)
{
	VirtualEnvironment environment;
	Reactor reactor("test", Reactor::Drive::manual, environment);
	Loop loop("test", reactor);
	std::array<int, 2> pair{};
	ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
	const Key key = key_of();
	std::string why;
	std::optional<Connection> connection;
	connection.emplace(loop, FileDescriptor(pair[1]), Address(), Kind::infiniband,
			   Role::listens, "west", key,
			   Connection::Handlers{
				   .authenticated = [] { return Reason::none; },
				   .frame = [](const Frame &) -> const char * { return nullptr; },
				   .fill =
					   [&](std::deque<Buffer> &out, std::size_t room) {
						   const Buffer body(kMostBody);
						   std::size_t bytes = 0;
						   for (; bytes < room; bytes += out.back().size())
							   out.push_back(
								   make_frame(FrameType::packet,
									      std::span(body)));
						   return bytes;
					   },
				   .closed = [&](const std::string &reason, bool) { why = reason; },
			   });
	std::optional<LazyPeer> peer(std::in_place, loop, FileDescriptor(pair[0]), key);
	const auto begin = loop.now();
	while (why.empty() && loop.now() - begin <= 2 * kSilenceTime)
		reactor.turn(begin + 3 * kSilenceTime);
	EXPECT_EQ(why, "the peer reads nothing");
	EXPECT_GE(loop.now() - begin, kSilenceTime);
	EXPECT_LE(loop.now() - begin, kSilenceTime + 3 * kAlivePeriod);
	peer.reset();
	connection.reset();
}

// Runs in virtual time.
TEST(TrunkConnection, SilentPeerIsDisconnected)
{
	VirtualEnvironment environment;
	Reactor reactor("test", Reactor::Drive::manual, environment);
	Loop loop("test", reactor);
	std::array<int, 2> pair{};
	ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
	const FileDescriptor silent(pair[0]);
	const Key key = key_of();
	std::string why;
	std::optional<Connection> connection;
	const auto begin = loop.now();
	connection.emplace(loop, FileDescriptor(pair[1]), Address(), Kind::infiniband,
			   Role::listens, "west", key,
			   Connection::Handlers{
				   .authenticated = [] { return Reason::none; },
				   .frame = [](const Frame &) -> const char * { return nullptr; },
				   .fill = [](auto &, std::size_t) { return std::size_t{0}; },
				   .closed = [&](const std::string &reason, bool) { why = reason; },
			   });
	while (why.empty() && loop.now() - begin <= kHandshakeTime)
		reactor.turn(begin + 2 * kHandshakeTime);
	EXPECT_EQ(why, "no handshake in time");
	EXPECT_EQ(loop.now() - begin, kHandshakeTime);
	connection.reset();
}

TEST(TrunkConnection, KeepalivesPreventTheSilenceTimeout)
{
	VirtualEnvironment environment;
	Reactor reactor("test", Reactor::Drive::manual, environment);
	Loop loop("test", reactor);
	std::array<int, 2> pair{};
	ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()),
		  0);
	const Key key = key_of();
	unsigned authenticated = 0;
	std::array<std::string, 2> why;
	std::array<std::optional<Connection>, 2> ends;
	for (const unsigned side : {0u, 1u})
		ends[side].emplace(
			loop, FileDescriptor(pair[side]), Address(), Kind::infiniband,
			side ? Role::listens : Role::connects, "west", key,
			Connection::Handlers{
				.authenticated =
					[&] {
						authenticated++;
						return Reason::none;
					},
				.frame = [](const Frame &) -> const char * { return nullptr; },
				.fill = [](auto &, std::size_t) { return std::size_t{0}; },
				.closed = [&, side](const std::string &reason,
						    bool) { why[side] = reason; },
			});
	const auto begin = loop.now();
	while (loop.now() - begin < 2 * kSilenceTime)
		reactor.turn(begin + 2 * kSilenceTime);
	EXPECT_EQ(authenticated, 2u);
	EXPECT_EQ(why[0], "");
	EXPECT_EQ(why[1], "");
	// A host that has crashed does not close the connection.
	const FileDescriptor open(::dup(pair[0]));
	ends[0].reset();
	const auto lost = loop.now();
	while (why[1].empty() && loop.now() - lost < 2 * kSilenceTime)
		reactor.turn(lost + 2 * kSilenceTime);
	EXPECT_THAT(why[1], ::testing::HasSubstr("too long"));
	EXPECT_GE(loop.now() - lost, kSilenceTime - kAlivePeriod);
	EXPECT_LE(loop.now() - lost, kSilenceTime + kAlivePeriod);
	ends[1].reset();
}

} // namespace weft::trunk

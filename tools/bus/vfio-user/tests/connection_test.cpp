// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the server handles clients that connect, disconnect, and misbehave: it resets the
// device between clients, and disconnects a client that exceeds a limit.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/closing.hpp"
#include "base/unix_listener.hpp"
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

using ::testing::ElementsAre;
using ClientConnection = GreetedTest;

// Captures the log output of servers that are created during its lifetime.
class CapturedLog
{
public:
	CapturedLog()
	{
		spdlog::set_default_logger(std::make_shared<spdlog::logger>(
			"captured", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
	}
	~CapturedLog() { spdlog::set_default_logger(former_); }

	std::string text() const { return text_.str(); }
	std::size_t lines() const
	{
		return static_cast<std::size_t>(std::ranges::count(text(), '\n'));
	}

private:
	std::ostringstream text_;
	const std::shared_ptr<spdlog::logger> former_ = spdlog::default_logger();
};

// When a client disconnects, its memory and descriptors are released and the device is reset. The
// next client gets a device in its initial state.
TEST_F(ClientConnection, DeviceIsResetBetweenClients)
{
	const auto file = make_memory(4096);
	const auto event = make_event();
	client().map(0, 4096, file.get());
	enable_msix();
	ASSERT_EQ(client().call(Command::set_irqs,
				bytes_of(IrqSet{20, kIrqSetDataEventfd | kIrqSetActionTrigger,
						kIrqMsix, 0, 1}),
				{event.get()})
			  .error(),
		  0u);
	client().close();
	ASSERT_TRUE(loop_.run_until([&] { return !server_.connected(); }));
	EXPECT_THAT(device_.resets, ElementsAre(PciReset::bus, PciReset::host_gone));
	EXPECT_EQ(device_.host().dma().mappings(), 0u);

	EXPECT_EQ(connect().greet().error(), 0u);
	EXPECT_EQ(client().read_as<std::uint16_t>(kRegionConfig, kPciCommand), 0);
	enable_msix();
	device_.host().raise_msix(0);
	EXPECT_EQ(take(event), 0u);
}

// A client that truncates the memory that it has shared is disconnected. A client of another device
// is not affected, and the next client of this device gets it in its initial state.
TEST_F(ClientConnection, TruncatedGuestMemoryDisconnectsTheClient)
{
	FakeDevice other_device;
	Server other_server(loop_, other_device, "other");
	auto [ours, theirs] = FakeClient::make_sockets();
	other_server.serve(std::move(theirs));
	FakeClient other(loop_, std::move(ours));
	other.greet();
	const auto other_file = make_memory(4096);
	other.map(0, 4096, other_file.get());

	const auto file = make_memory(8192);
	client().map(0, 8192, file.get());
	ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
	EXPECT_TRUE(device_.host().dma().write_as<int>(0, 1)) << "what is left is still shared";
	loop_.poll();
	EXPECT_TRUE(server_.connected());
	// The device reads zeros, and continues until its loop runs.
	EXPECT_EQ(device_.host().dma().read_as<int>(4096), 0);
	EXPECT_TRUE(client().wait_closed());
	EXPECT_THAT(device_.resets, ElementsAre(PciReset::bus, PciReset::host_gone));
	EXPECT_EQ(device_.host().dma().mappings(), 0u);

	EXPECT_TRUE(other_device.host().dma().write_as<int>(0, 1));
	EXPECT_EQ(other.call(Command::reset).error(), 0u);
	const auto next_file = make_memory(4096);
	EXPECT_EQ(connect().greet().error(), 0u);
	client().map(0, 4096, next_file.get());
	EXPECT_TRUE(device_.host().dma().write_as<int>(0, 1));
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
}

// If a client sends a descriptor and this process cannot open more, the client gets no error
// message, and the log reports that it was not the client's fault.
TEST_F(ClientConnection, ServerLogsThatItHasNoFreeFileDescriptor)
{
	const CapturedLog log;
	{
		FakeDevice other_device;
		Server other_server(loop_, other_device, "other");
		auto [ours, theirs] = FakeClient::make_sockets();
		other_server.serve(std::move(theirs));
		FakeClient other(loop_, std::move(ours));
		other.greet();
		const auto file = make_memory(4096);
		rlimit limit{};
		ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
		rlimit none = limit;
		const FileDescriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
		none.rlim_cur = static_cast<rlim_t>(next.get());
		ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
		other.send(Command::dma_map, bytes_of(DmaMap{32, 3, 0, 0, 4096}), {file.get()});
		EXPECT_TRUE(other.wait_closed());
		ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
	}
	EXPECT_THAT(log.text(), ::testing::HasSubstr("no descriptor left"));
}

// A device that throws an exception is removed from its guest. The server continues, and the next
// client gets a device that was plugged in again.
TEST_F(ClientConnection, DeviceExceptionClosesTheConnection)
{
	device_.fail_next_write = true;
	client().send(Command::region_write, bytes_of(RegionAccess{0, 0, 4}, std::uint32_t{1}));
	EXPECT_TRUE(client().wait_closed());
	EXPECT_FALSE(server_.connected());
	EXPECT_TRUE(device_.attached());
	EXPECT_EQ(device_.resets.back(), PciReset::bus);

	EXPECT_EQ(connect().greet().error(), 0u);
	EXPECT_EQ(client().read_as<std::uint16_t>(kRegionConfig, kPciCommand), 0);
}

// If a device cannot be created again, the server retries until it succeeds. Meanwhile the device
// has no guest.
TEST_F(ClientConnection, FailedDeviceCreationIsRetriedUntilItSucceeds)
{
	device_.fail_next_write = true;
	device_.failing_resets = ~0u;
	client().send(Command::region_write, bytes_of(RegionAccess{0, 0, 4}, std::uint32_t{1}));
	EXPECT_TRUE(client().wait_closed());
	EXPECT_FALSE(device_.attached());
	EXPECT_TRUE(connect().wait_closed());
	device_.failing_resets = 0;
	ASSERT_TRUE(loop_.run_until([&] { return device_.attached(); }));
	EXPECT_EQ(connect().greet().error(), 0u);
	EXPECT_EQ(client().read_as<std::uint16_t>(kRegionConfig, kPciCommand), 0);
}

// A second client is refused while the first is connected, and the first is not affected. A client
// that connects before the server has noticed the first one's disconnection is served.
TEST_F(ClientConnection, SecondClientIsRefusedWhileTheFirstIsConnected)
{
	auto [ours, theirs] = FakeClient::make_sockets();
	server_.serve(std::move(theirs));
	FakeClient second(loop_, std::move(ours));
	EXPECT_TRUE(second.wait_closed());
	EXPECT_EQ(client().call(Command::reset).error(), 0u);

	client().close();
	EXPECT_EQ(connect().greet().error(), 0u);
}

// No request contains a socket. A socket may be the client's own end of the connection: while the
// server held it, it would not notice that the client has exited.
TEST_F(ClientConnection, ClientThatPassesASocketDescriptorIsDisconnected)
{
	client().send_raw(Bytes(4), {client().fd()});
	client().close();
	EXPECT_TRUE(loop_.run_until([&] { return !server_.connected(); }));
	auto [one, other] = FakeClient::make_sockets();
	connect().greet();
	client().send(Command::reset, {}, {one.get()});
	EXPECT_TRUE(client().wait_closed());
	EXPECT_EQ(connect().greet().error(), 0u);
}

// A TCP socket with unsent data whose close() blocks for up to an hour until the peer reads, and
// the socket of that peer.
struct Lingering {
	Lingering()
	{
		const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
		sockaddr_in address{};
		address.sin_family = AF_INET;
		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		socklen_t size = sizeof(address);
		auto *const name = reinterpret_cast<sockaddr *>(&address);
		const int little = 4096;
		const linger hour{1, 3600};
		sender.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
		::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
		::setsockopt(sender.get(), SOL_SOCKET, SO_SNDBUF, &little, sizeof(little));
		::setsockopt(sender.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof(hour));
		if (::bind(listener.get(), name, size) || ::listen(listener.get(), 1) ||
		    ::getsockname(listener.get(), name, &size) ||
		    ::connect(sender.get(), name, size))
			throw std::system_error(errno, std::generic_category());
		reader.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
		const std::array<char, 4096> much{};
		while (::send(sender.get(), much.data(), much.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >
		       0)
			continue;
	}
	FileDescriptor sender, reader;
};

// Closing a descriptor that a client has sent may block for long. No card waits for that, including
// this one. While many such closes are pending, the server accepts no further descriptors.
TEST_F(ClientConnection, NumberOfFileDescriptorsThatBlockInCloseIsLimited)
{
	std::vector<FileDescriptor> readers;
	const auto file = make_memory(4096);
	const auto before = std::chrono::steady_clock::now();
	while (closing() < kMostClosing) {
		ASSERT_LT(readers.size(), 2 * kMostClosing);
		std::vector<FileDescriptor> senders;
		std::vector<int> sent;
		for (unsigned i = 0; i < pci::kMaxMessageFds; ++i) {
			Lingering one;
			sent.push_back(one.sender.get());
			senders.push_back(std::move(one.sender));
			readers.push_back(std::move(one.reader));
		}
		client().send(Command::reset, {}, sent);
		senders.clear();
		EXPECT_TRUE(client().wait_closed());
		EXPECT_EQ(connect().greet().error(), 0u);
	}
	EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::minutes(10));
	client().send(Command::dma_map, bytes_of(DmaMap{sizeof(DmaMap), 3, 0, 0, 4096}),
		      {file.get()});
	EXPECT_TRUE(client().wait_closed());
	EXPECT_EQ(connect().greet().error(), 0u);
	readers.clear();
	EXPECT_TRUE(loop_.run_until([] { return closing() == 0; }));
	client().map(0, 4096, file.get());
}

// The log output that a client can cause is limited, and the log reports how many lines were
// omitted.
TEST_F(ClientConnection, NumberOfLogLinesPerClientIsLimited)
{
	const CapturedLog log;
	FakeDevice other_device;
	Server other_server(loop_, other_device, "other");
	auto [ours, theirs] = FakeClient::make_sockets();
	other_server.serve(std::move(theirs));
	FakeClient other(loop_, std::move(ours));
	other.greet();
	for (int i = 0; i < 10000; ++i)
		EXPECT_NE(other.call(static_cast<Command>(999)).error(), 0u);
	EXPECT_GT(log.lines(), 10u);
	EXPECT_LT(log.lines(), 1000u);
	// The count of omitted lines is logged with a line in a later second.
	const auto end = Environment::host().now() + std::chrono::seconds(10);
	while (Environment::host().now() < end &&
	       log.text().find("lines more") == std::string::npos)
		other.call(static_cast<Command>(999));
	EXPECT_THAT(log.text(), ::testing::HasSubstr("lines more"));
}

// A client that does not read its replies is disconnected once they exceed the limit. They must not
// use more memory or block the loop.
TEST_F(ClientConnection, ClientThatDoesNotReadItsRepliesIsDisconnected)
{
	const auto request = bytes_of(RegionAccess{0, 0, kMaxDataTransfer});
	bool dropped = false;
	for (int i = 0; i < 100 && !dropped; ++i) {
		try {
			client().send(Command::region_read, request);
		} catch (const std::system_error &) {
		}
		loop_.poll();
		dropped = !server_.connected();
	}
	EXPECT_TRUE(dropped);
	EXPECT_EQ(connect().greet().error(), 0u);
}

// A slow client that does read gets complete replies.
TEST_F(ClientConnection, ClientThatReadsSlowlyGetsCompleteReplies)
{
	device_.memory(0)[kMaxDataTransfer - 1] = std::byte{3};
	for (int i = 0; i < 3; ++i)
		client().send(Command::region_read, bytes_of(RegionAccess{0, 0, kMaxDataTransfer}));
	loop_.poll();
	for (int i = 0; i < 3; ++i) {
		const auto reply = client().receive();
		ASSERT_EQ(reply.payload.size(), 16 + kMaxDataTransfer);
		EXPECT_EQ(reply.payload.back(), std::byte{3});
	}
	EXPECT_TRUE(client().quiet());
}

// The device is detached when the server is destroyed, with or without a client.
TEST(ServerLifetime, DestroyingTheServerDetachesTheDevice)
{
	Loop loop("test", Loop::Mode::manual);
	FakeDevice device;
	{
		Server server(loop, device, "card");
		EXPECT_TRUE(device.attached());
		auto [ours, theirs] = FakeClient::make_sockets();
		server.serve(std::move(theirs));
	}
	EXPECT_FALSE(device.attached());
	loop.poll();
}

// The loop has its own thread, and clients connect one after the other to a socket file.
TEST(ServerLifetime, NextClientCanConnectToTheSocketFileAfterThePreviousOneDisconnects)
{
	const auto directory = std::filesystem::temp_directory_path() /
			       ("weft-test-" + std::to_string(::getpid()));
	std::filesystem::create_directory(directory);
	// The directory belongs to the owner only, and so does the socket.
	using std::filesystem::perms;
	std::filesystem::permissions(directory, perms::owner_all);
	const auto path = directory / "card.sock";
	FakeDevice device;
	Loop loop("card");
	{
		Server server(loop, device, "card");
		server.listen(path);
		EXPECT_EQ(std::filesystem::status(path).permissions(),
			  perms::owner_read | perms::owner_write);
		for (int i = 0; i < 3; ++i) {
			Loop idle("client", Loop::Mode::manual);
			FakeClient client(idle, connect_unix(path));
			EXPECT_EQ(client.greet().error(), 0u);
			client.write_as<std::uint32_t>(0, 0, 77);
			EXPECT_EQ(client.read_as<std::uint32_t>(0, 0), 77u);
		}
		EXPECT_THROW(UnixListener{path}, std::system_error) << "it is in use";
	}
	EXPECT_FALSE(std::filesystem::exists(path));
	std::filesystem::remove_all(directory);
}

// A stale socket file of a dead process does not prevent the next start. Other files are never
// replaced.
TEST(ServerLifetime, StaleSocketFileIsReplaced)
{
	const auto directory = std::filesystem::temp_directory_path() /
			       ("weft-stale-" + std::to_string(::getpid()));
	std::filesystem::create_directory(directory);
	const auto path = directory / "card.sock";
	{
		UnixListener listener(path);
		std::filesystem::rename(path, directory / "left.sock");
	}
	std::filesystem::rename(directory / "left.sock", path);
	ASSERT_TRUE(std::filesystem::is_socket(path));
	{
		UnixListener listener(path);
		EXPECT_EQ(listener.path(), path);
	}
	EXPECT_FALSE(std::filesystem::exists(path));

	std::ofstream(path) << "precious";
	EXPECT_THROW(UnixListener{path}, std::system_error);
	EXPECT_EQ(std::filesystem::file_size(path), 8u);
	EXPECT_THROW(UnixListener{directory / std::string(200, 'x')}, std::system_error);
	std::filesystem::remove_all(directory);
}

} // namespace
} // namespace weft::vfio_user

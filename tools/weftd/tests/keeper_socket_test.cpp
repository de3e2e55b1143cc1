// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the socket to the keeper (--keeper): the program that holds the connections of the cards'
// clients, such as QEMU, open while weftd is replaced. The test acts as the keeper and as the
// clients.
#include "weftd/keeper_socket.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unix_listener.hpp"
#include "bus/vfio-user/testing/fake_client.hpp"
#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{
namespace
{

using namespace vfio_user;
using ::testing::ElementsAre;
using ::testing::MatchesRegex;
using ::testing::StartsWith;
using testing::Bytes;
using testing::bytes_of;
using testing::FakeClient;

// Time limit for a card's thread on a loaded host.
constexpr auto kTimeLimit = std::chrono::seconds(60);
constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kLongest = 16 << 10; // maximum length of a record

struct Record {
	std::string text;
	std::vector<FileDescriptor> fds;
};

std::string text_of(const Bytes &bytes)
{
	return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

std::string message(Command command, const Bytes &payload)
{
	const auto size = static_cast<std::uint32_t>(sizeof(Header) + payload.size());
	return text_of(
		bytes_of(Header{7, static_cast<std::uint16_t>(command), size, 0, 0}, payload));
}

const std::string kVersion =
	message(Command::version, bytes_of(VersionHeader{kVersionMajor, kVersionMinor}));

DmaMap section(std::uint64_t address)
{
	return {sizeof(DmaMap), kDmaReadable | kDmaWritable, 0, address, kPage};
}

FileDescriptor make_memory()
{
	FileDescriptor fd(::memfd_create("guest", MFD_CLOEXEC));
	if (::ftruncate(fd.get(), kPage))
		throw std::system_error(errno, std::generic_category(), "ftruncate");
	return fd;
}

ino_t file_of(const FileDescriptor &fd)
{
	struct stat status;
	if (::fstat(fd.get(), &status))
		throw std::system_error(errno, std::generic_category(), "fstat");
	return status.st_ino;
}

class KeeperSocketTest : public ::testing::Test
{
protected:
	KeeperSocketTest()
	    : directory_(std::filesystem::temp_directory_path() /
			 ("weft-keeper-" + std::to_string(::getpid())))
	{
		std::filesystem::remove_all(directory_);
		std::filesystem::create_directory(directory_);
		int ends[2];
		if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
			throw std::system_error(errno, std::generic_category(), "socketpair");
		ours_.emplace(loop_, FileDescriptor(ends[0]));
		const timeval time_limit{kTimeLimit.count(), 0};
		::setsockopt(ours_->fd(), SOL_SOCKET, SO_RCVTIMEO, &time_limit, sizeof(time_limit));
		keeper_.emplace(ends[1]);
		runtime_ =
			std::make_unique<LabRuntime>(default_lab(), directory_, nullptr, &*keeper_);
		keeper_->begin(loop_, *runtime_);
	}
	~KeeperSocketTest() override
	{
		keeper_->end();
		runtime_.reset();
		std::filesystem::remove_all(directory_);
	}

	// Sends a record, which weftd then handles. The descriptors stay open.
	void notify(const std::string &record, const std::vector<int> &fds = {})
	{
		ours_->send_raw(std::as_bytes(std::span(record)), fds);
		EXPECT_EQ(loop_.poll(), 1u);
	}
	// Returns the next record of weftd, or an empty one if none arrives in time.
	Record next_record()
	{
		std::array<char, kLongest> bytes;
		iovec data{bytes.data(), bytes.size()};
		alignas(cmsghdr) char control[CMSG_SPACE(kMaxMessageFds * sizeof(int))];
		msghdr header{};
		header.msg_iov = &data;
		header.msg_iovlen = 1;
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
		const auto size = ::recvmsg(ours_->fd(), &header, MSG_CMSG_CLOEXEC);
		if (size < 0)
			return {};
		Record record{{bytes.data(), static_cast<std::size_t>(size)}, {}};
		for (auto *part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part))
			for (std::size_t i = 0; i < (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			     ++i) {
				int fd;
				std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
				record.fds.emplace_back(fd);
			}
		return record;
	}
	// Returns true if weftd has sent nothing more.
	bool quiet()
	{
		char byte;
		return ::recv(ours_->fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
		       errno == EAGAIN;
	}

	FakeClient connect(const std::string &host)
	{
		return {connect_unix(directory_ / (host + ".sock")), kTimeLimit};
	}
	// Passes a connection to weftd, and returns the client's end of it.
	FakeClient adopt(const std::string &host, const std::string &id = "fed1")
	{
		auto [client, server] = FakeClient::make_sockets();
		notify("adopt " + host + "\n" + id, {server.get()});
		return {std::move(client), kTimeLimit};
	}
	// Checks that the client is disconnected, and that the program is notified with its ID.
	void expect_refused(const std::string &host, const std::string &id = "fed2")
	{
		auto client = adopt(host, id);
		EXPECT_TRUE(client.wait_closed());
		EXPECT_EQ(next_record().text, "gone " + host + "\n" + id);
	}
	// Checks that a client can be handed over.
	void expect_adopting(const std::string &host)
	{
		notify("restore " + host + "\n" + kVersion);
		auto client = adopt(host);
		EXPECT_EQ(client.call(Command::reset).error(), 0u);
		EXPECT_TRUE(quiet());
		client.close();
		EXPECT_EQ(next_record().text, "gone " + host + "\nfed1");
		synchronise();
	}
	// Waits until the cards have finished their pending work.
	void synchronise()
	{
		for (const auto &host : runtime_->hosts())
			host->loop->run([] {});
	}

	const std::filesystem::path directory_;
	std::optional<weft::testing::ClientSocket> ours_;
	Loop loop_{"test", Loop::Mode::manual};
	std::optional<KeeperSocket> keeper_;
	std::unique_ptr<LabRuntime> runtime_;
};

// The program receives the connection, and a copy of each message that sets up the session, with
// its descriptor. It receives no other message.
TEST_F(KeeperSocketTest, KeeperProcessGetsADuplicateOfEachClientSocketAndItsSetupMessages)
{
	auto client = connect("node2");
	const auto greeting = bytes_of(VersionHeader{kVersionMajor, kVersionMinor});
	ASSERT_EQ(client.call(Command::version, greeting).error(), 0u);
	client.read(kRegionConfig, 0, 4);
	const auto memory = make_memory();
	client.map(0, kPage, memory.get());

	const auto connected = next_record();
	EXPECT_THAT(connected.text, MatchesRegex("connected node2\n[0-9a-f]{16}"));
	ASSERT_EQ(connected.fds.size(), 1u);
	ASSERT_EQ(::send(connected.fds[0].get(), "here", 4, 0), 4);
	EXPECT_THAT((client.receive_as<std::array<char, 4>>()), ElementsAre('h', 'e', 'r', 'e'));

	const auto version = next_record(), map = next_record();
	EXPECT_THAT(version.text, StartsWith("received node2\n"));
	EXPECT_EQ(version.text.substr(version.text.find('\n') + 1 + sizeof(Header)),
		  text_of(greeting));
	EXPECT_TRUE(version.fds.empty());
	EXPECT_EQ(map.text.substr(map.text.find('\n') + 1 + sizeof(Header)),
		  text_of(bytes_of(section(0))));
	ASSERT_EQ(map.fds.size(), 1u);
	EXPECT_EQ(file_of(map.fds[0]), file_of(memory));

	EXPECT_TRUE(quiet());
	client.close();
	EXPECT_EQ(next_record().text, "gone" + connected.text.substr(connected.text.find(' ')));
}

// The client gets no reply to messages that another process has answered, and its memory is mapped.
TEST_F(KeeperSocketTest, ClientRestoredByTheKeeperProcessKeepsItsDmaMappings)
{
	const auto memory = make_memory();
	notify("restore node1\n" + kVersion);
	notify("restore node1\n" + message(Command::dma_map, bytes_of(section(kPage))),
	       {memory.get()});
	auto client = adopt("node1");
	EXPECT_TRUE(client.quiet());
	EXPECT_EQ(client.call(Command::dma_map, bytes_of(section(kPage)), {memory.get()}).error(),
		  static_cast<std::uint32_t>(EEXIST));
	EXPECT_THAT(next_record().text, StartsWith("received node1\n"));
	EXPECT_TRUE(quiet());
}

TEST_F(KeeperSocketTest, KeeperProcessCannotRestoreAClientOfAnUnknownHost)
{
	notify("restore nobody\n" + kVersion);
	expect_refused("nobody");
	expect_refused("sm");
	expect_refused("");
	expect_adopting("node1");
}

// A record that is too long or has too many descriptors is ignored, and the client is not adopted
// without it. The next client is adopted.
TEST_F(KeeperSocketTest, ClientIsNotRestoredIfItsRecordFromTheKeeperProcessIsTruncated)
{
	notify("restore node1\n" + std::string(kLongest, 'x'));
	expect_refused("node1");
	expect_adopting("node1");

	const auto memory = make_memory();
	notify("restore node1\n" + kVersion);
	notify("restore node1\n" + message(Command::dma_map, bytes_of(section(0))),
	       std::vector<int>(kMaxMessageFds + 1, memory.get()));
	expect_refused("node1");
	expect_adopting("node1");

	notify("restore node1\n" + kVersion);
	notify("adopt node1\n" + std::string(kLongest, 'x'), {memory.get()});
	EXPECT_EQ(next_record().text, "gone node1\n");
	expect_adopting("node1");
}

TEST_F(KeeperSocketTest, ClientIsNotRestoredIfItsRecordFromTheKeeperProcessIsInvalid)
{
	for (const char *record : {"\n", "hello\n", " node1\n", "RESTORE node2\n"}) {
		notify(record);
		EXPECT_TRUE(quiet()) << record;
	}
	expect_refused("node1");
	expect_refused("node2");
	const auto memory = make_memory();
	notify("restore node1\n" + kVersion);
	notify("adopt node1\n");
	EXPECT_EQ(next_record().text, "gone node1\n");
	notify("adopt node1\n", {memory.get()});
	EXPECT_EQ(next_record().text, "gone node1\n") << "it is no socket";
	expect_adopting("node1");
	expect_adopting("node2");
}

// The limit applies to each card. Messages that were kept are released.
TEST_F(KeeperSocketTest, ClientIsNotRestoredIfItHasTooManySetupMessages)
{
	const auto memory = make_memory();
	const auto descriptors = [this] {
		synchronise();
		const std::filesystem::directory_iterator open("/proc/self/fd");
		return std::distance(begin(open), end(open));
	};
	const auto before = descriptors();
	const auto map = message(Command::dma_map, bytes_of(section(0)));
	for (const char *host : {"node1", "node2"}) {
		notify(std::string("restore ") + host + "\n" + kVersion);
		for (std::size_t i = 1; i < KeeperSocket::kMostRestored; ++i)
			notify(std::string("restore ") + host + "\n" + map, {memory.get()});
	}
	notify("restore node1\n" + map, {memory.get()});
	notify("restore node1\n" + map, {memory.get()});
	expect_refused("node1");
	auto client = adopt("node2");
	EXPECT_EQ(client.call(Command::reset).error(), 0u);
	client.close();
	EXPECT_EQ(next_record().text, "gone node2\nfed1");
	expect_adopting("node1");
	EXPECT_EQ(descriptors(), before);
}

// If another client uses the card, the program is notified. It would otherwise keep the connection
// open, and the client would wait for replies. An earlier version of the program gives no ID. It is
// not notified, because it would then disconnect the other client.
TEST_F(KeeperSocketTest, SecondClientOfACardIsRefused)
{
	auto present = connect("node1");
	ASSERT_EQ(present.greet().error(), 0u);
	const auto connected = next_record();
	EXPECT_THAT(next_record().text, StartsWith("received node1\n"));
	notify("restore node1\n" + kVersion);
	expect_refused("node1");
	notify("restore node1\n" + kVersion);
	EXPECT_TRUE(adopt("node1", "").wait_closed());
	EXPECT_TRUE(quiet());
	EXPECT_EQ(present.call(Command::reset).error(), 0u);
	present.close();
	EXPECT_EQ(next_record().text, "gone" + connected.text.substr(connected.text.find(' ')));
}

// weftd continues without the program, and does not spin on the closed socket.
TEST_F(KeeperSocketTest, DaemonServesClientsAfterTheKeeperProcessExits)
{
	auto client = connect("node1");
	client.greet();
	ours_->close();
	EXPECT_EQ(loop_.poll(), 1u);
	EXPECT_EQ(loop_.poll(), 0u);
	const auto memory = make_memory();
	client.map(0, kPage, memory.get());
	client.close();
	auto next = connect("node1");
	EXPECT_EQ(next.greet().error(), 0u);
}

TEST(KeeperOption, FileDescriptorThatIsNoSeqpacketSocketIsRefused)
{
	auto [stream, other] = FakeClient::make_sockets();
	EXPECT_THROW(KeeperSocket{::dup(stream.get())}, std::system_error);
	EXPECT_THROW(KeeperSocket{::dup(make_memory().get())}, std::system_error);
}

} // namespace
} // namespace weft::weftd

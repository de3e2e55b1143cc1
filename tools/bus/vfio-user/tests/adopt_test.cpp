// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that a server takes over the connections of clients from another process, and what it
// reports about its clients to a keeper (the process that holds connections open while weftd is
// replaced).
#include <array>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bus/pci/keeper.hpp"
#include "bus/vfio-user/interrupts.hpp"
#include "bus/vfio-user/session.hpp"
#include "bus/vfio-user/tests/fixture.hpp"

namespace weft::vfio_user
{
namespace
{

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kFewMappings = 3;
// The keeper's ID of the connections that it hands over.
const std::string kId = "0123456789abcdef";

class RecordingKeeper final : public pci::Keeper
{
public:
	void connected(const std::string &name, const std::string &id, int) override
	{
		calls.push_back("+" + name);
		ids.push_back(id);
	}
	void received(const std::string &, const pci::Message &message) override
	{
		calls.push_back(std::to_string(message.header<Header>().command) + "/" +
				std::to_string(message.fds.size()));
	}
	void gone(const std::string &name, const std::string &id) override
	{
		calls.push_back("-" + name);
		ids.push_back(id);
	}

	std::vector<std::string> calls;
	std::vector<std::string> ids; // the ID of each connected or disconnected client
};

class ClientAdoption : public ::testing::Test
{
protected:
	ClientAdoption() { server_.keep(keeper_); }

	static FileDescriptor copy_of(const FileDescriptor &fd)
	{
		return FileDescriptor(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
	}
	static FileDescriptor make_event()
	{
		return FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	}
	static FileDescriptor make_memory(std::uint64_t size)
	{
		FileDescriptor fd(::memfd_create("guest", MFD_CLOEXEC));
		if (::ftruncate(fd.get(), static_cast<off_t>(size)))
			throw std::system_error(errno, std::generic_category(), "ftruncate");
		return fd;
	}
	// Records a message that the client has sent to the former process.
	void note(Command command, const Bytes &payload, std::vector<FileDescriptor> fds = {})
	{
		const auto size = static_cast<std::uint32_t>(sizeof(Header) + payload.size());
		const Header header{77, static_cast<std::uint16_t>(command), size, 0, 0};
		setup_.push_back({bytes_of(header, payload), std::move(fds)});
	}
	void note_version(std::uint16_t major = kVersionMajor)
	{
		note(Command::version, bytes_of(VersionHeader{major, kVersionMinor}));
	}
	void note_memory(std::uint64_t address, std::uint64_t size, const FileDescriptor &file)
	{
		std::vector<FileDescriptor> fds;
		fds.push_back(copy_of(file));
		note(Command::dma_map, bytes_of(DmaMap{sizeof(DmaMap), 3, 0, address, size}),
		     std::move(fds));
	}
	// Hands the client over with the recorded messages.
	FakeClient &adopt()
	{
		auto [ours, theirs] = FakeClient::make_sockets();
		client_.emplace(loop_, std::move(ours));
		server_.adopt(std::move(theirs), std::exchange(setup_, {}), kId);
		return *client_;
	}
	FakeClient &client() { return *client_; }
	GuestMemory &memory() { return device_.host().dma(); }
	// Checks that the server accepts another client.
	void expect_serving()
	{
		auto [ours, theirs] = FakeClient::make_sockets();
		client_.emplace(loop_, std::move(ours));
		server_.serve(std::move(theirs));
		EXPECT_EQ(client_->greet().error(), 0u);
	}

	Loop loop_{"test", Loop::Mode::manual};
	FakeDevice device_, other_device_;
	RecordingKeeper keeper_;
	Server server_{loop_, device_, "card", kFewMappings};
	std::vector<pci::KeptMessage> setup_;
	std::optional<FakeClient> client_;
};

// The client keeps its memory and its interrupt pin. It gets no reply twice, and the device is in
// its state after power-on.
TEST_F(ClientAdoption, ClientOfAFormerServerProcessKeepsItsDmaMappingsAndInterruptEventfd)
{
	const auto file = make_memory(2 * kPage), event = make_event();
	note_version();
	note_memory(0x10000, 2 * kPage, file);
	std::vector<FileDescriptor> pin;
	pin.push_back(copy_of(event));
	note(Command::set_irqs,
	     bytes_of(IrqSet{20, kIrqSetDataEventfd | kIrqSetActionTrigger, kIrqIntx, 0, 1}),
	     std::move(pin));
	adopt();
	EXPECT_TRUE(client().quiet());
	EXPECT_TRUE(server_.connected());
	EXPECT_THAT(device_.resets, ElementsAre(PciReset::bus));

	ASSERT_TRUE(memory().write_as<std::uint32_t>(0x11004, 0xabcdef01));
	std::uint32_t seen = 0;
	ASSERT_EQ(::pread(file.get(), &seen, sizeof(seen), kPage + 4), 4);
	EXPECT_EQ(seen, 0xabcdef01);
	device_.host().set_intx(true);
	std::uint64_t count = 0;
	ASSERT_EQ(::read(event.get(), &count, sizeof(count)), 8);
	EXPECT_EQ(count, 1u);

	EXPECT_EQ(client().read_as<std::uint16_t>(kRegionConfig, 0), 0x1af4);
	EXPECT_EQ(client().greet().error(), EINVAL) << "it was greeted by the former process";
	client().map(0, kPage, file.get());
	EXPECT_THAT(keeper_.calls, ElementsAre("1/0", "2/1"))
		<< "the keeper knows of the client and of what it was handed over with";
}

// When the client disconnects, its memory and descriptors are released, and the keeper is notified.
TEST_F(ClientAdoption, DmaMappingsOfAnAdoptedClientAreRemovedWhenTheClientDisconnects)
{
	const auto file = make_memory(kPage);
	note_version();
	note_memory(0, kPage, file);
	adopt();
	EXPECT_EQ(memory().mappings(), 1u);
	client().close();
	ASSERT_TRUE(loop_.run_until([&] { return !server_.connected(); }));
	EXPECT_EQ(memory().mappings(), 0u);
	EXPECT_THAT(keeper_.calls, ElementsAre("-card"));
	EXPECT_THAT(keeper_.ids, ElementsAre(kId));
	expect_serving();
}

// Mappings beyond the limit are refused, as for any client. The others stay.
TEST_F(ClientAdoption, DmaMappingsAboveTheLimitAreRefused)
{
	const auto file = make_memory(kPage);
	note_version();
	for (std::uint64_t i = 0; i < kFewMappings + 2; ++i)
		note_memory(i * kPage, kPage, file);
	adopt();
	EXPECT_EQ(memory().mappings(), kFewMappings);
	EXPECT_TRUE(memory().covers((kFewMappings - 1) * kPage, 1, Access::write));
	EXPECT_FALSE(memory().covers(kFewMappings * kPage, 1, Access::read));
	EXPECT_TRUE(client().quiet());
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
}

// Messages that are malformed, too short, repeated, or without their descriptor have no effect.
// Later messages do.
TEST_F(ClientAdoption, InvalidMessagesAreSkippedWhenTheSetupOfAnAdoptedClientIsReplayed)
{
	const auto file = make_memory(kPage), event = make_event();
	setup_.push_back({Bytes(), {}});
	setup_.push_back({Bytes(sizeof(Header) - 1), {}});
	note_version();
	note_version();
	note(Command::dma_map, Bytes(sizeof(DmaMap) - 1));
	note(static_cast<Command>(99), {});
	note_memory(1, kPage, file);
	note_memory(kPage, 2 * kPage, file);
	note_memory(kPage, kPage, event);
	note(Command::set_irqs, Bytes(sizeof(IrqSet) - 1));
	note_memory(0, kPage, file);
	adopt();
	EXPECT_EQ(memory().mappings(), 1u);
	EXPECT_TRUE(memory().covers(0, kPage, Access::write));
	EXPECT_TRUE(client().quiet());
	EXPECT_EQ(client().call(Command::reset).error(), 0u);
}

// A client that was handed over without its VERSION message must send one before any other request.
TEST_F(ClientAdoption, RequestsBeforeTheVersionMessageAreRefused)
{
	const auto file = make_memory(kPage);
	note_memory(0, kPage, file);
	adopt();
	EXPECT_EQ(memory().mappings(), 0u);
	EXPECT_EQ(client().call(Command::reset).error(), EINVAL);
	EXPECT_EQ(client().greet().error(), 0u);
}

// A client that cannot be served is disconnected, and the keeper releases the connection, so that
// the client does not wait for replies.
TEST_F(ClientAdoption, ClientWithAnotherProtocolVersionIsDisconnected)
{
	const auto file = make_memory(kPage);
	note_version(kVersionMajor + 1);
	note_memory(0, kPage, file);
	adopt();
	EXPECT_TRUE(client().wait_closed());
	EXPECT_FALSE(server_.connected());
	EXPECT_EQ(memory().mappings(), 0u);
	EXPECT_THAT(keeper_.calls, ElementsAre("-card"));
	EXPECT_THAT(keeper_.ids, ElementsAre(kId));
	expect_serving();
}

// A card that fails while it receives the memory loses its client. Its caller continues, because it
// also hands over the clients of other cards.
TEST_F(ClientAdoption, CardFailureDuringAdoptionDisconnectsTheClientButAdoptDoesNotThrow)
{
	const auto file = make_memory(kPage);
	device_.fail_next_memory_change = true;
	note_version();
	note_memory(0, kPage, file);
	EXPECT_NO_THROW(adopt());
	EXPECT_TRUE(client().wait_closed());
	EXPECT_FALSE(server_.connected());
	EXPECT_TRUE(device_.attached());
	EXPECT_EQ(memory().mappings(), 0u);
	EXPECT_THAT(keeper_.calls, ElementsAre("-card"));
	EXPECT_THAT(keeper_.ids, ElementsAre(kId));
	expect_serving();
}

// If the card cannot serve the client, the keeper must not keep the connection open.
TEST_F(ClientAdoption, ClientIsRefusedWhileItsCardCannotBeReset)
{
	device_.fail_next_memory_change = true;
	device_.failing_resets = ~0u;
	const auto file = make_memory(kPage);
	note_version();
	note_memory(0, kPage, file);
	adopt();
	ASSERT_FALSE(device_.attached());
	keeper_.calls.clear();
	keeper_.ids.clear();
	note_version();
	EXPECT_TRUE(adopt().wait_closed());
	EXPECT_THAT(keeper_.calls, ElementsAre("-card"));
	EXPECT_THAT(keeper_.ids, ElementsAre(kId));
	device_.failing_resets = 0;
	ASSERT_TRUE(loop_.run_until([&] { return device_.attached(); }));
	expect_serving();
}

// The same holds if the client's session cannot be created, so that there is no connection yet.
TEST_F(ClientAdoption, AdoptedClientIsDisconnectedIfAllocationOfItsSessionFails)
{
	class NoMemory final : public pci::Protocol
	{
	public:
		explicit NoMemory(Loop &loop) : interrupts_(loop, 1, true) {}
		const pci::Framing &framing() const override { return kFraming; }
		pci::Interrupts &interrupts() override { return interrupts_; }
		std::unique_ptr<pci::Session> begin(pci::Endpoint &,
						    std::shared_ptr<spdlog::logger>) override
		{
			throw std::bad_alloc();
		}

	private:
		Interrupts interrupts_;
	};
	FakeDevice device;
	pci::Server server(
		loop_, device, "other",
		[](Loop &loop, const PciDescription &) { return std::make_unique<NoMemory>(loop); },
		kFewMappings);
	server.keep(keeper_);
	auto [ours, theirs] = FakeClient::make_sockets();
	FakeClient client(loop_, std::move(ours));
	server.adopt(std::move(theirs), {}, kId);
	EXPECT_TRUE(client.wait_closed());
	EXPECT_FALSE(server.connected());
	EXPECT_TRUE(device.attached());
	EXPECT_THAT(keeper_.calls, ElementsAre("-other"));
	EXPECT_THAT(keeper_.ids, ElementsAre(kId));
}

// A client that has connected in the meantime keeps the card. The keeper is notified of the refused
// one by its ID; if it has given none, it is not notified, because it would take the present client
// for the refused one.
TEST_F(ClientAdoption, SecondClientOfACardIsRefused)
{
	expect_serving();
	auto &present = client();
	for (const auto &id : {kId, std::string()}) {
		keeper_.calls.clear();
		keeper_.ids.clear();
		auto [ours, theirs] = FakeClient::make_sockets();
		FakeClient late(loop_, std::move(ours));
		note_version();
		server_.adopt(std::move(theirs), std::exchange(setup_, {}), id);
		EXPECT_TRUE(late.wait_closed());
		EXPECT_EQ(present.call(Command::reset).error(), 0u);
		if (id.empty())
			EXPECT_THAT(keeper_.calls, IsEmpty());
		else
			EXPECT_THAT(keeper_.calls, ElementsAre("-card"));
		EXPECT_THAT(keeper_.ids, Each(id));
	}
}

// Each connection has an ID of its own, also if another process serves the card.
TEST_F(ClientAdoption, EachConnectionHasAUniqueId)
{
	Server other(loop_, other_device_, "other", kFewMappings);
	other.keep(keeper_);
	for (Server *const server : {&server_, &other})
		for (unsigned i = 0; i < 2; ++i) {
			auto [ours, theirs] = FakeClient::make_sockets();
			FakeClient client(loop_, std::move(ours));
			server->serve(std::move(theirs));
			client.close();
			ASSERT_TRUE(loop_.run_until([&] { return !server->connected(); }));
		}
	ASSERT_EQ(keeper_.ids.size(), 8u);
	std::set<std::string> ids;
	for (std::size_t i = 0; i < keeper_.ids.size(); i += 2) {
		EXPECT_EQ(keeper_.ids[i], keeper_.ids[i + 1]) << "of one connection";
		EXPECT_THAT(keeper_.ids[i], MatchesRegex("[0-9a-f]{16}"));
		ids.insert(keeper_.ids[i]);
	}
	EXPECT_EQ(ids.size(), 4u);
}

// A client that has disconnected before the handover leaves nothing behind.
TEST_F(ClientAdoption, AdoptionOfADisconnectedClientLeaksNoResources)
{
	const auto file = make_memory(kPage);
	auto [ours, theirs] = FakeClient::make_sockets();
	ours.reset();
	note_version();
	note_memory(0, kPage, file);
	server_.adopt(std::move(theirs), std::exchange(setup_, {}), kId);
	ASSERT_TRUE(loop_.run_until([&] { return !server_.connected(); }));
	EXPECT_EQ(memory().mappings(), 0u);
	EXPECT_THAT(keeper_.calls, ElementsAre("-card"));
	EXPECT_THAT(keeper_.ids, ElementsAre(kId));
	expect_serving();
}

} // namespace
} // namespace weft::vfio_user

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends the vfio-user server an arbitrary byte stream with file descriptors. No input may cause an
// access outside of a buffer, region or mapping, or block the loop. The first byte of the input
// selects how the rest is sent.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/loop.hpp"
#include "bus/pci/endpoint.hpp"
#include "bus/vfio-user/session.hpp"
#include "bus/vfio-user/testing/fake_client.hpp"
#include "bus/pci/testing/fake_device.hpp"

namespace
{

using namespace weft;
using namespace weft::vfio_user;

constexpr std::size_t kGuestFile = 64 << 10;

// Bits of the first byte.
constexpr unsigned kGreet = 1 << 0;       // VERSION has been exchanged already
constexpr unsigned kFramed = 1 << 1;      // each message gets a header with the correct size
constexpr unsigned kDescriptors = 1 << 2; // each read returns descriptors
constexpr unsigned kSmallReads = 1 << 3;  // the stream arrives in small reads

struct Fixture {
	Fixture()
	{
		spdlog::set_level(spdlog::level::off);
		if (::ftruncate(guest.get(), kGuestFile))
			std::abort();
		device.description().bars[0].size = 16 << 10;
		device.description().bars[2].size = 64 << 10;
	}
	Loop loop{"fuzz", Loop::Mode::manual};
	testing::FakeDevice device;
	FileDescriptor guest{::memfd_create("guest", MFD_CLOEXEC)};
	FileDescriptor event{::eventfd(0, EFD_CLOEXEC)};
};

std::vector<FileDescriptor> descriptors(const Fixture &fixture)
{
	std::vector<FileDescriptor> fds;
	fds.emplace_back(::dup(fixture.guest.get()));
	return fds;
}

// Simulates a client from connect to disconnect with the input.
class Client
{
public:
	Client(Fixture &fixture, unsigned how)
	    : fixture_(fixture), how_(how),
	      interrupts_(fixture.loop, fixture.device.description().msix.vectors, true),
	      endpoint_(fixture.loop, fixture.device, interrupts_, spdlog::default_logger(),
			kMaxDmaMaps),
	      reader_(kFraming), session_(endpoint_, interrupts_, spdlog::default_logger())
	{
		if (how & kGreet)
			feed(testing::bytes_of(Header{1, 1, 20, 0, 0}, VersionHeader{0, 1}));
	}
	~Client()
	{
		endpoint_.release();
		fixture_.loop.poll();
	}

	void feed(std::span<const std::byte> bytes)
	{
		while (!bytes.empty() && alive()) {
			const auto space = reader_.space();
			auto size = std::min(space.size(), bytes.size());
			if (how_ & kSmallReads)
				size = std::min<std::size_t>(size, 7);
			std::memcpy(space.data(), bytes.data(), size);
			bytes = bytes.subspan(size);
			reader_.filled(size, how_ & kDescriptors ? descriptors(fixture_)
								 : std::vector<FileDescriptor>());
			handle();
		}
	}

	// Sends messages from @input: command, flags, a size, and that many bytes of payload.
	void feed_framed(std::span<const std::byte> input)
	{
		constexpr std::size_t head = 4;
		while (input.size() >= head && alive()) {
			const auto size = std::min<std::size_t>(
				std::to_integer<std::size_t>(input[2]), input.size() - head);
			const Header header{std::to_integer<std::uint16_t>(input[3]),
					    std::to_integer<std::uint16_t>(input[0]),
					    static_cast<std::uint32_t>(sizeof(Header) + size),
					    std::to_integer<std::uint32_t>(input[1]) & kFlagNoReply,
					    0};
			feed(testing::bytes_of(header, input.subspan(head, size)));
			input = input.subspan(head + size);
		}
	}

private:
	bool alive() const { return !reader_.failed() && !session_.ended(); }

	void handle()
	{
		while (auto message = reader_.next()) {
			const auto reply = session_.handle(*message);
			if (session_.ended())
				return;
			check(*message, reply);
			// The device uses the memory and interrupts that it was given.
			endpoint_.raise_msix(0);
			endpoint_.set_intx(true);
			endpoint_.dma().fetch_add(0x1000, 1);
			endpoint_.set_intx(false);
		}
	}

	// Checks that every request that wants a reply has a well-formed one.
	static void check(const Message &message, std::span<const std::byte> reply)
	{
		const auto request = message.header<Header>();
		if (request.flags & kFlagNoReply) {
			if (!reply.empty())
				std::abort();
			return;
		}
		Header header;
		if (reply.size() < sizeof(header))
			std::abort();
		std::memcpy(&header, reply.data(), sizeof(header));
		if (header.size != reply.size() || header.id != request.id ||
		    header.command != request.command)
			std::abort();
	}

	Fixture &fixture_;
	unsigned how_;
	Interrupts interrupts_;
	pci::Endpoint endpoint_;
	pci::MessageReader reader_;
	Session session_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static Fixture fixture;
	if (!size)
		return 0;
	const std::span input(reinterpret_cast<const std::byte *>(data) + 1, size - 1);
	{
		Client client(fixture, data[0]);
		if (data[0] & kFramed)
			client.feed_framed(input);
		else
			client.feed(input);
	}
	fixture.device.writes.clear();
	fixture.device.resets.clear();
	fixture.device.bus_master.clear();
	return 0;
}

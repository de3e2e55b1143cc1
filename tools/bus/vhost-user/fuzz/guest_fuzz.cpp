// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends the vhost-user server arbitrary requests and queue contents, as a malicious guest can. No
// input may cause an access outside of a buffer, region or mapping, or block the device. The first
// byte of the input selects how the rest is sent.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/loop.hpp"
#include "bus/pci/endpoint.hpp"
#include "bus/pci/testing/client_socket.hpp"
#include "bus/pci/testing/fake_device.hpp"
#include "bus/vhost-user/session.hpp"

namespace
{

using namespace weft;
using namespace weft::vhost_user;
using testing::bytes_of;

constexpr std::uint64_t kGuestMemory = 64 << 10;

// Bits of the first byte.
constexpr unsigned kGreet = 1 << 0; // both queues are set up already
constexpr unsigned kFramed =
	1 << 1; // requests of the right size, and changes of memory between them
constexpr unsigned kDescriptors = 1 << 2; // each read returns a descriptor
constexpr unsigned kSmallReads = 1 << 3;  // the stream is read in small parts

// Locations of the queues, if they are set up.
constexpr std::uint64_t kRing[kQueues] = {0x0000, 0x3000};
constexpr std::uint32_t kEntries = 16;

struct Fixture {
	Fixture()
	{
		spdlog::set_level(spdlog::level::off);
		int ends[2];
		if (::ftruncate(guest.get(), kGuestMemory) || ::pipe2(ends, O_CLOEXEC | O_NONBLOCK))
			std::abort();
		reader.reset(ends[0]);
		writer.reset(ends[1]);
		void *place = ::mmap(nullptr, kGuestMemory, PROT_READ | PROT_WRITE, MAP_SHARED,
				     guest.get(), 0);
		if (place == MAP_FAILED)
			std::abort();
		memory = {static_cast<std::byte *>(place), kGuestMemory};
		device.description().bars[0].size = 16 << 10;
		device.description().bars[2].size = 64 << 10;
	}
	Loop loop{"fuzz", Loop::Mode::manual};
	testing::FakeDevice device;
	FileDescriptor guest{::memfd_create("guest", MFD_CLOEXEC)};
	FileDescriptor reader;
	FileDescriptor writer;
	std::span<std::byte> memory;
};

// The input determines all actions of the guest.
class Guest
{
public:
	Guest(Fixture &fixture, unsigned how)
	    : fixture_(fixture), how_(how), interrupts_(fixture.device.description().msix.vectors),
	      endpoint_(fixture.loop, fixture.device, interrupts_, spdlog::default_logger(),
			kMaxRegions),
	      session_(endpoint_, interrupts_, spdlog::default_logger()), reader_(kFraming)
	{
		std::memset(fixture.memory.data(), 0, fixture.memory.size());
		if (how & kGreet)
			greet();
	}
	~Guest()
	{
		endpoint_.release();
		fixture_.loop.poll();
		drain();
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
			std::vector<FileDescriptor> fds;
			if (how_ & kDescriptors)
				fds.emplace_back(::dup(fixture_.guest.get()));
			reader_.filled(size, std::move(fds));
			handle();
		}
	}

	// Executes steps from @input: a code, a size, and that many bytes. Codes that are not
	// requests write to memory, at a position in two bytes.
	void feed_framed(std::span<const std::byte> input)
	{
		constexpr std::size_t head = 2;
		while (input.size() >= head && alive()) {
			const auto code = std::to_integer<std::uint32_t>(input[0]);
			const auto size = std::min<std::size_t>(
				std::to_integer<std::size_t>(input[1]), input.size() - head);
			const auto data = input.subspan(head, size);
			input = input.subspan(head + size);
			if (code < 64)
				request(static_cast<Request>(code), data);
			else if (code < 128)
				request(Request::vring_kick, bytes_of(VringState{code % 2, 0}));
			else if (data.size() > 2)
				poke(data);
		}
	}

private:
	bool alive() const { return !reader_.failed() && !session_.ended(); }

	template<typename T>
	void request(Request request, const T &payload)
	{
		const auto bytes = bytes_of(payload);
		feed(bytes_of(Header{static_cast<std::uint32_t>(request), kVersion | kFlagNeedReply,
				     static_cast<std::uint32_t>(bytes.size())},
			      bytes));
	}

	void poke(std::span<const std::byte> data)
	{
		const auto place = (std::to_integer<std::size_t>(data[0]) |
				    std::to_integer<std::size_t>(data[1]) << 8);
		data = data.subspan(2);
		data = data.first(std::min(data.size(), fixture_.memory.size() - place));
		std::ranges::copy(data,
				  fixture_.memory.begin() + static_cast<std::ptrdiff_t>(place));
	}

	void with_descriptor(Request request, const testing::Bytes &payload, int fd)
	{
		const auto bytes = bytes_of(Header{static_cast<std::uint32_t>(request),
						   kVersion | kFlagNeedReply,
						   static_cast<std::uint32_t>(payload.size())},
					    payload);
		std::memcpy(reader_.space().data(), bytes.data(), bytes.size());
		std::vector<FileDescriptor> fds;
		fds.emplace_back(::dup(fd));
		reader_.filled(bytes.size(), std::move(fds));
		handle();
	}

	void greet()
	{
		request(Request::set_protocol_features, Integer{kProtocolFeatures});
		with_descriptor(Request::set_backend_request_fd, {}, fixture_.writer.get());
		with_descriptor(Request::set_mem_table,
				bytes_of(MemoryTable{1, 0}, MemoryRegion{0, kGuestMemory, 0, 0}),
				fixture_.guest.get());
		for (std::uint32_t queue = 0; queue < kQueues; ++queue) {
			request(Request::set_vring_num, VringState{queue, kEntries});
			request(Request::set_vring_addr,
				VringAddresses{queue, 0, kRing[queue], kRing[queue] + 0x2000,
					       kRing[queue] + 0x1000, 0});
			request(Request::set_vring_enable, VringState{queue, 1});
		}
	}

	void handle()
	{
		while (auto message = reader_.next()) {
			const auto header = message->header<Header>();
			const auto reply = session_.handle(*message);
			if (session_.ended())
				return;
			check(header, reply);
			// The device uses the memory and interrupts that it was given.
			endpoint_.raise_msix(0);
			endpoint_.set_intx(true);
			endpoint_.dma().fetch_add(0x1000, 1);
			endpoint_.set_intx(false);
			drain();
		}
	}

	// Checks that a reply is well-formed and belongs to its request.
	static void check(const Header &request, std::span<const std::byte> reply)
	{
		if (reply.empty())
			return;
		Header header;
		if (reply.size() != sizeof(header) + sizeof(std::uint64_t))
			std::abort();
		std::memcpy(&header, reply.data(), sizeof(header));
		if (header.request != request.request || header.flags != (kVersion | kFlagReply) ||
		    header.size != sizeof(std::uint64_t))
			std::abort();
	}

	void drain()
	{
		char bytes[4096];
		while (::read(fixture_.reader.get(), bytes, sizeof(bytes)) > 0) {
		}
	}

	Fixture &fixture_;
	unsigned how_;
	Interrupts interrupts_;
	pci::Endpoint endpoint_;
	Session session_;
	pci::MessageReader reader_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
	static Fixture fixture;
	if (!size)
		return 0;
	const std::span input(reinterpret_cast<const std::byte *>(data) + 1, size - 1);
	{
		Guest guest(fixture, data[0]);
		if (data[0] & kFramed)
			guest.feed_framed(input);
		else
			guest.feed(input);
	}
	fixture.device.writes.clear();
	fixture.device.resets.clear();
	fixture.device.bus_master.clear();
	return 0;
}

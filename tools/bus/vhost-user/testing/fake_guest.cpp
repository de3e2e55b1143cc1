// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vhost-user/testing/fake_guest.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace weft::testing
{

using namespace vhost_user;

namespace
{

FileDescriptor make_file(std::uint64_t size)
{
	FileDescriptor fd(::memfd_create("guest", MFD_CLOEXEC));
	if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)))
		throw std::system_error(errno, std::generic_category(), "memfd_create");
	return fd;
}

// Addresses of the command, of the answer, and of buffers for messages.
constexpr std::uint64_t kCommandPlace = FakeGuest::kBuffers;
constexpr std::uint64_t kAnswerPlace = FakeGuest::kBuffers + 0x8000;
constexpr std::uint64_t kMessagePlace = FakeGuest::kBuffers + 0x10000;
constexpr std::uint64_t kMessageSize = 0x100;

} // namespace

FakeGuest::FakeGuest(Loop &loop, FileDescriptor socket)
    : ClientSocket(loop, std::move(socket)), file_(make_file(kMemorySize)),
      memory_(MemoryMapping::map_file(file_.get(), 0, kMemorySize, true)),
      queues_{{kMemory, kMemory + 0x1000, kMemory + 0x2000},
	      {kMemory + 0x4000, kMemory + 0x5000, kMemory + 0x6000}}
{
}

void FakeGuest::send(Request request, const Bytes &payload, const std::vector<int> &fds,
		     std::uint32_t flags)
{
	const Header header{static_cast<std::uint32_t>(request), kVersion | flags,
			    static_cast<std::uint32_t>(payload.size())};
	send_raw(bytes_of(header, payload), fds);
}

std::uint64_t FakeGuest::call(Request request, const Bytes &payload, const std::vector<int> &fds)
{
	send(request, payload, fds);
	const auto header = receive_as<Header>();
	if (header.request != static_cast<std::uint32_t>(request) ||
	    header.flags != (kVersion | kFlagReply) || header.size != sizeof(std::uint64_t))
		throw std::runtime_error("a reply that is not to this request");
	return receive_as<std::uint64_t>();
}

void FakeGuest::agree()
{
	send(Request::set_owner, {}, {}, 0);
	// With this feature the server reports errors, so even these requests get replies.
	if (call(Request::set_protocol_features, bytes_of(call(Request::get_protocol_features))) ||
	    call(Request::set_features, bytes_of(call(Request::get_features))))
		throw std::runtime_error("the server refuses its own features");
}

std::uint64_t FakeGuest::share_memory()
{
	// UML's memory table has space for two regions, and it uses one.
	return call(Request::set_mem_table,
		    bytes_of(MemoryTable{1, 0},
			     MemoryRegion{kMemory, kMemorySize, kMemory + kClientOffset, 0},
			     MemoryRegion{}),
		    {memory_fd()});
}

std::uint64_t FakeGuest::set_channel()
{
	int ends[2];
	if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		throw std::system_error(errno, std::generic_category(), "pipe2");
	calls_.reset(ends[0]);
	const FileDescriptor theirs(ends[1]);
	return call(Request::set_backend_request_fd, {}, {theirs.get()});
}

std::uint64_t FakeGuest::place(std::uint32_t number)
{
	const Queue &queue = queues_.at(number);
	if (const auto error = call_with(Request::set_vring_num, VringState{number, kEntries}))
		return error;
	if (const auto error = call_with(Request::set_vring_base, VringState{number, 0}))
		return error;
	return call_with(Request::set_vring_addr,
			 VringAddresses{number, 0, queue.descriptors + kClientOffset,
					queue.used + kClientOffset, queue.available + kClientOffset,
					~std::uint64_t{0}});
}

std::uint64_t FakeGuest::enable(std::uint32_t number, bool on)
{
	return call_with(Request::set_vring_enable, VringState{number, on});
}

std::uint64_t FakeGuest::kick(std::uint32_t number)
{
	return call_with(Request::vring_kick, VringState{number, 0});
}

void FakeGuest::greet()
{
	agree();
	auto error = set_channel() | share_memory();
	for (std::uint32_t number = 0; number < kQueues; ++number)
		error |= place(number) | enable(number);
	if (error)
		throw std::runtime_error("the server refuses to begin");
}

std::span<std::byte> FakeGuest::memory(std::uint64_t address, std::size_t size)
{
	const auto offset = address - kMemory;
	if (offset > kMemorySize || size > kMemorySize - offset)
		throw std::out_of_range("no such guest memory");
	return {memory_->data() + offset, size};
}

void FakeGuest::set_descriptor(std::uint32_t number, std::uint16_t index,
			       const Descriptor &descriptor)
{
	object<Descriptor>(queues_.at(number).descriptors + sizeof(Descriptor) * index) =
		descriptor;
}

void FakeGuest::make_available(std::uint32_t number, std::uint16_t head)
{
	const auto ring = queues_.at(number).available;
	auto &index = object<std::uint16_t>(ring + kRingIndex);
	object<std::uint16_t>(ring + kRingEntries + 2u * (index % kEntries)) = head;
	++index;
}

std::optional<UsedElement> FakeGuest::take_used(std::uint32_t number)
{
	Queue &queue = queues_.at(number);
	if (object<std::uint16_t>(queue.used + kRingIndex) == queue.seen)
		return std::nullopt;
	return object<UsedElement>(queue.used + kRingEntries +
				   sizeof(UsedElement) * (queue.seen++ % kEntries));
}

std::vector<std::uint32_t> FakeGuest::take_calls()
{
	std::vector<std::uint32_t> queues;
	struct {
		Header header;
		VringState state;
	} request;
	while (::read(calls_.get(), &request, sizeof(request)) == sizeof(request)) {
		if (request.header.request !=
			    static_cast<std::uint32_t>(BackendRequest::vring_call) ||
		    request.header.flags != kVersion || request.header.size != sizeof(VringState))
			throw std::runtime_error("a request that is no call");
		queues.push_back(request.state.index);
	}
	return queues;
}

Bytes FakeGuest::execute(Operation operation, std::uint8_t bar, std::uint64_t address,
			 std::uint32_t size, const Bytes &data, std::uint32_t room)
{
	const auto command = bytes_of(
		Command{static_cast<std::uint8_t>(operation), bar, 0, size, address}, data);
	std::memcpy(memory(kCommandPlace, command.size()).data(), command.data(), command.size());
	set_descriptor(kCommandQueue, 0,
		       {kCommandPlace, static_cast<std::uint32_t>(command.size()),
			room ? kDescriptorNext : std::uint16_t{0}, 1});
	set_descriptor(kCommandQueue, 1, {kAnswerPlace, room, kDescriptorWritable, 0});
	make_available(kCommandQueue, 0);
	if (kick(kCommandQueue))
		throw std::runtime_error("a kick is refused");
	const auto used = take_used(kCommandQueue);
	if (!used || used->head != 0)
		throw std::runtime_error("a command that is not executed when its kick is");
	const auto answer = memory(kAnswerPlace, used->written);
	return {answer.begin(), answer.end()};
}

std::uint8_t FakeGuest::find_capability(std::uint8_t id)
{
	auto at = read_config<std::uint8_t>(0x34);
	for (int hops = 0; at && hops < 48; ++hops) {
		if (read_config<std::uint8_t>(at) == id)
			return at;
		at = read_config<std::uint8_t>(at + 1u);
	}
	return 0;
}

void FakeGuest::give_buffer(std::uint32_t size)
{
	const auto number = static_cast<std::uint16_t>(next_buffer_++ % kEntries);
	set_descriptor(kMessageQueue, number,
		       {kMessagePlace + kMessageSize * number, size, kDescriptorWritable, 0});
	make_available(kMessageQueue, number);
}

std::optional<FakeGuest::Msi> FakeGuest::take_message()
{
	const auto used = take_used(kMessageQueue);
	if (!used)
		return std::nullopt;
	const auto place = kMessagePlace + kMessageSize * used->head;
	const auto &command = object<Command>(place);
	if (used->written != sizeof(Command) + 4 || command.size != 4 ||
	    command.operation != static_cast<std::uint8_t>(Operation::msi))
		throw std::runtime_error("a message that is none");
	return Msi{command.address, object<std::uint32_t>(place + sizeof(Command))};
}

} // namespace weft::testing

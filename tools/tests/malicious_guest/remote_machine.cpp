// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "tests/malicious_guest/remote_machine.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bus/vfio-user/protocol.hpp"

namespace weft::malicious_guest
{

namespace
{

// The command register of configuration space: memory space and bus mastering on.
constexpr std::uint64_t kPciCommand = 4;
constexpr std::uint16_t kMemoryAndMaster = 0x6;

[[noreturn]] void fail(const char *what)
{
	throw std::system_error(errno, std::generic_category(), what);
}

} // namespace

FileDescriptor connect_to(const std::filesystem::path &path)
{
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	const std::string text = path.string();
	if (text.size() >= sizeof(address.sun_path))
		throw std::runtime_error(text + " is too long for a socket's path");
	std::memcpy(address.sun_path, text.c_str(), text.size());
	FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (socket.get() < 0)
		fail("socket");
	if (::connect(socket.get(), reinterpret_cast<sockaddr *>(&address), sizeof(address)))
		fail(text.c_str());
	return socket;
}

RemoteMachine::RemoteMachine(const std::filesystem::path &socket, std::uint64_t memory_size)
    : memory_size_(memory_size), memory_fd_(::memfd_create("outsider", MFD_CLOEXEC))
{
	if (memory_fd_.get() < 0 || ::ftruncate(memory_fd_.get(), static_cast<off_t>(memory_size)))
		fail("memory");
	void *mapped = ::mmap(nullptr, memory_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			      memory_fd_.get(), 0);
	if (mapped == MAP_FAILED)
		fail("mmap");
	memory_ = static_cast<std::byte *>(mapped);
	client_ = std::make_unique<testing::FakeClient>(connect_to(socket), kTimeLimit);
	client_->greet();
	client_->map(0, memory_size, memory_fd_.get());
	client_->write_as<std::uint16_t>(vfio_user::kRegionConfig, kPciCommand, kMemoryAndMaster);
}

RemoteMachine::~RemoteMachine()
{
	::munmap(memory_, memory_size_);
}

void RemoteMachine::read_register(unsigned bar, std::uint64_t offset, std::span<std::byte> data)
{
	const auto bytes = client_->read(bar, offset, static_cast<std::uint32_t>(data.size()));
	std::memcpy(data.data(), bytes.data(), data.size());
}

void RemoteMachine::write_register(unsigned bar, std::uint64_t offset,
				   std::span<const std::byte> data)
{
	client_->write(bar, offset, testing::Bytes(data.begin(), data.end()));
}

std::span<std::byte> RemoteMachine::memory(std::uint64_t address, std::size_t size)
{
	if (address > memory_size_ || size > memory_size_ - address)
		throw std::out_of_range("no such memory");
	return {memory_ + address, size};
}

} // namespace weft::malicious_guest

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/capture_file.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace weft
{

namespace
{

// Blocks and options of "PCAP Next Generation Capture File Format" (IETF draft-ietf-opsawg-pcapng),
// sections 4 and 3.5.
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kEndOfOptions = 0;
constexpr std::uint16_t kOptionName = 2;
constexpr std::uint16_t kOptionResolution = 9;
constexpr std::uint8_t kNanoseconds = 9; // the exponent of 10
constexpr std::size_t kBlockFrame = 12;  // the type, and the length twice

// The values are in the host's byte order, which readers learn from the section header.
class Body
{
public:
	template<typename Number>
	Body &number(Number value)
	{
		return bytes(std::as_bytes(std::span(&value, 1)));
	}
	Body &bytes(std::span<const std::byte> data)
	{
		bytes_.insert(bytes_.end(), data.begin(), data.end());
		return *this;
	}
	// Pads the body to a multiple of 32 bits.
	Body &pad()
	{
		bytes_.resize((bytes_.size() + 3) / 4 * 4);
		return *this;
	}
	Body &option(std::uint16_t code, std::span<const std::byte> data)
	{
		const auto size = static_cast<std::uint16_t>(data.size());
		return number(code).number(size).bytes(data).pad();
	}
	const std::vector<std::byte> &all() const { return bytes_; }

private:
	std::vector<std::byte> bytes_;
};

} // namespace

CaptureFile::CaptureFile(const std::string &path, const Environment &environment,
			 std::uint64_t most_bytes)
    : environment_(environment), most_bytes_(most_bytes),
      file_(path, std::ios::binary | std::ios::trunc)
{
	if (!file_)
		throw std::runtime_error("capture " + path + ": " +
					 std::generic_category().message(errno));
	constexpr std::uint16_t major = 1, minor = 0;
	constexpr std::int64_t unknown_length = -1;
	const MutexLock lock(mutex_);
	write_locked(kSectionHeader, Body().number(kByteOrderMagic)
					     .number(major)
					     .number(minor)
					     .number(unknown_length)
					     .all());
}

unsigned CaptureFile::add_interface(LinkType type, const std::string &name,
				    std::uint32_t most_packet)
{
	constexpr std::uint16_t reserved = 0, no_data = 0;
	Body body;
	body.number(type).number(reserved).number(most_packet);
	body.option(kOptionName, std::as_bytes(std::span(name)))
		.option(kOptionResolution, std::as_bytes(std::span(&kNanoseconds, 1)))
		.number(kEndOfOptions)
		.number(no_data);
	const MutexLock lock(mutex_);
	write_locked(kInterfaceDescription, body.all());
	return interfaces_++;
}

std::chrono::nanoseconds CaptureFile::date() const
{
	return environment_.date().time_since_epoch();
}

void CaptureFile::write_packet(unsigned interface, std::chrono::nanoseconds date,
			       std::span<const std::byte> header, std::span<const std::byte> data)
{
	const auto stamp = static_cast<std::uint64_t>(date.count());
	const auto size = static_cast<std::uint32_t>(header.size() + data.size());
	Body body;
	body.number(std::uint32_t{interface})
		.number(static_cast<std::uint32_t>(stamp >> 32))
		.number(static_cast<std::uint32_t>(stamp))
		.number(size)
		.number(size)
		.bytes(header)
		.bytes(data)
		.pad();
	const MutexLock lock(mutex_);
	if (write_locked(kEnhancedPacket, body.all()))
		packets_.fetch_add(1, std::memory_order_relaxed);
}

bool CaptureFile::write_locked(std::uint32_t type, const std::vector<std::byte> &body)
{
	const auto length = static_cast<std::uint32_t>(kBlockFrame + body.size());
	if (full() || length > most_bytes_ - bytes_) {
		full_.store(true, std::memory_order_relaxed);
		return false;
	}
	bytes_ += length;
	const auto put = [this](const void *data, std::size_t size) WEFT_REQUIRES(mutex_) {
		file_.write(static_cast<const char *>(data), static_cast<std::streamsize>(size));
	};
	put(&type, sizeof(type));
	put(&length, sizeof(length));
	put(body.data(), body.size());
	put(&length, sizeof(length));
	if (at_once_)
		file_.flush();
	if (!file_)
		full_.store(true, std::memory_order_relaxed);
	return !full();
}

void CaptureFile::flush()
{
	const MutexLock lock(mutex_);
	if (!file_.flush())
		full_.store(true, std::memory_order_relaxed);
}

void CaptureFile::write_at_once()
{
	const MutexLock lock(mutex_);
	at_once_ = true;
	file_.flush();
}

} // namespace weft

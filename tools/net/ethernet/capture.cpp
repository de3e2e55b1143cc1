// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/ethernet/capture.hpp"

#include <chrono>
#include <cstring>
#include <stdexcept>

namespace weft::ethernet
{

namespace
{

// Blocks and options of "PCAP Next Generation Capture File Format" (IETF draft-ietf-opsawg-pcapng),
// sections 4 and 3.5.
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kOptionName = 2;
constexpr std::uint16_t kOptionResolution = 9;
constexpr std::uint8_t kNanoseconds = 9; // the power of ten
constexpr std::uint16_t kLinkTypeEthernet = 1;
constexpr std::size_t kBlockFrame = 12; // type, and the length twice

// Numbers are in the machine's order, which the section's header tells.
class Body
{
public:
	template<typename Number>
	Body &number(Number value)
	{
		std::uint8_t raw[sizeof(value)];
		std::memcpy(raw, &value, sizeof(value));
		bytes_.insert(bytes_.end(), raw, raw + sizeof(value));
		return *this;
	}
	Body &padded(const void *data, std::size_t size)
	{
		const auto *first = static_cast<const std::uint8_t *>(data);
		bytes_.insert(bytes_.end(), first, first + size);
		bytes_.resize((bytes_.size() + 3) / 4 * 4);
		return *this;
	}
	Body &option(std::uint16_t code, const void *data, std::size_t size)
	{
		return number(code).number(static_cast<std::uint16_t>(size)).padded(data, size);
	}
	const std::vector<std::uint8_t> &bytes() const { return bytes_; }

private:
	std::vector<std::uint8_t> bytes_;
};

} // namespace

Capture::Capture(const std::string &path, Environment &environment, std::uint64_t most_bytes)
    : environment_(environment), most_bytes_(most_bytes),
      file_(path, std::ios::binary | std::ios::trunc)
{
	if (!file_)
		throw std::runtime_error("capture " + path + ": cannot be written");
	constexpr std::uint16_t kMajor = 1, kMinor = 0;
	const MutexLock lock(mutex_);
	write_locked(kSectionHeader, Body().number(kByteOrderMagic)
					     .number(kMajor)
					     .number(kMinor)
					     .number(std::int64_t{-1})
					     .bytes());
}

unsigned Capture::add_interface(const std::string &name)
{
	const MutexLock lock(mutex_);
	constexpr std::uint16_t kNothing = 0;
	Body body;
	body.number(kLinkTypeEthernet)
		.number(kNothing)
		.number(static_cast<std::uint32_t>(kMostFrame));
	body.option(kOptionName, name.data(), name.size())
		.option(kOptionResolution, &kNanoseconds, 1);
	write_locked(kInterfaceDescription, body.number(kNothing).number(kNothing).bytes());
	return interfaces_++;
}

void Capture::record(unsigned interface, const Frame &frame)
{
	const auto since = environment_.date().time_since_epoch();
	const auto stamp = static_cast<std::uint64_t>(
		std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
	const auto size = static_cast<std::uint32_t>(frame.size());
	Body body;
	body.number(std::uint32_t{interface}).number(static_cast<std::uint32_t>(stamp >> 32));
	body.number(static_cast<std::uint32_t>(stamp))
		.number(size)
		.number(size)
		.padded(frame.data(), frame.size());
	const MutexLock lock(mutex_);
	if (write_locked(kEnhancedPacket, body.bytes()))
		frames_.fetch_add(1, std::memory_order_relaxed);
}

bool Capture::write_locked(std::uint32_t type, const std::vector<std::uint8_t> &body)
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

void Capture::flush()
{
	const MutexLock lock(mutex_);
	if (!file_.flush())
		full_.store(true, std::memory_order_relaxed);
}

void Capture::write_at_once()
{
	const MutexLock lock(mutex_);
	at_once_ = true;
	file_.flush();
}

} // namespace weft::ethernet

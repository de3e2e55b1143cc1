// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/key.hpp"

#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sodium.h>

#include "base/file_descriptor.hpp"

namespace weft::trunk
{

namespace
{

[[noreturn]] void fail(const std::filesystem::path &file, const std::string &reason)
{
	throw std::invalid_argument(fmt::format("key file {}: {}", file.string(), reason));
}

[[noreturn]] void fail_with_errno(const std::filesystem::path &file)
{
	fail(file, std::generic_category().message(errno));
}

const unsigned char *raw(const std::byte *bytes)
{
	return reinterpret_cast<const unsigned char *>(bytes);
}

} // namespace

static_assert(kMacBytes == crypto_auth_hmacsha256_BYTES);

Key::Key(SecretBytes bytes) : bytes_(std::move(bytes))
{
	// libsodium chooses the fastest code for this processor.
	if (sodium_init() < 0)
		throw std::runtime_error("libsodium cannot be used");
	if (bytes_.size() < kLeastBytes || bytes_.size() > kMostBytes)
		throw std::invalid_argument(
			fmt::format("a key has {} to {} bytes", kLeastBytes, kMostBytes));
}

Key Key::load(const std::filesystem::path &file)
{
	// Use O_NONBLOCK, because opening a FIFO must not wait.
	const FileDescriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
	if (!opened)
		fail_with_errno(file);
	struct stat status{};
	if (::fstat(opened.get(), &status))
		fail_with_errno(file);
	if (!S_ISREG(status.st_mode))
		fail(file, "it is no regular file");
	// The owner of the file could give others access at any time.
	if (status.st_uid != 0 && status.st_uid != ::geteuid())
		fail(file, fmt::format("it belongs to user {}; it must belong to the user who runs "
				       "weftd, who is {}, or to root",
				       status.st_uid, ::geteuid()));
	if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		fail(file, "others than its owner have access to it; use chmod 600");
	SecretBytes bytes(kMostBytes + 1);
	std::size_t size = 0;
	while (size < bytes.size()) {
		const auto got = ::read(opened.get(), bytes.data() + size, bytes.size() - size);
		if (got < 0)
			fail_with_errno(file);
		if (got == 0)
			break;
		size += static_cast<std::size_t>(got);
	}
	bytes.resize(size);
	try {
		return Key(std::move(bytes));
	} catch (const std::invalid_argument &reason) {
		fail(file, reason.what());
	}
}

Mac Key::authenticate(std::initializer_list<std::span<const std::byte>> parts) const
{
	crypto_auth_hmacsha256_state state;
	crypto_auth_hmacsha256_init(&state, raw(bytes_.data()), bytes_.size());
	for (const auto part : parts)
		crypto_auth_hmacsha256_update(&state, raw(part.data()), part.size());
	Mac mac{};
	crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char *>(mac.data()));
	sodium_memzero(&state, sizeof(state));
	return mac;
}

Mac Key::fingerprint() const
{
	constexpr std::string_view purpose = "weft trunk fingerprint 1";
	return authenticate({std::as_bytes(std::span(purpose))});
}

bool equal(const Mac &a, const Mac &b)
{
	return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace weft::trunk

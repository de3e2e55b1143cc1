// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/handshake.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <sodium.h>

namespace weft::trunk
{

namespace
{

// Different constants for each use of the shared key, so that one result cannot stand for another.
constexpr std::string_view kProofPurpose = "weft trunk proof 3";
constexpr std::string_view kSessionPurpose = "weft trunk session 3";

static_assert(kPublicKeyBytes == crypto_scalarmult_BYTES &&
	      kPublicKeyBytes == crypto_scalarmult_SCALARBYTES);

template<class T>
std::span<const std::byte> bytes_of(const T &object)
{
	return std::as_bytes(std::span(&object, 1));
}

} // namespace

Handshake::Handshake(Kind kind, Role role, const std::string &name, const Key &key) : key_(key)
{
	std::ranges::copy(kMagic, own_.magic);
	own_.version = kVersion;
	own_.role = role;
	own_.kind = kind;
	own_.name_bytes = static_cast<std::uint8_t>(std::min(name.size(), kMostName));
	std::copy_n(name.begin(), own_.name_bytes, own_.name);
	randombytes_buf(own_.nonce, sizeof(own_.nonce));
	randombytes_buf(private_key_.data(), private_key_.size());
	crypto_scalarmult_base(own_.public_key, private_key_.data());
}

Handshake::~Handshake()
{
	sodium_memzero(private_key_.data(), private_key_.size());
}

std::string Handshake::why() const
{
	std::string text(text_of(reason_));
	if (reason_ == Reason::version)
		text += fmt::format(" (this one version {}, the peer version {})", kVersion,
				    std::uint16_t{peer_.version});
	return text;
}

Handshake::Progress Handshake::refuse(Reason reason)
{
	reason_ = reason;
	return Progress::refused;
}

Handshake::Progress Handshake::take(const Frame &frame, std::vector<Buffer> &answers)
{
	switch (frame.type) {
	case FrameType::hello:
		return greeted_ ? refuse(Reason::protocol) : take_hello(frame.body, answers);
	case FrameType::proof:
		return greeted_ ? take_proof(frame.body, answers) : refuse(Reason::protocol);
	default:
		return refuse(Reason::protocol);
	}
}

Handshake::Progress Handshake::take_hello(std::span<const std::byte> body,
					  std::vector<Buffer> &answers)
{
	// All versions have these two fields, and may differ in the other fields.
	constexpr std::size_t version_end = offsetof(HelloBody, role);
	if (body.size() < version_end || std::memcmp(body.data(), own_.magic, kMagic.size()) != 0)
		return refuse(Reason::protocol);
	std::memcpy(&peer_, body.data(), std::min(body.size(), sizeof(peer_)));
	if (peer_.version != kVersion)
		return refuse(Reason::version);
	if (body.size() != sizeof(peer_))
		return refuse(Reason::protocol);
	if (peer_.role == own_.role)
		return refuse(Reason::role);
	if (peer_.role != Role::connects && peer_.role != Role::listens)
		return refuse(Reason::protocol);
	if (peer_.kind != own_.kind)
		return refuse(peer_.kind == Kind::infiniband || peer_.kind == Kind::ethernet
				      ? Reason::kind
				      : Reason::protocol);
	if (std::ranges::any_of(peer_.zero, [](auto byte) { return byte != 0; }))
		return refuse(Reason::protocol);
	if (peer_.name_bytes != own_.name_bytes ||
	    std::memcmp(peer_.name, own_.name, kMostName) != 0)
		return refuse(Reason::name);
	greeted_ = true;
	if (own_.role == Role::connects)
		answers.push_back(own_proof());
	return Progress::goes_on;
}

Handshake::Progress Handshake::take_proof(std::span<const std::byte> body,
					  std::vector<Buffer> &answers)
{
	Mac given;
	if (body.size() != given.size())
		return refuse(Reason::protocol);
	std::ranges::copy(body, given.begin());
	if (!equal(given, proof_of(peer_.role)))
		return refuse(Reason::key);
	if (!agree_on_keys())
		return refuse(Reason::protocol);
	if (own_.role == Role::listens)
		answers.push_back(own_proof());
	return Progress::done;
}

Mac Handshake::authenticate(std::string_view purpose, Role role,
			    std::span<const std::byte> secret) const
{
	const bool connects = own_.role == Role::connects;
	return key_.authenticate({std::as_bytes(std::span(purpose)), bytes_of(role), secret,
				  bytes_of(connects ? own_ : peer_),
				  bytes_of(connects ? peer_ : own_)});
}

Mac Handshake::proof_of(Role role) const
{
	return authenticate(kProofPurpose, role);
}

bool Handshake::agree_on_keys()
{
	std::array<std::byte, crypto_scalarmult_BYTES> secret{};
	const bool valid = crypto_scalarmult(reinterpret_cast<unsigned char *>(secret.data()),
					     private_key_.data(), peer_.public_key) == 0;
	const auto key_of = [&](Role sender) {
		SessionKey key;
		key.bytes = authenticate(kSessionPurpose, sender, secret);
		return key;
	};
	if (valid)
		session_keys_ = SessionKeys{key_of(own_.role), key_of(peer_.role)};
	sodium_memzero(secret.data(), secret.size());
	sodium_memzero(private_key_.data(), private_key_.size());
	return valid;
}

Buffer Handshake::own_proof() const
{
	return make_frame(FrameType::proof, proof_of(own_.role));
}

} // namespace weft::trunk

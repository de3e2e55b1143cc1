// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the handshake of a trunk: both ends prove that they have the same key, without sending
// it, and agree on the keys of this connection.
//
// Each end sends a hello with a random number, an X25519 public key made for this connection, its
// role, the trunk's name, and what the trunk connects. Each end then proves that it has the shared
// key, by an HMAC of its role and both hellos. The end that has connected proves first, so the end
// that listens proves nothing to a client without the key. The random numbers make each proof valid
// only for this connection. The role prevents an end from returning its peer's proof.
//
// The session keys are derived from the shared key, both hellos and the X25519 secret of the two
// public keys. An observer who learns the shared key later cannot decrypt recorded data, because
// the private keys do not exist any more.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "net/trunk/frame.hpp"
#include "net/trunk/key.hpp"
#include "net/trunk/record.hpp"

namespace weft::trunk
{

// The keys of one end of a connection.
struct SessionKeys {
	SessionKey sending, receiving;
};

class Handshake
{
public:
	// @key must outlive the handshake.
	Handshake(Kind kind, Role role, const std::string &name, const Key &key);
	~Handshake();
	Handshake(const Handshake &) = delete;
	Handshake &operator=(const Handshake &) = delete;

	// Returns the first frame to send.
	Buffer hello() const { return make_frame(FrameType::hello, own_); }

	enum class Progress { goes_on, done, refused };
	// Handles the peer's next frame, and appends the frames that answer it. After `refused`,
	// the owner closes the connection.
	Progress take(const Frame &frame, std::vector<Buffer> &answers);
	// Valid after `refused`.
	Reason reason() const { return reason_; }
	// Returns the same reason as text for this end's log.
	std::string why() const;
	// Valid after `done`.
	const SessionKeys &session_keys() const { return *session_keys_; }

private:
	Progress take_hello(std::span<const std::byte> body, std::vector<Buffer> &answers);
	Progress take_proof(std::span<const std::byte> body, std::vector<Buffer> &answers);
	Progress refuse(Reason reason);
	// Returns the HMAC of a purpose, the role of an end, @secret and both hellos.
	Mac authenticate(std::string_view purpose, Role role,
			 std::span<const std::byte> secret = {}) const;
	Mac proof_of(Role role) const;
	Buffer own_proof() const;
	// Returns false if the peer's public key is invalid.
	bool agree_on_keys();

	const Key &key_;
	HelloBody own_{}, peer_{};
	std::array<unsigned char, kPublicKeyBytes> private_key_{};
	std::optional<SessionKeys> session_keys_;
	bool greeted_ = false; // peer_ was received
	Reason reason_ = Reason::none;
};

} // namespace weft::trunk

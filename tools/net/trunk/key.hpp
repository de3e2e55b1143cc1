// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the key that the two ends of a trunk share, and computes and verifies the proofs that an
// end has this key.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>

#include "net/trunk/frame.hpp"
#include "net/trunk/secret_bytes.hpp"

namespace weft::trunk
{

using Mac = std::array<std::byte, kMacBytes>;

// A secret. It is neither copied nor printed, is not in core files, and is overwritten when
// destroyed.
class Key
{
public:
	static constexpr std::size_t kLeastBytes = 32;
	static constexpr std::size_t kMostBytes = 1024;

	// Throws std::invalid_argument if there are too few or too many bytes.
	explicit Key(SecretBytes bytes);
	// Returns all bytes of @file, which must belong to the user of this process or to root, and
	// be accessible only to its owner. Throws std::invalid_argument with the reason.
	static Key load(const std::filesystem::path &file);
	Key(Key &&) noexcept = default;
	Key &operator=(Key &&) = delete;
	Key(const Key &) = delete;
	Key &operator=(const Key &) = delete;
	// Returns the HMAC-SHA-256 of the concatenated parts.
	Mac authenticate(std::initializer_list<std::span<const std::byte>> parts) const;

	// Returns a value that differs between keys and reveals nothing about them.
	Mac fingerprint() const;

private:
	SecretBytes bytes_;
};

// Compares in constant time, so that the time does not reveal where the values differ.
bool equal(const Mac &a, const Mac &b);

} // namespace weft::trunk

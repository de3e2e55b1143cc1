// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs tshark on a capture file with iWARP traffic, and returns what tshark has decoded, for tests.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace weft::iwarp::testing
{

inline bool has_tshark()
{
	return !std::system("command -v tshark >/dev/null");
}

// @checksums selects whether the checksums of IP and TCP are verified.
inline std::string tshark(const std::filesystem::path &file, const std::string &options,
			  bool checksums)
{
	const std::string look = checksums ? "TRUE" : "FALSE";
	// The payload belongs to no protocol, but tshark might mistake its first four bytes for RPC
	// over RDMA.
	const std::string command =
		"tshark -n --enable-heuristic iwarp_mpa_tcp --disable-protocol rpcordma -o tcp.check_checksum:" +
		look + " -o ip.check_checksum:" + look + " -r " + file.string() + " " + options +
		" 2>/dev/null";
	const std::unique_ptr<FILE, int (*)(FILE *)> pipe(::popen(command.c_str(), "r"), ::pclose);
	std::string output;
	std::array<char, 4096> part;
	while (const auto size = std::fread(part.data(), 1, part.size(), pipe.get()))
		output.append(part.data(), size);
	return output;
}

// A filter that must match no frame. tshark prints one line for each invalid frame.
inline constexpr char kWrongFrames[] =
	"-Y '_ws.malformed || _ws.expert.severity == error || iwarp_mpa.bad_length'";

inline std::size_t count(const std::string &text, const std::string &what)
{
	std::size_t found = 0;
	for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size())
		++found;
	return found;
}

} // namespace weft::iwarp::testing

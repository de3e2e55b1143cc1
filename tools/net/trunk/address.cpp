// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/address.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <fmt/format.h>

namespace weft::trunk
{

namespace
{

void set_option(const FileDescriptor &socket, int level, int option)
{
	const int on = 1;
	if (::setsockopt(socket.get(), level, option, &on, sizeof(on)))
		throw std::system_error(errno, std::generic_category(), "setsockopt");
}

} // namespace

bool Address::find(const std::string &text, int flags, Address &address)
{
	const auto colon = text.rfind(':');
	const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
	std::string host = text.substr(0, colon);
	const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
	if (bracketed)
		host = host.substr(1, host.size() - 2);
	addrinfo hints{};
	hints.ai_family = bracketed ? AF_INET6 : AF_INET;
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = flags | AI_NUMERICSERV;
	addrinfo *found = nullptr;
	if (host.empty() || port.empty() || port.size() > 5 ||
	    port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535 ||
	    ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found))
		return false;
	const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
	std::memcpy(&address.storage_, found->ai_addr, found->ai_addrlen);
	address.size_ = found->ai_addrlen;
	return true;
}

Address Address::parse(const std::string &text)
{
	Address address;
	if (!find(text, AI_NUMERICHOST, address))
		throw std::invalid_argument(
			fmt::format("'{}' is not an IP address with a TCP port, as in "
				    "\"192.0.2.1:7470\" or \"[2001:db8::1]:7470\"",
				    text));
	return address;
}

Address Address::resolve(const std::string &text)
{
	Address address;
	if (!find(text, 0, address))
		throw std::invalid_argument(fmt::format(
			"'{}' is not the name or the IP address of a host with a TCP port, or the "
			"name cannot be resolved",
			text));
	return address;
}

Address Address::of(int socket, int (*name_of)(int, sockaddr *, socklen_t *))
{
	Address address;
	address.size_ = sizeof(address.storage_);
	if (name_of(socket, reinterpret_cast<sockaddr *>(&address.storage_), &address.size_))
		address.size_ = 0;
	return address;
}

Address Address::local(int socket)
{
	return of(socket, ::getsockname);
}

Address Address::peer(int socket)
{
	return of(socket, ::getpeername);
}

unsigned Address::port() const
{
	// The port has the same offset in both structures.
	return ntohs(reinterpret_cast<const sockaddr_in *>(&storage_)->sin_port);
}

bool Address::is_of_one_host() const
{
	in_addr_t v4 = 0;
	if (storage_.ss_family == AF_INET6) {
		const auto &v6 = reinterpret_cast<const sockaddr_in6 &>(storage_).sin6_addr;
		if (!IN6_IS_ADDR_V4MAPPED(&v6))
			return !IN6_IS_ADDR_UNSPECIFIED(&v6) && !IN6_IS_ADDR_MULTICAST(&v6);
		std::memcpy(&v4, v6.s6_addr + sizeof(v6) - sizeof(v4), sizeof(v4));
	} else {
		v4 = reinterpret_cast<const sockaddr_in &>(storage_).sin_addr.s_addr;
	}
	v4 = ntohl(v4);
	return v4 != INADDR_ANY && v4 != INADDR_BROADCAST && !IN_MULTICAST(v4);
}

Address Address::with_port(unsigned port) const
{
	Address other = *this;
	reinterpret_cast<sockaddr_in *>(&other.storage_)->sin_port =
		htons(static_cast<std::uint16_t>(port));
	return other;
}

std::string Address::network() const
{
	if (storage_.ss_family != AF_INET6)
		return host_text();
	Address prefix = *this;
	auto &place = reinterpret_cast<sockaddr_in6 &>(prefix.storage_);
	std::memset(place.sin6_addr.s6_addr + 8, 0, 8);
	const std::string all = prefix.text();
	return all.substr(1, all.rfind(']') - 1) + "/64";
}

std::string Address::text() const
{
	std::array<char, NI_MAXHOST> host{};
	std::array<char, NI_MAXSERV> port{};
	if (size_ == 0 ||
	    ::getnameinfo(reinterpret_cast<const sockaddr *>(&storage_), size_, host.data(),
			  host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV))
		return "unknown";
	return storage_.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host.data(), port.data())
					      : fmt::format("{}:{}", host.data(), port.data());
}

std::string Address::host_text() const
{
	const std::string all = text();
	return all.substr(0, all.rfind(':'));
}

FileDescriptor Address::make_socket() const
{
	FileDescriptor socket(::socket(storage_.ss_family,
				       SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
	if (!socket)
		throw std::system_error(errno, std::generic_category(), "socket");
	return socket;
}

FileDescriptor Address::listen(int backlog) const
{
	FileDescriptor socket = make_socket();
	set_option(socket, SOL_SOCKET, SO_REUSEADDR);
	if (storage_.ss_family == AF_INET6)
		set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY);
	if (::bind(socket.get(), reinterpret_cast<const sockaddr *>(&storage_), size_) ||
	    ::listen(socket.get(), backlog))
		throw std::system_error(errno, std::generic_category(), text());
	return socket;
}

FileDescriptor Address::connect() const
{
	FileDescriptor socket = make_socket();
	if (::connect(socket.get(), reinterpret_cast<const sockaddr *>(&storage_), size_) &&
	    errno != EINPROGRESS)
		throw std::system_error(errno, std::generic_category(), text());
	return socket;
}

} // namespace weft::trunk

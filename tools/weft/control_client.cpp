// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/control_client.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <sys/socket.h>

#include <fmt/format.h>

#include "base/unix_listener.hpp"

namespace weft::cli
{

using nlohmann::json;

namespace
{

FileDescriptor connect(const std::filesystem::path &socket_directory)
{
	const auto path = socket_directory / "control.sock";
	try {
		return connect_unix(path);
	} catch (const std::system_error &error) {
		throw std::runtime_error(
			fmt::format("no weftd serves {} ({}); start one, or name its --socket-dir",
				    socket_directory.string(), error.code().message()));
	}
}

} // namespace

ControlClient::ControlClient(const std::filesystem::path &socket_directory)
    : socket_(connect(socket_directory))
{
}

json ControlClient::call(const std::string &command, json arguments)
{
	arguments["command"] = command;
	const std::string line = arguments.dump() + '\n';
	for (std::size_t sent = 0; sent < line.size();) {
		const auto bytes =
			::send(socket_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0)
			throw std::runtime_error("weftd has ended");
		sent += static_cast<std::size_t>(bytes);
	}
	const json answer = json::parse(read_line(), nullptr, false);
	if (!answer.is_object())
		throw std::runtime_error("the server of the socket is not weftd");
	if (!answer.value("ok", false))
		throw std::runtime_error(answer.value("error", "weftd refused without a reason"));
	return answer.value("result", json::object());
}

std::string ControlClient::read_line()
{
	for (;;) {
		if (const auto end = received_.find('\n'); end != std::string::npos) {
			auto line = received_.substr(0, end);
			received_.erase(0, end + 1);
			return line;
		}
		char buffer[16384];
		const auto bytes = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes <= 0)
			throw std::runtime_error("weftd has ended");
		received_.append(buffer, static_cast<std::size_t>(bytes));
	}
}

} // namespace weft::cli

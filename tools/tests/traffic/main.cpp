// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Contains the main function of weft-traffic. It has the commands of the test module
 * weft_traffic.ko (hw/mlx4/tests/traffic), but uses the verbs library of the guest on which it runs
 * instead of weft's kernel verbs.
 *
 *   weft-traffic COMMANDS ANSWERS
 *
 * Both arguments are FIFOs. The program reads command lines from the first, and writes the answer
 * to each of them to the second: "ok ANSWER" or "failed REASON". It runs until it is killed.
 */
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "tests/traffic/endpoint.hpp"

namespace
{

using weft::traffic::Arguments;
using weft::traffic::Endpoint;
using weft::traffic::Failure;

class Control
{
public:
	Control()
	{
		int count = 0;
		weft::traffic::Handle<ibv_device *, ibv_free_device_list> devices(
			ibv_get_device_list(&count));
		if (!devices || count == 0)
			throw Failure("there is no InfiniBand device");
		context_.reset(ibv_open_device(devices.get()[0]));
		if (!context_)
			throw Failure(std::string("the device cannot be opened: ") +
				      std::strerror(errno));
		if (fcntl(context_->async_fd, F_SETFL, O_NONBLOCK))
			throw Failure(std::string("its events: ") + std::strerror(errno));
	}

	std::string execute(const Arguments &arguments)
	{
		poll_events();
		const auto id = arguments.number("id");
		const auto &command = arguments.command();
		if (command == "open") {
			if (endpoints_.contains(id))
				throw Failure("it is open");
			auto endpoint = std::make_unique<Endpoint>(context_.get(), arguments);
			auto answer = endpoint->describe();
			endpoints_[id] = std::move(endpoint);
			return answer;
		}
		const auto found = endpoints_.find(id);
		if (found == endpoints_.end())
			throw Failure("it is not open");
		Endpoint &endpoint = *found->second;
		if (command == "close") {
			endpoints_.erase(found);
			return "";
		}
		if (command == "connect")
			return endpoint.connect(arguments);
		if (command == "post")
			return endpoint.post_receives(arguments);
		if (command == "send")
			return endpoint.send(arguments);
		if (command == "receive")
			return endpoint.receive(arguments);
		if (command == "verify")
			return endpoint.verify(arguments);
		if (command == "word")
			return endpoint.word(arguments);
		if (command == "state")
			return endpoint.state(arguments);
		if (command == "burst")
			return endpoint.burst(arguments);
		if (command == "resize")
			return endpoint.resize(arguments);
		if (command == "limit")
			return endpoint.limit(arguments);
		throw Failure("there is no command '" + command + "'");
	}

private:
	// Reads all pending events, and passes each to the endpoint to which it belongs.
	void poll_events()
	{
		ibv_async_event event;
		while (!ibv_get_async_event(context_.get(), &event)) {
			for (auto &[id, endpoint] : endpoints_)
				if (endpoint->take(event))
					break;
			ibv_ack_async_event(&event);
		}
	}

	weft::traffic::Handle<ibv_context, ibv_close_device> context_;
	std::map<std::uint64_t, std::unique_ptr<Endpoint>> endpoints_;
};

std::string answer_to(Control &control, const std::string &line)
{
	try {
		return "ok " + control.execute(Arguments(line));
	} catch (const std::exception &error) {
		return std::string("failed ") + error.what();
	}
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 3) {
		std::cerr << "usage: weft-traffic COMMANDS ANSWERS (two FIFOs)\n";
		return 2;
	}
	try {
		Control control;
		for (;;) {
			std::ifstream commands(argv[1]);
			if (!commands)
				throw Failure(std::string(argv[1]) + " cannot be read");
			for (std::string line; std::getline(commands, line);)
				std::ofstream(argv[2]) << answer_to(control, line) << '\n';
		}
	} catch (const std::exception &error) {
		std::cerr << "weft-traffic: " << error.what() << '\n';
		return 1;
	}
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Process 1 of a test guest: runs the host's commands, sends their output back as it comes, reaps
// orphans.
//
// It speaks frames over a virtio-serial port or a serial line, in both directions: a Header, then
// `size` bytes.
//   from the host:  run (a command for bash), execute (a program and its arguments, a NUL after each), put (path, NUL,
//                   contents), get (path), kill (signal: u32)
//   to the host:    ready (kernel release), out and err (output), exit (status: u32; 128 + n after signal n; of put
//                   and get the error's number), taken (bytes of the host's so far: u32; of a
//                   serial line only)
// A command's id is chosen by the host and names it in every frame about it.
//
// A serial line that User-Mode Linux was slow to empty is deaf from then on: its interrupt is taken
// away when the line's buffer fills (deactivate_fd() in line_throttle()), and nothing brings it
// back. So the host has no more on its way than the buffer holds, and is told what has left it.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <vector>

namespace
{

enum class Type : uint32_t { run = 1, put, get, kill, execute, ready = 16, out, err, exit, taken };

// What is taken is told in steps of so many bytes (the host's LINE_STEP).
constexpr uint32_t taken_step = 1024;

struct Header {
	uint32_t size;
	uint32_t id;
	uint32_t type;
};

// A running or just ended command. Output may outlive it: a child that it left behind can hold the
// pipes.
struct Command {
	pid_t pid = -1;
	int out = -1;
	int err = -1;
};

[[noreturn]] void fail(const char *what)
{
	// The end of process 1 is a kernel panic, which ends the guest: the host sees both.
	fprintf(stderr, "weft-guest: agent: %s: %s\n", what, strerror(errno));
	_exit(1);
}

class Agent
{
public:
	explicit Agent(const char *port)
	{
		port_ = open(port, O_RDWR | O_CLOEXEC | O_NOCTTY);
		if (port_ < 0)
			fail(port);
		// On a kernel that is a program it is a serial line, which would edit what passes.
		termios line;
		if (tcgetattr(port_, &line) == 0) {
			cfmakeraw(&line);
			if (tcsetattr(port_, TCSANOW, &line) != 0)
				fail("tcsetattr");
			is_line_ = true;
		}
		sigset_t child;
		sigemptyset(&child);
		sigaddset(&child, SIGCHLD);
		sigprocmask(SIG_BLOCK, &child, nullptr);
		child_events_ = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
		if (child_events_ < 0)
			fail("signalfd");
	}

	[[noreturn]] void serve()
	{
		utsname name{};
		uname(&name);
		send(0, Type::ready, name.release);
		for (;;)
			wait_and_handle();
	}

private:
	void send(uint32_t id, Type type, std::string_view data)
	{
		const Header header{static_cast<uint32_t>(data.size()), id,
				    static_cast<uint32_t>(type)};
		std::string frame(reinterpret_cast<const char *>(&header), sizeof(header));
		frame += data;
		for (size_t done = 0; done < frame.size();) {
			const ssize_t n = write(port_, frame.data() + done, frame.size() - done);
			if (n > 0)
				done += static_cast<size_t>(n);
			else if (errno != EINTR)
				fail("write to the host");
		}
	}

	void send_exit(uint32_t id, uint32_t status)
	{
		send(id, Type::exit, {reinterpret_cast<const char *>(&status), sizeof(status)});
	}

	void receive(void *buffer, size_t size)
	{
		for (size_t done = 0; done < size;) {
			const ssize_t n =
				read(port_, static_cast<char *>(buffer) + done, size - done);
			if (n > 0) {
				done += static_cast<size_t>(n);
				took(static_cast<uint32_t>(n));
			} else if (n == 0)
				pause_for_host();
			else if (errno != EINTR)
				fail("read from the host");
		}
	}

	void took(uint32_t size)
	{
		taken_ += size;
		if (!is_line_ || taken_ - told_ < taken_step)
			return;
		told_ = taken_;
		send(0, Type::taken, {reinterpret_cast<const char *>(&told_), sizeof(told_)});
	}

	// read() gives 0 while the host has its end closed; it only reopens it after a reset of
	// ours.
	static void pause_for_host() { usleep(10'000); }

	void wait_and_handle()
	{
		std::vector<pollfd> fds{{port_, POLLIN, 0}, {child_events_, POLLIN, 0}};
		std::vector<uint32_t> owners;
		for (auto &[id, command] : commands_) {
			for (const int fd : {command.out, command.err}) {
				if (fd >= 0) {
					fds.push_back({fd, POLLIN, 0});
					owners.push_back(id);
				}
			}
		}
		if (poll(fds.data(), fds.size(), -1) < 0) {
			if (errno == EINTR)
				return;
			fail("poll");
		}
		for (size_t i = 2; i < fds.size(); i++) {
			if (fds[i].revents)
				forward(owners[i - 2], fds[i].fd);
		}
		if (fds[1].revents)
			reap();
		if (fds[0].revents & POLLIN)
			handle_frame();
		else if (fds[0].revents)
			pause_for_host();
	}

	void handle_frame()
	{
		Header header{};
		receive(&header, sizeof(header));
		std::string data(header.size, '\0');
		receive(data.data(), data.size());
		switch (static_cast<Type>(header.type)) {
		case Type::run:
			return run(header.id, {"bash", "-c", data.c_str(), nullptr});
		case Type::execute:
			return run(header.id, words_of(data));
		case Type::put:
			return send_exit(header.id, put(data));
		case Type::get:
			return send_exit(header.id, get(header.id, data));
		case Type::kill:
			return kill_group(header.id, data);
		default:
			errno = EPROTO;
			fail("unknown frame from the host");
		}
	}

	static std::vector<const char *> words_of(const std::string &data)
	{
		std::vector<const char *> words;
		for (size_t at = 0; at < data.size(); at = data.find('\0', at) + 1)
			words.push_back(data.c_str() + at);
		words.push_back(nullptr);
		return words;
	}

	// words: with a null behind the last one.
	void run(uint32_t id, std::vector<const char *> words)
	{
		int out[2], err[2];
		if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
			fail("pipe");
		const pid_t pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			setsid();
			sigset_t none;
			sigemptyset(&none);
			sigprocmask(SIG_SETMASK, &none, nullptr);
			dup2(open("/dev/null", O_RDONLY), 0);
			dup2(out[1], 1);
			dup2(err[1], 2);
			execvp(words[0], const_cast<char **>(words.data()));
			dprintf(2, "%s: %s\n", words[0], strerror(errno));
			_exit(127);
		}
		close(out[1]);
		close(err[1]);
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		fcntl(err[0], F_SETFL, O_NONBLOCK);
		commands_[id] = Command{pid, out[0], err[0]};
	}

	static uint32_t put(const std::string &data)
	{
		const size_t end = data.find('\0');
		if (end == std::string::npos)
			return EINVAL;
		FILE *file = fopen(data.c_str(), "w");
		if (!file)
			return static_cast<uint32_t>(errno);
		const size_t size = data.size() - end - 1;
		// What is written at last is told by the file's end.
		errno = 0;
		if (fwrite(data.data() + end + 1, 1, size, file) == size)
			return fclose(file) == 0 ? 0 : static_cast<uint32_t>(errno);
		const uint32_t error = errno ? static_cast<uint32_t>(errno) : EIO;
		fclose(file);
		return error;
	}

	uint32_t get(uint32_t id, const std::string &path)
	{
		FILE *file = fopen(path.c_str(), "r");
		if (!file)
			return static_cast<uint32_t>(errno);
		char buffer[65536];
		while (const size_t n = fread(buffer, 1, sizeof(buffer), file))
			send(id, Type::out, {buffer, n});
		const bool failed = ferror(file);
		fclose(file);
		return failed ? EIO : 0;
	}

	void kill_group(uint32_t id, const std::string &data)
	{
		uint32_t number = SIGKILL;
		if (data.size() == sizeof(number))
			memcpy(&number, data.data(), sizeof(number));
		const auto found = commands_.find(id);
		if (found != commands_.end() && found->second.pid > 0)
			kill(-found->second.pid, static_cast<int>(number));
	}

	// Sends on all that can be read from one of a command's pipes now.
	void forward(uint32_t id, int fd)
	{
		Command &command = commands_[id];
		const Type type = fd == command.out ? Type::out : Type::err;
		char buffer[32768];
		for (;;) {
			const ssize_t n = read(fd, buffer, sizeof(buffer));
			if (n > 0) {
				if (command.pid > 0)
					send(id, type, {buffer, static_cast<size_t>(n)});
				continue;
			}
			if (n < 0 && errno == EAGAIN)
				return;
			if (n < 0 && errno == EINTR)
				continue;
			break;
		}
		close(fd);
		(type == Type::out ? command.out : command.err) = -1;
		forget_if_over(id);
	}

	void reap()
	{
		signalfd_siginfo info;
		while (read(child_events_, &info, sizeof(info)) > 0) {
		}
		int status;
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
			for (auto &[id, command] : commands_) {
				if (command.pid == pid) {
					ended(id, status);
					break;
				}
			}
		}
	}

	void ended(uint32_t id, int status)
	{
		for (const int fd : {commands_[id].out, commands_[id].err}) {
			if (fd >= 0)
				forward(id, fd);
		}
		const auto found = commands_.find(id);
		found->second.pid = 0;
		send_exit(id, static_cast<uint32_t>(WIFEXITED(status) ? WEXITSTATUS(status)
								      : 128 + WTERMSIG(status)));
		forget_if_over(id);
	}

	// A command is over when it was reaped and nothing holds its pipes any more.
	void forget_if_over(uint32_t id)
	{
		const Command &command = commands_[id];
		if (command.pid == 0 && command.out < 0 && command.err < 0)
			commands_.erase(id);
	}

	int port_;
	bool is_line_ = false;
	uint32_t taken_ = 0; // of what the host has sent
	uint32_t told_ = 0;
	int child_events_;
	std::map<uint32_t, Command> commands_;
};

} // namespace

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: agent PORT\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	Agent(argv[1]).serve();
}

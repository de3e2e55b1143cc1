// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the server of the control socket: accepts its clients, reads lines with requests from
// them, and writes the lines of the responses.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/socket.h>

#include <spdlog/spdlog.h>

#include "base/acceptor.hpp"
#include "weftd/control.hpp"
#include "weftd/log.hpp"
#include "weftd/observation.hpp"
#include "weftd/state_file.hpp"

namespace weft::weftd
{

namespace
{

// Maximum length of a line; a lab file with about a thousand hosts fits.
constexpr std::size_t kLongestLine = 1 << 20;

// Maximum number of clients. More are refused.
constexpr std::size_t kMostClients = 64;

// Interval at which the counts of armed faults are stored in the state file. They decrease as the
// faults occur. Polling costs the cards nothing, unlike a notification of each fault.
constexpr auto kFaultsPeriod = std::chrono::seconds(1);

} // namespace

class ControlServer::Impl
{
public:
	Impl(Loop &loop, LabRuntime &runtime, std::function<void()> shut_down,
	     std::shared_ptr<LogHistory> log, std::shared_ptr<StateFile> state)
	    : loop_(loop), runtime_(runtime), shut_down_(std::move(shut_down)),
	      log_(std::move(log)), state_(std::move(state)),
	      sampler_(std::make_shared<Sampler>(runtime)), faults_timer_(loop, [this] {
		      record_armed_faults(runtime_, *state_);
		      watch_faults();
	      })
	{
		watch_faults();
	}

	~Impl()
	{
		if (!state_)
			return;
		if (state_->has_armed())
			record_armed_faults(runtime_, *state_);
		state_->record_exit();
	}

	void listen(UnixListener listener)
	{
		acceptor_.emplace(loop_, std::move(listener),
				  [this](FileDescriptor socket) { serve(std::move(socket)); });
	}

private:
	// A client of the socket. Each request is answered before the next one is read, so a client
	// that does not read its answers delays only itself.
	class Client
	{
	public:
		Client(Loop &loop, FileDescriptor socket, LabRuntime &runtime,
		       const std::function<void()> &shut_down,
		       const std::shared_ptr<LogHistory> &log,
		       const std::shared_ptr<StateFile> &state,
		       const std::shared_ptr<Sampler> &sampler, std::function<void()> answered,
		       std::function<void()> gone)
		    : socket_(std::move(socket)), session_(runtime, shut_down, log, state, sampler),
		      answered_(std::move(answered)), gone_(std::move(gone)),
		      watch_(loop, socket_.get(), Watch::kReadable, [this](unsigned) { work(); })
		{
		}

	private:
		// Handles at most one line, or one step of a long answer, so that no client delays
		// the others. The socket is writable between the steps, so this is called again.
		void work()
		{
			// This also stops the client's captures. It must be the last call, because
			// it destroys this object.
			if (!go_on())
				return gone_();
			watch_.want(output_.empty() && !has_line() ? Watch::kReadable
								   : Watch::kWritable);
		}

		bool go_on()
		{
			if (output_.empty() && !has_line() && !read())
				return false;
			if (output_.empty() && has_line())
				answer();
			return output_.empty() || write();
		}

		bool has_line() const { return line_end_ != std::string::npos; }

		// Returns false if no other line can be read, because the client has disconnected
		// or the line is too long.
		bool read()
		{
			std::array<char, 4096> bytes;
			const auto size =
				::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
			if (size < 0)
				return errno == EAGAIN || errno == EINTR;
			input_.append(bytes.data(), static_cast<std::size_t>(size));
			line_end_ =
				input_.find('\n', input_.size() - static_cast<std::size_t>(size));
			return size != 0 && std::min(line_end_, input_.size()) < kLongestLine;
		}

		void answer()
		{
			if (!std::exchange(answering_, true))
				session_.begin(std::string_view(input_).substr(0, line_end_));
			auto answer = session_.go_on();
			if (!answer)
				return;
			answering_ = false;
			output_ = std::move(*answer) + '\n';
			answered_();
			input_.erase(0, line_end_ + 1);
			line_end_ = input_.find('\n');
		}

		bool write()
		{
			const auto size =
				::send(socket_.get(), output_.data() + sent_,
				       output_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (size < 0)
				return errno == EAGAIN || errno == EINTR;
			sent_ += static_cast<std::size_t>(size);
			if (sent_ == output_.size()) {
				output_.clear();
				sent_ = 0;
			}
			return true;
		}

		const FileDescriptor socket_;
		ControlSession session_;
		const std::function<void()> answered_, gone_;
		std::string input_;
		// length of its first line, once that is complete
		std::size_t line_end_ = std::string::npos;
		bool answering_ = false; // the first line
		std::string output_;     // empty unless an answer is being sent
		std::size_t sent_ = 0;
		Watch watch_;
	};

	void serve(FileDescriptor socket)
	{
		if (clients_.size() >= kMostClients) {
			spdlog::warn("control: more than {} clients, one refused", kMostClients);
			return;
		}
		const auto place = clients_.emplace(clients_.end());
		*place = std::make_unique<Client>(
			loop_, std::move(socket), runtime_, shut_down_, log_, state_, sampler_,
			[this] { watch_faults(); }, [this, place] { clients_.erase(place); });
	}

	// Without armed faults, an idle daemon does not wake up.
	void watch_faults()
	{
		if (state_ && state_->has_armed() && !faults_timer_.armed())
			faults_timer_.arm(kFaultsPeriod);
	}

	Loop &loop_;
	LabRuntime &runtime_;
	std::function<void()> shut_down_;
	const std::shared_ptr<LogHistory> log_;
	const std::shared_ptr<StateFile> state_;
	const std::shared_ptr<Sampler> sampler_;
	Timer faults_timer_;
	std::optional<Acceptor> acceptor_;
	std::list<std::unique_ptr<Client>> clients_;
};

ControlServer::ControlServer(Loop &loop, LabRuntime &runtime, const std::filesystem::path &path,
			     std::function<void()> shut_down, std::shared_ptr<LogHistory> log,
			     std::shared_ptr<StateFile> state)
    : loop_(loop)
{
	loop_.run([&] {
		impl_ = std::make_unique<Impl>(loop, runtime, std::move(shut_down), std::move(log),
					       std::move(state));
		impl_->listen(UnixListener(path));
	});
}

ControlServer::~ControlServer()
{
	loop_.run([this] { impl_.reset(); });
}

} // namespace weft::weftd

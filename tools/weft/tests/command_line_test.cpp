// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests how command lines are split: weft's arguments, the guest's command, and refused words.
#include "weft/command_line.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace weft::cli
{
namespace
{

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class CommandLine : public ::testing::Test
{
protected:
	CommandLine()
	{
		app_.add_flag("--json");
		app_.add_option("--socket-dir", directory_);
		app_.fallthrough();
		run_ = app_.add_subcommand("run");
		run_->add_option("--on");
		run_->add_option("--timeout");
		run_->add_flag("--quiet");
		auto *lab = app_.add_subcommand("lab");
		shell_ = lab->add_subcommand("shell");
		shell_->add_option("HOST", host_);
		auto *capture = app_.add_subcommand("capture");
		capture->add_option("-w,--write", file_);
	}
	Words own(const Words &words)
	{
		command_.clear();
		const GuestCommand commands[] = {{run_, 0, &command_}, {shell_, 1, &command_}};
		return own_words(app_, commands, words);
	}
	std::string refusal(const Words &words)
	{
		try {
			own(words);
		} catch (const UsageError &error) {
			return error.what();
		}
		return "";
	}

	CLI::App app_{"", "weft"};
	CLI::App *run_, *shell_;
	std::string directory_, host_, file_;
	Words command_;
};

TEST_F(CommandLine, GuestCommandFollowsTwoDashes)
{
	EXPECT_EQ(own({"run", "--on", "node1", "--", "git", "log", "--", "x"}),
		  (Words{"run", "--on", "node1"}));
	EXPECT_EQ(command_, (Words{"git", "log", "--", "x"}));
}

TEST_F(CommandLine, GuestCommandBeginsAtTheFirstWordThatIsNoOptionOrArgumentOfWeft)
{
	EXPECT_EQ(own({"run", "--quiet", "--on", "node1", "ls", "--quiet", "-l"}),
		  (Words{"run", "--quiet", "--on", "node1"}));
	EXPECT_EQ(command_, (Words{"ls", "--quiet", "-l"}));
	EXPECT_EQ(own({"lab", "shell", "node1", "top", "-b"}), (Words{"lab", "shell", "node1"}));
	EXPECT_EQ(command_, (Words{"top", "-b"}));
	EXPECT_EQ(own({"lab", "shell", "node1", "--", "--odd"}), (Words{"lab", "shell", "node1"}));
	EXPECT_EQ(command_, (Words{"--odd"}));
}

TEST_F(CommandLine, OptionValueIsNotTakenAsTheGuestCommand)
{
	EXPECT_EQ(own({"--socket-dir", "run", "run", "--timeout", "-1", "--on=x", "true"}),
		  (Words{"--socket-dir", "run", "run", "--timeout", "-1", "--on=x"}));
	EXPECT_EQ(command_, (Words{"true"}));
	EXPECT_EQ(own({"capture", "-w", "-", "--json"}), (Words{"capture", "-w", "-", "--json"}));
}

TEST_F(CommandLine, UnknownOptionIsRefusedWithASuggestion)
{
	EXPECT_THAT(refusal({"run", "--tiemout", "2", "--", "true"}),
		    AllOf(HasSubstr("weft run has no option '--tiemout'"),
			  HasSubstr("did you mean '--timeout'?"), HasSubstr("weft run --help")));
	EXPECT_THAT(refusal({"run", "--bogus", "--", "echo", "hi"}),
		    AllOf(HasSubstr("has no option '--bogus'"), Not(HasSubstr("did you mean"))));
	EXPECT_THAT(refusal({"capture", "-x"}), HasSubstr("has no option '-x'"));
	EXPECT_THAT(refusal({"run", "--on\x1b[2J"}), Not(HasSubstr("\x1b")));
}

TEST_F(CommandLine, UnknownCommandIsRefusedWithASuggestion)
{
	EXPECT_THAT(refusal({"lab", "shlel", "node1"}),
		    AllOf(HasSubstr("weft lab has no command 'shlel'"),
			  HasSubstr("did you mean 'shell'?")));
	EXPECT_THAT(refusal({"captrue", "node1"}), HasSubstr("did you mean 'capture'?"));
	EXPECT_THAT(refusal({"quite-other"}), Not(HasSubstr("did you mean")));
}

TEST_F(CommandLine, DoubleDashStaysInTheArgumentsOfACommandThatTakesNoGuestCommand)
{
	const Words words{"capture", "node1", "--", "--odd"};
	EXPECT_EQ(own(words), words);
	EXPECT_TRUE(command_.empty());
}

TEST(Nearest, EditDistanceCountsATranspositionAsOneEdit)
{
	const Words known{"up", "down", "shell"};
	EXPECT_EQ(nearest("dwon", known), "down");
	EXPECT_EQ(nearest("pu", known), "up");
	EXPECT_EQ(nearest("apply", known), "");
	EXPECT_EQ(nearest("x", {}), "");
}

} // namespace
} // namespace weft::cli

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines a query that may be answered in several steps, so that it does not block the event loop.
 */
#pragma once

#include <functional>
#include <utility>

#include "sm/records.hpp"
#include "sm/work.hpp"

namespace weft::sm
{

class Query
{
public:
	enum class Step : std::uint8_t { more, done };
	/* Adds the next few records, and charges for them. Called until it returns `done`. */
	using Next = std::function<Step(RecordSet &answer, Work &work)>;

	/* Creates a query that is already complete. */
	explicit Query(RecordSet answer) : answer_(std::move(answer)), done_(true) {}
	explicit Query(Next next) : next_(std::move(next)) {}

	/* Creates a query with one step for each of @count items. */
	static Query each(std::size_t count,
			  std::function<void(std::size_t, RecordSet &, Work &)> visit)
	{
		return Query([count, visit = std::move(visit),
			      at = std::size_t{0}](RecordSet &answer, Work &work) mutable {
			if (at == count)
				return Step::done;
			visit(at++, answer, work);
			return Step::more;
		});
	}

	/* Continues until the work budget is used up. Returns true if the answer is complete. */
	bool run(Work &work)
	{
		while (!done_ && work.left()) {
			const std::size_t before = answer_.bytes().size();
			done_ = next_(answer_, work) == Step::done;
			work.charge(cost::copied(answer_.bytes().size() - before));
			if (answer_.bytes().size() > kAnswerBytesMax) {
				answer_ = RecordSet::failure(ib::sa_status_no_resources);
				done_ = true;
			}
		}
		return done_;
	}
	const RecordSet &answer() const { return answer_; }

private:
	/* Exceeds any table of a subnet with 10,000 ports. */
	static constexpr std::size_t kAnswerBytesMax = std::size_t{16} << 20;

	Next next_;
	RecordSet answer_;
	bool done_ = false;
};

} // namespace weft::sm

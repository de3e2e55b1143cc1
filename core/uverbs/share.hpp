// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * What one user may have of one device, by all the files that he has open: at most a quarter of what there is, so that others find the rest
 * (Documentation/user-verbs.rst, "Bounds"). Who asks for more gets EDQUOT.
 */
#pragma once
#include <kern/shares.hpp>
#include "object.hpp"

namespace uverbs
{

class Share : public kern::UserShare {
public:
	explicit Share(u32 its_user) : UserShare(its_user) {}

	/* What an object of a kind is counted in. */
	kern::Budget &of(Kind kind);
	/* He has nothing: nobody has to remember it. */
	bool idle() const;

	kern::Budget contexts{256, -EDQUOT};
	kern::Budget pds{4096, -EDQUOT};
	/* Memory regions and windows. */
	kern::Budget keys{32768, -EDQUOT};
	kern::Budget cqs{1024, -EDQUOT};
	kern::Budget srqs{512, -EDQUOT};
	kern::Budget qps{1024, -EDQUOT};
	kern::Budget xrcds{1024, -EDQUOT};
	/* Channels, and files of asynchronous events: all of a file's are told of its end under one lock. */
	kern::Budget event_files{2048, -EDQUOT};
	/* Of a QP to a multicast group. */
	kern::Budget attachments{1024, -EDQUOT};
};

/* The shares of a device. */
class Shares : public kern::Shares<Share> {
public:
	Shares() : kern::Shares<Share>(KERN_LOCK_CLASS("uverbs.shares")) {}
};

} // namespace uverbs

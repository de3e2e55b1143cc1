// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * What debug builds watch (LOCK-01, 02, 05, 06, 07, NOTIFY-01): every call of a method passes
 * through one of these sections, and every handler of a CQ through run_handler(). In other builds
 * the sections are empty.
 */
#pragma once
#include <kern/assert.hpp>
#include <rdma/ib_verbs.h>

namespace verbs
{

enum class Rule {
	lock_01,
	lock_02,
	lock_05,
	lock_06,
	lock_07,
	notify_01,
	notify_04,
	lock_10,
	obligation
};

#ifdef CONFIG_WEFT_DEBUG

/* Once, when the module is loaded and unloaded. */
void init_checks();
void exit_checks();

/*
 * Says who broke which rule where, with a backtrace; or tells the test that wants to know (see
 * ib_set_misuse_observer).
 */
void report_misuse(Rule rule, const ib_device *device, const char *who, const char *what);

/* Tells the test, if there is one; false if there is none. */
bool tell_observer(Rule rule, const char *who, const char *what);

/* A call that may sleep (LOCK-02). */
void may_sleep(const ib_device *device, const char *function);

/*
 * A call of a method that must not sleep (LOCK-01), and from which no handler may be called
 * (LOCK-05).
 */
class AtomicMethod
{
public:
	AtomicMethod(const ib_device *device, const char *method);
	~AtomicMethod();
	AtomicMethod(const AtomicMethod &) = delete;
	AtomicMethod &operator=(const AtomicMethod &) = delete;

	/* The method of this driver that the calling context is in; nullptr if in none. */
	static const char *current(const ib_device *device);

private:
	AtomicMethod *next_;
	unsigned long context_;
	const ib_device *device_;
	const char *method_;
	kern::NoSleepSection no_sleep_;
};

/* Takes the place of a CQ's completion handler. */
void run_handler(ib_cq *cq, void *cq_context);

#else

inline void init_checks() {}
inline void exit_checks() {}
inline bool tell_observer(Rule, const char *, const char *)
{
	return false;
}
inline void may_sleep(const ib_device *, const char *) {}

class AtomicMethod
{
public:
	AtomicMethod(const ib_device *, const char *) {}
	~AtomicMethod() {}
};

#endif

} // namespace verbs

#ifdef CONFIG_WEFT_DEBUG
extern "C" {

/*
 * For tests: `observer` gets the number of each rule as it is broken, as in verbs::Rule, instead of
 * the log. nullptr ends it.
 */
void ib_set_misuse_observer(void (*observer)(int rule, const char *who, const char *what));
}
#endif

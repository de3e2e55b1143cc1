// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Checks in debug builds (LOCK-01, 02, 05, 06, 07, NOTIFY-01): every call of a method passes
 * through one of these sections, every completion handler through run_handler(), and every
 * affiliated event through check_callback(). In other builds the sections are empty.
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
	lock_08,
	notify_01,
	notify_04,
	lock_10,
	use_count,
	mandatory_attribute
};

#ifdef CONFIG_WEFT_DEBUG

/* Once, when the module is loaded and unloaded. */
void init_checks();
void exit_checks();

/*
 * Reports the caller, the rule and the place with a backtrace, or notifies a test (see
 * ib_set_misuse_observer).
 */
void report_misuse(Rule rule, const ib_device *device, const char *who, const char *what);

/* Notifies the observer of a test; returns false if there is none. */
bool notify_observer(Rule rule, const char *who, const char *what);

/* Reports an object whose use count was misused: more uses ended than began, or far too many. */
template<class T>
void report_use_count(const T &object)
{
	report_misuse(Rule::use_count, object.device, object.res.owner, "misused its use count");
}

/* A call that may sleep (LOCK-02). */
void may_sleep(const ib_device *device, const char *function);

/* A call of a method, from which the driver may call no handler (LOCK-05). */
class MethodSection
{
public:
	enum class Kind { sleeping, atomic };

	MethodSection(const ib_device *device, const char *method, Kind kind = Kind::sleeping);
	~MethodSection();
	MethodSection(const MethodSection &) = delete;
	MethodSection &operator=(const MethodSection &) = delete;

	/* The method of this driver that the calling context is in; nullptr if in none. */
	static const char *current(const ib_device *device);
	/* Does the same, only for methods that must not sleep. */
	static const char *current_atomic(const ib_device *device);

private:
	template<class Matches>
	static const char *find(const ib_device *device, Matches matches);

	MethodSection *next_;
	unsigned long context_;
	const ib_device *device_;
	const char *method_;
	Kind kind_;
};

/* A call of a method that must not sleep (LOCK-01). */
class AtomicMethod
{
public:
	AtomicMethod(const ib_device *device, const char *method)
	    : section_(device, method, MethodSection::Kind::atomic)
	{
	}

private:
	MethodSection section_;
	kern::NoSleepSection no_sleep_;
};

/* Reports a handler that is called from within a method of the driver (LOCK-05). */
void check_callback(const ib_device *device, const char *what);

/* Replaces the completion handler of a CQ. */
void run_handler(ib_cq *cq, void *cq_context);

#else

inline void init_checks() {}
inline void exit_checks() {}
inline bool notify_observer(Rule, const char *, const char *)
{
	return false;
}
inline void may_sleep(const ib_device *, const char *) {}
template<class T>
void report_use_count(const T &)
{
}
inline void check_callback(const ib_device *, const char *) {}

class MethodSection
{
public:
	MethodSection(const ib_device *, const char *) {}
	~MethodSection() {}
};

class AtomicMethod
{
public:
	AtomicMethod(const ib_device *, const char *) {}
	~AtomicMethod() {}
};

#endif

} // namespace verbs

/*
 * Calls a method that may sleep, in a section in which the driver may call no handler. Evaluates
 * @device once for each of its two uses.
 */
#define VERBS_CALL(device, method, ...)                                                            \
	[&] {                                                                                      \
		verbs::MethodSection section(device, #method);                                     \
		return (device)->ops.method(__VA_ARGS__);                                          \
	}()

#ifdef CONFIG_WEFT_DEBUG
extern "C" {

/*
 * For tests: calls `observer` with the number of each violated rule (verbs::Rule) instead of
 * logging it. nullptr restores logging.
 */
void ib_set_misuse_observer(void (*observer)(int rule, const char *who, const char *what));
}
#endif

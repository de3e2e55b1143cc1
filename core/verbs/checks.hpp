// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the checks of the locking and context rules in enum Rule (Documentation/rules.rst). With
 * CONFIG_WEFT_DEBUG, every call of a driver's method is enclosed in one of the section objects
 * below, every completion handler is called by run_handler(), and every affiliated event passes
 * through check_callback(). Without CONFIG_WEFT_DEBUG, the sections are empty. Violations of
 * LOCK-08, LOCK-10 and of mandatory attributes are reported in all builds.
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

/* Called when the module is loaded and unloaded. */
void init_checks();
void exit_checks();

/*
 * Reports a violation with the caller, the rule and a backtrace, or notifies the observer of a test
 * (see ib_set_misuse_observer).
 */
void report_misuse(Rule rule, const ib_device *device, const char *who, const char *what);

/* Notifies the observer of a test; returns false if there is none. */
bool notify_observer(Rule rule, const char *who, const char *what);

/*
 * Reports an object whose use count is invalid: more uses have ended than begun, or the count has
 * overflowed.
 */
template<class T>
void report_use_count(const T &object)
{
	report_misuse(Rule::use_count, object.device, object.res.owner, "misused its use count");
}

/* Reports a call that may sleep in a context that must not sleep (LOCK-02). */
void may_sleep(const ib_device *device, const char *function);

/* Marks a call of a method. The driver must not call a handler during the call (LOCK-05). */
class MethodSection
{
public:
	enum class Kind { sleeping, atomic };

	MethodSection(const ib_device *device, const char *method, Kind kind = Kind::sleeping);
	~MethodSection();
	MethodSection(const MethodSection &) = delete;
	MethodSection &operator=(const MethodSection &) = delete;

	/*
	 * Returns the method of this driver that runs in the calling context; nullptr if there is
	 * none.
	 */
	static const char *current(const ib_device *device);
	/* Returns the same, but only for methods that must not sleep. */
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

/* Marks a call of a method that must not sleep (LOCK-01). */
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

/* Reports a handler that a driver calls from one of its methods (LOCK-05). */
void check_callback(const ib_device *device, const char *what);

/* Installed as the completion handler of a CQ; calls the consumer's handler. */
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
 * Calls a method that may sleep. The driver must not call a handler during the call. Evaluates
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

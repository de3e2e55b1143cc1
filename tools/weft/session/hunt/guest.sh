# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# What carries out a schedule in a guest, for bash: the lines that follow call `at` for each step. The console has a line for each.
exec {never}<> <(:)
pause() { read -rt "$1" -u $never; }
log() { echo "weft-hunt: $*" >/dev/kmsg; }
complain() {
	log "complaint: $*"
	exit 1
}
# A condition, which may take a minute.
await() {
	local what=$1 tries=0
	shift
	until "$@" >/dev/null 2>&1; do
		((++tries < 60)) || complain "$what"
		pause 1
	done
}
# Allocations fail that may sleep, too.
for kind in failslab fail_page_alloc; do
	[ ! -e /sys/kernel/debug/$kind ] || echo N >/sys/kernel/debug/$kind/ignore-gfp-wait
done

# Has the Nth allocation of a process fail from here on.
arm() { [ "$fail" = 0 ] || echo "$fail" >"/proc/$1/fail-nth"; }
# put WORD FILE
put() {
	exec {file}>"$2" || return
	arm $BASHPID
	echo "$1" >&"$file"
}
# by_ip WORD… gives a command to a program that has started: the allocations that fail are those of the command. Time advances only when it waits for it.
# It waits for its answer for ever if the kernel had no memory for that, so it is killed after five seconds.
by_ip() {
	local tries=0
	exec {command}> >(exec ip -force -batch -)
	pause 0.001
	arm $!
	echo "$*" >&"$command"
	exec {command}>&-
	while kill -0 $! 2>/dev/null; do
		((++tries < 250)) || kill -KILL $!
		((tries < 260)) || break
		pause 0.02
	done
}

# at SECONDS FAIL STEP…: the guest's clock began at 1700000000.
at() {
	local seconds=$1 now=${EPOCHREALTIME/./}
	local due=$((1700000000000000 + ${seconds/./}))
	fail=$2
	shift 2
	((due <= now)) || pause "$(printf '%d.%06d' $(((due - now) / 1000000)) $(((due - now) % 1000000)))"
	log "$seconds $* fail=$fail"
	("$@") >/dev/null 2>&1
}

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Performs the steps of a schedule of `weft hunt` in a guest. trial.py appends lines to this file that call the function `at` for each step.
# Each step is logged on the console.
exec {never}<> <(:)
pause() { read -rt "$1" -u $never; }
log() { echo "weft-hunt: $*" >/dev/kmsg; }
complain() {
	log "complaint: $*"
	exit 1
}
# Waits up to a minute for a condition.
await() {
	local what=$1 tries=0
	shift
	until "$@" >/dev/null 2>&1; do
		((++tries < 60)) || complain "$what"
		pause 1
	done
}
slab=/sys/kernel/debug/failslab pages=/sys/kernel/debug/fail_page_alloc
# Allocations that may sleep fail as well.
for kind in $slab $pages; do
	[ ! -e $kind ] || echo N >$kind/ignore-gfp-wait
done

[ ! -e $slab ] || echo Y >$slab/cache-filter

# Selects the allocations that are counted. If $fail is N, only objects are counted, of the caches that the kernel's command line marks. If it is any:N,
# pages are counted too. Their number depends on the free objects that earlier operations have left.
select_counted() {
	local smallest=99
	[[ $fail != any:* ]] || smallest=0
	[ ! -e $pages ] || echo $smallest >$pages/min-order
}
# Makes the Nth allocation of a process fail, counted from now.
arm() {
	[ "$fail" != 0 ] || return 0
	select_counted
	echo "${fail#any:}" >"/proc/$1/fail-nth"
}
# put WORD FILE: writes a word to a file.
put() {
	exec {file}>"$2" || return
	arm $BASHPID
	echo "$1" >&"$file"
}
# by_ip WORD…: passes a command to an ip process that is already running, so that only allocations of the command fail. The pause gives
# the process time to start waiting for the command. If the kernel has no memory for the answer, ip waits forever, so it is killed after five seconds.
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

# run KIND WORD…: starts a program. Its Nth allocation fails, counted from its exec.
run() {
	local kind=$1
	shift
	(
		arm $BASHPID
		exec "$@" <&$never
	) &
	echo $! >"/run/hunt-$kind.pid"
}
# starve KIND: the Nth allocation of a running program fails, also one of its exit.
starve() { arm "$(<"/run/hunt-$1.pid")"; }
terminate() { kill -KILL "$(<"/run/hunt-$1.pid")"; }
# Starts OpenSM. A standby polls the master twice a second, and takes over after two missing responses.
manage() {
	printf 'sminfo_polling_timeout 500\npolling_retry_number 2\nuse_ucast_cache FALSE\n' >/run/opensm.conf
	run manager opensm -F /run/opensm.conf -f /run/opensm.log -p 14
}
# Whether a process has exited. The stack of one that has not after 50 attempts of await is logged.
has_exited() {
	kill -0 "$1" || return 0
	((tries != 50)) || log "stack of process $1: $(tr '\n' ' ' <"/proc/$1/stack")"
	return 1
}
# Kills the programs, which must exit.
kill_programs() {
	local file
	for file in /run/hunt-*.pid; do
		[ -e "$file" ] || continue
		kill -KILL "$(<"$file")"
		await "a killed program did not exit: $(basename "$file" .pid)" has_exited "$(<"$file")"
	done
}

for device in /sys/class/infiniband/*/device; do
	slot=$(basename "$(readlink -f "$device")")
	driver=$(readlink -f "$device/driver")
done
peer=10.1.0.$((3 - ${HOSTNAME#node}))
bind() { put "$slot" "$driver/bind"; }
unbind() { put "$slot" "$driver/unbind"; }
# Waits up to a minute for a carrier of ib0. If there is none, the complaint mentions whether IPoIB's joins fail because ib_sa has no valid LID of the subnet
# manager (-EAGAIN). IPoIB prints such a failure only in debug mode, and repeats the join at least every 16 seconds.
await_carrier() {
	local tries=0 debug=/sys/module/ib_ipoib/parameters/mcast_debug_level cause=
	until grep -q 1 /sys/class/net/ib0/carrier; do
		((++tries != 30)) || [ ! -e $debug ] || echo 1 >$debug
		if ((tries == 60)); then
			! dmesg | grep -q "multicast join failed for .* status -11" || cause=": ib_sa has no LID of the subnet manager ($own)"
			complain "ib0 did not get a carrier$cause"
		fi
		pause 1
	done 2>/dev/null
}
# Binds the card again without failures. Then the interface must get a carrier, and the peer must answer.
recover() {
	[ ! -e "$driver/$slot" ] || unbind
	# A fault of the card that has not occurred yet may make an attempt fail.
	bind || { [ "$faulty" = 1 ] && await "the card cannot be bound" bind; } || complain "the card cannot be bound"
	await "the interface ib0 did not appear" test -e /sys/class/net/ib0
	ip address replace "10.1.0.${HOSTNAME#node}/16" dev ib0
	ip link set ib0 up
	await_carrier
	[ "$hosts" = 1 ] || await "the peer did not answer" ping -q -c 1 -W 1 "$peer"
}

# with_names SYMBOLS REPORT: prints a report of kmemleak, in which the names of functions replace addresses. Linux 6.1 prints "[<N>] " before an address,
# Linux 6.12 does not.
with_names() {
	awk '
	function number(digits, value, place) {
		for (place = 1; place <= length(digits); place++) value = 16 * value + index("123456789abcdef", substr(digits, place, 1))
		return value
	}
	FILENAME == ARGV[1] { address[NR] = number($1); name[NR] = $3 " " $4; count = NR; next }
	/^ *(\[<[0-9a-f]+>\] +)?0x[0-9a-f]+$/ {
		wanted = number(substr($NF, 3))
		low = 0
		high = count + 1
		while (high - low > 1) {
			middle = int((low + high) / 2)
			if (address[middle] <= wanted) low = middle
			else high = middle
		}
		if (low) {
			split(name[low], part)
			$0 = sprintf(" [<0>] %s+0x%x/0x0 %s", part[1], wanted - address[low], part[2])
		}
	}
	{ print; fflush() }' "$1" "$2"
}
# Unloads all modules, and puts kmemleak's report of what they have left on the console. An object must be five seconds old for it, and unreferenced in two scans.
leaks() {
	local kmemleak=/sys/kernel/debug/kmemleak tries=0 left line
	# The report has the addresses of functions that are no longer there.
	grep ' [tT] .*\[' /proc/kallsyms | sort >/run/hunt-symbols
	while left=$(cut -d ' ' -f 1 /proc/modules | xargs) && [ "$left" ]; do
		((++tries < 60)) || complain "modules could not be unloaded: $left"
		# The newest first: it may use the others.
		for line in $left; do rmmod "$line"; done
		pause 1
	done
	[ -e $kmemleak ] || return 0
	for tries in 1 2; do
		pause 6
		echo scan >$kmemleak
	done
	with_names /run/hunt-symbols $kmemleak | while IFS= read -r line; do echo "$line" >/dev/kmsg; done
}
# Waits until the peer has ended its checks too, because it pings this host until then. A host shows the end of its checks by a second address. The
# peer looks for it once a second, and must have found it before this host unloads its modules. A peer that does not get so far complains itself.
await_peer() {
	local tries=0
	[ "$hosts" != 1 ] || return
	ip address add "10.2.0.${HOSTNAME#node}/24" dev ib0
	until ping -q -c 1 -W 1 "${peer/10.1./10.2.}"; do
		((++tries < 120)) || return
		pause 1
	done
	pause 5
}
# Ends what the peer's check needed. A scenario may replace it.
release() { :; }
finish() {
	check
	await_peer
	release
	kill_programs
	leaks
	log "finished"
}

# at SECONDS FAIL STEP…: performs a step at a time since the start of the lab, when the guest's clock was 1700000000.
at() {
	local seconds=$1 now=${EPOCHREALTIME/./}
	local due=$((1700000000000000 + ${seconds/./}))
	fail=$2
	shift 2
	((due <= now)) || pause "$(printf '%d.%06d' $(((due - now) / 1000000)) $(((due - now) % 1000000)))"
	log "$seconds $* fail=$fail"
	("$@") >/dev/null 2>&1
}

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines the shell functions that perform, in a guest, the steps of the scenario of `weft hunt` named "verbs". Each step runs in its own
# process. $own is the name of the kernel module that drives the card.
probe=/share/weft-uverbs-probe
dma=/sys/kernel/debug/dma-api/num_errors
# Programs may register a page several times, which dma-debug reports. It reports one error and no more, so it is silent until a device is removed.
echo 0 >$dma

verbs() { run verbs $probe random "$1" "$2"; }
# The same: random MADs.
mads() { run mads $probe random-mads "$1" "$2"; }
# The same without the path bits at which mlx4_ib fails.
malformed() { run mads $probe random-mads "$1" "$2" 127; }
# Management datagrams that end within their headers.
short() { run short $probe short-mads "$1" "$2"; }
objects() { run objects $probe stay-in-group; }
# Left to schedules written by hand, as the random table has no such step: a QP that joins a group with two LIDs, which mlx4_ib cannot leave twice.
objects_twice() { run objects $probe stay; }
discover() { run discover ibnetdiscover; }
query() { run query saquery; }
disconnect() {
	echo 1 >$dma
	unbind
	echo 0 >$dma
}
connect() {
	bind
	ip address replace "10.1.0.${HOSTNAME#node}/16" dev ib0
	ip link set ib0 up
}
unload() {
	echo 1 >$dma
	(
		arm $BASHPID
		exec rmmod "$1"
	) || log "$1 stays loaded"
	echo 0 >$dma
}
load() { modprobe "$1"; }

# After the last step no program may stay, and modules must have no users. Then the card must work, for IPoIB and for a new program.
check() {
	local module
	echo 1 >$dma
	kill_programs
	for module in $own ib_umad ib_uverbs; do
		[ ! -e "/sys/module/$module" ] || await "$module could not be unloaded" rmmod "$module"
	done
	modprobe -a $own ib_umad || complain "the modules cannot be loaded"
	recover
	echo 0 >$dma
	[ -c /dev/infiniband/uverbs0 ] || complain "there is no uverbs0"
	[ $own = mlx5_ib ] || timeout 60 $probe random 1 400 || complain "a new program failed"
	timeout 60 saquery || complain "the subnet manager did not answer a program"
	echo 1 >$dma
	log "checked"
}

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines the shell functions that perform the steps of the scenario cm of `weft hunt` in a guest. Each step runs in its own process.
probe=/share/weft-ucma-probe
number=${HOSTNAME#node} port=7400
child=ib0.8001
# The modules, from the last to be loaded on.
modules="rdma_ucm rdma_cm ib_cm"
# IPoIB's connected mode uses ib_cm, which therefore cannot be unloaded.
[ ! -e /sys/module/ib_cm/holders/ib_ipoib ] || modules="rdma_ucm rdma_cm"
dma=/dev/null
if [ -d /sys/module/weft_rdma_ucm ]; then
	modules="weft_rdma_ucm weft_rdma_cm"
	# With weft's modules the programs create QPs, whose queues are all in the same memory. dma-debug reports memory that is mapped often, and reports
	# only one error. It is therefore silent while programs run.
	dma=/sys/kernel/debug/dma-api/num_errors
fi
echo 0 >$dma
load() {
	local module
	for module in $(tac -s ' ' <<<"$modules "); do
		[ ! -e "/sys/module/$module" ] || continue
		case $module in
		# These are no modules of the kernel, which modprobe would know.
		weft_*) insmod "/usr/lib/modules/$(uname -r)/$module.ko" ;;
		*) modprobe "$module" ;;
		esac || return
	done
}
load
serve() { run serve $probe serve $port "$1"; }
connect() { run connect $probe connect "${2:-$peer}" $port "$1" 12; }
# The same through the child interfaces.
connect_child() { connect "$1" "${peer/10.1./10.3.}"; }
random() { run random $probe random "$1" "$2"; }
create_child() {
	put 0x8001 /sys/class/net/ib0/create_child
	ip address add "10.3.0.$number/24" dev $child
	ip link set $child up
}
delete_child() { put 0x8001 /sys/class/net/ib0/delete_child; }
# A program in its own network namespace, which has a child interface. With the program, the namespace and the interface disappear.
namespace() {
	local tries=0
	ip link add link ib0 name hunt-ns type ipoib pkey 0x8001
	run namespace unshare -n bash -c "exec {never}<> <(:)
		until ip link set hunt-ns up; do
			((++tries < 20)) && read -rt 0.05 -u \$never
			((tries < 20)) || exit
		done
		ip link set lo up
		ip address add 10.3.0.$((number + 4))/24 dev hunt-ns
		exec $probe random $1 $2"
	until ip link set hunt-ns netns "$(<"/run/hunt-namespace.pid")"; do
		((++tries < 20)) || return
		pause 0.05
	done
}
up() { by_ip link set ib0 up; }
down() { by_ip link set ib0 down; }
# The interface loses its address, and gets it, or another one.
no_address() { by_ip address flush dev ib0; }
address() { by_ip address replace "10.1.0.$1/16" dev ib0; }
flush() { by_ip neighbour flush dev ib0; }
# The peer's hardware address seems to have changed: its LID and GID stay the same, its QP number does not.
neighbour() {
	local hardware
	hardware=$(ip neighbour show "$peer" dev ib0 | sed -n 's/.*lladdr \([^ ]*\).*/\1/p')
	by_ip neighbour replace "$peer" lladdr "80:00:$1:${hardware#*:*:*:}" dev ib0 nud stale
}
rebind() {
	bind
	ip address replace "10.1.0.$number/16" dev ib0
	ip link set ib0 up
}
unload() {
	local module
	for module in $modules; do
		(
			arm $BASHPID
			exec rmmod "$module"
		) || log "$module stays loaded"
	done
}

connects() { timeout 100 $probe connect "$peer" $port 0 8; }
# After the last step no program may stay, and modules must have no users. Then a new program must be able to connect to the peer.
check() {
	local module
	kill_programs
	for module in $modules; do
		[ ! -e "/sys/module/$module" ] || await "$module could not be unloaded" rmmod "$module"
	done
	load || complain "the modules cannot be loaded"
	ip address flush dev ib0
	ip link del hunt-ns
	echo 1 >$dma
	recover
	echo 0 >$dma
	ip neighbour flush dev ib0
	fail=0 serve 0
	[ "$hosts" = 1 ] || await "the peer accepted no connection" connects
	echo 1 >$dma
	log "checked"
}

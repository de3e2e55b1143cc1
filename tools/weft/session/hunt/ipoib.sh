# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines the shell functions that perform the steps of the scenario ipoib of `weft hunt` in a guest. Each step runs in its own process. The
# functions put and by_ip (guest.sh) make the Nth allocation of a step fail, if the schedule requests it.
net=/sys/class/net
create_child() { put "0x$1" $net/ib0/create_child; }
delete_child() { put "0x$1" $net/ib0/delete_child; }
add_link() { by_ip link add link ib0 name "p$1" type ipoib pkey "0x$1"; }
delete_link() { by_ip link delete "p$1"; }
up() { by_ip link set "$1" up; }
down() { by_ip link set "$1" down; }
mtu() { by_ip link set "$1" mtu "$2"; }
address() { by_ip address replace "10.1.0.${HOSTNAME#node}/16" dev "$1"; }
flush() { by_ip neighbour flush dev "$1"; }
traffic() { while :; do ping -q -i 0.2 -c 25 -W 1 "$peer" || pause 0.5; done & }
check() {
	kill_programs
	recover
}

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines the steps of the scenario ipoib, for bash in a guest. Each step runs in its own process. put and by_ip (guest.sh) make the step's Nth
# allocation fail.
net=/sys/class/net
for device in /sys/class/infiniband/*/device; do
	slot=$(basename "$(readlink -f "$device")")
	driver=$(readlink -f "$device/driver")
done
peer=10.1.0.$((3 - ${HOSTNAME#node}))

bind() { put "$slot" "$driver/bind"; }
unbind() { put "$slot" "$driver/unbind"; }
create_child() { put "0x$1" $net/ib0/create_child; }
delete_child() { put "0x$1" $net/ib0/delete_child; }
add_link() { by_ip link add link ib0 name "p$1" type ipoib pkey "0x$1"; }
delete_link() { by_ip link delete "p$1"; }
up() { by_ip link set "$1" up; }
down() { by_ip link set "$1" down; }
mtu() { by_ip link set "$1" mtu "$2"; }
address() { by_ip address replace "10.1.0.${HOSTNAME#node}/24" dev "$1"; }
flush() { by_ip neighbour flush dev "$1"; }
traffic() { while :; do ping -q -i 0.2 -c 25 -W 1 "$peer" || pause 0.5; done & }

# After the last step the card is bound again without failures. Then the interface must get a carrier, and the peer must answer.
check() {
	[ ! -e "$driver/$slot" ] || unbind
	bind || complain "the card cannot be bound"
	await "the interface ib0 did not appear" test -e $net/ib0
	ip address replace "10.1.0.${HOSTNAME#node}/24" dev ib0
	ip link set ib0 up
	await "ib0 did not get a carrier" grep -q 1 $net/ib0/carrier
	[ "$hosts" = 1 ] || await "the peer did not answer" ping -q -c 1 -W 1 "$peer"
}

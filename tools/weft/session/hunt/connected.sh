# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines the shell functions that perform the steps of the scenario connected of `weft hunt` in a guest. This scenario also has the steps
# of the scenario ipoib.
mode() { put "$2" "$net/$1/mode"; }
# Gives an interface its address. All children have addresses in one network, because both hosts rarely have more than one.
connect() {
	mode "$1" connected
	ip link set "$1" mtu 65520
	case $1 in
	ib0) ip address replace "10.1.0.${HOSTNAME#node}/16" dev "$1" ;;
	*) ip address replace "10.3.0.${HOSTNAME#node}/24" dev "$1" ;;
	esac
	ip link set "$1" up
}
# send INTERFACE SIZE: sends packets to the peer in the background. The Nth allocation of the sender fails, possibly that of a connection.
send() {
	local address=$peer
	[ "$1" = ib0 ] || address=${peer/10.1./10.3.}
	(
		arm $BASHPID
		exec ping -q -I "$1" -i 0.01 -c 60 -W 1 -s "$2" "$address"
	) &
}
# stop SIGNAL: stops all senders, with packets in flight.
stop() { pkill "-$1" -x ping; }
traffic() {
	connect ib0
	while :; do ping -q -i 0.1 -c 25 -W 1 -s 20000 "$peer" || pause 0.3; done &
}
# After the last step, packets that need a connection must reach the peer.
check() {
	kill_programs
	recover
	connect ib0
	[ "$hosts" = 1 ] || await "the peer did not answer in connected mode" ping -q -c 1 -W 1 -M do -s 20000 "$peer"
}

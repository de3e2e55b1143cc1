# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines the shell functions that perform the steps of the scenarios probe and removal of `weft hunt` in a guest.

# walk FILE: writes the card's address to a file while the Nth allocation fails. The file with N is opened first, because opening it allocates memory. If
# N is not yet zero afterwards, the operation has fewer allocations.
walk() {
	local left smallest=99
	[[ $fail != any:* ]] || smallest=0
	exec {file}>"$1" || return
	[ ! -e $pages ] || echo $smallest >$pages/min-order
	exec {state}<>/proc/$BASHPID/fail-nth
	[ "$fail" = 0 ] || echo "${fail#any:}" >&"$state"
	echo "$slot" >&"$file"
	read -r left <&"$state"
	echo 0 >&"$state"
	log "left: $left"
	[ "$left" = 0 ] || log "beyond the last allocation"
}
# Brings the card back to the state at the beginning, for the next failing allocation.
prepare() {
	bind
	ip address replace "10.1.0.${HOSTNAME#node}/16" dev ib0
	ip link set ib0 up
	await_carrier
}
probe() { walk "$driver/bind"; }
removal() { walk "$driver/unbind"; }
check() { recover; }

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines the shell functions that perform, in a guest, the steps of the scenario rds of `weft hunt`: programs exchange reliable datagrams.
number=${HOSTNAME#node}
modules="rds_rdma rds"
program=/run/hunt-datagrams.py

# `listen OWN FAIL` returns each datagram until it is killed. `ask OWN PEER SEED COUNT FAIL` sends datagrams, and compares those that return with them. Datagrams
# of an address arrive in order and once. Some are lost if a program is killed. A COUNT of 0 is no end; otherwise each datagram must return.
cat >$program <<'END'
import select, socket, sys, time
AF_RDS, PORT, MOST, WINDOW = 21, 4000, 16384, 4
listens = sys.argv[1] == "listen"
own, fail = sys.argv[2], sys.argv[-1]

def contents(number):
    size = number * 7919 % MOST + 40
    return f"{sys.argv[4]} {number:10} ".encode().ljust(64, b".").ljust(size, bytes([number % 251]))

def opened():
    while True:
        try:
            socket_ = socket.socket(AF_RDS, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
            socket_.bind((own, PORT + (not listens)))
            return socket_
        except OSError:
            time.sleep(0.2)

def listen(socket_):
    while True:
        select.select([socket_], [], [])
        try:
            data, where = socket_.recvfrom(MOST + 40)
            socket_.sendto(data, where)
        except OSError:
            time.sleep(0.05)

def ask(socket_, peer, count):
    sent = received = last = 0
    while not count or received < count:
        time.sleep(0.02)
        if sent < received + WINDOW or not count:
            try:
                socket_.sendto(contents(sent + 1), (peer, PORT))
                sent += 1
            except OSError:
                time.sleep(0.05)
        if not select.select([socket_], [], [], 0.05)[0]:
            continue
        try:
            data = socket_.recv(MOST + 40)
        except OSError:
            continue
        seed, number = data.split()[:2]
        if seed.decode() != sys.argv[4]:
            continue    # of a program before this one
        if data != contents(int(number)) or int(number) <= last:
            return f"datagram {int(number)} came back after {last}, with {len(data)} bytes"
        received, last = received + 1, int(number)

node = opened()
if fail != "0":
    with open("/proc/self/fail-nth", "w") as file:
        file.write(fail)
if listens:
    listen(node)
elif error := ask(node, sys.argv[3], int(sys.argv[5])):
    with open("/dev/kmsg", "w") as log:
        log.write(f"weft-hunt: complaint: {error}\n")
    sys.exit(1)
END
own=10.1.0.$number
# start KIND WORD…: starts the program. Its Nth allocation fails, counted from its first datagram on.
start() {
	local kind=$1
	shift
	select_counted
	python3 $program "$@" "${fail#any:}" <&"$never" &
	echo $! >"/run/hunt-$kind.pid"
}
listen() { start listen listen "$own"; }
ask() { start ask ask "$own" "$peer" "$1" 0; }
load() {
	local module
	for module in $(tac -s ' ' <<<"$modules "); do [ -e "/sys/module/$module" ] || modprobe "$module" || return; done
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
begin() {
	load
	listen
}
up() { by_ip link set ib0 up; }
down() { by_ip link set ib0 down; }
address() { by_ip address replace "$own/16" dev ib0; }
no_address() { by_ip address flush dev ib0; }
flush() { by_ip neighbour flush dev ib0; }
rebind() {
	bind
	ip address replace "$own/16" dev ib0
	ip link set ib0 up
}

check() {
	local module
	fail=0
	kill_programs
	for module in $modules; do
		[ ! -e "/sys/module/$module" ] || await "$module could not be unloaded" rmmod "$module"
	done
	load || complain "the modules cannot be loaded"
	recover
	listen
	[ "$hosts" = 1 ] || await "datagrams did not return" timeout 60 python3 $program ask "$own" "$peer" 1 50 0
	log "checked"
}

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
# Defines the shell functions that perform, in a guest, the steps of the scenarios of `weft hunt` with a target on node1 and an initiator on node2. The script of
# a protocol (such as nvme.sh) is appended. It defines
#   initiator_modules, target_modules   the modules that the steps unload and load, from the last to be loaded on
#   prepare             prepares what stays while these modules are unloaded, such as a target's disk
#   serve, withdraw     make the target's disk accessible, and undo that
#   write_login WORD…   connects the initiator. The words are a command that writes the login.
#   connections         prints a directory for each connection
#   live DIRECTORY      succeeds if a connection works
#   deletion DIRECTORY  prints the file of a connection that closes it
#   disks               a pattern of the disks of connections, or of files
number=${HOSTNAME#node}
exercise=/run/hunt-exercise.py configure=/run/hunt-configure.py
dma=/sys/kernel/debug/dma-api/num_errors
# nvme_rdma maps several objects of a cache line, which dma-debug reports. It reports one error and no more, so it is silent until a device is removed.
echo 0 >$dma

# Writes random blocks of a disk or file, reads others, and compares them. A write that fails may have changed its blocks. Four threads have a part of the disk each.
# They pause, because calls take hardly any virtual time.
# The arguments: a pattern of disks, a seed, the number of operations of each thread (0 for no end), and which allocation of the first thread fails.
cat >$exercise <<'END'
import fcntl, glob, mmap, os, random, sys, threading, time
pattern, seed, count, fail = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
BLOCK, BLOCKS, MOST, THREADS = 4096, 60, 40, 4
failed = []

def contents(part, block, written):
    return f"{seed} {part} {block} {written:8} ".encode().ljust(64, b".") * (BLOCK // 64)

def exercise(part):
    rng = random.Random(seed * THREADS + part)
    buffer = mmap.mmap(-1, BLOCK * MOST)
    known, disk, done = {}, None, 0
    while not failed and not (count and done >= count):
        done += 1
        time.sleep(rng.uniform(0, 0.1))
        block = rng.randrange(BLOCKS)
        length = min(BLOCKS - block, rng.randint(1, rng.choice((1, MOST))))
        blocks = range(block, block + length)
        writes = rng.random() < 0.5
        view = memoryview(buffer)[:length * BLOCK]
        try:
            if disk is None:
                disk = os.open(sorted(glob.glob(pattern))[-1], os.O_RDWR | os.O_DIRECT)
            at = (part * BLOCKS + block) * BLOCK
            if writes:
                for each in blocks:
                    known.pop(each, None)
                view[:] = b"".join(contents(part, each, done) for each in blocks)
                if os.pwritev(disk, [view], at) != len(view):
                    raise OSError
                known.update((each, done) for each in blocks)
                continue
            if os.preadv(disk, [view], at) != len(view):
                raise OSError
        except (OSError, IndexError) as error:
            if count:
                failed.append(f"an operation failed: {error}")
            if disk is not None:
                os.close(disk)
                disk = None
            time.sleep(0.2)
            continue
        for each in blocks:
            start = (each - block) * BLOCK
            if each in known and view[start:start + BLOCK] != contents(part, each, known[each]):
                failed.append(f"block {each} of part {part} has other data than those written: {bytes(view[start:start + 40])}")

# A killed program whose writes wait for a connection has not exited yet.
lock = open("/run/hunt-exercise.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
others = [threading.Thread(target=exercise, args=(part,), daemon=True) for part in range(1, THREADS)]
for thread in others:
    thread.start()
if fail != "0":
    with open("/proc/thread-self/fail-nth", "w") as file:
        file.write(fail)
exercise(0)
for thread in others:
    thread.join()
for words in failed[:1]:
    with open("/dev/kmsg", "w") as log:
        log.write(f"weft-hunt: complaint: {words}\n")
sys.exit(bool(failed))
END

# Performs commands on configfs. An error does not prevent those that follow. The argument tells which allocation fails, counted from the first command.
cat >$configure <<'END'
import os, sys

def write(file, *words):
    with open(file, "wb", buffering=0) as opened:
        opened.write(" ".join(words).encode())

commands = {"mkdir": os.mkdir, "rmdir": os.rmdir, "link": os.symlink, "unlink": os.unlink, "write": write}
lines = [line.split() for line in sys.stdin]
with open("/proc/self/fail-nth", "w") as file:
    file.write(sys.argv[1])
for name, *arguments in lines:
    try:
        commands[name](*arguments)
    except OSError as error:
        print(name, *arguments, error, file=sys.stderr)
END
# configure DIRECTORY: performs the commands on standard input in a directory.
configure() (
	cd "$1" || return
	select_counted
	python3 $configure "${fail#any:}"
)
mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
is_target() { [ "$number" = 1 ]; }
modules() { if is_target; then echo "$target_modules"; else echo "$initiator_modules"; fi; }
# Whether the last program of a kind still runs.
runs() { [ -e "/run/hunt-$1.pid" ] && kill -0 "$(<"/run/hunt-$1.pid")"; }
# A login may wait for messages of the target, so later steps do not wait for it. Only one runs at a time.
login() {
	! runs login || return
	write_login put &
	echo $! >/run/hunt-login.pid
}
# write_all WORD: writes a word to each file of the standard input.
write_all() {
	local each
	while read -r each; do (put "$1" "$each"); done
}
deletions() { connections | while read -r each; do deletion "$each"; done; }
logout() {
	! runs logout || return
	deletions | write_all 1 &
	echo $! >/run/hunt-logout.pid
}
io() {
	select_counted
	python3 $exercise "$disks" "$1" 0 "${fail#any:}" <&"$never" &
	echo $! >/run/hunt-io.pid
}
unload() {
	local module
	for module in $(modules); do
		(
			arm $BASHPID
			exec rmmod "$module"
		) || log "$module stays loaded"
	done
}
load() {
	local module
	for module in $(modules | tac -s ' '); do [ -e "/sys/module/$module" ] || modprobe "$module" || return; done
}
begin() {
	load
	prepare
	if is_target; then
		serve
	else
		pause 1
		login
		io 0
	fi
}
up() { by_ip link set ib0 up; }
down() { by_ip link set ib0 down; }
address() { by_ip address replace "10.1.0.$number/16" dev ib0; }
no_address() { by_ip address flush dev ib0; }
flush() { by_ip neighbour flush dev ib0; }
unbind() {
	echo 1 >$dma
	(put "$slot" "$driver/unbind")
	echo 0 >$dma
}
rebind() {
	bind
	ip address replace "10.1.0.$number/16" dev ib0
	ip link set ib0 up
}

reload() {
	local module
	for module in $(modules); do
		[ ! -e "/sys/module/$module" ] || await "$module could not be unloaded" rmmod "$module"
	done
	load || complain "the modules cannot be loaded"
}
connected() { [ "$(connections)" ]; }
all_live() {
	local each
	for each in $(connections); do live "$each" || return; done
}
# Waits up to three minutes: an attempt with an outdated path fails after the last of many retries, and only the next one queries the path again.
await_reconnection() {
	local tries=0
	until all_live; do
		((++tries < 180)) || complain "an initiator did not reconnect"
		pause 1
	done
}
# Closes all connections.
part() {
	local each
	for each in $(deletions); do echo 1 >"$each"; done
	! connected
}
# Logs in, and waits for the disk.
relogin() {
	local tries=0
	# NVMe keeps a connection as long as the file of its login is open.
	connected || (write_login put)
	until compgen -G "$disks" && all_live; do
		((++tries < 10)) || return
		pause 1
	done
}
target_check() {
	kill_programs
	withdraw
	reload
	recover
	serve
}
# A connection must work again when the target serves its disk again, unless a fault of the card is still to come. A new connection must transfer data.
initiator_check() {
	[ -e "$driver/$slot" ] || rebind
	ip address replace "10.1.0.$number/16" dev ib0
	ip link set ib0 up
	if connected && ((hosts == 2 && !faulty)); then
		await_reconnection
		log "reconnected"
	fi
	kill_programs
	await "a connection could not be closed" part
	reload
	recover
	[ "$hosts" != 1 ] || return
	await "the initiator could not connect" relogin
	timeout 60 python3 $exercise "$disks" 1 50 0 || complain "data could not be written and read"
	await "a connection could not be closed" part
}
check() {
	fail=0
	if is_target; then target_check; else initiator_check; fi
	log "checked"
}
release() {
	echo 1 >$dma
	! is_target || withdraw
}

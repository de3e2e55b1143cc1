# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the scripts report by one clear line and a non-zero status what the machine lacks on which they run (a program, disk space, a network), and
that no partial results remain."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from lab import cache, kernels
from lab.errors import LabError

GUEST = cache.TREE / "scripts/guest"


class BadInput(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-bad-")))

    def fails(self, argv, *said, **environment):
        """Runs a program that must fail with one line on its standard error that contains all texts in `said`."""
        done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, **environment}, timeout=120)
        self.assertNotEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, f"more or less than one line:\n{done.stderr}")
        for words in said:
            self.assertIn(words, lines[0])
        return lines[0]

    def entries(self):
        """Returns the entries of the cache, without locks."""
        place = self.folder / "weft"
        return [path.name for path in place.iterdir() if not path.name.startswith(".lock")] if place.exists() else []

    def test_failed_download_without_a_network_is_reported(self):
        """If the private QEMU cannot be fetched, the message contains apt's error and advice."""
        self.fails([GUEST, "prepare", "debug"], "scripts/guest: apt-get failed", "is there a network", XDG_CACHE_HOME=str(self.folder),
                   http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9", PATH=without("qemu-system-x86_64", self.folder / "bin"))
        self.assertEqual(self.entries(), [])

    def test_message_about_a_missing_program_names_the_script_that_installs_it(self):
        """If a program is missing because its package is not installed, the message names the program and the script that installs it."""
        self.fails([GUEST, "prepare", "debug"], "is missing", "run scripts/setup", XDG_CACHE_HOME=str(self.folder),
                   PATH=without("apt-get", self.folder / "bin", "qemu-system-x86_64"))
        self.assertEqual(self.entries(), [])

    def test_unknown_module_name_is_reported(self):
        """`make modules MODULES=` refuses a name that no Kbuild has, before it builds anything."""
        done = subprocess.run(["make", "-C", cache.TREE, "modules", "MODULES=weft_kern weft_kernel", f"KDIR={kernels.find('stock').kdir}"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("MODULES names weft_kernel, which is not a module", done.stderr)
        self.assertNotIn("CXX", done.stdout)

    def test_disk_that_is_too_small_for_the_cache_is_reported(self):
        """If the cache is on a disk that is too small, the message contains the free space and the variable that moves the cache."""
        disk = self.folder / "disk"
        disk.mkdir()
        mount = f"mount -t tmpfs -o size=20m none {disk} && exec {GUEST} prepare debug"
        if subprocess.run(["unshare", "-rm", "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("user namespaces are not allowed here")
        self.fails(["unshare", "-rm", "sh", "-c", mount], "MiB free", "XDG_CACHE_HOME", XDG_CACHE_HOME=str(disk),
                   PATH=without("qemu-system-x86_64", self.folder / "bin"))

    def test_disk_that_fills_up_leaves_no_cache_entry(self):
        """If the disk fills up while an entry is made, no part of the entry remains."""
        script = ("import pathlib, sys\nfrom lab import cache\nfrom lab.errors import reported\n"
                  "def make(work):\n    (work / 'a').write_bytes(bytes(64 << 20))\n"
                  "with reported('filling'):\n    cache.entry('thing', 'key', make, need_mib=1, product='a')\n")
        if subprocess.run(["unshare", "-rm", "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("user namespaces are not allowed here")
        (self.folder / "fill.py").write_text(script)
        mount = (f"mount -t tmpfs -o size=20m none {self.folder}/cache && python3 -B {self.folder}/fill.py; status=$?; "
                 f"ls -A {self.folder}/cache/weft | grep -v lock; exit $status")
        (self.folder / "cache").mkdir()
        done = subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, text=True, check=False,
                              env={**os.environ, "XDG_CACHE_HOME": f"{self.folder}/cache", "PYTHONPATH": str(cache.TREE / "scripts")})
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, r"^filling: .*No space left on device.*free some space.*\n$")

    def test_cache_that_cannot_be_created_is_reported_with_a_remedy(self):
        with environment(XDG_CACHE_HOME="/dev/null"), self.assertRaisesRegex(LabError, "^the cache /dev/null/weft cannot be created .Not a directory.: let XDG_CACHE_HOME name a dir"):
            cache.locked("kernel")

    def test_incomplete_cache_entries_are_rebuilt(self):
        """Files of an interrupted run are removed, and an entry without its file is made again."""
        (self.folder / "weft/.work-thing-abc/deep").mkdir(parents=True)
        (self.folder / "weft/thing-key").mkdir()
        with environment(XDG_CACHE_HOME=str(self.folder)):
            made = cache.entry("thing", "key", lambda work: (work / "a").write_text("whole"), need_mib=1, product="a")
        self.assertEqual((made / "a").read_text(), "whole")
        self.assertEqual(self.entries(), ["thing-key"])

    def test_interrupted_build_leaves_no_cache_entry(self):
        """If making an entry is interrupted, no entry exists."""
        def make(work):
            (work / "a").write_text("half")
            raise KeyboardInterrupt

        with environment(XDG_CACHE_HOME=str(self.folder)), self.assertRaises(KeyboardInterrupt):
            cache.entry("thing", "key", make, need_mib=1, product="a")
        self.assertEqual(self.entries(), [])

    def test_kernel_tree_without_required_options_is_refused(self):
        """A kernel tree without an option that the modules need is refused before anything is compiled, and the message names the option."""
        tree = self.folder / "tree"
        source = kernels.find("debug").kdir
        for name in ("Makefile", "Module.symvers"):
            tree.mkdir(exist_ok=True)
            shutil.copy(source / name, tree / name)
        (tree / "include/config").mkdir(parents=True)
        (tree / "include/generated").mkdir()
        shutil.copy(source / "include/generated/utsrelease.h", tree / "include/generated")
        config = (source / "include/config/auto.conf").read_text().replace("CONFIG_PCI_MSI=y\n", "")
        (tree / "include/config/auto.conf").write_text(config)
        self.fails([cache.TREE / "scripts/make/kbuild/run", tree, "modules"], "lacks CONFIG_PCI_MSI")

    def test_directory_without_a_kernel_tree_is_refused(self):
        self.fails([cache.TREE / "scripts/make/kbuild/run", self.folder, "modules"], "is not a kernel tree")

    def test_missing_vfio_user_server_is_reported(self):
        self.fails([GUEST, "run", "--kernel", "debug", "--vfio-user", self.folder / "none", "--command", "true"], "is not a socket", "must listen")

    def test_missing_shared_directory_is_reported(self):
        self.fails([GUEST, "run", "--share", self.folder / "none", "--command", "true"], "is not a folder")

    def test_filter_that_matches_no_test_is_refused(self):
        self.fails([cache.TREE / "scripts/test", "--no-build", "--only", "build.no-such-test"], "no test's name matches")

    def test_filter_that_is_no_valid_regex_is_refused(self):
        self.fails([cache.TREE / "scripts/test", "--only", "*"], "is not a regular expression")


def without(program, folder, *more):
    """Returns a PATH with all programs except the given ones."""
    folder.mkdir()
    hidden = {program, *more}
    for place in os.environ["PATH"].split(":") + ["/usr/sbin"]:
        if os.path.isdir(place):
            for name in os.listdir(place):
                if name not in hidden and not os.path.lexists(folder / name):
                    (folder / name).symlink_to(os.path.join(place, name))
    return str(folder)


@contextlib.contextmanager
def environment(**values):
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

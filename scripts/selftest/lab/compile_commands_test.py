# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests that the compile commands that Kbuild and CMake have recorded are converted so that clang's tools can use them."""
import json
import pathlib
import tempfile
import unittest

from lab import compile_commands

KBUILD = ("cmd_{object} := ccache g++-12 -Wp,-MMD,x.d -nostdinc -isystem /gcc/include -I./include -include ./kconfig.h -DNAME='\"a b\"' -std=gnu++20 "
          "-mpreferred-stack-boundary=3 -fno-gnu-unique -c -o {object} {source}; objcopy -R .group {object}\n\nsource_x := y\n")


class CompileCommands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)

    def write(self, stem, suffix=".cpp", there=True):
        source = self.tree / f"{stem}{suffix}"
        if there:
            source.write_text("")
        room = self.tree / "objects/room"
        room.mkdir(parents=True, exist_ok=True)
        (room / f".{stem}.o.cmd").write_text(KBUILD.format(object=room / f"{stem}.o", source=source))
        return str(source)

    def test_compile_command_keeps_only_options_that_clang_needs(self):
        source = self.write("a")
        (found, arguments), = compile_commands.of_modules("/kernel", self.tree / "objects")
        self.assertEqual(found, source)
        text = " ".join(arguments)
        self.assertIn('-isystem /gcc/include -I./include -include ./kconfig.h -DNAME="a b" -std=gnu++20', text)
        for word in ("ccache", "-mpreferred", "-fno-gnu", "-MMD", "objcopy"):
            self.assertNotIn(word, text)

    def test_compile_commands_exclude_c_sources_and_deleted_sources(self):
        self.write("module", ".c")
        self.write("gone", there=False)
        self.assertEqual(list(compile_commands.of_modules("/kernel", self.tree / "objects")), [])

    def test_kbuild_and_cmake_compile_commands_are_converted_for_clang(self):
        shared = self.write("a")
        host = self.tree / "host.json"
        host.write_text(json.dumps([{"directory": "/b", "file": "/t/b.cpp",
                                     "command": "cmake -E env CCACHE_BASEDIR=/t ccache /usr/bin/c++ -DX=1 -fno-gnu-unique -std=c++20 -o b.o -c /t/b.cpp"},
                                    {"directory": "/b", "file": shared, "command": f"c++ -o a.o -c {shared}"}]))
        of_module, of_host = compile_commands.database("/kernel", self.tree / "objects", host)
        self.assertEqual(of_module["directory"], "/kernel")
        self.assertEqual(of_module["arguments"][0], compile_commands.CLANG)
        self.assertEqual(of_host, {"directory": "/b", "file": "/t/b.cpp",
                                   "arguments": ["/usr/bin/c++", "-DX=1", "-std=c++20", "-o", "b.o", "-c", "/t/b.cpp"]})


if __name__ == "__main__":
    unittest.main()

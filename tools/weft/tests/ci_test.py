#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the script that CI systems call (scripts/ci/run), and the steps of the GitHub Action and of the GitLab template, with a stub of the program
weft."""
import os
import pathlib
import shutil
import signal
import subprocess
import unittest
import xml.etree.ElementTree

import yaml
from stand_in import Folder

CI = pathlib.Path(__file__).resolve().parents[3] / "scripts/ci"


class Ci(Folder):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "WEFT": str(self.program), "TMPDIR": str(self.folder)}
        self.artifacts = self.folder / "kept"

    def shell(self, script, **environment):
        return subprocess.run(["bash", "-c", script], cwd=self.folder, env={**self.environment, **environment}, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60)

    def run_ci(self, *words):
        return subprocess.run([CI / "run", "--artifacts", self.artifacts, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=60)

    def case(self):
        suite = xml.etree.ElementTree.parse(self.artifacts / "junit.xml").getroot()
        (case,) = suite
        self.assertEqual(int(suite.get("failures")), len(case.findall("failure")))
        return case

    def left(self):
        return [path.name for path in self.folder.glob("tmp.*")]


class CiRunScript(Ci):
    def test_command_runs_on_the_first_host(self):
        done = self.run_ci("--lab=my.toml", "--", "echo said; echo more >&2")
        self.assertEqual((done.returncode, sorted(done.stdout.split())), (0, ["more", "said"]), done.stderr)
        self.assertEqual([line.replace(f"{self.artifacts}", "DIR") for line in self.asked()],
                         ["lab up --lab=my.toml", "--json fabric show", "lab shell a -- echo said; echo more >&2", "lab check", "lab down"])
        self.assertIsNone(self.case().find("failure"))
        self.assertIn("said", self.case().find("system-out").text)
        self.assertEqual(self.left(), [])

    def test_exit_status_of_the_command_is_returned(self):
        done = self.run_ci("--on", "b", "--", "echo '<&\x01' ; exit 7")
        self.assertEqual(done.returncode, 7)
        self.assertEqual(self.case().find("failure").get("message"), "b: status 7 ")
        self.assertIn("<&", self.case().find("system-out").text)

    def test_ci_run_fails_if_a_guest_kernel_reports_a_bug_or_a_guest_dies(self):
        for name, status in (("report", 125), ("dead", 126)):
            (self.folder / name).touch()
            done = self.run_ci("--", "true")
            self.assertEqual(done.returncode, status)
            self.assertIn(f"the kernel of a: {name}", done.stdout)
            self.assertIn(name, self.case().find("failure").get("message"))

    def test_lab_that_does_not_come_up_is_reported(self):
        (self.folder / "no-up").touch()
        done = self.run_ci("--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("weft: there is no card", done.stderr)
        self.assertEqual(self.case().find("failure").get("message"), "the lab did not come up ")

    def test_invalid_weft_option_gives_exit_status_2(self):
        done = self.run_ci("--bogus", "--", "true")
        self.assertEqual((done.returncode, done.stderr), (2, "weft lab up has no option '--bogus'\n"))

    def test_timed_out_command_is_terminated(self):
        done = self.run_ci("--timeout", "0.2", "--", "exec sleep 100")
        self.assertEqual(done.returncode, 124)
        self.assertIn("not done after 0.2 s", self.case().find("failure").get("message"))
        self.assertEqual(self.asked()[-1], "lab down")

    def test_timed_out_command_that_ignores_sigterm_is_killed(self):
        done = self.run_ci("--timeout", "0.2", "--", "trap '' TERM; while :; do :; done")
        self.assertEqual(done.returncode, 124)
        self.assertIn("not done after 0.2 s", self.case().find("failure").get("message"))
        self.assertEqual(self.asked()[-1], "lab down")

    def test_command_killed_by_sigkill_gives_exit_status_137(self):
        self.assertEqual(self.run_ci("--timeout", "50", "--", "kill -KILL $$").returncode, 137)

    def test_capture_option_writes_a_pcap_file_of_the_links(self):
        self.assertEqual(self.run_ci("--capture", "all", "--", "true").returncode, 0)
        self.assertIn(f"capture all -w {self.artifacts}/capture.pcap", self.asked())
        self.assertIn("capturing", (self.artifacts / "capture.txt").read_text())

    def test_sigterm_stops_the_lab_of_the_ci_job(self):
        running = subprocess.Popen([CI / "run", "--artifacts", self.artifacts, "--", "echo begun; exec sleep 100"], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, start_new_session=True)
        self.assertEqual(running.stdout.readline(), "begun\n")
        os.killpg(running.pid, signal.SIGTERM)
        self.assertEqual(running.wait(60), 130)
        running.stdout.close()
        self.assertEqual(self.asked()[-1], "lab down")
        self.assertEqual(self.left(), [])

    def test_ci_run_script_refuses_invalid_command_lines(self):
        for words, said in (((), "a command after --"), (("--",), "a command after --"), (("true",), "true is no option"), (("--on",), "--on needs a value")):
            done = subprocess.run([CI / "run", *words], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)


    def kvm_of_another_user(self, sudo_status):
        """Runs a copy of the script, with a file in place of /dev/kvm that its user may not open, and a stub of sudo."""
        script, kvm, programs = self.folder / "tree/scripts/ci/run", self.folder / "kvm", self.folder / "programs"
        for folder in (script.parent, programs):
            folder.mkdir(parents=True)
        text = (CI / "run").read_text()
        self.assertGreaterEqual(text.count("/dev/kvm"), 3)
        script.write_text(text.replace("/dev/kvm", str(kvm)))
        kvm.touch(0o400)
        (programs / "sudo").write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{self.folder}/sudo\nexit {sudo_status}\n')
        for path in (script, programs / "sudo"):
            path.chmod(0o755)
        self.folder.chmod(0o777)
        # Root may write to any file.
        unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        done = subprocess.run([*unprivileged, "bash", script, "--artifacts", self.artifacts, "--", "true"], cwd=self.folder,
                              env={**self.environment, "PATH": f"{programs}:{os.environ['PATH']}"}, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.folder / "sudo").read_text(), f"-n chmod 0666 {kvm}\n")
        return done.stderr

    def test_ci_run_script_makes_dev_kvm_accessible_with_sudo(self):
        self.assertNotIn("may not be opened", self.kvm_of_another_user(0))

    def test_dev_kvm_that_sudo_cannot_make_accessible_is_reported(self):
        self.assertIn("may not be opened: guests' CPUs are emulated", self.kvm_of_another_user(1))


class CiTemplates(Ci):
    def test_github_action_passes_its_inputs_to_the_ci_run_script(self):
        action = yaml.safe_load((CI / "github/action.yml").read_text())
        inputs = {name: given.get("default", "") for name, given in action["inputs"].items()}
        (step,) = [step for step in action["runs"]["steps"] if step.get("name") == "Run the command"]
        inputs.update(command="echo 'it is' run", host="b", artifacts="kept")
        environment = {name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")] for name, value in step["env"].items()}
        done = self.shell(step["run"], GITHUB_ACTION_PATH=str(CI / "github"), **environment)
        self.assertEqual((done.returncode, done.stdout), (0, "it is run\n"), done.stderr)
        self.assertEqual(self.asked()[:2], ["lab up --kernel=stock", "lab shell b -- echo 'it is' run"])
        self.assertTrue((self.artifacts / "junit.xml").is_file())
        # The action uses all its inputs, and no others.
        self.assertEqual(set(environment.values()) | {""}, set(inputs.values()) | {""})
        for step in action["runs"]["steps"]:
            self.assertTrue("uses" in step or step["shell"] == "bash")

    def test_gitlab_template_runs_the_command(self):
        job = yaml.safe_load((CI / "gitlab.yml").read_text())[".weft"]
        (line,) = job["script"]
        done = self.shell(line, WEFT_TREE=str(CI.parents[1]), WEFT_COMMAND="echo run; exit 3", WEFT_OPTIONS="--on b --memory=1G")
        self.assertEqual((done.returncode, done.stdout), (3, "run\n"), done.stderr)
        self.assertEqual(self.asked()[:2], ["lab up --memory=1G", "lab shell b -- echo run; exit 3"])
        for path in (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]):
            self.assertTrue((self.folder / path).exists(), path)

    def test_ci_prepare_script_changes_nothing_if_weft_is_installed(self):
        self.program.write_text("#!/bin/sh\necho weft 9\n")
        done = subprocess.run([CI / "prepare"], env={**self.environment, "PATH": f"{self.folder}:{os.environ['PATH']}"}, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "scripts/ci/prepare: weft 9 is installed\n"), done.stderr)

    def bare_tree(self):
        """A tree with the scripts for CI, and stubs of setup and make that record their arguments; returns it and a PATH without weft."""
        tree, programs = self.folder / "tree", self.folder / "programs"
        shutil.copytree(CI, tree / "scripts/ci")
        programs.mkdir()
        (programs / "dirname").symlink_to(shutil.which("dirname"))
        for stub in (tree / "scripts/setup", programs / "make"):
            stub.write_text(f'#!/bin/sh\necho "{stub.name} $* in $PWD" >>{self.folder}/done\ntest ! -e {self.folder}/no-{stub.name}\n')
            stub.chmod(0o755)
        return tree, str(programs)

    def test_ci_prepare_script_installs_packages_and_builds_weft(self):
        tree, path = self.bare_tree()
        action = yaml.safe_load((CI / "github/action.yml").read_text())
        (build,) = [step for step in action["runs"]["steps"] if step.get("name") == "Build weft"]
        (before,) = yaml.safe_load((CI / "gitlab.yml").read_text())[".weft"]["before_script"]
        expected = f"setup lab in {tree}\nmake --no-print-directory programs in {tree}\n"
        for line, environment in ((build["run"], {"GITHUB_ACTION_PATH": str(tree / "scripts/ci/github")}), (before, {"WEFT_TREE": "tree"})):
            # The script's shell is given by its path, because PATH contains only the stubs.
            done = subprocess.run(["/bin/bash", "-c", line], cwd=self.folder, env={**environment, "PATH": path}, capture_output=True, text=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), line)
            self.assertEqual((self.folder / "done").read_text(), expected, line)
            (self.folder / "done").unlink()

    def test_ci_prepare_script_fails_if_setup_or_make_fails(self):
        tree, path = self.bare_tree()
        for failing, steps in (("setup", 1), ("make", 2)):
            (self.folder / f"no-{failing}").touch()
            done = subprocess.run([tree / "scripts/ci/prepare"], env={"PATH": path}, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(len((self.folder / "done").read_text().splitlines()), steps)
            (self.folder / "done").unlink()
            (self.folder / f"no-{failing}").unlink()


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Uses Debian packages without installing them: a private apt resolves their dependencies, and they are unpacked into a directory.

Nothing here needs root, and the system's package state is not touched. Mirror, proxies and keys are those of the system's apt.
"""
import pathlib
import re
import subprocess

from lab import cache
from lab.errors import LabError

NETWORK = "is there a network, and a Debian mirror in /etc/apt?"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
GUEST_SUITE = "bookworm"


def mirrors():
    """Returns the mirrors in the system's sources, except the security archive."""
    uris = cache.tool("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split()
    mirrors = sorted({uri for uri in uris if uri.rstrip("/").endswith("/debian")})
    if not mirrors:
        raise LabError("the system's apt knows no Debian mirror", NETWORK)
    return mirrors


def guest_suites():
    """Returns the suites that guests' packages are from, as Apt() takes them: on Debian 12 the system's own sources, which have its security updates;
    on another system Debian 12's suite."""
    system = pathlib.Path("/etc/os-release").read_text().splitlines()
    return () if f"VERSION_CODENAME={GUEST_SUITE}" in system else (GUEST_SUITE,)


class Apt:
    """An apt with separate lists, status and cache in `directory`. suites: suites of the system's mirror; if none, the system's own sources are
    used."""

    def __init__(self, directory, suites=()):
        self.directory = pathlib.Path(directory)
        for sub in ("lists/partial", "cache/archives/partial", "preferences.d", "sources.d"):
            (self.directory / sub).mkdir(parents=True)
        (self.directory / "status").touch()
        options = {
            "Dir::State::status": self.directory / "status",
            "Dir::State::lists": self.directory / "lists",
            "Dir::Cache": self.directory / "cache",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": self.directory / "preferences.d",
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
            "Debug::NoLocking": "true",
        }
        if suites:
            sources = self.directory / "sources.list"
            sources.write_text("".join(f"deb [signed-by={KEYRING}] {mirrors()[0]} {suite} main\n" for suite in suites))
            options["Dir::Etc::sourcelist"] = sources
            options["Dir::Etc::sourceparts"] = self.directory / "sources.d"
        self._options = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        cache.tool("apt-get", *self._options, "-o", "APT::Update::Error-Mode=any", "update", remedy=NETWORK)

    def download(self, packages, target_release=None):
        """Downloads packages with all their dependencies; returns the .deb files."""
        release = ["-t", target_release] if target_release else []
        cache.tool("apt-get", *self._options, *release, "-y", "--download-only", "install", *packages, remedy=NETWORK)
        return sorted((self.directory / "cache/archives").glob("*.deb"))

    def newest(self, pattern):
        """Returns the first group of a pattern that matches a whole package name; among several, that of the highest version."""
        names = cache.tool("apt-cache", *self._options, "pkgnames", remedy=NETWORK).split()
        found = [match[1] for match in (re.fullmatch(pattern, name) for name in names) if match]
        if not found:
            raise LabError(f"there is no package like {pattern}", NETWORK)
        return max(found, key=lambda text: [int(number) for number in re.findall(r"\d+", text)])

    def has(self, package):
        """Returns whether a package with that name exists."""
        return package in cache.tool("apt-cache", *self._options, "pkgnames", package, remedy=NETWORK).split()

    def download_alone(self, package):
        """Downloads one package without its dependencies; returns the .deb file."""
        cache.tool("apt-get", *self._options, "download", package, cwd=self.directory, remedy=NETWORK)
        debs = list(self.directory.glob(f"{package}_*.deb"))
        if len(debs) != 1:
            raise LabError(f"apt-get download {package} brought {len(debs)} files", NETWORK)
        return debs[0]


def unpack(deb, directory, *members):
    """Unpacks a package's files (or only the members, as tar patterns) into the directory.

    Symbolic links to directories stay what they are: usr-merged roots rely on it. Owners are not kept.
    """
    wildcards = ["--wildcards", *members] if members else []
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as source:
        cache.tool("tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", directory, *wildcards,
                   stdin=source.stdout, remedy=f"is {deb} damaged?")
    if source.returncode != 0 and not members:
        raise LabError(f"dpkg-deb could not read {deb}", "is the disk full?")


def packages_in(list_file):
    """Returns the package names in one of scripts/packages/*.list."""
    lines = (line.split("#")[0].strip() for line in list_file.read_text().splitlines())
    return [line for line in lines if line]

# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks the lists of modules and drivers outside the build: those of the DKMS package, of modprobe and udev, of the program weft
(tools/weft/session), of the demonstration, and of weft-explore.

The lists that the build and the drivers define are the Kbuild files (`obj-m`) and the tables of PCI IDs (KERN_PCI_IDS). All other lists are compared
with these two, so that no list can lack a new driver, or a new card of a driver.
"""
import ast
import re

# Components that a system with weft's modules does not need: an example, and a device in software for tests.
NOT_SHIPPED = {"hw/example", "hw/soft"}
OBJECT = re.compile(r"^\s*obj-m \+= (\w+)\.o$", re.MULTILINE)
PCI_ID = re.compile(r"KERN_PCI_ID\(0x([0-9a-f]{4}), 0x([0-9a-f]{4}), \w+\)")
# The driver whose modules the tests of the package for DKMS load.
TESTED_DRIVER = "weft_mlx4"


def shipped(tree):
    """Returns {name of a module: its component}, without modules of tests and benchmarks."""
    return {name: f"{path.parent.parent.name}/{path.parent.name}" for top in ("core", "hw", "ulp") for path in sorted((tree / top).glob("*/Kbuild"))
            if f"{top}/{path.parent.name}" not in NOT_SHIPPED for name in OBJECT.findall(path.read_text())}


def drivers(tree):
    """Returns {name of a driver's module: set of its PCI IDs}."""
    return {name: set(PCI_ID.findall((tree / component / "module.c").read_text())) for name, component in shipped(tree).items()
            if component.startswith("hw/")}


def _constant(path, name):
    """Returns the value of a constant in a Python file, which must be a literal."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
            return ast.literal_eval(node.value)
    raise KeyError(f"{path} does not define {name}")


def _differences(place, found, expected):
    """Returns a line for each element that is missing in a list, and for each that should not be in it."""
    return ([f"{place} lacks {each}" for each in sorted(map(str, expected - found))] +
            [f"{place} lists {each}, which the Kbuild files and the drivers' module.c do not" for each in sorted(map(str, found - expected))])


def complaints(tree):
    """Returns a line for each difference."""
    def text(name):
        return (tree / name).read_text()
    all_modules, ids = set(shipped(tree)), drivers(tree)
    in_tree = _constant(tree / "tools/weft/session/stack.py", "IN_TREE")
    models = {name: name.removeprefix("weft_") for name in ids}
    own_in_tree = {name for name, model in models.items() if model in in_tree}

    found = _differences("debian/weft-dkms.dkms", set(re.findall(r'^BUILT_MODULE_NAME\[\d+\]="(\w+)"$', text("debian/weft-dkms.dkms"), re.MULTILINE)),
                         all_modules)
    numbers = re.findall(r"^(BUILT_MODULE_NAME|BUILT_MODULE_LOCATION|DEST_MODULE_LOCATION)\[(\d+)\]=", text("debian/weft-dkms.dkms"), re.MULTILINE)
    for kind in ("BUILT_MODULE_NAME", "BUILT_MODULE_LOCATION", "DEST_MODULE_LOCATION"):
        if [int(number) for each, number in numbers if each == kind] != list(range(len(all_modules))):
            found.append(f"debian/weft-dkms.dkms does not number {kind} from 0 to {len(all_modules) - 1}")

    aliases = re.findall(r"^alias (\S+) (\w+)$", text("scripts/modprobe.d/weft.conf"), re.MULTILINE)
    found += _differences("scripts/modprobe.d/weft.conf", {(alias, module) for alias, module in aliases if alias.startswith("pci:")},
                          {(f"pci:v0000{vendor.upper()}d0000{device.upper()}sv*sd*bc*sc*i*", module)
                           for module, those in ids.items() for vendor, device in those})
    found += [f"scripts/modprobe.d/weft.conf names {module}, which is not a module" for _, module in aliases if module not in all_modules]
    found += _differences("debian/weft.modprobe", set(re.findall(r"^blacklist (\w+)$", text("debian/weft.modprobe"), re.MULTILINE)), own_in_tree)

    rules = text("scripts/udev/76-weft.rules")
    found += _differences("scripts/udev/76-weft.rules, ENV{DRIVER}", set(re.search(r'ENV\{DRIVER\}=="([\w|]+)"', rules)[1].split("|")), set(ids))
    found += _differences("scripts/udev/76-weft.rules, DRIVERS", set(re.findall(r'^DRIVERS=="(\w+)", ENV\{ID_RDMA_\w+\}="1"$', rules, re.MULTILINE)), set(ids))

    stack = tree / "tools/weft/session/stack.py"
    above = _constant(stack, "ABOVE")
    found += _differences("tools/weft/session/stack.py, ABOVE", set(above), set(models.values()))
    found += _differences("tools/weft/session/stack.py, BELOW and ABOVE", {*_constant(stack, "BELOW"), *(name for names in above.values() for name in names)},
                          all_modules - set(ids))
    found += _differences("scripts/lab/own_kernel.py, DRIVERS", set(_constant(tree / "scripts/lab/own_kernel.py", "DRIVERS")), set(in_tree))

    demo = tree / "scripts/demo"
    cards = _constant(demo, "CARDS")
    found += _differences("scripts/demo, CARDS and RNIC", {*(name for name in cards.values() if name), f"weft_{_constant(demo, 'RNIC')}"}, set(ids))
    found += [f"scripts/demo loads {name}, which is not a module" for name in _constant(demo, "STACK") if name != "{driver}" and name not in all_modules]
    found += _differences("scripts/lab/packages.py, MODULES", set(_constant(tree / "scripts/lab/packages.py", "MODULES")),
                          all_modules - set(ids) | {TESTED_DRIVER})

    simulated = dict(re.findall(r"^const pci_device_id (weft_\w+)_pci_ids\[\] = \{(.*), \{\}\};$", text("tools/explore/card.cpp"), re.MULTILINE))
    for name, listed in simulated.items():
        found += _differences(f"tools/explore/card.cpp, {name}_pci_ids", set(re.findall(r"\{0x([0-9a-f]{4}), 0x([0-9a-f]{4})\}", listed)), ids.get(name, set()))
    for name, those in ids.items():
        registers = text(f"include/hw/{models[name]}/registers.hpp")
        given = re.search(r"pci_device_id = 0x([0-9a-f]{4});", registers)
        if not given or given[1] not in {device for _, device in those}:
            found.append(f"hw/{models[name]}/module.c lacks the PCI ID in include/hw/{models[name]}/registers.hpp")
    return found

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests the example for Kubernetes: its objects have the right fields, and its commands form one subnet. The test needs no Kubernetes.

    kubernetes_test.py WEFT WEFTD [TEST...]
"""
import json
import pathlib
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import cases
import daemon
import yaml

WEFT, WEFTD = sys.argv[1:3]
FILE = pathlib.Path(__file__).resolve().parents[3] / "scripts/ci/kubernetes/fabric.yaml"


def record(required, **properties):
    return {"type": "object", "required": required.split(), "properties": properties, "additionalProperties": False}


def listing(items):
    return {"type": "array", "items": items, "minItems": 1}


# The parts of Kubernetes' API v1 and apps/v1 that the example uses, written for this test: a field with another name or type is refused.
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
PATH = {"type": "string", "pattern": "^/"}
PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
TEXT, BOOLEAN, NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "minimum": 0}
LABELS = {"type": "object", "additionalProperties": TEXT}
CONTAINER = record("name image", name=NAME, image=TEXT, command=listing(TEXT), ports=listing(record("containerPort", name=NAME, containerPort=PORT)),
                   env=listing(record("name", name=TEXT, valueFrom=record("fieldRef", fieldRef=record("fieldPath", fieldPath={"enum": ["metadata.name"]})))),
                   volumeMounts=listing(record("name mountPath", name=NAME, mountPath=PATH, readOnly=BOOLEAN)))
VOLUME = {**record("name", name=NAME, configMap=record("name", name=NAME), secret=record("secretName", secretName=NAME),
                   emptyDir=record("", medium={"enum": ["", "Memory"]})), "minProperties": 2, "maxProperties": 2}
POD = record("containers", securityContext=record("", runAsUser=NUMBER, runAsGroup=NUMBER, runAsNonRoot=BOOLEAN), initContainers=listing(CONTAINER),
             containers=listing(CONTAINER), volumes=listing(VOLUME))
META = record("name", name=NAME)
KINDS = {
    ("v1", "ConfigMap"): {"data": LABELS},
    ("v1", "Service"): {"spec": record("selector ports", clusterIP=TEXT, publishNotReadyAddresses=BOOLEAN, selector=LABELS, ports=listing(record("port", name=NAME, port=PORT)))},
    ("apps/v1", "StatefulSet"): {"spec": record("selector serviceName template", serviceName=NAME, replicas=NUMBER, podManagementPolicy={"enum": ["OrderedReady", "Parallel"]},
                                                selector=record("matchLabels", matchLabels=LABELS),
                                                template=record("metadata spec", metadata=record("", labels=LABELS), spec=POD))},
}


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.objects = list(yaml.safe_load_all(FILE.read_text()))
        self.lab, self.service, self.set = self.objects
        self.pod = self.set["spec"]["template"]["spec"]

    def test_manifest_fields_match_their_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("not installed: python3-jsonschema")

        def check(each):
            fields = KINDS[each["apiVersion"], each["kind"]]
            jsonschema.validate(each, record(" ".join(["metadata", *fields]), apiVersion=TEXT, kind=TEXT, metadata=META, **fields))

        for each in self.objects:
            check(each)
        self.pod["containers"][0]["volumeMount"] = []
        self.assertRaises(jsonschema.ValidationError, check, self.set)

    def test_labels_volumes_and_services_that_the_manifests_use_are_defined(self):
        labels = self.set["spec"]["template"]["metadata"]["labels"]
        self.assertEqual([self.service["spec"]["selector"], self.set["spec"]["selector"]["matchLabels"]], [labels] * 2)
        self.assertEqual(self.set["spec"]["serviceName"], self.service["metadata"]["name"])
        volumes = {volume["name"] for volume in self.pod["volumes"]}
        self.assertEqual({mount["name"] for each in (*self.pod["containers"], *self.pod["initContainers"]) for mount in each["volumeMounts"]}, volumes)
        self.assertEqual([volume["configMap"]["name"] for volume in self.pod["volumes"] if "configMap" in volume], [self.lab["metadata"]["name"]])

    def test_weftd_processes_of_the_pods_form_one_subnet(self):
        """The directories and the address are replaced by those of this host."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="weft-pods-")))
        (folder / "lab.toml").write_text(self.lab["data"]["lab.toml"])
        (folder / "trunk.key").write_bytes(secrets.token_bytes(32))
        (folder / "trunk.key").chmod(0o400)
        with socket.socket() as end:
            end.bind(("127.0.0.1", 0))
            port = end.getsockname()[1]
        container, name = self.pod["containers"][0], self.set["metadata"]["name"]
        self.assertEqual(container["command"][0], "weftd")
        pods = [f"{name}-{number}" for number in range(self.set["spec"]["replicas"])]
        for pod in pods:
            (folder / pod).mkdir()
            (folder / pod).chmod(0o777)     # as an emptyDir
            words = [word.replace("$(POD)", pod).replace("/run/weft", str(folder / pod)).replace("/lab/", f"{folder}/").replace("/key/", f"{folder}/") for word in container["command"]]
            words = [re.sub(rf"=({name}-\d+)\.{self.service['metadata']['name']}:7470$", f"=127.0.0.1:{port}", word) for word in words]
            self.enterContext(daemon.process(WEFTD, *words[1:], stderr=subprocess.DEVNULL))

        def complete():
            shown = [subprocess.run([WEFT, "--json", "--socket-dir", folder / pod / "lab", "fabric", "show"], capture_output=True, text=True, check=False).stdout for pod in pods]
            return all(shown) and all(switch["lid"] for text in shown for switch in json.loads(text)["switches"])
        daemon.await_that("a subnet over both pods", complete)


if __name__ == "__main__":
    cases.main([sys.argv[0], *sys.argv[3:]])

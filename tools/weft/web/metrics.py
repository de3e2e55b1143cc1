# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The latest sample in Prometheus' text format."""
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

# Names say the unit, in bytes; data is counted in words of four.
DATA = {"xmit_data": "transmit_bytes", "rcv_data": "receive_bytes"}
STATES = ("not active", "discovering", "standby", "master")


def _name(column):
    return DATA.get(column) or column.replace("xmit", "transmit").replace("rcv", "receive")


def _ethernet(ethernet):
    for number, column in enumerate(ethernet["columns"]):
        family = CounterMetricFamily(f"weft_ethernet_{_name(column)}", f"The Ethernet port's {column}.", labels=["port"])
        for port, values in ethernet["ports"].items():
            family.add_metric([port], values[number])
        yield family


class Collector:
    """What prometheus_client asks for."""

    def __init__(self, watch):
        self._watch = watch

    def collect(self):
        watch = self._watch
        yield GaugeMetricFamily("weft_up", "Whether weftd answers.", value=int(watch.there))
        if not watch.there or not watch.sample:
            return
        sample = watch.sample
        for number, column in enumerate(sample["columns"]):
            family = CounterMetricFamily(f"weft_port_{_name(column)}", f"The port's {column}, as performance management counts.", labels=["port"])
            factor = 4 if column in DATA else 1
            for port, values in sample["ports"].items():
                family.add_metric([port], values[number] * factor)
            yield family
        yield from _ethernet(sample["ethernet"])
        down, machines = set(sample["down"]), set(sample["machines"])
        up = GaugeMetricFamily("weft_link_up", "Whether the link is up.", labels=["link"])
        for link in watch.rates:
            up.add_metric([link], int(link not in down))
        for link, is_up in sample["ethernet"]["links"].items():
            up.add_metric([link], int(is_up))
        yield up
        has = GaugeMetricFamily("weft_host_machine", "Whether a machine has the host's card.", labels=["host"])
        for host in watch.cards:
            has.add_metric([host], int(host in machines))
        yield has
        for column in watch.card_columns:
            family = CounterMetricFamily(f"weft_card_{column}".replace("-", "_"), f"{column}, of a host's card since weftd started.", labels=["host"])
            for host, counts in watch.cards.items():
                if column in counts:
                    family.add_metric([host], counts[column])
            yield family
        if manager := sample["subnet_manager"]:
            yield CounterMetricFamily("weft_sm_sweeps", "Complete sweeps of the lab's subnet manager.", value=manager["sweeps"])
            yield GaugeMetricFamily("weft_sm_complete", "Whether the last sweep reached everything.", value=int(manager["complete"]))
            state = GaugeMetricFamily("weft_sm_state", "The state that the subnet manager is in.", labels=["state"])
            for name in STATES:
                state.add_metric([name], int(name == manager["state"]))
            yield state


def text(watch):
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(watch))
    return generate_latest(registry)

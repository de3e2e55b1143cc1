# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Formats the latest sample of the lab's counters and states in the text format of Prometheus."""
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

# Names contain the unit, which is bytes; InfiniBand counts data in words of four.
DATA = {"xmit_data": "transmit_bytes", "rcv_data": "receive_bytes"}
# Counters that do not count packets or errors, which their names would suggest; data is in bytes here.
HELP = {
    "xmit_data": "Bytes sent by the port, headers included.",
    "rcv_data": "Bytes received by the port, headers included.",
    "xmit_wait": "How many times a packet of the port waited for credits: a number of waits, not a time.",
    "link_error_recovery": "How many times the link recovered from an error.",
    "link_downed": "How many times the link failed to recover, and went down.",
    "vl15_dropped": "Packets of subnet management that the port dropped because it had no buffer.",
}
# Data rate of a lane in bit/s after the line coding, by the name of the link's speed.
LANE = {"SDR": 2e9, "DDR": 4e9, "QDR": 8e9, "FDR": 14.0625e9 * 64 / 66, "EDR": 25.78125e9 * 64 / 66}
STATES = ("not active", "discovering", "standby", "master")


def _name(column):
    return DATA.get(column) or column.replace("xmit", "transmit").replace("rcv", "receive")


def _help(column):
    words = column.replace("xmit", "transmit").replace("rcv", "receive").replace("_", " ")
    return HELP.get(column) or f"Number of {words}{'' if column.endswith(('packets', 'errors', 'discards')) else ', in events'} of the port."


def speed(settings):
    """Returns the maximum data rate of a link in bytes per second and direction; None if the names of its rate are not known."""
    width, lane = settings.get("width", ""), LANE.get(settings.get("speed"))
    return int(width[:-1]) * lane / 8 if lane and width[:-1].isdigit() else None


def _links(links):
    capacity = GaugeMetricFamily("weft_link_speed_bytes_per_second", "Data that the link's width and speed carry at most, each way.",
                                 labels=["link"])
    info = GaugeMetricFamily("weft_link_info", "The link's label: width, speed and MTU; always 1.", labels=["link", "width", "speed", "mtu"])
    for link in links:
        settings = link["settings"]
        if most := speed(settings):
            capacity.add_metric([link["name"]], most)
        info.add_metric([link["name"], *(str(settings.get(name, "")) for name in ("width", "speed", "mtu"))], 1)
    yield from (capacity, info)


def _links_of_ports(links):
    return {end: link["name"] for link in links for end in link["ends"]}


def _ethernet(ethernet, links):
    link_of = _links_of_ports(links)
    for number, column in enumerate(ethernet["columns"]):
        unit = "Bytes" if column.endswith("bytes") else "Frames"
        family = CounterMetricFamily(f"weft_ethernet_{_name(column)}", f"{unit} of the Ethernet port that count as {column}.", labels=["port", "link"])
        for port, values in ethernet["ports"].items():
            family.add_metric([port, link_of.get(port, "")], values[number])
        yield family


class Collector:
    """The collector interface of prometheus_client."""

    def __init__(self, watch, version):
        self._watch = watch
        self._version = version

    def collect(self):
        watch = self._watch
        build = GaugeMetricFamily("weft_build_info", "The version of weft; always 1.", labels=["version"])
        build.add_metric([self._version], 1)
        yield build
        yield GaugeMetricFamily("weft_up", "Whether weftd answers.", value=int(watch.there))
        if not watch.there or not watch.sample:
            return
        sample = watch.sample
        # A lab over several hosts. Metrics of a place that does not answer are missing.
        if places := watch.fabric.get("places"):
            missing = {place["place"] for place in sample["missing"]}
            answers = GaugeMetricFamily("weft_place_up", "Whether weftd of the place answers.", labels=["place", "host"])
            for place in places:
                answers.add_metric([place["name"], place["host"]], int(place["name"] not in missing))
            yield answers
        link_of = _links_of_ports(watch.fabric["links"])
        for number, column in enumerate(sample["columns"]):
            family = CounterMetricFamily(f"weft_port_{_name(column)}", _help(column), labels=["port", "link"])
            factor = 4 if column in DATA else 1
            for port, values in sample["ports"].items():
                family.add_metric([port, link_of.get(port, "")], values[number] * factor)
            yield family
        yield from _links(watch.fabric["links"])
        yield from _ethernet(sample["ethernet"], watch.fabric["ethernet"]["links"])
        down, guests = set(sample["down"]), set(sample["guests"])
        up = GaugeMetricFamily("weft_link_up", "Whether the link is up.", labels=["link"])
        for link in watch.fabric["links"]:
            up.add_metric([link["name"]], int(link["name"] not in down))
        for link, is_up in sample["ethernet"]["links"].items():
            up.add_metric([link], int(is_up))
        yield up
        has = GaugeMetricFamily("weft_host_guest", "Whether a guest has the host's card.", labels=["host"])
        for host in watch.cards:
            has.add_metric([host], int(host in guests))
        yield has
        for column in watch.card_columns:
            family = CounterMetricFamily(f"weft_card_{column}".replace("-", "_"), f"Number of {column} of the host's card since weftd started.",
                                         labels=["host"])
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


def text(watch, version):
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(watch, version))
    return generate_latest(registry)

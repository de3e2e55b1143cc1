// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the latest data from the server, and derives values from it: the states of links and hosts, alarms, and search results.
import { naturally, scaled } from './base.js';

export const state = {
  live: null, fabric: null, links: new Map(), hosts: new Map(), segments: new Map(), alarms: [],
  view: 'fabric', chosen: null, query: '', part: '', text: '', console: '',
};
// Functions that app.js provides for the other modules.
export const wishes = { choose: null, open: null };

const PROBABILITIES = new Set(['loss', 'duplication', 'reordering', 'corruption', 'silent_corruption']);
const MOST_FOUND = 12;

// Properties of a link's type, as opposed to injected faults.
export const KINDS_OF_SETTINGS = ['width', 'speed', 'mtu', 'training'];

export const nodeOf = (port) => port.slice(0, port.lastIndexOf('/'));
export const kindOf = (name) => (state.hosts.has(name) ? 'host' : state.segments.has(name) ? 'segment' : 'node');

function settingText(name, value) {
  const words = name.replace('_', ' ');
  return PROBABILITIES.has(name) && Number.isFinite(Number(value)) ? `${words} ${Number((value * 100).toPrecision(6))} %` : `${words} ${value}`;
}

// True if a guest at one end is missing: then the link being down is no alarm.
const isEmpty = ({ ends }) => ends.map((end) => state.hosts.get(nodeOf(end))).some((host) => host && host.pluggable && !host.on);

function linkState(link, down, pulled) {
  if (pulled) return 'down';
  // The server counts an Ethernet link without a guest as down. A card of an Ethernet is attached even if no guest has it.
  // A trunk between two parts of a segment, as in lan@p1/p2, has no guest.
  if (link.ethernet && link.name.includes('@')) return down.has(link.name) ? 'polling' : 'up';
  if (link.ethernet) return down.has(link.name) || (link.card && isEmpty(link)) ? 'no guest' : 'up';
  return !down.has(link.name) ? 'up' : isEmpty(link) ? 'no guest' : 'polling';
}

function linkOf(link, down) {
  const { live } = state, { name, ends, settings, ethernet = false } = link, rate = live.rates[name] || [0, 0, 0, 0, 0, 0];
  const { state: pulled, ...faults } = live.faulty[name] || {}, is = linkState(link, down, pulled);
  const said = Object.entries(faults).map(([key, value]) => settingText(key, value));
  const bad = { down: ['down'], polling: ['does not come up'] }[is] || [];
  // An Ethernet switch also floods frames to ends without a guest, which discard them. These drops are no alarm.
  const counts = rate[5] > 0 && !(ethernet && is === 'no guest');
  const problems = [...bad, ...said, ...(counts ? [`${scaled(rate[5])} errors/s`] : [])];
  const severity = bad.length ? 2 : problems.length ? 1 : 0;
  return { name, ends, settings, ethernet, rate, is, faults: said, problems, severity, bits: Math.max(rate[0], rate[1]) };
}

// Links of Ethernet segments, which have the same members as InfiniBand links.
function ethernetLinks({ links, attachments }) {
  const cards = new Set(attachments.filter((attachment) => !attachment.socket).map((attachment) => attachment.link));
  return links.map((link) => ({ ...link, ethernet: true, card: cards.has(link.name) }));
}

function segmentOf({ name, addresses }) {
  const links = [...state.links.values()].filter((link) => link.ethernet && nodeOf(link.ends[1]) === name);
  const sum = (value) => links.reduce((total, link) => total + value(link), 0);
  return {
    name, addresses, links: links.length, up: links.filter((link) => link.is === 'up').length, severity: Math.max(0, ...links.map((link) => link.severity)),
    // Sums over all links, for each direction. A switch that floods frames sends more than it receives.
    rate: [0, 1, 2, 3, 4, 5].map((column) => sum((link) => link.rate[column])),
  };
}

// For a link that is down, this is the state; otherwise, problems follow the state.
export const stateText = (link) => [...(link.severity === 2 ? [] : [link.is]), ...link.problems].join(', ');

function managerProblem(manager) {
  if (!manager) return [];
  if (manager.state === 'not active') return ['not active'];
  return manager.sweeps && !manager.complete ? ['the last sweep was not complete'] : [];
}

export function derive() {
  const { live, fabric } = state, down = new Set(live.down), guests = new Set(live.guests);
  // An endpoint has no guest, so its card has no socket.
  state.hosts = new Map(fabric.hosts.map((host) => [host.name,
    { ...host, pluggable: host.socket !== null, on: guests.has(host.name), rate: [0, 0], severity: 0 }]));
  state.links = new Map([...fabric.links, ...ethernetLinks(fabric.ethernet)].map((link) => [link.name, linkOf(link, down)]));
  state.segments = new Map(fabric.ethernet.switches.map((segment) => [segment.name, segmentOf(segment)]));
  for (const link of state.links.values()) {
    link.ends.forEach((end, side) => {
      const host = state.hosts.get(nodeOf(end));
      if (!host) return;
      host.rate[0] += link.rate[side];
      host.rate[1] += link.rate[1 - side];
      host.severity = Math.max(host.severity, link.severity);
    });
  }
  const problems = managerProblem(live.subnet_manager).map((text) => ({ kind: 'node', name: live.subnet_manager.node, text, severity: 2 }));
  for (const link of state.links.values()) {
    if (link.severity) problems.push({ kind: 'link', name: link.name, text: link.problems.join(', '), severity: link.severity });
  }
  state.alarms = problems.sort((a, b) => b.severity - a.severity || naturally(a.name, b.name));
}

export const guestOf = (host) => (host.on ? 'running' : host.pluggable ? 'none' : 'endpoint');

export function summary() {
  const { live } = state, links = [...state.links.values()], hosts = [...state.hosts.values()];
  const count = (of, is) => of.filter(is).length, said = [];
  const add = (number, text) => { if (number) said.push(`${number} ${text}`); };
  const up = count(links, (link) => link.is === 'up');
  said.push(`${up} link${up === 1 ? '' : 's'} up`);
  add(count(links, (link) => link.severity === 2), 'down');
  const guests = count(hosts, (host) => host.on), endpoints = count(hosts, (host) => !host.pluggable), rest = hosts.length - endpoints;
  const kinds = [...(rest ? [`${guests} with a guest`] : []), ...(endpoints ? [`${endpoints} endpoint${endpoints === 1 ? '' : 's'}`] : [])];
  const manager = live.subnet_manager;
  return [said.join(', '), `${hosts.length} host${hosts.length === 1 ? '' : 's'}${kinds.length ? `: ${kinds.join(', ')}` : ''}`,
    manager ? `SM ${manager.state}, ${manager.sweeps} sweeps` : 'no SM'].join(' · ');
}

/* --- search --- */

const bare = (guid) => guid.toLowerCase().replace(/^0x/, '').replaceAll(':', '');

function nodes() {
  const { fabric } = state, manager = fabric.subnet_manager;
  return [...fabric.switches.map((node) => ({ kind: 'node', name: node.name, guid: node.guid, lids: [node.lid] })),
    ...fabric.hosts.map((host) => ({ kind: 'host', name: host.name, guid: host.guid, lids: host.ports.map((port) => port.lid) })),
    ...fabric.ethernet.switches.map((segment) => ({ kind: 'segment', name: segment.name, guid: '', lids: [] })),
    ...(manager ? [{ kind: 'node', name: manager.node, guid: '', lids: [] }] : [])];
}

// The names that match a search: a part of a name or GUID, or a complete LID. Null means everything.
let cached = {};
export function matches() {
  const query = state.query.trim().toLowerCase();
  if (!query || !state.fabric) return null;
  if (cached.query === query && cached.fabric === state.fabric) return cached.result;
  const lid = /^(lid\s*)?(0x[0-9a-f]{1,4}|\d{1,5})$/.exec(query), guid = /^[0-9a-fx:]{3,}$/.test(query) ? bare(query) : null, found = [];
  for (const node of nodes()) {
    const byLid = lid && Number(lid[2]) > 0 && node.lids.includes(Number(lid[2])), byName = node.name.toLowerCase().includes(query);
    if (byLid || byName || (guid && bare(node.guid).includes(guid))) {
      const name = node.name.toLowerCase(), ranks = [byLid && lid[1], name === query, byLid, name.startsWith(query), true];
      found.push({ ...node, note: byLid ? `LID ${Number(lid[2])}` : byName ? '' : node.guid, rank: ranks.findIndex(Boolean) });
    }
  }
  const names = new Set(found.map((node) => node.name));
  for (const link of [...state.fabric.links, ...state.fabric.ethernet.links]) {
    const itself = link.name.toLowerCase().includes(query);
    if (itself) found.push({ kind: 'link', name: link.name, note: 'link', rank: link.name.toLowerCase() === query ? 1 : 5 });
    if (itself || link.ends.some((end) => names.has(nodeOf(end)))) names.add(link.name);
  }
  found.sort((a, b) => a.rank - b.rank || naturally(a.name, b.name));
  cached = { query, fabric: state.fabric, result: { names, total: found.length, found: found.slice(0, MOST_FOUND) } };
  return cached.result;
}

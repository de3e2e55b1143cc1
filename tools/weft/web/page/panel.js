// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Shows the side panel: details of the selected link or node.
import { $, get, make, naturally, scaled } from './base.js';
import { actions } from './actions.js';
import { guestOf, kindOf, KINDS_OF_SETTINGS, nodeOf, state, wishes } from './model.js';

const NO_ERRORS = /(packets|data|frames|bytes)$|^xmit_wait$/;
const MOST_CURVES = 8;
const MOST_FULL = 4;        // ports whose counters are shown one by one
let managed = { name: null, sweeps: -1, view: null }, filled = {};

// Replaces the contents of an element only if they change, so that selection and focus are kept.
function fill(query, key, ...content) {
  const text = JSON.stringify(key);
  if (filled[query] === text) return;
  filled[query] = text;
  $(query).replaceChildren(...content);
}

function facts(query, title, pairs) {
  const shown = pairs.filter(([, value]) => value !== undefined && value !== ''), list = make('dl');
  for (const [name, value, bad] of shown) list.append(make('dt', {}, name), make('dd', bad ? { class: 'bad' } : {}, String(value)));
  fill(query, [title, shown], ...(shown.length ? [...(title ? [make('h3', {}, title)] : []), list] : []));
}

function chart(history, shown) {
  const svg = d3.select('#chart'), height = 150, left = 44, bottom = 18, nothing = !history || history.samples.length < 2 || !shown.length;
  svg.selectAll('*').remove();
  $('#legend').replaceChildren();
  $('#chart').toggleAttribute('hidden', nothing);
  if (nothing) return;
  const width = $('#chart').clientWidth;
  const time = d3.time.scale().domain(d3.extent(history.samples, (sample) => sample[0] * 1000)).range([left, width - 4]);
  const most = d3.max(history.samples, (sample) => d3.max(shown, (column) => sample[column + 1])) || 1;
  const value = d3.scale.linear().domain([0, most]).nice().range([height - bottom, 6]);
  const line = (column) => d3.svg.line().x((sample) => time(sample[0] * 1000)).y((sample) => value(sample[column + 1]))(history.samples);
  const axis = (x, y, drawn) => svg.append('g').attr('class', 'axis').attr('transform', `translate(${x},${y})`).call(drawn.ticks(4));
  axis(0, height - bottom, d3.svg.axis().scale(time));
  axis(left, 0, d3.svg.axis().scale(value).orient('left').tickFormat(scaled));
  shown.forEach((column, number) => {
    svg.append('path').attr('d', line(column)).attr('class', `curve curve${number}`);
    $('#legend').append(make('span', { class: `curve${number}` }, `${history.columns[column]}/s`));
  });
}

// The counters that changed, the fastest first, at most as many as there are distinguishable colours.
function lively(history) {
  const most = history.columns.map((_, number) => d3.max(history.samples, (sample) => sample[number + 1]) || 0);
  return d3.range(most.length).filter((number) => most[number]).sort((a, b) => most[b] - most[a]).slice(0, MOST_CURVES);
}

/* --- counters of ports, and their configuration by the subnet manager --- */

async function counters(chosen) {
  const by = chosen.kind === 'host' ? 'node' : chosen.kind, { columns, ports } = await get(`api/ports?${by}=${encodeURIComponent(chosen.name)}`);
  if (state.chosen !== chosen) return;
  const names = Object.keys(ports).sort(naturally);
  const few = names.length <= MOST_FULL, at = (port, column) => ports[port][columns.indexOf(column)];
  const errors = (port) => columns.reduce((sum, column, number) => sum + (NO_ERRORS.test(column) ? 0 : ports[port][number]), 0);
  const unit = columns.includes('xmit_frames') ? 'frames' : 'packets';
  const head = few ? ['counter', ...names] : ['port', 'sent', 'received', 'errors'];
  const counted = columns.filter((_, number) => names.some((port) => ports[port][number]));
  const rows = few ? counted.map((column) => [column, ...names.map((port) => at(port, column))])
    : names.map((port) => [port, at(port, `xmit_${unit}`), at(port, `rcv_${unit}`), errors(port)]);
  const bad = (row, number) => number > 0 && row[number] > 0 && (few ? !NO_ERRORS.test(row[0]) : number === 3);
  const cells = (row) => row.map((text, number) => make('td', bad(row, number) ? { class: 'bad' } : {}, String(text)));
  const table = make('table', {}, make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col' }, text)))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...cells(row)))));
  fill('#ports', [head, rows], ...(rows.length ? [make('h3', {}, 'Port counters'), make('div', { class: 'wide' }, table)] : []));
}

function portText({ lid, lmc, pkeys }) {
  return [`LID ${lid}`, ...(lmc ? [`LMC ${lmc}`] : []), ...(pkeys.length ? [`P_Key ${pkeys.join(', ')}`] : [])].join(', ');
}

async function subnet(chosen) {
  const { name } = chosen;
  const sweeps = state.live.subnet_manager ? state.live.subnet_manager.sweeps : 0;
  // This changes only with a sweep.
  if (managed.name !== name || managed.sweeps !== sweeps) {
    const view = await get(`api/subnet?node=${encodeURIComponent(name)}`);
    if (state.chosen !== chosen) return;
    managed = { name, sweeps, view };
  }
  const { ports, routes } = managed.view, pairs = Object.entries(ports).map(([port, each]) => [`port ${port}`, portText(each)]);
  for (const port of Object.keys(routes).sort(naturally)) pairs.push([port === '0' ? 'own' : `by port ${port}`, `LID ${routes[port]}`]);
  facts('#subnet', Object.keys(routes).length ? 'Subnet and routes' : 'Subnet', pairs);
}

/* --- one function per kind of object: it returns whether the object exists --- */

async function history(chosen, shown) {
  const kept = await get(`api/history?${chosen.kind}=${encodeURIComponent(chosen.name)}`);
  if (state.chosen === chosen) chart(kept, shown(kept));
}

async function link(chosen) {
  const known = state.links.get(chosen.name);
  if (!known) return false;
  const { rate } = known;
  facts('#facts', '', [
    ['link', known.is, known.severity === 2], ['network', known.ethernet ? 'Ethernet' : ''], ['> bit/s', scaled(rate[0])], ['< bit/s', scaled(rate[1])],
    [known.ethernet ? 'frames/s' : 'packets/s', scaled(rate[2] + rate[3])],
    ['errors', rate[4], rate[5] > 0],
    ...Object.entries(state.live.faulty[chosen.name] || {}).map(([key, value]) => [key, value, true]),
    ...KINDS_OF_SETTINGS.map((key) => [key, known.settings[key]]),
  ]);
  await history(chosen, () => [0, 1]);
  return true;
}

async function host(chosen) {
  const known = state.hosts.get(chosen.name);
  if (!known) return false;
  facts('#facts', '', [
    ['guest', guestOf(known)], ['model', known.model], ['GUID', known.guid], ['> bit/s', scaled(known.rate[0])], ['< bit/s', scaled(known.rate[1])],
    ...known.ports.map((port) => [port.name, `${port.up ? 'up' : 'down'}${port.lid ? `, LID ${port.lid}` : ''}`]),
    ...(known.ethernet ? [['Ethernet', known.ethernet.network]] : []),
    ...Object.entries(state.fabric.cards[chosen.name] || {}),
    ...Object.entries(known.faults).filter(([, count]) => count).map(([fault, count]) => [`fault ${fault}`, count, true]),
  ]);
  await subnet(chosen);
  await history(chosen, lively);
  return true;
}

async function node(chosen) {
  const known = state.fabric.switches.find((each) => each.name === chosen.name), manager = state.live.subnet_manager;
  if (!known && manager?.node !== chosen.name) return false;
  const linked = known && known.ports.filter((port) => port.link).length;
  facts('#facts', '', known ? [['LID', known.lid], ['GUID', known.guid], ['ports', known.ports.length], ['linked', linked]]
    : Object.entries(manager));
  chart(null);
  await subnet(chosen);
  return true;
}

function segment(chosen) {
  const known = state.segments.get(chosen.name);
  if (!known) return false;
  const { rate, up, links, addresses, severity } = known;
  facts('#facts', '', [['links up', `${up} of ${links}`, severity === 2], ['addresses', addresses], ['> bit/s', scaled(rate[0])], ['< bit/s', scaled(rate[1])],
    ['frames/s', scaled(rate[2] + rate[3])], ['errors', rate[4], severity > 0 && rate[5] > 0]]);
  chart(null);
  return true;
}

// Links from the panel: to adjacent links and nodes, to the console, to the log lines.
function looks() {
  const { kind, name } = state.chosen, ends = state.links.get(name)?.ends || [];
  const beside = kind === 'link' ? ends.map(nodeOf).map((each) => [kindOf(each), each])
    : [...state.links.values()].filter((each) => each.ends.some((end) => nodeOf(end) === name)).map((each) => ['link', each.name]);
  beside.sort((a, b) => naturally(a[1], b[1]));
  const buttons = [], pluggable = kind === 'host' && state.hosts.get(name)?.pluggable;
  if (pluggable && state.fabric.consoles) buttons.push(make('button', { onclick: () => wishes.open('console', { console: name }) }, 'console'));
  buttons.push(make('button', { onclick: () => wishes.open('log', { part: '', text: name }) }, 'log'));
  const bad = beside.map(([, each]) => Boolean(state.links.get(each)?.severity));
  fill('#looks', [kind, name, beside, bad, buttons.length], ...buttons, ...beside.map(([what, each], number) => make('button',
    { class: bad[number] ? 'way bad' : 'way', onclick: () => wishes.choose(what, each) }, each)));
}

export async function detail() {
  const { chosen } = state;
  if (!chosen) return;
  looks();
  const there = await { link, host, node, segment }[chosen.kind](chosen);
  if (state.chosen !== chosen) return;
  if (there) await counters(chosen);
  else facts('#facts', '', [['state', 'not in this lab']]);
}

export function open() {
  const { chosen } = state;
  $('aside').hidden = !chosen;
  filled = {};
  for (const query of ['#looks', '#facts', '#legend', '#subnet', '#ports', '#actions']) $(query).replaceChildren();
  d3.selectAll('#chart *').remove();
  $('aside h2').textContent = chosen ? chosen.name : '';
  actions();
}

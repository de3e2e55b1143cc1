// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The panel at the side: what is known of the link or the node that was chosen.
import { $, get, make, naturally, scaled } from './base.js';
import { actions } from './actions.js';
import { guestOf, KINDS_OF_SETTINGS, nodeOf, state, wishes } from './model.js';

const NO_ERRORS = /packets$|data$|^xmit_wait$/;
const MOST_CURVES = 8;
const MOST_FULL = 4;        // ports whose counters are shown one by one
let managed = { name: null, sweeps: -1, view: null }, filled = {};

// Replaces what is in an element if it is to be something else: what is selected or has the keyboard stays.
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
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`).call(d3.svg.axis().scale(time).ticks(4));
  svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.svg.axis().scale(value).orient('left').ticks(4).tickFormat(scaled));
  shown.forEach((column, number) => {
    svg.append('path').attr('d', line(column)).attr('class', `curve curve${number}`);
    $('#legend').append(make('span', { class: `curve${number}` }, `${history.columns[column]}/s`));
  });
}

// The columns in which something happened, the busiest first, as many as colours can tell apart.
function lively(history) {
  const most = history.columns.map((_, number) => d3.max(history.samples, (sample) => sample[number + 1]) || 0);
  return d3.range(most.length).filter((number) => most[number]).sort((a, b) => most[b] - most[a]).slice(0, MOST_CURVES);
}

/* --- counters of ports, and what the subnet manager has configured --- */

async function counters({ kind, name }) {
  const { columns, ports } = await get(`api/ports?${kind === 'link' ? 'link' : 'node'}=${encodeURIComponent(name)}`), names = Object.keys(ports).sort(naturally);
  const few = names.length <= MOST_FULL, at = (port, column) => ports[port][columns.indexOf(column)];
  const errors = (port) => columns.reduce((sum, column, number) => sum + (NO_ERRORS.test(column) ? 0 : ports[port][number]), 0);
  const head = few ? ['counter', ...names] : ['port', 'sent', 'received', 'errors'];
  const rows = few ? columns.filter((_, number) => names.some((port) => ports[port][number])).map((column) => [column, ...names.map((port) => at(port, column))])
    : names.map((port) => [port, at(port, 'xmit_packets'), at(port, 'rcv_packets'), errors(port)]);
  const bad = (row, number) => number > 0 && row[number] > 0 && (few ? !NO_ERRORS.test(row[0]) : number === 3);
  fill('#ports', [head, rows], ...(rows.length ? [make('h3', {}, 'Port counters'), make('div', { class: 'wide' }, make('table', {},
    make('thead', {}, make('tr', {}, ...head.map((text) => make('th', { scope: 'col' }, text)))),
    make('tbody', {}, ...rows.map((row) => make('tr', {}, ...row.map((text, number) => make('td', bad(row, number) ? { class: 'bad' } : {}, String(text))))))))] : []));
}

async function subnet(name) {
  const sweeps = state.live.subnet_manager ? state.live.subnet_manager.sweeps : 0;
  // It changes with a sweep only.
  if (managed.name !== name || managed.sweeps !== sweeps) managed = { name, sweeps, view: await get(`api/subnet?node=${encodeURIComponent(name)}`) };
  const { ports, routes } = managed.view, pairs = [];
  for (const [port, each] of Object.entries(ports)) {
    pairs.push([`port ${port}`, `LID ${each.lid}${each.lmc ? `, LMC ${each.lmc}` : ''}${each.pkeys.length ? `, P_Key ${each.pkeys.join(', ')}` : ''}`]);
  }
  for (const port of Object.keys(routes).sort(naturally)) pairs.push([port === '0' ? 'own' : `by port ${port}`, `LID ${routes[port]}`]);
  facts('#subnet', Object.keys(routes).length ? 'Subnet and routes' : 'Subnet', pairs);
}

/* --- each kind --- */

async function link(name) {
  const known = state.links.get(name);
  if (!known) return false;
  const { rate } = known;
  facts('#facts', '', [['link', known.is, known.is === 'down' || known.is === 'polling'], ['> bit/s', scaled(rate[0])], ['< bit/s', scaled(rate[1])], ['packets/s', scaled(rate[2] + rate[3])],
    ['errors', rate[4], rate[5] > 0], ...Object.entries(state.live.faulty[name] || {}).map(([key, value]) => [key, value, true]),
    ...KINDS_OF_SETTINGS.map((key) => [key, known.settings[key]])]);
  fill('#subnet', []);
  chart(await get(`api/history?link=${encodeURIComponent(name)}`), [0, 1]);
  return true;
}

async function host(name) {
  const known = state.hosts.get(name);
  if (!known) return false;
  const { ethernet } = known;
  facts('#facts', '', [['guest', guestOf(known)], ['model', known.model], ['GUID', known.guid], ['> bit/s', scaled(known.rate[0])], ['< bit/s', scaled(known.rate[1])],
    ...known.ports.map((port) => [port.name, `${port.up ? 'up' : 'down'}${port.lid ? `, LID ${port.lid}` : ''}`]), ...(ethernet ? [['Ethernet', ethernet.network]] : []),
    ...Object.entries(state.fabric.cards[name] || {}), ...Object.entries(known.faults).filter(([, count]) => count).map(([fault, count]) => [`fault ${fault}`, count, true])]);
  await subnet(name);
  const history = await get(`api/history?host=${encodeURIComponent(name)}`);
  chart(history, lively(history));
  return true;
}

async function node(name) {
  const known = state.fabric.switches.find((each) => each.name === name), manager = state.live.subnet_manager;
  if (!known && !(manager && manager.node === name)) return false;
  facts('#facts', '', known ? [['LID', known.lid], ['GUID', known.guid], ['ports', known.ports.length], ['linked', known.ports.filter((port) => port.link).length]] : Object.entries(manager));
  chart(null);
  await subnet(name);
  return true;
}

// Ways from here: to links and nodes beside it, to its console, to its lines of the log.
function looks() {
  const { kind, name } = state.chosen, beside = [];
  if (kind === 'link') beside.push(...(state.links.get(name)?.ends || []).map((end) => nodeOf(end)).map((each) => [state.hosts.has(each) ? 'host' : 'node', each]));
  else beside.push(...[...state.links.values()].filter((each) => each.ends.some((end) => nodeOf(end) === name)).map((each) => ['link', each.name]));
  const buttons = [], pluggable = kind === 'host' && state.hosts.get(name)?.pluggable;
  if (pluggable && state.fabric.consoles) buttons.push(make('button', { onclick: () => wishes.open('console', { console: name }) }, 'console'));
  buttons.push(make('button', { onclick: () => wishes.open('log', { part: '', text: name }) }, 'log'));
  fill('#looks', [kind, name, beside, buttons.length], ...buttons, ...beside.sort((a, b) => naturally(a[1], b[1])).map(([what, each]) => make('button',
    { class: `way ${state.links.get(each)?.severity ? 'bad' : ''}`, onclick: () => wishes.choose(what, each) }, each)));
}

export async function detail() {
  const { chosen } = state;
  if (!chosen) return;
  looks();
  const there = await { link, host, node }[chosen.kind](chosen.name);
  if (state.chosen !== chosen) return;
  if (there) await counters(chosen);
  else facts('#facts', '', [['state', 'there is no such thing in this lab']]);
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

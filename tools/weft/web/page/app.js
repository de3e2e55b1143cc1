// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Looks once an interval, as the server does; asks for the topology when that has changed, for the rest when it is on the page.
'use strict';

const token = location.hash.slice(1);
const $ = (query) => document.querySelector(query);
let live = null, fabric = null, version = -1, chosen = null, order = { links: 1, cards: 0 }, view = 'fabric';

async function get(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer.json();
}

async function post(path, body) {
  const answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Weft-Token': token }, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer;
}

function scaled(value) {
  if (value < 1000) return value >= 10 || value === 0 ? value.toFixed(0) : value.toFixed(1);
  const unit = Math.min(4, Math.floor(Math.log10(value) / 3));
  return (value / 1000 ** unit).toPrecision(3) + ['', 'k', 'M', 'G', 'T'][unit];
}

/* --- the drawing --- */

async function draw() {
  // Its style is in style.css: the page allows none of its own, not even in what is only read.
  const text = (await (await fetch('api/drawing')).text()).replace(/<style>[^<]*<\/style>/, '');
  const drawn = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  if (drawn.nodeName !== 'svg') throw new Error('no drawing');
  const svg = document.importNode(drawn, true);
  svg.removeAttribute('width');
  svg.removeAttribute('height');
  // One group, for all to be moved by.
  const group = document.createElementNS('http://www.w3.org/2000/svg', 'g');
  group.append(...svg.childNodes);
  svg.append(group);
  $('#fabric').replaceChildren(svg);
  const zoom = d3.behavior.zoom().scaleExtent([0.5, 12]).on('zoom', () => {
    d3.select(group).attr('transform', `translate(${d3.event.translate})scale(${d3.event.scale})`);
  });
  d3.select(svg).call(zoom).on('dblclick.zoom', null);
  d3.select(svg).selectAll('.link').on('click', function () { choose('link', this.dataset.name); });
  d3.select(svg).selectAll('.node').on('click', function () { choose(this.classList.contains('host') ? 'host' : 'node', this.dataset.name); });
}

function colour() {
  const down = new Set(live.down), machines = new Set(live.machines);
  d3.selectAll('#fabric .link').each(function () {
    const name = this.dataset.name, rate = live.rates[name] || [0, 0, 0, 0, 0, 0], bits = Math.max(rate[0], rate[1]);
    const is = { down: down.has(name), errors: rate[5] > 0, busy: bits > 1e6, busier: bits > 1e9, chosen: chosen && chosen.name === name };
    d3.select(this).classed(is).select('path').attr('class', is.down ? 'down' : 'up');
    // Where a link has its rate written on it.
    d3.select(this).select('text').each(function () { this.textContent = this.textContent.replace(/ down$/, '') + (is.down ? ' down' : ''); });
    d3.select(this).select('title').text(`${name}: ${is.down ? 'down' : `> ${scaled(rate[0])} < ${scaled(rate[1])} bit/s`}, ${scaled(rate[4])} errors`);
  });
  d3.selectAll('#fabric .node').each(function () {
    const on = machines.has(this.dataset.name);
    d3.select(this).classed({ on, chosen: chosen && chosen.name === this.dataset.name });
    if (this.classList.contains('host')) d3.select(this).select('.detail').text(on ? 'machine on' : 'no machine');
  });
}

/* --- tables --- */

function table(id, columns, rows, kind) {
  const head = d3.select(`#${id} thead`).selectAll('th').data(columns);
  head.enter().append('th').on('click', (_, column) => { order[id] = column; show(); });
  head.text(String);
  head.exit().remove();
  const by = order[id];
  rows.sort((a, b) => (by === 0 || typeof b.key[by] !== 'number' ? d3.ascending(a.cells[by], b.cells[by]) : b.key[by] - a.key[by]));
  const lines = d3.select(`#${id} tbody`).selectAll('tr').data(rows);
  lines.enter().append('tr').on('click', (row) => choose(kind, row.cells[0]));
  lines.exit().remove();
  const cells = lines.selectAll('td').data((row) => row.cells.map((text, number) => ({ text, bad: row.bad && row.bad(number) })));
  cells.enter().append('td');
  cells.text((cell) => cell.text).classed('bad', (cell) => cell.bad);
  cells.exit().remove();
}

function showLinks() {
  const down = new Set(live.down);
  table('links', ['link', '> bit/s', '< bit/s', '> pkt/s', '< pkt/s', 'errors', 'errors/s', 'state'], Object.entries(live.rates).map(([name, rate]) => ({
    key: [name, ...rate, down.has(name) ? 1 : 0], cells: [name, ...rate.map(scaled), down.has(name) ? 'down' : 'up'],
    bad: (number) => (number === 7 && down.has(name)) || (number === 6 && rate[5] > 0),
  })), 'link');
}

function showCards() {
  const machines = new Set(live.machines), names = [...new Set(Object.values(fabric.cards).flatMap(Object.keys))];
  table('cards', ['host', 'machine', ...names], fabric.hosts.map((host) => {
    const counts = names.map((name) => fabric.cards[host.name][name] || 0);
    return { key: [host.name, machines.has(host.name) ? 1 : 0, ...counts], cells: [host.name, machines.has(host.name) ? 'on' : 'none', ...counts.map(scaled)] };
  }), 'host');
}

async function showLog() {
  const part = $('#log select').value;
  const lines = await get('api/log' + (part ? `?part=${encodeURIComponent(part)}` : ''));
  $('#log pre').textContent = lines.map((line) => `${line.time} ${line.level.padEnd(7)} ${line.text}`).reverse().join('\n');
}

/* --- what was chosen --- */

function facts(pairs) {
  const list = document.createElement('dl');
  for (const [name, value] of pairs) {
    const term = document.createElement('dt'), said = document.createElement('dd');
    term.textContent = name;
    said.textContent = value;
    list.append(term, said);
  }
  $('#facts').replaceChildren(list);
}

function chart(history, shown) {
  const svg = d3.select('#chart'), width = $('#chart').clientWidth, height = 150, left = 44, bottom = 18;
  svg.selectAll('*').remove();
  $('#legend').replaceChildren();
  if (history.samples.length < 2) return;
  const time = d3.time.scale().domain(d3.extent(history.samples, (sample) => sample[0] * 1000)).range([left, width - 4]);
  const most = d3.max(history.samples, (sample) => d3.max(shown, (column) => sample[column + 1])) || 1;
  const value = d3.scale.linear().domain([0, most]).nice().range([height - bottom, 6]);
  const line = (column) => d3.svg.line().x((sample) => time(sample[0] * 1000)).y((sample) => value(sample[column + 1]))(history.samples);
  const colours = d3.scale.category10();
  svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`).call(d3.svg.axis().scale(time).ticks(4));
  svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.svg.axis().scale(value).orient('left').ticks(4).tickFormat(scaled));
  for (const column of shown) {
    svg.append('path').attr('d', line(column)).style('stroke', colours(column)).attr('class', 'curve');
    d3.select('#legend').append('span').style('color', colours(column)).text(`${history.columns[column]}/s`);
  }
}

function button(text, action) {
  const made = document.createElement('button');
  made.textContent = text;
  made.addEventListener('click', async () => {
    made.disabled = true;
    try { $('#said').textContent = (await action()) || 'done'; } catch (error) { $('#said').textContent = error.message; }
    made.disabled = false;
  });
  $('#actions').append(made);
}

async function download(link, seconds) {
  const blob = await (await post('api/capture', { link, seconds })).blob(), anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(blob);
  anchor.download = `${link.replaceAll('/', '_')}.pcap`;
  anchor.click();
  URL.revokeObjectURL(anchor.href);
  return `${blob.size} bytes`;
}

function actions() {
  $('#actions').replaceChildren();
  $('#said').textContent = '';
  const may = (what) => fabric.allowed.includes(what), { kind, name } = chosen;
  if (kind === 'link' && may('faults')) {
    const set = (settings) => async () => { await post('api/link', { link: name, settings }); };
    button('pull', set({ state: 'down' }));
    button('plug', set({ state: 'up' }));
    button('lose 5 %', set({ loss: '0.05' }));
    button('delay 1 ms', set({ delay: '1ms' }));
    button('mend', set({ loss: '0', delay: '0ms', jitter: '0ms', duplication: '0', reordering: '0', corruption: '0', silent_corruption: '0' }));
  }
  if (kind === 'host' && may('faults')) {
    for (const fault of Object.keys(fabric.hosts.find((host) => host.name === name).faults)) {
      button(fault, async () => { await post('api/card', { host: name, fault, count: 1 }); });
    }
  }
  if (kind === 'link' && may('captures')) button('capture 5 s', () => download(name, 5));
}

function choose(kind, name) {
  chosen = { kind, name };
  $('aside').hidden = false;
  $('aside h2').textContent = name;
  actions();
  colour();
  detail().catch((error) => { $('#said').textContent = error.message; });
}

async function detail() {
  const { kind, name } = chosen;
  if (kind === 'link') {
    const link = fabric.links.find((each) => each.name === name), rate = live.rates[name];
    if (!link || !rate) return;
    facts([['link', live.down.includes(name) ? 'down' : 'up'], ['> bit/s', scaled(rate[0])], ['< bit/s', scaled(rate[1])], ['packets/s', scaled(rate[2] + rate[3])],
      ['errors', rate[4]], ...Object.entries(link.settings)]);
    chart(await get(`api/history?link=${encodeURIComponent(name)}`), [0, 1]);
  } else if (kind === 'host') {
    const host = fabric.hosts.find((each) => each.name === name);
    if (!host) return;
    facts([['machine', live.machines.includes(name) ? 'on' : 'none'], ['GUID', host.guid], ...host.ports.map((port) => [port.name, port.up ? 'up' : 'down']),
      ...Object.entries(fabric.cards[name]), ...Object.entries(host.faults).filter(([, count]) => count)]);
    const history = await get(`api/history?host=${encodeURIComponent(name)}`);
    chart(history, history.columns.map((_, number) => number).filter((number) => history.samples.some((sample) => sample[number + 1])));
  } else {
    const node = fabric.switches.find((each) => each.name === name);
    d3.select('#chart').selectAll('*').remove();
    $('#legend').replaceChildren();
    facts(node ? [['LID', node.lid], ['GUID', node.guid], ...node.ports.filter((port) => port.link).map((port) => [port.name, `${port.up ? 'up' : 'down'} ${port.link}`])]
      : Object.entries(live.subnet_manager || {}));
  }
}

/* --- all of it, again and again --- */

async function show() {
  for (const section of document.querySelectorAll('section')) section.hidden = section.id !== view;
  for (const each of document.querySelectorAll('nav button')) each.classList.toggle('chosen', each.dataset.view === view);
  if (!live || !live.there) return;
  if (view === 'fabric') colour();
  if (view === 'links') showLinks();
  if (view === 'cards') showCards();
  if (view === 'log') await showLog();
  if (chosen) await detail();
}

async function look() {
  try {
    live = await get('api/live');
    if (live.there) {
      // What a page needs of it anew, beside the rates.
      if (version !== live.version || view === 'cards' || chosen) fabric = await get('api/fabric');
      if (version !== live.version) { await draw(); version = live.version; }
      const manager = live.subnet_manager, up = Object.keys(live.rates).length - live.down.length;
      $('#state').textContent = `${up} links up, ${live.down.length} down · ${live.machines.length} of ${fabric.hosts.length} machines · `
        + (manager ? `SM ${manager.state}, ${manager.sweeps} sweeps` : 'no SM');
    } else {
      $('#state').textContent = 'weftd does not answer';
    }
    $('#state').classList.toggle('gone', !live.there);
    await show();
  } catch (error) {
    $('#state').textContent = `weft web does not answer (${error.message})`;
    $('#state').classList.add('gone');
  }
  setTimeout(look, 1000 * ((live && live.interval) || 1));
}

for (const each of document.querySelectorAll('nav button')) each.addEventListener('click', () => { view = each.dataset.view; show(); });
$('#log select').addEventListener('change', show);
$('#close').addEventListener('click', () => { chosen = null; $('aside').hidden = true; colour(); });
look();

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Shows the tables of links, hosts and Ethernet segments, which can be sorted, filtered and searched.
import { $, focusAmong, inARow, make, naturally, scaled } from './base.js';
import { guestOf, matches, state, stateText, wishes } from './model.js';

// For each table: the column by which it is sorted, and the direction. By default, rows that need attention come first.
const order = { links: null, cards: null, ethernet: null };
// For each table: the columns that contain numbers.
const numeric = { links: [], cards: [], ethernet: [] };
const LINK_FILTERS = {
  attention: (link) => link.severity > 0, down: (link) => link.severity === 2,
  faults: (link) => link.faults.length > 0, busy: (link) => link.bits > 1e6,
  infiniband: (link) => !link.ethernet, ethernet: (link) => link.ethernet,
};
const HOST_FILTERS = { guest: (host) => host.on, empty: (host) => host.pluggable && !host.on, endpoint: (host) => !host.pluggable };

function compare(id) {
  const by = order[id];
  if (!by) return (a, b) => b.severity - a.severity || naturally(a.name, b.name);
  const way = by.down ? -1 : 1;
  return (a, b) => {
    const [x, y] = [a.cells[by.column].key, b.cells[by.column].key];
    return way * (typeof x === 'number' ? x - y : naturally(x, y)) || naturally(a.name, b.name);
  };
}

function sort(id, column) {
  const by = order[id];
  // Numbers are sorted in descending order first, names in ascending order.
  order[id] = by && by.column === column ? { column, down: !by.down } : { column, down: Boolean(numeric[id][column]) };
  show(id);
}

function heads(id, columns, rows) {
  const by = order[id], head = d3.select(`#${id} thead tr`).selectAll('th').data(columns);
  head.enter().append('th').attr('scope', 'col').append('button').on('click', (_, column) => sort(id, column));
  if (rows.length) numeric[id] = rows[0].cells.map((cell) => typeof cell.key === 'number');
  head.attr('aria-sort', (_, number) => (!by || by.column !== number ? 'none' : by.down ? 'descending' : 'ascending'));
  head.select('button').text(String);
  head.exit().remove();
}

function onKey(event) {
  const row = event.target.closest('tbody tr');
  if (!row || event.target !== row) return;
  if (event.key === 'Enter') { row.click(); return; }
  const rows = [...row.parentNode.children], next = inARow(rows, row, event.key);
  if (!next) return;
  event.preventDefault();
  focusAmong(rows, next);
}

for (const id of Object.keys(order)) {
  $(`#${id} tbody`).addEventListener('keydown', onKey);
  $(`#${id} .bar select`)?.addEventListener('change', () => show(id));
}

function table(id, columns, rows, kind, all) {
  heads(id, columns, rows);
  rows.sort(compare(id));
  const focused = document.activeElement, { chosen } = state;
  const lines = d3.select(`#${id} tbody`).selectAll('tr').data(rows, (row) => row.name);
  lines.enter().append('tr').on('click', (row) => wishes.choose(kind, row.name));
  lines.exit().remove();
  lines.order().classed('attention', (row) => row.severity > 0).classed('chosen', (row) => Boolean(chosen) && chosen.name === row.name);
  const cells = lines.selectAll('td').data((row) => row.cells);
  cells.enter().append('td');
  cells.exit().remove();
  cells.each(function (cell) {
    // Unchanged cells are not written, because a thousand rows are updated every second.
    if (this.textContent !== cell.text) this.replaceChildren(cell.opens ? opener(cell) : cell.text);
    this.classList.toggle('bad', Boolean(cell.bad));
  });
  focusAmong([...$(`#${id} tbody`).children]);
  // A row that is moved loses the focus.
  if (focused !== document.activeElement && focused.isConnected && $(`#${id}`).contains(focused)) focused.focus();
  $(`#${id} .count`).textContent = rows.length === all ? `${all}` : `${rows.length} of ${all}`;
}

// A click on the button must not select the row.
function opener(cell) {
  return make('button', { onclick: (event) => { event.stopPropagation(); cell.opens(); } }, cell.text);
}

const words = (text, bad) => ({ key: text, text, bad });
const number = (value, bad) => ({ key: value, text: scaled(value), bad });

function showLinks() {
  const found = matches(), filter = LINK_FILTERS[$('#links .bar select').value], links = [...state.links.values()];
  const shown = links.filter((link) => (!found || found.names.has(link.name)) && (!filter || filter(link)));
  const rows = shown.map((link) => ({
    name: link.name, severity: link.severity,
    cells: [words(link.name), words(stateText(link), link.severity > 0),
      words(link.ethernet ? 'Ethernet' : `${link.settings.width} ${link.settings.speed}`),
      ...link.rate.slice(0, 4).map((value) => number(value)), number(link.rate[4]), number(link.rate[5], link.rate[5] > 0)],
  }));
  table('links', ['link', 'state', 'speed', '> bit/s', '< bit/s', '> pkt/s', '< pkt/s', 'errors', 'errors/s'], rows, 'link', links.length);
}

function showCards() {
  const found = matches(), filter = HOST_FILTERS[$('#cards .bar select').value], hosts = [...state.hosts.values()];
  const { cards, consoles } = state.fabric;
  const opens = (host) => (host.pluggable ? { ...words('console'), opens: () => wishes.open('console', { console: host.name }) } : words(''));
  const counters = [...new Set(Object.values(cards).flatMap(Object.keys))];
  const shown = hosts.filter((host) => (!found || found.names.has(host.name)) && (!filter || filter(host)));
  const rows = shown.map((host) => ({
    name: host.name, severity: host.severity,
    cells: [words(host.name), words(guestOf(host)), ...(consoles ? [opens(host)] : []),
      number(host.rate[0]), number(host.rate[1]), ...counters.map((name) => number((cards[host.name] || {})[name] || 0))],
  }));
  table('cards', ['host', 'guest', ...(consoles ? ['console'] : []), '> bit/s', '< bit/s', ...counters], rows, 'host', hosts.length);
}

function showSegments() {
  const found = matches(), segments = [...state.segments.values()];
  const rows = segments.filter((segment) => !found || found.names.has(segment.name)).map(({ name, links, up, addresses, rate, severity }) => ({
    name, severity,
    cells: [words(name), words(`${up} of ${links}`, severity === 2), number(addresses),
      ...rate.slice(0, 5).map((value) => number(value)), number(rate[5], severity > 0 && rate[5] > 0)],
  }));
  const columns = ['segment', 'links up', 'addresses', '> bit/s', '< bit/s', '> frames/s', '< frames/s', 'errors', 'errors/s'];
  table('ethernet', columns, rows, 'segment', segments.length);
}

const TABLES = { links: showLinks, cards: showCards, ethernet: showSegments };
export const isTable = (view) => Object.hasOwn(TABLES, view);

export function show(id) {
  if (state.live && state.fabric) TABLES[id]();
}

// The table of all alarms.
export function attention() {
  $('#links .bar select').value = 'attention';
  wishes.open('links', {});
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs the main loop of the page: polls the server once per interval, requests the topology only after changes, and requests other data only while it is shown.
import { $, get, make, Refusal, say, takeToken } from './base.js';
import * as address from './address.js';
import { actions } from './actions.js';
import { colour, draw, show as showDrawn } from './drawing.js';
import { derive, matches, state, summary, wishes } from './model.js';
import { detail, open as openPanel } from './panel.js';
import { attention, isTable, show as showTable } from './tables.js';
import { showConsole, showLog } from './text.js';

const MOST_ALARMS = 5;      // in the bar; all are in the table
const OLD = 5000;           // ms without anything new, at least, after which it is said
let version = -1, sweeps = -1, number = -1, updatedAt = performance.now(), mayNow = '', cameFrom = null, asking = false;

/* --- the bar above all views --- */

const clock = (moment) => (moment ? new Date(moment * 1000).toLocaleTimeString('en-GB') : 'the start');

// Without a server the page keeps its last contents, but marks them as outdated.
function stale(reason) {
  document.body.classList.toggle('stale', Boolean(reason));
  $('#stale').hidden = !reason;
  if (reason) say($('#stale'), `${reason}. Everything below is as it was at ${clock(state.live && state.live.moment)}.`);
  $('#state').classList.toggle('gone', Boolean(reason));
  $('#actions').inert = Boolean(reason);
}

function showAlarms() {
  const { alarms } = state, key = JSON.stringify(alarms.slice(0, MOST_ALARMS)) + alarms.length, bar = $('#alarms');
  bar.hidden = !alarms.length;
  document.title = alarms.length ? `(${alarms.length}) weft` : 'weft';
  if (bar.dataset.key === key) return;
  bar.dataset.key = key;
  const chips = alarms.slice(0, MOST_ALARMS).map(({ kind, name, text, severity }) => make('button',
    { class: `alarm severity${severity}`, onclick: () => choose(kind, name, true) }, make('b', {}, name), ` ${text}`));
  const all = make('button', { class: 'all', onclick: attention }, `all ${alarms.length}`);
  bar.replaceChildren(make('span', {}, `⚠ ${alarms.length}`), ...chips, ...(alarms.length > MOST_ALARMS ? [all] : []));
}

/* --- search --- */

function showFound() {
  const found = matches(), list = $('#found');
  if (!found || !$('#search').contains(document.activeElement)) { list.hidden = true; return; }
  list.hidden = false;
  const items = found.found.map((each) => make('li', {},
    make('button', { tabindex: -1, onclick: () => pick(each) }, make('b', {}, each.name), ` ${each.note}`)));
  if (found.total > items.length) items.push(make('li', { class: 'more' }, `and ${found.total - items.length} more: see the tables`));
  list.replaceChildren(...(items.length ? items : [make('li', { class: 'more' }, 'nothing found')]));
}

function endSearch() {
  state.query = $('#search input').value = '';
  document.activeElement.blur();
  address.write(true);
  refresh();
}

// A click into the list moves the focus away from the field first, so the list must stay until the click arrives.
function leaveSearch() {
  setTimeout(() => { if (!$('#search').contains(document.activeElement)) $('#found').hidden = true; }, 100);
}

function pick(found) {
  $('#found').hidden = true;
  choose(found.kind, found.name, true);
}

function searchKey(event) {
  const buttons = [...document.querySelectorAll('#found button')], at = buttons.indexOf(document.activeElement);
  if (event.key === 'Enter' && event.target === $('#search input') && buttons.length) buttons[0].click();
  else if (event.key === 'ArrowDown') (buttons[at + 1] || buttons[at] || event.target).focus();
  else if (event.key === 'ArrowUp') (at > 0 ? buttons[at - 1] : $('#search input')).focus();
  else return;
  event.preventDefault();
}

/* --- views and selection --- */

function choose(kind, name, move) {
  if (!state.chosen) cameFrom = document.activeElement;
  state.chosen = { kind, name };
  address.write();
  openPanel();
  $('aside h2').focus();
  if (move) showDrawn(kind, name);
  refresh();
}

function close() {
  state.chosen = null;
  address.write();
  openPanel();
  // Returns the focus to the element that had it before the panel was opened.
  if (cameFrom && cameFrom.isConnected) cameFrom.focus();
  refresh();
}

function open(view, words) {
  Object.assign(state, { view, ...words });
  address.write();
  refresh();
}
Object.assign(wishes, { choose, open });

async function show() {
  for (const section of document.querySelectorAll('section')) section.hidden = section.id !== state.view;
  for (const each of document.querySelectorAll('nav button')) {
    each.classList.toggle('chosen', each.dataset.view === state.view);
    each.setAttribute('aria-current', each.dataset.view === state.view ? 'page' : 'false');
  }
  if (!state.live || !state.live.there || !state.fabric) return;
  if (state.view === 'fabric') colour();
  if (isTable(state.view)) showTable(state.view);
  if (state.view === 'log') await showLog();
  if (state.view === 'console') await showConsole();
  if (state.chosen) await detail();
}

async function refresh() {
  try { await show(); } catch (error) { $('#said').textContent = error.message; }
}

function permissions() {
  const { allowed, locked, consoles } = state.fabric, may = JSON.stringify([allowed, locked, consoles]);
  if (may === mayNow) return;
  mayNow = may;
  $('#readonly').hidden = allowed.length > 0;
  $('#readonly').title = locked ? 'Open the whole address that weft web printed: its end is the token.'
    : 'weft web was started without --allow.';
  actions();
}

async function news() {
  const live = await get('api/live');
  if (!live.there) {
    // If the server no longer has a sample, this is the time of the page's last one.
    state.live = { ...(state.live || live), there: false, moment: live.moment || (state.live && state.live.moment) };
    stale('weftd does not answer');
    say($('#state'), 'weftd does not answer');
    return;
  }
  if (live.number !== number) { number = live.number; updatedAt = performance.now(); }
  const silent = performance.now() - updatedAt;
  const swept = live.subnet_manager ? live.subnet_manager.sweeps : 0, another = version !== live.version;
  const asked = ['cards', 'ethernet'].includes(state.view) || state.chosen;
  if (another || swept !== sweeps || asked || !state.fabric) {
    state.fabric = await get('api/fabric');
    // Hosts may have got their LIDs meanwhile. While an item of the list has the focus, the list stays.
    if (document.activeElement === $('#search input') && !$('#found').hidden) showFound();
  }
  if (another) await draw();
  version = live.version;
  // The server may have taken the fabric before the last sweep; it is then requested again.
  sweeps = state.fabric.subnet_manager ? state.fabric.subnet_manager.sweeps : 0;
  state.live = live;
  derive();
  $('nav [data-view="ethernet"]').hidden = !state.segments.size;
  stale(silent > Math.max(OLD, 3000 * live.interval) ? `weftd has sent no new data for ${Math.round(silent / 1000)} seconds` : '');
  // In a lab over several hosts, places that do not answer.
  const missing = (live.missing || []).map(({ place, host, reason }) => `place ${place} (${host}) is missing: ${reason}`);
  say($('#state'), [summary(), ...missing].join('; '));
  if (missing.length) $('#state').classList.add('gone');
  permissions();
  showAlarms();
}

async function look() {
  asking = true;
  try {
    await news();
    await refresh();
  } catch (error) {
    const reason = error instanceof Refusal ? error.message : 'weft web does not answer';
    stale(reason);
    say($('#state'), reason);
  }
  asking = false;
  setTimeout(look, 1000 * ((state.live && state.live.interval) || 1));
}

function readAddress() {
  // After a change of the token, all data is requested again.
  if (takeToken()) {
    history.replaceState(null, '', location.pathname);
    location.reload();
    return;
  }
  address.read();
  $('#search input').value = state.query;
  $('#log input').value = state.text;
  openPanel();
  if (!asking) refresh();
}

/* --- the keyboard --- */

function onKey(event) {
  const typing = event.target.matches('input, select, textarea');
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    $('#search input').select();
  } else if (event.key === 'Escape' && !$('#confirm').open) {
    if (!$('#found').hidden) $('#found').hidden = true;
    else if ($('#search').contains(event.target)) endSearch();
    else if (state.chosen) close();
  }
}

for (const each of document.querySelectorAll('nav button')) each.addEventListener('click', () => open(each.dataset.view, {}));
$('#search input').addEventListener('input', (event) => { state.query = event.target.value; address.write(true); showFound(); refresh(); });
$('#search').addEventListener('keydown', searchKey);
$('#search').addEventListener('focusin', showFound);
$('#search').addEventListener('focusout', leaveSearch);
$('#log select').addEventListener('change', (event) => open('log', { part: event.target.value }));
$('#log input').addEventListener('input', (event) => { state.text = event.target.value; address.write(true); refresh(); });
$('#console select').addEventListener('change', (event) => open('console', { console: event.target.value }));
$('#close').addEventListener('click', close);
document.addEventListener('keydown', onKey);
window.addEventListener('popstate', readAddress);
window.addEventListener('hashchange', readAddress);
takeToken();
address.read();
address.write(true);
readAddress();
look();

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Requests to the server, and what every part of the page needs. Names and texts from the lab become text nodes and nothing else.

const KEY = 'weft-token';
const PATIENCE = 15000;     // ms for an answer

export const $ = (query) => document.querySelector(query);

// The printed address ends in the token, which is kept for this tab. The view takes its place: an address may be passed on.
export function takeToken() {
  const hash = location.hash.slice(1);
  if (!hash || hash.includes('=')) return false;
  sessionStorage.setItem(KEY, hash);
  return true;
}

const headers = (more) => ({ 'X-Weft-Token': sessionStorage.getItem(KEY) || '', ...more });

// The server's own reason, as opposed to that of a server that is not there.
export class Refusal extends Error {}

async function answered(request) {
  const answer = await request;
  if (!answer.ok) throw new Refusal((await answer.text()).trim() || answer.statusText);
  return answer;
}

export const fetched = (path) => answered(fetch(path, { headers: headers(), signal: AbortSignal.timeout(PATIENCE) }));
export const get = async (path) => (await fetched(path)).json();
export function post(path, body) {
  return answered(fetch(path, { method: 'POST', headers: headers({ 'Content-Type': 'application/json' }), body: JSON.stringify(body) }));
}

export function make(tag, attributes, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...content);
  return made;
}

// The text of an element, left alone where it is the same: a selection in it stays.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function scaled(value) {
  if (value < 1000) return value >= 10 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1);
  const unit = Math.min(4, Math.floor(Math.log10(value) / 3));
  return (value / 1000 ** unit).toPrecision(3) + ['', 'k', 'M', 'G', 'T'][unit];
}

// node2 comes before node100.
export const naturally = new Intl.Collator('en', { numeric: true }).compare;

// One of many is a stop of the Tab key; arrow keys go on from there, to the one that next() names.
export function focusAmong(items, wanted) {
  const current = wanted || items.find((item) => item.tabIndex === 0) || items[0];
  for (const item of items) item.setAttribute('tabindex', item === current ? 0 : -1);
  if (wanted) wanted.focus();
}

export function inARow(items, item, key) {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
  return step && items[Math.max(0, Math.min(items.length - 1, items.indexOf(item) + step))];
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Sends requests to the server, and contains functions that all parts of the page use. Names and texts from the lab are inserted only as text nodes,
// never as HTML, because guests can choose them.

const KEY = 'weft-token';
const TIMEOUT = 15000;     // ms for an answer

export const $ = (query) => document.querySelector(query);

// The printed URL ends in the token. It is stored for this tab and replaced by the view, so that the URL can be given to others.
export function takeToken() {
  const hash = location.hash.slice(1);
  if (!hash || hash.includes('=')) return false;
  sessionStorage.setItem(KEY, hash);
  return true;
}

const headers = (more) => ({ 'X-Weft-Token': sessionStorage.getItem(KEY) || '', ...more });

// A refusal by the server, as opposed to a server that does not respond.
export class Refusal extends Error {}

async function answered(request) {
  const answer = await request;
  if (!answer.ok) throw new Refusal((await answer.text()).trim() || answer.statusText);
  return answer;
}

export const fetched = (path) => answered(fetch(path, { headers: headers(), signal: AbortSignal.timeout(TIMEOUT) }));
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

// Sets the text of an element. Unchanged text is not replaced, so that a selection in it is kept.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function scaled(value) {
  if (value < 1000) return value >= 10 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(1);
  const unit = Math.min(4, Math.floor(Math.log10(value) / 3));
  return (value / 1000 ** unit).toPrecision(3) + ['', 'k', 'M', 'G', 'T'][unit];
}

// Compares numbers in names by value: node2 comes before node100.
export const naturally = new Intl.Collator('en', { numeric: true }).compare;

// Of many elements, one can be reached by the Tab key; arrow keys move from there to the one that next() returns.
export function focusAmong(items, wanted) {
  const current = wanted || items.find((item) => item.tabIndex === 0) || items[0];
  for (const item of items) item.setAttribute('tabindex', item === current ? 0 : -1);
  if (wanted) wanted.focus();
}

export function inARow(items, item, key) {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
  return step && items[Math.max(0, Math.min(items.length - 1, items.indexOf(item) + step))];
}

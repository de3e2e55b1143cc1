// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The part of the address behind #: which view, what is chosen, what is searched for. It can be passed on, and the browser's Back goes back.
import { state } from './model.js';

const VIEWS = ['fabric', 'links', 'cards', 'ethernet', 'log', 'console'];
const KINDS = ['link', 'host', 'node', 'segment'];
const TEXTS = { search: 'query', part: 'part', text: 'text', console: 'console' };

function written() {
  const words = new URLSearchParams({ view: state.view });
  if (state.chosen) words.set(state.chosen.kind, state.chosen.name);
  for (const [word, key] of Object.entries(TEXTS)) if (state[key]) words.set(word, state[key]);
  // A slash needs no escape there, and is in every link's name.
  return `#${words.toString().replaceAll('%2F', '/')}`;
}

// What is typed letter by letter is one step of the history.
export function write(typed) {
  const hash = written();
  if (hash !== location.hash) history[typed || !location.hash ? 'replaceState' : 'pushState'](null, '', hash);
}

export function read() {
  const words = new URLSearchParams(location.hash.slice(1)), kind = KINDS.find((each) => words.get(each));
  state.view = VIEWS.includes(words.get('view')) ? words.get('view') : 'fabric';
  state.chosen = kind ? { kind, name: words.get(kind) } : null;
  for (const [word, key] of Object.entries(TEXTS)) state[key] = (words.get(word) || '').slice(0, 100);
}

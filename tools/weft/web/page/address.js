// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Keeps the view, the selection and the search in the fragment of the page's URL, so that links to them and the browser's Back button work.
import { state } from './model.js';

const VIEWS = ['fabric', 'links', 'cards', 'ethernet', 'log', 'console'];
const KINDS = ['link', 'host', 'node', 'segment'];
const TEXTS = { search: 'query', part: 'part', text: 'text', console: 'console' };

function written() {
  const words = new URLSearchParams({ view: state.view });
  if (state.chosen) words.set(state.chosen.kind, state.chosen.name);
  for (const [word, key] of Object.entries(TEXTS)) if (state[key]) words.set(word, state[key]);
  // Slashes are not escaped: a fragment may contain them, and every link name does.
  return `#${words.toString().replaceAll('%2F', '/')}`;
}

// Typing a search adds only one entry to the browser's history.
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

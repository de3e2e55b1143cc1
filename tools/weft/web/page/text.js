// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Shows the views with long texts: weftd's log, and the consoles of guests.
import { $, get, naturally, say } from './base.js';
import { state } from './model.js';

const MOST = 256 << 10;     // characters of a console that are kept on the page
const PARTS = ['sm', 'link', 'switch', 'fabric', 'control', 'weftd'];
const shown = { host: null, after: 0, text: '' };

// A view that is scrolled to the end follows new lines.
function follow(box, text) {
  const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 30 || !box.textContent;
  say(box, text);
  if (atEnd) box.scrollTop = box.scrollHeight;
}

function choices(select, values, chosen) {
  const have = [...select.options].map((option) => option.value).filter(Boolean);
  if (have.join('\n') !== values.join('\n')) {
    for (const option of [...select.options]) if (option.value) option.remove();
    select.append(...values.map((value) => new Option(value, value)));
  }
  select.value = chosen;
}

// Some components put their names in front of their messages.
function withoutPart({ part, text }) {
  return text.startsWith(`${part}: `) ? text.slice(part.length + 2) : text;
}

// The oldest line comes first, as in `weft log`.
export async function showLog() {
  const lines = await get('api/log'), { part, text } = state, wanted = text.toLowerCase();
  const others = new Set([...lines.map((line) => line.part), part].filter((each) => each && !PARTS.includes(each)));
  choices($('#log select'), [...PARTS, ...[...others].sort(naturally)], part);
  if (document.activeElement !== $('#log input')) $('#log input').value = text;
  const printed = lines.filter((line) => !part || line.part === part)
    .map((line) => `${line.time} ${line.level.padEnd(7)} ${line.part}: ${withoutPart(line)}`);
  const written = printed.filter((line) => !wanted || line.toLowerCase().includes(wanted));
  follow($('#log pre'), written.join('\n'));
  $('#log .count').textContent = `${written.length} of ${lines.length} lines`;
}

export async function showConsole() {
  const box = $('#console pre'), hosts = [...state.hosts.values()].filter((host) => host.pluggable);
  const guests = hosts.map((host) => host.name).sort(naturally);
  if (!state.console && guests.length) state.console = (hosts.find((host) => host.on) || { name: guests[0] }).name;
  choices($('#console select'), guests, state.console);
  if (shown.host !== state.console) Object.assign(shown, { host: state.console, after: 0, text: '' });
  if (!state.fabric.consoles) {
    say(box, 'No console is available: only guests of `weft lab up` have one. '
      + 'Users other than the lab’s need `weft web --allow consoles`.');
    return;
  }
  const host = state.console, { after } = shown;
  try {
    const more = await get(`api/console?host=${encodeURIComponent(host)}&after=${after}`);
    // A later request may have been answered earlier.
    if (host !== state.console || host !== shown.host || after !== shown.after) return;
    // If the file was truncated, or much of it was skipped, the view shows only the new text.
    shown.text = ((more.from === shown.after ? shown.text : '') + more.text).slice(-MOST);
    shown.after = more.to;
    follow(box, shown.text);
    $('#console .count').textContent = 'output of the guest; read-only';
  } catch (error) {
    Object.assign(shown, { after: 0, text: '' });
    say(box, error.message);
  }
}

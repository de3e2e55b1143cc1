// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Performs actions on the selected link or node, if `weft web --allow` and the token permit them. Harmful faults need a confirmation.
import { $, make, post } from './base.js';
import { cardFault, LINK } from './faults.js';
import { state } from './model.js';

// Resolves to true if the user confirms, and to false for Esc and Cancel.
function agreed(title, text) {
  const dialog = $('#confirm');
  dialog.querySelector('h2').textContent = title;
  dialog.querySelector('p').textContent = text;
  return new Promise((resolve) => {
    let yes = false;
    dialog.querySelector('.yes').onclick = () => { yes = true; dialog.close(); };
    dialog.querySelector('.no').onclick = () => dialog.close();
    dialog.onclose = () => resolve(yes);
    dialog.showModal();
    dialog.querySelector('.no').focus();
  });
}

function button(text, title, action, harmful) {
  const made = make('button', { title, ...(harmful ? { class: 'harmful' } : {}) }, text);
  made.addEventListener('click', async () => {
    made.disabled = true;
    try { $('#said').textContent = (await action()) ?? 'done'; } catch (error) { $('#said').textContent = error.message; }
    made.disabled = false;
  });
  return made;
}

function section(title, ...buttons) {
  $('#actions').append(make('h3', {}, title), make('div', { class: 'buttons' }, ...buttons));
}

async function download(link, seconds) {
  const type = state.links.get(link)?.ethernet ? 'pcapng' : 'pcap';
  const blob = await (await post('api/capture', { link, seconds })).blob(), anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(blob);
  anchor.download = `${link.replaceAll('/', '_')}.${type}`;
  anchor.click();
  URL.revokeObjectURL(anchor.href);
  return `${blob.size} bytes`;
}

function faultButton(host, fault) {
  const { text, harmful } = cardFault(fault);
  return button(fault, text, async () => {
    if (harmful && !await agreed(`Inject ${fault} into the card of ${host}?`, text)) return 'not injected';
    await post('api/card', { host, fault, count: 1 });
    return `${fault}: injected`;
  }, harmful);
}

export function actions() {
  $('#actions').replaceChildren();
  $('#said').textContent = '';
  if (!state.chosen || !state.fabric) return;
  const { kind, name } = state.chosen, { allowed, locked } = state.fabric, may = (what) => allowed.includes(what);
  if (kind === 'link' && may('faults')) {
    const set = (settings) => async () => { await post('api/link', { link: name, settings }); };
    section('Link faults', ...LINK.map(([text, settings, title]) => button(text, title, set(settings))));
  }
  const host = kind === 'host' && state.fabric.hosts.find((each) => each.name === name), faults = host ? Object.keys(host.faults) : [];
  if (faults.length && may('faults')) section('Card faults', ...faults.map((fault) => faultButton(name, fault)));
  if (kind === 'link' && may('captures')) {
    section('Capture', button('capture 5 s', 'Records the packets of the link for five seconds, in a file for Wireshark.', () => download(name, 5)));
  }
  if ((kind === 'link' || kind === 'host') && !allowed.length) {
    const reason = locked ? 'the token is missing. Open the whole address that weft web printed.' : 'weft web was started without --allow.';
    $('#actions').append(make('p', { class: 'notice' }, `Read-only: ${reason}`));
  }
}

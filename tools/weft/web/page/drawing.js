// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Shows the drawing of the fabric, which is the SVG of `weft fabric show --svg`, and adds states, rates and search results.
import { $, fetched, focusAmong, inARow, naturally, scaled } from './base.js';
import { guestOf, matches, nodeOf, state, stateText, wishes } from './model.js';

const SVG = 'http://www.w3.org/2000/svg';
const CLOSE = 2.5;      // how far a search zooms in
let group = null, zoom = null, raised = '', links = [], nodes = [];

function layer(name, elements) {
  const made = document.createElementNS(SVG, 'g');
  made.setAttribute('class', name);
  made.append(...elements);
  return made;
}

const kindOf = (node) => (node.classList.contains('host') ? 'host' : 'node');
const opens = (item) => wishes.choose(item.matches('.link') ? 'link' : kindOf(item), item.dataset.name);

export async function draw() {
  // Its style is in style.css, because the page's security policy permits no inline styles.
  const text = (await (await fetched('api/drawing')).text()).replace(/<style>[^<]*<\/style>/, '');
  const drawn = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  if (drawn.nodeName !== 'svg') throw new Error('no drawing');
  const svg = document.importNode(drawn, true);
  svg.removeAttribute('width');
  svg.removeAttribute('height');
  // One group, so that everything can be moved together. It has, from the bottom: wide invisible lines for clicks, links, labels, nodes.
  group = document.createElementNS(SVG, 'g');
  group.append(...svg.childNodes);
  svg.append(group);
  links = [...svg.querySelectorAll('.link')];
  nodes = [...svg.querySelectorAll('.node')];
  group.append(layer('hits', links.map(hitArea)), layer('links', links), layer('labels', links.flatMap(label)), layer('nodes', nodes));
  raised = '';
  $('#drawing').replaceChildren(svg);
  zoom = d3.behavior.zoom().scaleExtent([0.5, 12]).on('zoom', () => {
    d3.select(group).attr('transform', `translate(${d3.event.translate})scale(${d3.event.scale})`);
  });
  d3.select(svg).call(zoom).on('dblclick.zoom', null);
  for (const item of [...links, ...nodes]) {
    item.setAttribute('role', 'button');
    item.addEventListener('click', () => opens(item));
  }
  focusAmong(links);
  focusAmong(nodes);
  svg.addEventListener('keydown', onKey);
}

// Lines are thin, so a wider invisible line receives clicks next to them.
function hitArea(link) {
  const area = link.querySelector('path').cloneNode();
  area.setAttribute('class', 'hit');
  area.dataset.name = link.dataset.name;
  area.addEventListener('click', () => opens(link));
  return area;
}

// Labels are drawn above all links, so that no line crosses them.
function label(link) {
  const text = link.querySelector('text');
  if (!text) return [];
  text.dataset.name = link.dataset.name;
  return [text];
}

function middle(node) {
  const box = node.querySelector('rect'), of = (name) => Number(box.getAttribute(name));
  return [of('x') + of('width') / 2, of('y') + of('height') / 2];
}

// The nearest node in a direction. Sideways distances count more.
function towards(from, key) {
  const [x, y] = middle(from), way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  if (!way) return null;
  let best = null, least = Infinity;
  for (const node of nodes) {
    const [atX, atY] = middle(node), dx = atX - x, dy = atY - y;
    const ahead = dx * way[0] + dy * way[1], aside = Math.abs(dx * way[1]) + Math.abs(dy * way[0]);
    if (ahead > 0.5 && ahead + 3 * aside < least) { best = node; least = ahead + 3 * aside; }
  }
  return best;
}

const severity = (link) => state.links.get(link.dataset.name)?.severity || 0;

function onKey(event) {
  const item = event.target.closest('.link, .node');
  if (!item) return;
  if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    opens(item);
    return;
  }
  const inOrder = [...links].sort((a, b) => severity(b) - severity(a) || naturally(a.dataset.name, b.dataset.name));
  const next = item.matches('.node') ? towards(item, event.key) : inARow(inOrder, item, event.key);
  if (!next) return;
  event.preventDefault();
  focusAmong(next.matches('.node') ? nodes : links, next);
}

// Links that need attention are drawn above the others.
function raise() {
  const up = links.filter(severity), key = up.map((link) => link.dataset.name).join(' ');
  if (key === raised) return;
  raised = key;
  const focused = document.activeElement;
  for (const name of ['links', 'hits']) {
    const all = group.querySelector(`.${name}`), parts = new Map([...all.children].map((part) => [part.dataset.name, part]));
    all.append(...[...links.filter((link) => !severity(link)), ...up].map((link) => parts.get(link.dataset.name)));
  }
  if (focused !== document.activeElement) focused.focus();
}

function named(item, text) {
  const title = item.querySelector('title');
  if (title.textContent !== text) {
    title.textContent = text;
    item.setAttribute('aria-label', text);
  }
}

// The lines of a label, one below the other.
function write(text, lines) {
  if (text.dataset.lines === lines.join('\n')) return;
  text.dataset.lines = lines.join('\n');
  text.replaceChildren(...lines.map((line, number) => {
    const made = document.createElementNS(SVG, 'tspan');
    made.setAttribute('x', text.getAttribute('x'));
    made.setAttribute('dy', number ? '1.2em' : 0);
    made.textContent = line;
    return made;
  }));
}

export function colour() {
  if (!group) return;
  const found = matches(), isChosen = (name) => state.chosen?.name === name, isFound = (name) => Boolean(found?.names.has(name));
  const labels = new Map([...group.querySelectorAll('.labels text')].map((text) => [text.dataset.name, text]));
  d3.select(group).classed('searched', Boolean(found));
  for (const element of links) {
    const { name } = element.dataset, link = state.links.get(name);
    if (!link) continue;
    const down = link.is !== 'up', { rate } = link;
    d3.select(element).classed({ down: link.severity === 2, empty: link.is === 'no guest', lossy: link.faults.length > 0, errors: rate[5] > 0,
      busy: link.bits > 1e6, busier: link.bits > 1e9, chosen: isChosen(name), found: isFound(name) });
    element.querySelector('path').setAttribute('class', down ? 'down' : 'up');
    named(element, `${name}: ${stateText(link)}; > ${scaled(rate[0])} < ${scaled(rate[1])} bit/s, ${scaled(rate[4])} errors`);
    // In a lab with few links, all of them have labels.
    const is = link.severity === 2 ? ` ${link.is}` : '';
    const live = !down && link.bits >= 1000 ? [`> ${scaled(rate[0])} < ${scaled(rate[1])}`] : [];
    if (labels.has(name)) write(labels.get(name), [`${link.settings.width} ${link.settings.speed}${is}`, ...live, ...link.faults]);
  }
  for (const element of nodes) {
    const { name } = element.dataset, host = state.hosts.get(name);
    d3.select(element).classed({ on: Boolean(host?.on), endpoint: host?.pluggable === false, warned: host?.severity === 1,
      alarmed: host?.severity === 2, chosen: isChosen(name), found: isFound(name) });
    if (!host) {
      element.setAttribute('aria-label', element.querySelector('title').textContent);
      continue;
    }
    const guest = { running: 'guest running', none: 'no guest', endpoint: 'endpoint' }[guestOf(host)];
    const rates = `> ${scaled(host.rate[0])} < ${scaled(host.rate[1])}`;
    d3.select(element).select('.detail').text(host.rate.some((rate) => rate >= 1000) ? rates : guest);
    named(element, `${name}, ${guest}: ${rates} bit/s`);
  }
  raise();
}

// Moves the search results to the centre, and scales them to a readable size.
export function show(kind, name) {
  if (!group || state.view !== 'fabric') return;
  const link = kind === 'link' && state.links.get(name), wanted = link ? link.ends.map(nodeOf) : [name];
  const places = nodes.filter((node) => wanted.includes(node.dataset.name)).map(middle);
  if (!places.length) return;
  const { width, height } = group.ownerSVGElement.viewBox.baseVal, scale = Math.max(zoom.scale(), nodes.length > 40 ? CLOSE : 1);
  const [x, y] = [0, 1].map((at) => places.reduce((sum, place) => sum + place[at], 0) / places.length);
  zoom.scale(scale).translate(scale === 1 ? [0, 0] : [width / 2 - scale * x, height / 2 - scale * y]).event(d3.select(group.ownerSVGElement));
}

// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the texts for the faults that buttons inject, and which faults need a confirmation. Documentation/fault-injection.rst documents how drivers
// react to them.

// A harmful fault needs a confirmation: it may crash a guest, or reset or stop its card.
const harmful = (text) => ({ text, harmful: true });
const harmless = (text) => ({ text, harmful: false });

const CARD = {
  'cqe-number': harmful('The next completion names a queue pair that does not exist: Debian’s mlx4 driver oopses, and the guest panics.'),
  'cqe-index': harmful('The next completion has an index that does not exist: Debian’s mthca driver oopses, and a guest with mlx5 hangs.'),
  'cqe-opcode': harmful('The next completion has an opcode that does not exist: an error of one packet; a guest with mlx5 may panic.'),
  'cqe-owner': harmful('The next completion is still marked as the card’s, and is not seen: ib0 of mthca and mlx5 stops 128 packets later.'),
  'eqe-number': harmful('The next event is about a queue that does not exist: ib0 of mlx5 stops until it is set down and up.'),
  'eqe-type': harmless('The next event has a type that does not exist; the driver logs it.'),
  'eqe-owner': harmful('The next event is still marked as the card’s: the event queue stops until the card is reset.'),
  'command-lost': harmful('The next command never completes: after 60 s the driver considers the card dead, and resets it.'),
  'command-twice': harmless('The next command completes twice.'),
  'command-status': harmless('The next command fails with a status that does not exist.'),
  'command-nth': harmless('The last of the next commands fails with a status that does not exist.'),
  capabilities: harmful('The next query of capabilities is inconsistent: a driver that probes the card again may refuse it.'),
  interrupt: harmless('One spurious interrupt of every vector.'),
  'srq-list': harmless('The next request of a shared receive queue cannot be read.'),
  catastrophic: harmful('The card reports a fatal error: the driver resets it, and ib0 is a new interface without its address.'),
  'health-stuck': harmful('The card’s health counter stops: the driver considers the card dead.'),
};

// An unknown fault counts as harmful.
const unknown = harmful('The effect is the card model’s own; see the documentation’s page on fault injection.');
export const cardFault = (name) => (Object.hasOwn(CARD, name) ? CARD[name] : unknown);

export const NO_FAULTS = { loss: '0', delay: '0ms', jitter: '0ms', duplication: '0', reordering: '0', corruption: '0', silent_corruption: '0' };
export const LINK = [
  ['pull', { state: 'down' }, 'Pulls the cable: the link goes down until it is plugged in.'],
  ['plug', { state: 'up' }, 'Plugs the cable in again.'],
  ['lose 5 %', { loss: '0.05' }, 'Each packet is lost with a probability of 5 %; the receiver counts symbol errors, or FCS errors on Ethernet.'],
  ['delay 1 ms', { delay: '1ms' }, 'Each packet arrives 1 ms later.'],
  ['clear faults', NO_FAULTS, 'Ends loss, delay, jitter, duplication, reordering and corruption.'],
];

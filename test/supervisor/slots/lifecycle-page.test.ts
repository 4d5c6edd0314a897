/** Compares the tables of docs/lifecycle.md with the code; `UPDATE_DOCS=1` prints them anew. */
import { FIRST_DELAY_MS, MAX_DELAY_MS } from '../../../supervisor/slots/restart-policy.js';
import { ABORT_GRACE_MS } from '../../../supervisor/calls/run-timeout.js';
import {
  SLOT_EVENTS,
  SLOT_STATES,
  nextSlotState,
  type SlotEvent,
  type SlotStateName,
} from '../../../supervisor/slots/slot-lifecycle.js';
import { TERM_GRACE_MS } from '../../../supervisor/processes/worker-stop.js';
import {
  WORKER_EVENTS,
  WORKER_STATES,
  nextState,
  type WorkerEvent,
  type WorkerState,
} from '../../../supervisor/processes/worker-lifecycle.js';
import { formatMs } from '../../../supervisor/options/units.js';
import { holdsSection, printTable } from '../../helpers/doc-page.js';

const STATES = Object.keys(WORKER_STATES) as WorkerState[];
const EVENTS = Object.keys(WORKER_EVENTS) as WorkerEvent[];

/** Prints the text between `<!-- name -->` and `<!-- /name -->`. */
const SECTIONS: Readonly<Record<string, () => string>> = {
  'worker-states': () => printTable(['state', 'meaning'], Object.entries(WORKER_STATES)),
  'worker-events': () => printTable(['event', 'meaning'], Object.entries(WORKER_EVENTS)),
  'worker-transitions': () =>
    printTable(
      ['', ...EVENTS],
      STATES.map((state) => [
        `**${state}**`,
        ...EVENTS.map((event) => orDash(() => nextState(state, event))),
      ]),
    ),
  'slot-states': () => printTable(['state', 'meaning'], Object.entries(SLOT_STATES)),
  'slot-events': () => printTable(['event', 'meaning'], Object.entries(SLOT_EVENTS)),
  'slot-transitions': () => {
    const events = Object.keys(SLOT_EVENTS) as SlotEvent[];
    const states = Object.keys(SLOT_STATES) as SlotStateName[];
    return printTable(
      ['', ...events],
      states.map((state) => [
        `**${state}**`,
        ...events.map((event) => orDash(() => nextSlotState(state, event))),
      ]),
    );
  },
  limits: () =>
    printTable(
      ['limit', 'value'],
      [
        ['grace between the abort signal of a run timeout and SIGKILL', formatMs(ABORT_GRACE_MS)],
        ['grace between SIGTERM and SIGKILL', formatMs(TERM_GRACE_MS)],
        ['first backoff, doubled with every further failed start in a row', formatMs(FIRST_DELAY_MS)],
        ['longest backoff', formatMs(MAX_DELAY_MS)],
      ],
    ),
};

for (const [name, print] of Object.entries(SECTIONS)) holdsSection('lifecycle.md', name, print);

function orDash(next: () => string): string {
  try {
    return next();
  } catch {
    return '–';
  }
}

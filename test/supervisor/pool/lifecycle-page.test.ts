/** docs/lifecycle.md is held to the code: its tables are printed from it. `UPDATE_DOCS=1` writes them anew. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { ABORT_GRACE_MS } from '../../../supervisor/pool/held-calls.js';
import { FIRST_DELAY_MS, MAX_DELAY_MS, MIN_STABLE_MS } from '../../../supervisor/pool/restart-policy.js';
import { TERM_GRACE_MS } from '../../../supervisor/pool/worker-handle.js';
import {
  WORKER_EVENTS,
  WORKER_STATES,
  nextState,
  type WorkerEvent,
  type WorkerState,
} from '../../../supervisor/pool/worker-lifecycle.js';
import { formatMs } from '../../../supervisor/options/units.js';
import { ROOT } from '../../helpers/server.js';

const PAGE = `${ROOT}docs/lifecycle.md`;
const STATES = Object.keys(WORKER_STATES) as WorkerState[];
const EVENTS = Object.keys(WORKER_EVENTS) as WorkerEvent[];

/** What stands between `<!-- name -->` and `<!-- /name -->`. */
const SECTIONS: Readonly<Record<string, () => string>> = {
  'worker-states': () => table(['state', 'meaning'], Object.entries(WORKER_STATES)),
  'worker-events': () => table(['event', 'meaning'], Object.entries(WORKER_EVENTS)),
  'worker-transitions': () =>
    table(
      ['', ...EVENTS],
      STATES.map((state) => [`**${state}**`, ...EVENTS.map((event) => next(state, event))]),
    ),
  limits: () =>
    table(
      ['limit', 'value'],
      [
        ['grace between the abort signal of a run timeout and SIGKILL', formatMs(ABORT_GRACE_MS)],
        ['grace between SIGTERM and SIGKILL', formatMs(TERM_GRACE_MS)],
        ['first backoff, doubled with every further death in a row', formatMs(FIRST_DELAY_MS)],
        ['longest backoff', formatMs(MAX_DELAY_MS)],
        ['ready time after which a seat counts as healthy again (at least)', formatMs(MIN_STABLE_MS)],
      ],
    ),
};

for (const [name, print] of Object.entries(SECTIONS)) {
  test(`docs/lifecycle.md: ${name} is what the code says`, () => {
    const page = readFileSync(PAGE, 'utf8');
    const [open, close] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`];
    const start = page.indexOf(open) + open.length;
    const end = page.indexOf(close);
    assert.ok(start >= open.length && end >= start, `the page has a section ${name}`);
    if (process.env['UPDATE_DOCS'] === '1')
      writeFileSync(PAGE, page.slice(0, start) + print() + page.slice(end));
    else assert.equal(page.slice(start, end), print(), 'run the test with UPDATE_DOCS=1 to write it anew');
  });
}

function next(state: WorkerState, event: WorkerEvent): string {
  try {
    return nextState(state, event);
  } catch {
    return '–';
  }
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [header, ...rows];
  const widths = header.map((_, i) => Math.max(3, ...cells.map((row) => (row[i] ?? '').length)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, i) => cell.padEnd(widths[i] as number)).join(' | ')} |\n`;
  return `\n${line(header)}${line(widths.map((width) => '-'.repeat(width)))}${rows.map(line).join('')}\n`;
}

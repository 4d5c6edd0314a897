/** Compares the lists of docs/lifecycle.md with the code; `UPDATE_DOCS=1` prints them anew. */
import { FIRST_DELAY_MS, MAX_DELAY_MS } from '../../../supervisor/slots/restart-policy.js';
import { ABORT_GRACE_MS } from '../../../supervisor/calls/run-timeout.js';
import { SLOT_STATES } from '../../../supervisor/slots/slot-lifecycle.js';
import { TERM_GRACE_MS } from '../../../supervisor/processes/worker-stop.js';
import { WORKER_STATES } from '../../../supervisor/processes/worker-lifecycle.js';
import { formatMs } from '../../../supervisor/options/units.js';
import { holdsSection } from '../../helpers/doc-page.js';

/** A line for each name and its meaning or value. */
function printList(rows: readonly (readonly [string, string])[]): string {
  return `\n${rows.map(([name, text]) => `- **${name}**: ${text}\n`).join('')}\n`;
}

/** Prints the text between `<!-- name -->` and `<!-- /name -->`. */
const SECTIONS: Readonly<Record<string, () => string>> = {
  'worker-states': () => printList(Object.entries(WORKER_STATES)),
  'slot-states': () => printList(Object.entries(SLOT_STATES)),
  limits: () =>
    printList([
      ['grace between the abort signal of a run timeout and SIGKILL', formatMs(ABORT_GRACE_MS)],
      ['grace between SIGTERM and SIGKILL', formatMs(TERM_GRACE_MS)],
      ['first backoff, doubled with every further failed start in a row', formatMs(FIRST_DELAY_MS)],
      ['longest backoff', formatMs(MAX_DELAY_MS)],
    ]),
};

for (const [name, print] of Object.entries(SECTIONS)) holdsSection('lifecycle.md', name, print);

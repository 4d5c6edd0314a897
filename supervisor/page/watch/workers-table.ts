import type { VNode } from 'preact';
import type { HiddenBecause, LiveDeath, LiveWorker } from '../../status/live-types.js';
import { age, bytes, count, duration } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { State } from '../parts/state.js';
import { DeathDetails } from './death-details.js';
import { workerNote, workerTone } from './models.js';

interface WorkersProps {
  readonly workers: readonly LiveWorker[];
  readonly at: number;
  readonly deaths: readonly LiveDeath[];
  readonly hidden: HiddenBecause | null;
}

const COLUMNS = ['Worker', 'State', 'Since', 'Device', 'Pid', 'Memory', 'Running call', 'Calls', 'Restarts'];

/** The workers of one model, each with the last death in its slot. On a narrow screen a row becomes a block. */
export function WorkersTable({ workers, at, deaths, hidden }: WorkersProps): VNode {
  return html`<table class="rows workers">
    <thead>
      <tr>
        ${COLUMNS.map((name) => html`<th scope="col" key=${name}>${name}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${workers.map((worker) => {
        const death = deaths.find(({ id }) => id === worker.lastDeath);
        return [
          h(WorkerRow, { key: worker.index, worker, at }),
          death !== undefined &&
            html`<tr key=${`death ${worker.index}`} class="sub">
              <td colspan=${COLUMNS.length}>
                ${h(DeathDetails, { death, hidden, title: `Died ${age(at - death.at)} ago: ${death.how}` })}
              </td>
            </tr>`,
        ];
      })}
    </tbody>
  </table>`;
}

function WorkerRow({ worker, at }: { readonly worker: LiveWorker; readonly at: number }): VNode {
  const {
    index,
    state,
    since,
    device,
    pid,
    memoryBytes,
    runningMs,
    requestId,
    calls,
    restarts,
    retryInMs,
    failure,
  } = worker;
  const note = retryInMs === null && failure !== null ? failure.code : workerNote(worker);
  const cells: readonly unknown[] = [
    index,
    html`${h(State, { tone: workerTone(worker), text: state })}
    ${note !== '' && html`<span class="muted">${note}</span>`}`,
    since === null ? '–' : age(at - since),
    device,
    pid ?? '–',
    memoryBytes === null ? '–' : bytes(memoryBytes),
    runningMs === null ? '–' : html`<span title=${requestId}>${duration(runningMs)}</span>`,
    count(calls),
    restarts,
  ];
  return html`<tr>
    ${cells.map((cell, i) => html`<td key=${COLUMNS[i]} data-label=${COLUMNS[i]}>${cell}</td>`)}
  </tr>`;
}

import type { VNode } from 'preact';
import type { HiddenBecause, LiveDeath, LiveModel, LiveWorker } from '../../status/live-types.js';
import { age, bytes, count, duration } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { State } from '../parts/state.js';
import { RestartWorker } from './manage-view.js';
import { DeathDetails } from './death-details.js';
import { workerNote, workerTone } from './models.js';

interface WorkersProps {
  readonly model: LiveModel;
  readonly at: number;
  readonly deaths: readonly LiveDeath[];
  readonly hidden: HiddenBecause | null;
  readonly mayManage: boolean;
}

const ACTION = 'Action';
const COLUMNS = ['Worker', 'State', 'Since', 'Device', 'Pid', 'Memory', 'Running call', 'Calls', 'Restarts'];

/** The workers of one model, each with the last death in its slot. On a narrow screen a row becomes a block. */
export function WorkersTable({ model, at, deaths, hidden, mayManage }: WorkersProps): VNode {
  const columns = mayManage ? [...COLUMNS, ACTION] : COLUMNS;
  return html`<table class="rows workers">
    <thead>
      <tr>
        ${columns.map((name) => html`<th scope="col" key=${name}>${name}</th>`)}
      </tr>
    </thead>
    <tbody>
      ${model.workers.map((worker) => {
        const death = deaths.find(({ id }) => id === worker.lastDeath);
        return [
          h(WorkerRow, { key: worker.index, model, worker, at, mayManage }),
          death !== undefined &&
            html`<tr key=${`death ${worker.index}`} class="sub">
              <td colspan=${columns.length}>
                ${h(DeathDetails, { death, hidden, title: `Died ${age(at - death.at)} ago: ${death.how}` })}
              </td>
            </tr>`,
        ];
      })}
    </tbody>
  </table>`;
}

interface RowProps extends Pick<WorkersProps, 'model' | 'at' | 'mayManage'> {
  readonly worker: LiveWorker;
}

function WorkerRow({ model, worker, at, mayManage }: RowProps): VNode {
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
    ${mayManage && html`<td key=${ACTION}>${h(RestartWorker, { model, index })}</td>`}
  </tr>`;
}

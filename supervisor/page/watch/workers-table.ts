import type { VNode } from 'preact';
import type { LiveModel, LiveWorker } from '../../status/live-types.js';
import type { History } from '../live/history.js';
import { age, bytes, count, duration } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { tableCells, tableHead } from '../parts/layout.js';
import { State } from '../parts/state.js';
import { restartButton } from './manage-view.js';
import { DeathDetails } from './death-details.js';
import { workerNote, workerTone } from './models.js';

interface WorkersProps {
  readonly model: LiveModel;
  readonly history: History;
  readonly mayManage: boolean;
}

const ACTION = 'Action';
const COLUMNS = ['Worker', 'State', 'Since', 'Device', 'Pid', 'Memory', 'Running call', 'Calls', 'Restarts'];

/** The workers of one model, each with the last death in its slot. On a narrow screen a row becomes a block. */
export function WorkersTable({ model, history, mayManage }: WorkersProps): VNode {
  const { at, deaths } = history;
  const columns = mayManage ? [...COLUMNS, ACTION] : COLUMNS;
  return html`<table class="rows workers">
    ${tableHead(columns)}
    <tbody>
      ${model.workers.map((worker) => {
        const death = deaths.find(({ id }) => id === worker.lastDeath);
        return [
          h(WorkerRow, { key: worker.index, model, worker, at, mayManage }),
          death !== undefined &&
            html`<tr key=${`death ${worker.index}`} class="sub">
              <td colspan=${columns.length}>
                ${h(DeathDetails, { death, title: `Died ${age(at - death.at)} ago: ${death.how}` })}
              </td>
            </tr>`,
        ];
      })}
    </tbody>
  </table>`;
}

interface RowProps extends Pick<WorkersProps, 'model' | 'mayManage'> {
  readonly at: number;
  readonly worker: LiveWorker;
}

function WorkerRow({ model, worker, at, mayManage }: RowProps): VNode {
  const { index, state, since, device, pid, memoryBytes, runningMs, calls, restarts, failure } = worker;
  const note = worker.retryInMs === null && failure !== null ? failure.code : workerNote(worker);
  const cells: readonly unknown[] = [
    index,
    html`${h(State, { tone: workerTone(worker), text: state })}
    ${note !== '' && html`<span class="muted">${note}</span>`}`,
    since === null ? '–' : age(at - since),
    device,
    pid ?? '–',
    memoryBytes === null ? '–' : bytes(memoryBytes),
    runningMs === null ? '–' : html`<span title=${worker.requestId}>${duration(runningMs)}</span>`,
    count(calls),
    restarts,
  ];
  return html`<tr>
    ${tableCells(COLUMNS, cells)} ${mayManage && html`<td key=${ACTION}>${restartButton(model, index)}</td>`}
  </tr>`;
}

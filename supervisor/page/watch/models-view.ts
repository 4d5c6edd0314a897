import { useState } from 'preact/hooks';
import type { LiveModel, LiveViewer, LiveWorker } from '../../status/live-types.js';
import type { History } from '../live/history.js';
import { quietButton } from '../parts/controls.js';
import { age, bytes, count, duration, plural } from '../parts/format.js';
import { html, h, type VNode, factList, panel, stateMark, tableCells, tableHead } from '../parts/html.js';
import { ManageModel, ManageServer, restartButton } from './manage-view.js';
import { modelName, modelState, workerNote, workerState } from './models.js';
import { DeathDetails } from './words.js';

interface ModelsProps {
  readonly history: History;
  readonly viewer: LiveViewer | null;
  /** Key of the model whose charts are shown. */
  readonly chosen: number | null;
  readonly choose: (key: number) => void;
}

/** With more models than this, only those that are not well show their workers at first. */
const FEW = 3;

/** All models with their workers. */
export function ModelsView({ history, viewer, chosen, choose }: ModelsProps): VNode {
  const [mayManage, setMayManage] = useState(false);
  const { models } = history;
  const ready = models.filter(({ state }) => state === 'ready').length;
  const summary = html`<span class="muted">${ready} of ${plural(models.length, 'model')} ready</span>`;
  const content = html`
    ${h(ManageServer, { management: viewer?.management ?? null, mayManage, setMayManage })}
    ${models.length === 0 && html`<p class="muted">No model is registered.</p>`}
    ${models.map((model) =>
      h(ModelCard, { key: model.key, model, history, mayManage, isChosen: model.key === chosen, choose }),
    )}
  `;
  const className = `models ${models.length > FEW ? 'many' : ''}`;
  return panel('models', 'Models and workers', className, summary, content);
}

interface CardProps extends Pick<ModelsProps, 'history' | 'choose'> {
  readonly model: LiveModel;
  readonly mayManage: boolean;
  readonly isChosen: boolean;
}

function ModelCard({ model, history, mayManage, isChosen, choose }: CardProps): VNode {
  const { models, at } = history;
  const [tone, state] = modelState(model);
  const [wish, setWish] = useState<boolean | null>(null);
  const isOpen = wish ?? (models.length <= FEW || tone === 'bad' || isChosen);
  const workers = plural(model.workers.length, 'worker');
  return html`<article class=${`model ${isChosen ? 'chosen' : ''}`}>
    <div class="model-head">
      <h3>
        <button
          type="button"
          class="name"
          aria-pressed=${isChosen}
          title="Show the charts of this model"
          onClick=${() => choose(model.key)}
        >
          ${modelName(model, models)}
        </button>
      </h3>
      ${stateMark(tone, state)}
      <span class="muted">${[model.app, model.runtime, ...(model.task === null ? [] : [model.task])].join(', ')}</span>
      ${quietButton(`${workers} ${isOpen ? '▾' : '▸'}`, () => setWish(!isOpen), { 'aria-expanded': isOpen })}
    </div>
    ${figures(model, history)} ${changesOf(model, at)} ${mayManage && isOpen && h(ManageModel, { model })}
    ${isOpen && (model.workers.length === 0 ? whyWithout(model) : workersTable(model, history, mayManage))}
  </article>`;
}

/** Why workers came and went: the last change at once, the ones before on demand. */
function changesOf({ changes }: LiveModel, nowMs: number): VNode | null {
  const texts = changes.toReversed().map(({ worker, change, why, at }) => {
    const ago = age(nowMs - Date.parse(at));
    return `Worker ${worker} ${change === 'started' ? 'started' : 'left'} ${ago} ago: ${why}.`;
  });
  const [last, ...before] = texts;
  if (last === undefined) return null;
  if (before.length === 0) return html`<p class="muted">${last}</p>`;
  return html`<details class="changes">
    <summary class="muted">${last}</summary>
    <ul>
      ${before.map((text) => html`<li class="muted">${text}</li>`)}
    </ul>
  </details>`;
}

function whyWithout({ state, minWorkers, maxWorkers }: LiveModel): VNode {
  const asleep = maxWorkers > 0 && minWorkers === 0;
  const scaled = asleep
    ? 'It has no workers because no call needs one; the next call starts one.'
    : 'It is scaled to no workers; calls get 503 until it is scaled up.';
  const leaving = 'It was unregistered, and finishes its last calls.';
  return html`<p class="muted">${state === 'unloading' ? leaving : scaled}</p>`;
}

function figures({ key, sample, queue, wantedWorkers, minute }: LiveModel, { series }: History): VNode {
  const columns = series.get(key)?.columns;
  const lastMinute = (name: 'calls' | 'failed'): number =>
    (columns?.[name].slice(-60) ?? []).reduce<number>((sum, value) => sum + (value ?? 0), 0);
  const failed = lastMinute('failed');
  const memory = columns?.memoryBytes.findLast((value) => value !== null) ?? null;
  const about = (ms: number | null): string => (ms === null ? '–' : `≈ ${duration(ms)}`);
  return factList('figures', [
    ['ready', `${sample.readyWorkers ?? 0} of ${wantedWorkers}`],
    ['waiting', `${queue.waiting + queue.arriving} of ${queue.maxCalls}`],
    ['running', count(sample.running ?? 0)],
    ['calls/min', count(lastMinute('calls'))],
    ['failed/min', count(failed), failed > 0 ? 'bad' : ''],
    ['queue p95/min', about(minute.queueP95Ms)],
    ['run p95/min', about(minute.runP95Ms)],
    ['memory', memory === null ? '–' : bytes(memory)],
  ]);
}

const COLUMNS = ['Worker', 'State', 'Since', 'Device', 'Pid', 'Memory', 'Running call', 'Calls', 'Restarts'];

/** The workers of one model, each with the last death in its slot. On a narrow screen a row becomes a block. */
function workersTable(model: LiveModel, { at, deaths }: History, mayManage: boolean): VNode {
  const columns = mayManage ? [...COLUMNS, 'Action'] : COLUMNS;
  return html`<table class="rows workers">
    ${tableHead(columns)}
    <tbody>
      ${model.workers.map((worker) => {
        const death = deaths.find(({ id }) => id === worker.lastDeath);
        return [
          html`<tr key=${worker.index}>
            ${tableCells(COLUMNS, workerCells(worker, at))}
            ${mayManage && html`<td>${restartButton(model, worker.index)}</td>`}
          </tr>`,
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

function workerCells(worker: LiveWorker, at: number): unknown[] {
  const { index, since, device, pid, memoryBytes, runningMs, requestId, calls, restarts } = worker;
  const note = workerNote(worker);
  return [
    index,
    html`${stateMark(...workerState(worker))} ${note !== '' && html`<span class="muted">${note}</span>`}`,
    age(at - since),
    device,
    pid ?? '–',
    memoryBytes === null ? '–' : bytes(memoryBytes),
    runningMs === null ? '–' : html`<span title=${requestId}>${duration(runningMs)}</span>`,
    count(calls),
    restarts,
  ];
}

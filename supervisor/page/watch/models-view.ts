import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { LiveChange, LiveModel, LiveViewer } from '../../status/live-types.js';
import type { History } from '../live/history.js';
import { quietButton } from '../parts/controls.js';
import { age, bytes, count, duration, plural } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { figureList, panel, type Fact } from '../parts/layout.js';
import { State } from '../parts/state.js';
import { modelName } from './names.js';
import { ManageModel, ManageServer } from './manage-view.js';
import { callsOf, latest, modelState, modelTone } from './models.js';
import { WorkersTable } from './workers-table.js';

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

interface ModelProps {
  readonly model: LiveModel;
  readonly history: History;
}

interface CardProps extends ModelProps {
  readonly mayManage: boolean;
  readonly isChosen: boolean;
  readonly choose: (key: number) => void;
}

function ModelCard({ model, history, mayManage, isChosen, choose }: CardProps): VNode {
  const { models } = history;
  const tone = modelTone(model);
  const [wish, setWish] = useState<boolean | null>(null);
  const isOpen = wish ?? (models.length <= FEW || tone === 'bad' || isChosen);
  const name = modelName(model, models);
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
          ${name}
        </button>
      </h3>
      ${h(State, { tone, text: modelState(model) })}
      <span class="muted">${model.app}, ${model.runtime}</span>
      ${quietButton(`${plural(model.workers.length, 'worker')} ${isOpen ? '▾' : '▸'}`, () => setWish(!isOpen), { 'aria-expanded': isOpen })}
    </div>
    ${h(ModelFigures, { model, history })} ${h(Changes, { model, history })}
    ${mayManage && isOpen && h(ManageModel, { model })}
    ${
      isOpen &&
      (model.workers.length === 0
        ? html`<p class="muted">${whyWithout(model)}</p>`
        : h(WorkersTable, { model, history, mayManage }))
    }
  </article>`;
}

/** Why workers came and went: the last change at once, the ones before on demand. */
function Changes({ model: { changes }, history: { at } }: ModelProps): VNode | null {
  const last = changes.at(-1);
  if (last === undefined) return null;
  const before = changes.slice(0, -1).reverse();
  if (before.length === 0) return html`<p class="muted">${changeText(last, at)}</p>`;
  return html`<details class="changes">
    <summary class="muted">${changeText(last, at)}</summary>
    <ul>
      ${before.map((change) => html`<li key=${`${change.at} ${change.worker}`} class="muted">${changeText(change, at)}</li>`)}
    </ul>
  </details>`;
}

function changeText({ worker, change, why, at }: LiveChange, nowMs: number): string {
  return `Worker ${worker} ${change === 'started' ? 'started' : 'left'} ${age(nowMs - at)} ago: ${why}.`;
}

function whyWithout({ state, minWorkers, maxWorkers }: LiveModel): string {
  if (state === 'unloading') return 'It was unregistered, and finishes its last calls.';
  return maxWorkers > 0 && minWorkers === 0
    ? 'It has no workers because no call needs one; the next call starts one.'
    : 'It is scaled to no workers; calls get 503 until it is scaled up.';
}

function ModelFigures({ model, history }: ModelProps): VNode {
  const series = history.series.get(model.key);
  const { sample } = model;
  const lastMinute = callsOf(series, 60);
  const memory = latest(series, 'memoryBytes');
  const { runP95Ms: runMs, queueP95Ms: queueMs } = model.minute;
  const figures: readonly Fact[] = [
    ['ready', `${sample.readyWorkers ?? 0} of ${model.wantedWorkers}`],
    ['waiting', `${(sample.waiting ?? 0) + (sample.arriving ?? 0)} of ${model.maxQueueCalls}`],
    ['running', count(sample.running ?? 0)],
    ['calls/min', count(lastMinute.calls)],
    ['failed/min', count(lastMinute.failed), lastMinute.failed > 0 ? 'bad' : ''],
    ['queue p95/min', queueMs === null ? '–' : `≈ ${duration(queueMs)}`],
    ['run p95/min', runMs === null ? '–' : `≈ ${duration(runMs)}`],
    ['memory', memory === null ? '–' : bytes(memory)],
  ];
  return figureList(figures);
}

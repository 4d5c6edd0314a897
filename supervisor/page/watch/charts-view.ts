import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { LiveModel, LiveSample } from '../../status/live-types.js';
import type { Column, History, Series } from '../live/history.js';
import { bytes, count, duration } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { modelName } from './names.js';
import { Chart, type Line } from './chart.js';

interface ChartsProps {
  readonly history: History;
  readonly model: LiveModel;
}

/** The last ten minutes of one model, or of all in one chart. */
export function ChartsView({ history, model }: ChartsProps): VNode {
  const [ofAll, setOfAll] = useState(false);
  const series = history.series.get(model.key);
  if (series === undefined) return html`<div class="panel muted">No samples of ${model.name} yet.</div>`;
  const isAll = ofAll && history.models.length > 1;
  const { length } = isAll ? longest(history) : series.columns.calls;
  const last = Math.round(history.at / 1000);
  const seconds = Array.from({ length }, (_, i) => last - (length - 1 - i));
  const charts = isAll ? chartsOfAll(history, length) : chartsOf(series, model);
  const name = isAll ? 'All models' : modelName(model, history.models);
  return html`<section class="panel charts" aria-labelledby="charts-title">
    <div class="panel-head">
      <h2 id="charts-title">${name}, the last ten minutes</h2>
      ${
        history.models.length > 1 &&
        html`<label class="check">
          <input type="checkbox" checked=${ofAll} onChange=${() => setOfAll(!ofAll)} /> all models in one chart
        </label>`
      }
    </div>
    <div class="grid">
      ${charts.map((chart) => h(Chart, { key: `${name} ${chart.title}`, seconds, ...chart }))}
    </div>
    ${
      !isAll &&
      model.batches.length > 1 &&
      html`<p class="muted">Batches since the start, by size: ${' '}${batchText(model)}.</p>`
    }
  </section>`;
}

interface ChartSpec {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  readonly empty: string;
}

const NO_CALLS = 'no calls';

function chartsOf({ columns, errors }: Series, model: LiveModel): ChartSpec[] {
  const lines = (...named: readonly (readonly [label: string, name: keyof LiveSample])[]): Line[] =>
    named.map(([label, name]) => ({ label, values: columns[name] }));
  const isBatched = model.batchSize > 1 || model.batches.some(([calls]) => calls > 1);
  const times = { format: duration, empty: NO_CALLS };
  const counts = { format: count, empty: NO_CALLS };
  return [
    { title: 'Calls per second', lines: lines(['ended', 'calls'], ['failed', 'failed']), ...counts },
    {
      title: 'Run time, approximate',
      lines: lines(['p50', 'runP50Ms'], ['p95', 'runP95Ms'], ['p99', 'runP99Ms']),
      ...times,
    },
    {
      title: 'Time in the queue, approximate',
      lines: lines(['p50', 'queueP50Ms'], ['p95', 'queueP95Ms'], ['p99', 'queueP99Ms']),
      ...times,
    },
    {
      title: 'Calls in the server',
      lines: lines(['running', 'running'], ['waiting', 'waiting'], ['arriving', 'arriving']),
      ...counts,
      empty: 'none at the end of any second',
    },
    { title: 'Errors per second, by code', lines: errorLines(errors), ...counts, empty: 'no errors' },
    ...(isBatched
      ? [{ title: 'Calls per batch, mean', lines: lines(['batch', 'batchSize']), ...counts }]
      : []),
    { title: 'Ready workers', lines: lines(['ready', 'readyWorkers']), ...counts, empty: 'no ready worker' },
    {
      title: 'Memory',
      lines: lines(['resident', 'memoryBytes']),
      format: bytes,
      empty: 'measured while somebody watches',
    },
  ];
}

function longest({ series }: History): Column {
  const columns = [...series.values()].map(({ columns: { calls } }) => calls);
  return columns.reduce((a, b) => (b.length > a.length ? b : a), []);
}

/** A line for each model; the busiest ones where there are too many. */
function chartsOfAll({ series, models }: History, length: number): ChartSpec[] {
  const busiest = models
    .map((model) => ({ model, own: series.get(model.key) }))
    .toSorted((a, b) => sumOf(b.own?.columns.calls) - sumOf(a.own?.columns.calls))
    .slice(0, MAX_LINES);
  const lines = (name: keyof LiveSample): Line[] =>
    busiest.map(({ model, own }) => {
      const values = own?.columns[name] ?? [];
      const before = Array<null>(Math.max(0, length - values.length)).fill(null);
      return { label: modelName(model, models), values: [...before, ...values] };
    });
  const others = models.length - busiest.length;
  const note = others === 0 ? '' : `, the ${MAX_LINES} busiest of ${models.length}`;
  return [
    { title: `Calls per second${note}`, lines: lines('calls'), format: count, empty: NO_CALLS },
    { title: 'Failed calls per second', lines: lines('failed'), format: count, empty: 'no errors' },
    { title: 'Run time p95, approximate', lines: lines('runP95Ms'), format: duration, empty: NO_CALLS },
    { title: 'Time in the queue p95', lines: lines('queueP95Ms'), format: duration, empty: NO_CALLS },
    {
      title: 'Calls that wait',
      lines: lines('waiting'),
      format: count,
      empty: 'none at the end of any second',
    },
    { title: 'Ready workers', lines: lines('readyWorkers'), format: count, empty: 'no ready worker' },
    { title: 'Memory', lines: lines('memoryBytes'), format: bytes, empty: 'measured while somebody watches' },
  ];
}

/** More lines than these cannot be told apart. */
const MAX_LINES = 4;

/** The codes with most errors have their own lines, the rest has one. */
function errorLines(errors: Series['errors']): Line[] {
  const sorted = [...errors]
    .filter(([, counts]) => sumOf(counts) > 0)
    .sort(([, a], [, b]) => sumOf(b) - sumOf(a));
  const shown = sorted.length > MAX_LINES ? sorted.slice(0, MAX_LINES - 1) : sorted;
  const rest = sorted.slice(shown.length).map(([, counts]) => counts);
  const lines = shown.map(([code, values]) => ({ label: code.replace(/^SERVE_/, ''), values }));
  if (rest.length === 0) return lines;
  const summed = (rest[0] ?? []).map((_, i) => rest.reduce((sum, counts) => sum + (counts[i] ?? 0), 0));
  return [...lines, { label: `${rest.length} other codes`, values: summed }];
}

function sumOf(column: Column = []): number {
  return column.reduce<number>((sum, value) => sum + (value ?? 0), 0);
}

function batchText({ batches }: LiveModel): string {
  return batches.map(([calls, number]) => `${count(number)} of ${calls}`).join(', ');
}

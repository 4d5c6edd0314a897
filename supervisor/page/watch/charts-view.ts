import type { VNode } from 'preact';
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

/** The last ten minutes of one model. */
export function ChartsView({ history, model }: ChartsProps): VNode {
  const series = history.series.get(model.key);
  if (series === undefined) return html`<div class="panel muted">No samples of ${model.name} yet.</div>`;
  const { length } = series.columns.calls;
  const last = Math.round(history.at / 1000);
  const seconds = Array.from({ length }, (_, i) => last - (length - 1 - i));
  const charts = chartsOf(series, model);
  return html`<section class="panel charts" aria-labelledby="charts-title">
    <div class="panel-head">
      <h2 id="charts-title">${modelName(model, history.models)}, the last ten minutes</h2>
    </div>
    <div class="grid">${charts.map((chart) => h(Chart, { key: chart.title, seconds, ...chart }))}</div>
    ${
      model.batches.length > 1 &&
      html`<p class="muted">Batches since the start, by size: ${' '}${batchText(model)}.</p>`
    }
  </section>`;
}

interface ChartSpec {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
}

function chartsOf({ columns, errors }: Series, model: LiveModel): ChartSpec[] {
  const lines = (...named: readonly (readonly [label: string, name: keyof LiveSample])[]): Line[] =>
    named.map(([label, name]) => ({ label, values: columns[name] }));
  const isBatched = model.batchSize > 1 || model.batches.some(([calls]) => calls > 1);
  return [
    { title: 'Calls per second', lines: lines(['ended', 'calls'], ['failed', 'failed']), format: count },
    {
      title: 'Run time, approximate',
      lines: lines(['p50', 'runP50Ms'], ['p95', 'runP95Ms'], ['p99', 'runP99Ms']),
      format: duration,
    },
    {
      title: 'Time in the queue, approximate',
      lines: lines(['p50', 'queueP50Ms'], ['p95', 'queueP95Ms'], ['p99', 'queueP99Ms']),
      format: duration,
    },
    {
      title: 'Calls in the server',
      lines: lines(['running', 'running'], ['waiting', 'waiting'], ['arriving', 'arriving']),
      format: count,
    },
    { title: 'Errors per second, by code', lines: errorLines(errors), format: count },
    ...(isBatched
      ? [{ title: 'Calls per batch, mean', lines: lines(['batch', 'batchSize']), format: count }]
      : []),
    { title: 'Ready workers', lines: lines(['ready', 'readyWorkers']), format: count },
    { title: 'Memory', lines: lines(['resident', 'memoryBytes']), format: bytes },
  ];
}

/** More lines than these cannot be told apart. */
const MAX_CODES = 4;

/** The codes with most errors have their own lines, the rest has one. */
function errorLines(errors: Series['errors']): Line[] {
  const total = (column: Column): number => column.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  const sorted = [...errors]
    .filter(([, counts]) => total(counts) > 0)
    .sort(([, a], [, b]) => total(b) - total(a));
  const shown = sorted.length > MAX_CODES ? sorted.slice(0, MAX_CODES - 1) : sorted;
  const rest = sorted.slice(shown.length).map(([, counts]) => counts);
  const lines = shown.map(([code, values]) => ({ label: code.replace(/^SERVE_/, ''), values }));
  if (rest.length === 0) return lines;
  const summed = (rest[0] ?? []).map((_, i) => rest.reduce((sum, counts) => sum + (counts[i] ?? 0), 0));
  return [...lines, { label: `${rest.length} other codes`, values: summed }];
}

function batchText({ batches }: LiveModel): string {
  return batches.map(([calls, number]) => `${count(number)} of ${calls}`).join(', ');
}

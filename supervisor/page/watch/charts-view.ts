import { useState } from 'preact/hooks';
import type { Column, LiveModel, LiveModelHistory, LiveSample } from '../../status/live-types.js';
import type { History } from '../live/history.js';
import { checkbox } from '../parts/controls.js';
import { bytes, count, duration } from '../parts/format.js';
import { html, h, type VNode, panel } from '../parts/html.js';
import { Chart, type ChartProps } from './chart.js';
import { modelName } from './models.js';

/** The last ten minutes of one model, or of all in one chart. */
export function ChartsView(props: { readonly history: History; readonly model: LiveModel }): VNode {
  const { history, model } = props;
  const [ofAll, setOfAll] = useState(false);
  const series = history.series.get(model.key);
  if (series === undefined) return html`<div class="panel muted">No samples of ${model.name} yet.</div>`;
  const isAll = ofAll && history.models.length > 1;
  const shown = isAll ? [...history.series.values()] : [series];
  const length = Math.max(...shown.map(({ columns }) => columns.calls.length));
  const last = Math.round(history.at / 1000);
  const seconds = Array.from({ length }, (_, i) => last - (length - 1 - i));
  const charts = isAll ? chartsOfAll(history, length) : chartsOf(series, model);
  const name = isAll ? 'All models' : modelName(model, history.models);
  const choice =
    history.models.length > 1 && checkbox('all models in one chart', ofAll, () => setOfAll(!ofAll));
  const content = html`
    <div class="grid">${charts.map((one) => h(Chart, { key: `${name} ${one.title}`, seconds, ...one }))}</div>
    ${
      !isAll &&
      model.batches.length > 1 &&
      html`<p class="muted">Batches since the start, by size: ${' '}${batchText(model)}.</p>`
    }
  `;
  return panel('charts', `${name}, the last ten minutes`, 'charts', choice, content);
}

type ChartSpec = Omit<ChartProps, 'seconds'>;
type Lines = ChartSpec['lines'];

function chart(title: string, format: ChartSpec['format'], lines: Lines, empty = 'no calls'): ChartSpec {
  return { title, format, lines, empty };
}

function chartsOf({ columns, errors }: LiveModelHistory, model: LiveModel): ChartSpec[] {
  const lines = (...named: readonly (readonly [label: string, name: keyof LiveSample])[]): Lines =>
    named.map(([label, name]) => ({ label, values: columns[name] }));
  const percentiles = (of: 'run' | 'queue'): Lines =>
    lines(['p50', `${of}P50Ms`], ['p95', `${of}P95Ms`], ['p99', `${of}P99Ms`]);
  const isBatched = model.batchSize > 1 || model.batches.some(([calls]) => calls > 1);
  const inServer = lines(['running', 'running'], ['waiting', 'waiting'], ['arriving', 'arriving']);
  return [
    chart('Calls per second', count, lines(['ended', 'calls'], ['failed', 'failed'])),
    chart('Run time, approximate', duration, percentiles('run')),
    chart('Time in the queue, approximate', duration, percentiles('queue')),
    chart('Calls in the server', count, inServer, NONE),
    chart('Errors per second, by code', count, errorLines(errors), NO_ERRORS),
    ...(isBatched ? [chart('Calls per batch, mean', count, lines(['batch', 'batchSize']))] : []),
    chart('Ready workers', count, lines(['ready', 'readyWorkers']), NO_WORKER),
    chart('Memory', bytes, lines(['resident', 'memoryBytes']), UNMEASURED),
  ];
}

const NONE = 'none at the end of any second';
const NO_ERRORS = 'no errors';
const NO_WORKER = 'no ready worker';
const UNMEASURED = 'measured while somebody watches';

/** A line for each model; the busiest ones where there are too many. */
function chartsOfAll({ series, models }: History, length: number): ChartSpec[] {
  const busiest = models
    .map((model) => ({ model, own: series.get(model.key) }))
    .toSorted((a, b) => sumOf(b.own?.columns.calls) - sumOf(a.own?.columns.calls))
    .slice(0, MAX_LINES);
  const lines = (name: keyof LiveSample): Lines =>
    busiest.map(({ model, own }) => {
      const values = own?.columns[name] ?? [];
      const before = Array<null>(Math.max(0, length - values.length)).fill(null);
      return { label: modelName(model, models), values: [...before, ...values] };
    });
  const others = models.length - busiest.length;
  const note = others === 0 ? '' : `, the ${MAX_LINES} busiest of ${models.length}`;
  return [
    chart(`Calls per second${note}`, count, lines('calls')),
    chart('Failed calls per second', count, lines('failed'), NO_ERRORS),
    chart('Run time p95, approximate', duration, lines('runP95Ms')),
    chart('Time in the queue p95', duration, lines('queueP95Ms')),
    chart('Calls that wait', count, lines('waiting'), NONE),
    chart('Ready workers', count, lines('readyWorkers'), NO_WORKER),
    chart('Memory', bytes, lines('memoryBytes'), UNMEASURED),
  ];
}

/** More lines than these cannot be told apart. */
const MAX_LINES = 4;

/** The codes with most errors have their own lines, the rest has one. */
function errorLines(errors: LiveModelHistory['errors']): Lines {
  const sorted = Object.entries(errors)
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

import { useState, useEffect, useRef } from 'preact/hooks';
import type { Column, LiveModel, LiveModelHistory, LiveSample } from '../../status/live-types.js';
import type { History } from '../live/history.js';
import { checkbox } from '../parts/controls.js';
import { bytes, count, duration, clock } from '../parts/format.js';
import { html, h, type VNode, panel } from '../parts/html.js';
import { modelName } from './models.js';
import uPlot from 'uplot';

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

interface ChartProps {
  readonly title: string;
  /** Times of the values, in seconds since the epoch. */
  readonly seconds: readonly number[];
  readonly lines: readonly { readonly label: string; readonly values: Column }[];
  readonly format: (value: number) => string;
  /** Said where there is nothing to see. */
  readonly empty: string;
}

/**
 * Lines over the last ten minutes. The legend is ours: it has the last values, or those under the pointer, and is what
 * people read who do not see the canvas.
 */
function Chart({ title, seconds, lines, format, empty }: ChartProps): VNode {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const labels = lines.map(({ label }) => label).join('\n');

  useEffect(() => {
    const target = place.current;
    if (target === null || labels === '') return;
    const build = (): void => {
      plot.current?.destroy();
      const options = chartOptions(labels.split('\n'), format, target.clientWidth, setAt);
      plot.current = new uPlot(options, [[], ...lines.map(() => [])], target);
    };
    build();
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', build);
    const sizes = new ResizeObserver(() =>
      plot.current?.setSize({ width: target.clientWidth, height: plot.current.height }),
    );
    sizes.observe(target);
    return () => {
      sizes.disconnect();
      dark.removeEventListener('change', build);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [labels]);
  useEffect(() => plot.current?.setData([[...seconds], ...lines.map(({ values }) => values)]));

  const shown = at === null || at >= seconds.length ? null : at;
  const isEmpty = lines.every(({ values }) => values.every((value) => !value));
  const time = shown === null ? '' : clock((seconds[shown] ?? 0) * 1000);
  return html`<figure class="chart">
    <figcaption>
      <span class="chart-title">${title}<span class="muted">${time === '' ? '' : ` at ${time}`}</span></span>
      ${lines.map(({ label, values }, i) => {
        const value = shown === null ? values.at(-1) : values[shown];
        return html`<span class="legend" key=${label}>
          <svg viewBox="0 0 18 4" width="18" height="4" aria-hidden="true" class=${`line-${i}`}>
            <line
              x1="0"
              y1="2"
              x2="18"
              y2="2"
              stroke-width="2"
              stroke-dasharray=${lineStyle(i).dash.join(' ')}
            />
          </svg>
          ${label} ${' '}<b>${value === undefined || value === null ? '–' : format(value)}</b>
        </span>`;
      })}
    </figcaption>
    <div class="plot-place">
      <div ref=${place} class=${`plot ${lines.length === 0 ? 'empty' : ''}`} aria-hidden="true"></div>
      ${isEmpty && html`<p class="plot-note muted">${empty}</p>`}
    </div>
  </figure>`;
}

const HEIGHT_PX = 110;
const AXIS_PX = 46;
/** A server that has just started would else have its first seconds stretched over the whole width. */
const MIN_SECONDS = 60;

const DASHES: readonly (readonly number[])[] = [[], [5, 3], [2, 2], [8, 2, 2, 2]];

/** The style of the line with this number; its colour is the property `--line-N` of the style sheet. */
function lineStyle(number: number): { readonly color: string; readonly dash: readonly number[] } {
  const index = number % DASHES.length;
  return { color: property(`--line-${index}`), dash: DASHES[index] ?? [] };
}

function property(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/**
 * The look of a chart: colours and type of the page, lines that differ in their dashes too. `hovered` gets the index of the
 * values under the pointer, or null.
 */
function chartOptions(
  labels: readonly string[],
  format: (value: number) => string,
  width: number,
  hovered: (index: number | null) => void,
): uPlot.Options {
  const axis = {
    stroke: property('--muted'),
    font: `11px ${property('--font')}`,
    grid: { stroke: property('--grid'), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height: HEIGHT_PX,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: {
      sync: { key: 'charts' },
      drag: { x: false, y: false },
      points: { show: false },
      y: false,
    },
    hooks: { setCursor: [(plot) => hovered(plot.cursor.idx ?? null)] },
    scales: {
      x: { range: (_, min, max) => [Math.min(min, max - MIN_SECONDS), max] },
      y: { range: (_, __, max) => [0, niceMax(max)] },
    },
    axes: [
      { ...axis, space: 60, size: 22, gap: 3, values: (_, ticks) => times(ticks) },
      {
        ...axis,
        size: AXIS_PX,
        gap: 4,
        space: 34,
        values: (_, ticks) => ticks.map((value) => format(value)),
      },
    ],
    series: [
      {},
      ...labels.map((label, i) => {
        const { color, dash } = lineStyle(i);
        return { label, stroke: color, width: 1.5, dash: [...dash], points: pointsOf(color) };
      }),
    ],
  };
}

/** Points where a line would show nothing: most seconds of a quiet model have no call, and so no time. */
function pointsOf(color: string): uPlot.Series.Points {
  return {
    show: false,
    filter: (plot, index) => loneValues(plot.data[index] ?? []),
    size: 5,
    stroke: color,
    fill: color,
  };
}

/** A line through fewer seconds than these is too short to be seen. */
const SEEN_SECONDS = 8;

/**
 * Returns the places of the values whose line could not be seen: those that stand alone, a few in a row, and a few above
 * zero among zeros; null without any.
 */
export function loneValues(values: ArrayLike<number | null | undefined>): number[] | null {
  const lone = new Set<number>();
  for (const isGap of [(value: number | null) => value === null, (value: number | null) => !value]) {
    let start = 0;
    for (let at = 0; at <= values.length; at += 1) {
      if (at < values.length && !isGap(values[at] ?? null)) continue;
      if (at - start < SEEN_SECONDS) for (let i = start; i < at; i += 1) lone.add(i);
      start = at + 1;
    }
  }
  return lone.size === 0 ? null : [...lone].sort((a, b) => a - b);
}

/** `14:03`, or `14:03:20` where ticks are less than a minute apart; of the viewer's clock. */
function times([first = 0, second = Infinity, ...others]: readonly number[]): string[] {
  const ticks = [first, second, ...others].filter(Number.isFinite);
  const parts: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  const format = second - first < 60 ? { ...parts, second: '2-digit' as const } : parts;
  return ticks.map((seconds) => new Date(seconds * 1000).toLocaleTimeString([], format));
}

/** A line at the top of a chart would be cut in half. */
function niceMax(max: number | null): number {
  return max === null || max <= 0 ? 1 : max * 1.15;
}

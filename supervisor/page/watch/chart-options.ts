/** The look of the charts: colours and type of the page, lines that differ in their dashes too. */
import type uPlot from 'uplot';

const HEIGHT_PX = 110;
const AXIS_PX = 46;
/** A server that has just started would else have its first seconds stretched over the whole width. */
const MIN_SECONDS = 60;

const DASHES: readonly (readonly number[])[] = [[], [5, 3], [2, 2], [8, 2, 2, 2]];

/** The style of the line with this number; its colour is the property `--line-N` of the style sheet. */
export function lineStyle(number: number): { readonly color: string; readonly dash: readonly number[] } {
  const index = number % DASHES.length;
  return { color: property(`--line-${index}`), dash: DASHES[index] ?? [] };
}

function property(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @returns a function that stops it */
export function onThemeChange(listener: () => void): () => void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', listener);
  return () => dark.removeEventListener('change', listener);
}

/** `hovered` gets the index of the values under the pointer, or null. */
export function chartOptions(
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

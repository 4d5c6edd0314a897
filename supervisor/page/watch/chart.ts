import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import type { Column } from '../live/history.js';
import { clock } from '../parts/format.js';
import { html } from '../parts/html.js';
import { chartOptions, lineStyle, onThemeChange } from './chart-options.js';

export interface Line {
  readonly label: string;
  readonly values: Column;
}

export interface ChartProps {
  readonly title: string;
  /** Times of the values, in seconds since the epoch. */
  readonly seconds: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** Said where there is nothing to see. */
  readonly empty: string;
}

/**
 * Lines over the last ten minutes. The legend is ours: it has the last values, or those under the pointer, and is what
 * people read who do not see the canvas.
 */
export function Chart({ title, seconds, lines, format, empty }: ChartProps): VNode {
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
    const offTheme = onThemeChange(build);
    const sizes = new ResizeObserver(() =>
      plot.current?.setSize({ width: target.clientWidth, height: plot.current.height }),
    );
    sizes.observe(target);
    return () => {
      sizes.disconnect();
      offTheme();
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

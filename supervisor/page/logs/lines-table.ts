import { useLayoutEffect, useRef } from 'preact/hooks';
import type { LineFilter, NumberedLine } from '../live/log-lines.js';
import { clock } from '../parts/format.js';
import { html, type VNode, tableHead } from '../parts/html.js';

interface LinesProps {
  readonly lines: readonly NumberedLine[];
  readonly isHeld: boolean;
  /** The person reads earlier lines: they must not move. */
  readonly hold: () => void;
  readonly change: (part: Partial<LineFilter>) => void;
}

const COLUMNS = ['Time', 'Level', 'Worker', 'Request id', 'Line'];
/** Distance from the end, in px, at which one still follows. */
const NEAR_PX = 40;

/** Lines never change, so each is made once. */
const rows = new WeakMap<NumberedLine, VNode>();

/** The lines, the newest at the end, which is followed until the person scrolls up. */
export function LinesTable({ lines, isHeld, hold, change }: LinesProps): VNode {
  const place = useRef<HTMLDivElement>(null);
  const before = useRef({ top: 0, height: 0 });
  useLayoutEffect(() => {
    const { current } = place;
    if (current === null || isHeld) return;
    current.scrollTop = current.scrollHeight;
    before.current = placeOf(current);
  });
  const scrolled = (): void => {
    const { current } = place;
    if (current === null) return;
    const [last, now] = [before.current, placeOf(current)];
    before.current = now;
    if (isHeld || now.height !== last.height) return; // a window that changes its size scrolls, too
    if (now.top < last.top && now.height - now.top > NEAR_PX) hold();
  };
  const askFor = (event: Event): void => {
    const { request } = (event.target as HTMLElement).dataset;
    if (request !== undefined) change({ request });
  };
  return html`<div
    ref=${place}
    class="scroll lines-scroll"
    tabindex="0"
    role="region"
    aria-label="Lines"
    onScroll=${scrolled}
    onClick=${askFor}
  >
    <table class="rows lines">
      ${tableHead(COLUMNS)}
      <tbody>
        ${lines.map(rowOf)}
      </tbody>
    </table>
  </div>`;
}

/** `height`: the largest possible `top`. */
function placeOf({ scrollTop, scrollHeight, clientHeight }: HTMLElement): { top: number; height: number } {
  return { top: scrollTop, height: scrollHeight - clientHeight };
}

const TONES: Readonly<Record<string, string>> = {
  error: 'bad-text',
  fatal: 'bad-text',
  warn: 'warn-text',
};

function rowOf(line: NumberedLine): VNode {
  const known = rows.get(line);
  if (known !== undefined) return known;
  const { number, at, level, model, worker, requestId, text, isAfterGap } = line;
  const whose = worker === null ? model : model === '' ? String(worker) : `${model} ${worker}`;
  const row = html`<tr key=${number}>
    <td data-label="Time">${clock(at)}</td>
    <td data-label="Level" class=${TONES[level] ?? ''}>${level}</td>
    <td data-label="Worker">${whose}</td>
    <td data-label="Request id">
      ${requestId !== '' && html`<button type="button" class="link" data-request=${requestId} title=${`Only lines of ${requestId}`}>${requestId}</button>`}
    </td>
    <td data-label="Line">
      ${isAfterGap && html`<p class="muted">Lines are missing here: they came faster than they could be read.</p>`}
      <span class="line-text">${text}</span>
    </td>
  </tr>`;
  rows.set(line, row);
  return row;
}

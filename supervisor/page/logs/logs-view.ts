/** The last lines of the server and of its apps, as the page keeps them, and which of them a person wants to see. */
import { useEffect, useState, useLayoutEffect, useRef } from 'preact/hooks';
import type { LiveLine, LiveLines } from '../../status/live-types.js';
import type { Store } from '../app/store.js';
import { keepConnected, type AnyLiveEvent, type Connection } from '../live/connection.js';
import { choice, holdButton, quietButton, searchField, wordFilter } from '../parts/controls.js';
import { plural, clock } from '../parts/format.js';
import { html, h, type VNode, panel, tableHead } from '../parts/html.js';
import { HiddenWords } from '../watch/words.js';

export const MAX_LINES = 2000;

interface NumberedLine extends LiveLine {
  /** Counts up. */
  readonly number: number;
  /** Whether lines before it are missing. */
  readonly isAfterGap: boolean;
}

/** Adds lines, and drops the oldest of too many. */
export function withLines(before: readonly NumberedLine[], { missed, lines }: LiveLines): NumberedLine[] {
  const first = (before.at(-1)?.number ?? 0) + 1;
  const added = lines.map((line, i) => ({ ...line, number: first + i, isAfterGap: missed && i === 0 }));
  return [...before, ...added].slice(-MAX_LINES);
}

export interface LineFilter {
  /** Every word must be in the line; `!word`: must not be. */
  readonly text: string;
  /** One of `LEVELS`. */
  readonly level: string;
  /** Empty: any. */
  readonly model: string;
  readonly worker: string;
  readonly request: string;
}

export const NO_FILTER: LineFilter = { text: '', level: '', model: '', worker: '', request: '' };

/** The filter that an address asks for: any address may be given to a person, so nothing else of it counts. */
export function filterOf(wishes: URLSearchParams): LineFilter {
  const { model = '', worker = '', request = '' } = Object.fromEntries(wishes);
  return { ...NO_FILTER, model, worker, request };
}

/** The choices of a person: their texts, and the levels that each stands for; none: all. */
export const LEVELS: Readonly<Record<string, readonly [text: string, ...levels: string[]]>> = {
  '': ['all'],
  errors: ['errors', 'error', 'fatal'],
  warnings: ['warnings and errors', 'error', 'fatal', 'warn'],
  log: ['without prints', 'error', 'fatal', 'warn', 'info', 'debug', 'trace'],
  prints: ['prints (stdout, stderr)', 'stdout', 'stderr'],
  stderr: ['prints to stderr', 'stderr'],
};

export function filterLines(lines: readonly NumberedLine[], filter: LineFilter): readonly NumberedLine[] {
  const { level, model, worker, request } = filter;
  const [, ...levels] = LEVELS[level] ?? [''];
  const matches = wordFilter(filter.text);
  return lines.filter(
    (line) =>
      (levels.length === 0 || levels.includes(line.level)) &&
      (model === '' || line.model === model) &&
      (worker === '' || String(line.worker) === worker) &&
      (request === '' || line.requestId === request || line.text.includes(request)) &&
      matches(line.text),
  );
}

/** The values of a column, in order. */
export function valuesOf(lines: readonly LiveLine[], column: 'model' | 'worker'): string[] {
  const values = new Set(lines.map((line) => String(line[column] ?? '')));
  values.delete('');
  return [...values].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
}

interface LogsProps {
  readonly store: Store;
  readonly wishes: URLSearchParams;
}

/** The last lines of the server and of its apps, for viewers who may read the app's words. */
export function LogsView({ store, wishes }: LogsProps): VNode {
  const { viewer } = store;
  if (viewer === null) return html`<p class="panel muted">There is nothing to show yet.</p>`;
  if (viewer.hidden !== null) return html`<div class="panel">${h(HiddenWords, {})}</div>`;
  return h(Logs, { store, wishes });
}

function Logs({ store: { key }, wishes }: LogsProps): VNode {
  const [lines, connection] = useLines(key);
  const [filter, setFilter] = useState(() => filterOf(wishes));
  const [held, setHeld] = useState<readonly NumberedLine[] | null>(null);
  const asked = wishes.toString();
  useEffect(() => setFilter(filterOf(wishes)), [asked]);
  const change = (part: Partial<LineFilter>): void => setFilter({ ...filter, ...part });
  const known = held ?? lines;
  const shown = filterLines(known, filter);
  const number = plural(known.length, 'line');
  const beside = html`
    <span class="muted">${shown.length === known.length ? number : `${shown.length} of ${number}`}</span>
    ${holdButton(held !== null, () => setHeld(held === null ? lines : null))}
  `;
  const empty = known.length === 0 ? 'No line yet.' : 'No line matches the filter.';
  const content = [
    filterRow(filter, known, change),
    shown.length === 0
      ? html`<p class="muted">${connection.state === 'live' ? empty : 'Connecting to the server …'}</p>`
      : h(LinesTable, { lines: shown, isHeld: held !== null, hold: () => setHeld(lines), change }),
  ];
  return panel('logs', 'Logs', 'logs', beside, content);
}

/** Reads the log while the component is shown. `key`: it is read anew with another key. */
function useLines(key: string): [lines: readonly NumberedLine[], connection: Connection] {
  const [lines, setLines] = useState<readonly NumberedLine[]>([]);
  const [connection, setConnection] = useState<Connection>({ state: 'connecting' });
  useEffect(() => {
    let isNew = true;
    const changed = (next: Connection): void => {
      if (next.state === 'live') isNew = true; // it sends the last lines again
      setConnection(next);
    };
    const received = (event: AnyLiveEvent): void => {
      if (event.name !== 'lines' || (event.data.lines.length === 0 && !isNew)) return;
      const isFirst = isNew;
      isNew = false;
      setLines((before) => withLines(isFirst ? [] : before, event.data));
    };
    return keepConnected('_k/live?log', changed, received).stop;
  }, [key]);
  return [lines, connection];
}

const LEVEL_TEXTS = Object.entries(LEVELS).map(([level, [text]]) => [level, text] as const);

/** Chooses the lines that are shown. What leaves no choice is not there. */
function filterRow(
  filter: LineFilter,
  lines: readonly NumberedLine[],
  change: (part: Partial<LineFilter>) => void,
): VNode {
  const column = (label: string, name: 'model' | 'worker'): VNode | null => {
    const chosen = filter[name];
    const values = [...new Set([...valuesOf(lines, name), chosen])].filter((value) => value !== '');
    if (values.length < 2 && chosen === '') return null;
    const options = [['', 'all'] as const, ...values.map((value) => [value, value] as const)];
    return choice(label, chosen, options, (value) => change({ [name]: value }));
  };
  const isSet = Object.values(filter).some((value) => value !== '');
  return html`<div class="row line-filter">
    ${searchField('Words', 'Filter: words, !word', filter.text, (text) => change({ text }))}
    ${choice('Level', filter.level, LEVEL_TEXTS, (level) => change({ level }))}
    ${column('Model', 'model')} ${column('Worker', 'worker')}
    ${searchField('Request id', 'Request id', filter.request, (request) => change({ request: request.trim() }))}
    ${isSet && quietButton('All lines', () => change(NO_FILTER))}
  </div>`;
}

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
function LinesTable({ lines, isHeld, hold, change }: LinesProps): VNode {
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

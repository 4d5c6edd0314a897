import { useEffect, useState } from 'preact/hooks';
import type { Store } from '../app/store.js';
import { keepConnected, type AnyLiveEvent, type Connection } from '../live/connection.js';
import {
  filterLines,
  filterOf,
  LEVELS,
  NO_FILTER,
  valuesOf,
  withLines,
  type LineFilter,
  type NumberedLine,
} from '../live/log-lines.js';
import { choice, holdButton, quietButton, searchField } from '../parts/controls.js';
import { plural } from '../parts/format.js';
import { html, h, type VNode, panel } from '../parts/html.js';
import { HiddenWords } from '../watch/words.js';
import { LinesTable } from './lines-table.js';

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

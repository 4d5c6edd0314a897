import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Store } from '../app/store.js';
import { keepConnected, type Connection } from '../live/connection.js';
import { filterLines, NO_FILTER, withLines, type LineFilter, type NumberedLine } from '../live/log-lines.js';
import type { AnyLiveEvent } from '../live/read-live.js';
import { holdButton } from '../parts/controls.js';
import { plural } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { panel } from '../parts/layout.js';
import { HiddenWords } from '../watch/hidden-words.js';
import { FilterView } from './filter-view.js';
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
  const known = held ?? lines;
  const shown = filterLines(known, filter);
  const beside = html`
    <span class="muted">${countText(shown.length, known.length)}</span>
    ${holdButton(held !== null, () => setHeld(held === null ? lines : null))}
  `;
  const empty = known.length === 0 ? 'No line yet.' : 'No line matches the filter.';
  const content = [
    h(FilterView, { filter, lines: known, setFilter }),
    shown.length === 0
      ? html`<p class="muted">${connection.state === 'live' ? empty : 'Connecting to the server …'}</p>`
      : h(LinesTable, {
          lines: shown,
          isHeld: held !== null,
          hold: () => setHeld(lines),
          ask: (change: Partial<LineFilter>) => setFilter({ ...filter, ...change }),
        }),
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
    const received = (event: AnyLiveEvent): boolean => {
      if (event.name !== 'lines' || (event.data.lines.length === 0 && !isNew)) return true;
      const isFirst = isNew;
      isNew = false;
      setLines((before) => withLines(isFirst ? [] : before, event.data));
      return true;
    };
    return keepConnected('_k/live?log', { changed, received }).stop;
  }, [key]);
  return [lines, connection];
}

function countText(shown: number, all: number): string {
  return shown === all ? plural(all, 'line') : `${shown} of ${plural(all, 'line')}`;
}

function filterOf(wishes: URLSearchParams): LineFilter {
  const { model, worker, request } = Object.fromEntries(wishes);
  return {
    ...NO_FILTER,
    ...(model === undefined ? {} : { model }),
    ...(worker === undefined ? {} : { worker }),
    ...(request === undefined ? {} : { request }),
  };
}

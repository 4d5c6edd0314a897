import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Store } from '../app/store.js';
import { filterLines, NO_FILTER, type LineFilter, type NumberedLine } from '../live/log-lines.js';
import { plural } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { HiddenWords } from '../watch/death-details.js';
import { FilterView } from './filter-view.js';
import { LinesTable } from './lines-table.js';
import { useLines } from './use-lines.js';

interface LogsProps {
  readonly store: Store;
  readonly wishes: URLSearchParams;
}

/** The last lines of the server and of its apps, for viewers who may read the app's words. */
export function LogsView({ store, wishes }: LogsProps): VNode {
  const { viewer, key } = store;
  if (viewer === null) return html`<p class="panel muted">There is nothing to show yet.</p>`;
  if (viewer.hidden !== null)
    return html`<div class="panel">${h(HiddenWords, { hidden: viewer.hidden })}</div>`;
  return h(Logs, { serverKey: key, wishes });
}

function Logs({
  serverKey,
  wishes,
}: {
  readonly serverKey: string;
  readonly wishes: URLSearchParams;
}): VNode {
  const { lines, connection } = useLines(serverKey);
  const [filter, setFilter] = useState(() => filterOf(wishes));
  const [held, setHeld] = useState<readonly NumberedLine[] | null>(null);
  const asked = wishes.toString();
  useEffect(() => setFilter(filterOf(wishes)), [asked]);
  const known = held ?? lines;
  const shown = filterLines(known, filter);
  return html`<section class="panel logs" aria-labelledby="logs-title">
    <div class="panel-head">
      <h2 id="logs-title">Logs</h2>
      <span class="muted">${countText(shown.length, known.length)}</span>
      <button
        type="button"
        class="small quiet"
        aria-pressed=${held !== null}
        onClick=${() => setHeld(held === null ? lines : null)}
      >
        ${held === null ? 'Hold' : 'Go on'}
      </button>
    </div>
    ${h(FilterView, { filter, lines: known, setFilter })}
    ${
      shown.length === 0
        ? html`<p class="muted">
            ${connection.state === 'live' ? (known.length === 0 ? 'No line yet.' : 'No line matches the filter.') : 'Connecting to the server …'}
          </p>`
        : h(LinesTable, {
            lines: shown,
            isHeld: held !== null,
            hold: () => setHeld(lines),
            ask: (change: Partial<LineFilter>) => setFilter({ ...filter, ...change }),
          })
    }
  </section>`;
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

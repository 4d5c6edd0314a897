import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { LiveCall, LiveDeath } from '../../status/live-types.js';
import { isFailed, type History } from '../live/history.js';
import { checkbox, holdButton, searchField } from '../parts/controls.js';
import { bytes, clock, duration } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { panel, tableCells, tableHead } from '../parts/layout.js';
import { deathText } from './names.js';
import { logsAddress } from '../app/address.js';
import { DeathDetails } from './death-details.js';
import { FailureView } from './failure-view.js';
import { timelineOf, type TimelineEntry } from './timeline.js';

interface TimelineProps {
  readonly history: History;
  readonly filter: string;
  readonly setFilter: (text: string) => void;
}

const COLUMNS = ['Time', 'Model', 'Call', 'Result', 'Queue', 'Run', 'In, out', 'Worker', 'Request id'];

/** The last calls, and between them the deaths of workers, so that one sees what a death did to which call. */
export function TimelineView({ history, filter, setFilter }: TimelineProps): VNode {
  const [failedOnly, setFailedOnly] = useState(false);
  const [held, setHeld] = useState<readonly TimelineEntry[] | null>(null);
  const live = (): readonly TimelineEntry[] => timelineOf(history, { text: filter, failedOnly });
  const entries = held ?? live();
  const controls = html`
    ${searchField('Filter calls', 'Filter: model, route, 500, code, request id, !word', filter, (text) => {
      setHeld(null);
      setFilter(text);
    })}
    ${checkbox('failed only', failedOnly, () => {
      setHeld(null);
      setFailedOnly(!failedOnly);
    })}
    ${holdButton(held !== null, () => setHeld(held === null ? live() : null))}
  `;
  const empty = filter === '' && !failedOnly ? 'No call yet.' : 'No call matches the filter.';
  const table = html`<div class="scroll" tabindex="0" role="region" aria-label="Calls">
    <table class="rows calls">
      ${tableHead(COLUMNS)}
      <tbody>
        ${entries.map(rowsOf)}
      </tbody>
    </table>
  </div>`;
  return panel(
    'calls',
    'Last calls',
    '',
    controls,
    entries.length === 0 ? html`<p class="muted">${empty}</p>` : table,
  );
}

function rowsOf(entry: TimelineEntry): unknown {
  if (entry.kind === 'death') return h(DeathRow, { key: `death ${entry.death.id}`, death: entry.death });
  const { call } = entry;
  return [
    h(CallRow, { key: `call ${call.id}`, call }),
    isFailed(call) && h(FailureRow, { key: `why ${call.id}`, call }),
  ];
}

function CallRow({ call }: { readonly call: LiveCall }): VNode {
  const { at, model, version, route, method, path, status, code, queueMs, runMs, inBytes, outBytes, worker } =
    call;
  const isBad = isFailed(call);
  const result = `${status ?? 'left'}${code === 'ok' ? '' : ` ${code.replace(/^SERVE_/, '')}`}`;
  const cells: readonly unknown[] = [
    clock(at),
    html`<span title=${version === '' ? undefined : `${model}, version ${version}`}
      >${model === '' ? '–' : model}</span
    >`,
    html`<span title=${route === '' ? undefined : `route ${route}`}
      >${method === 'POST' ? '' : `${method} `}${path}</span
    >`,
    html`<span class=${isBad ? 'bad-text' : 'good-text'} title=${code}
      ><span aria-hidden="true">${isBad ? '✕ ' : '✓ '}</span>${result}</span
    >`,
    duration(queueMs),
    duration(runMs),
    `${bytes(inBytes)}, ${bytes(outBytes)}`,
    worker ?? '–',
    html`<a href=${logsAddress({ request: call.requestId })} title="Log lines of this call"
      ><code>${call.requestId}</code></a
    >`,
  ];
  return html`<tr class=${isBad ? 'failed' : ''}>
    ${tableCells(COLUMNS, cells)}
  </tr>`;
}

/** Why the call above it failed. */
function FailureRow({ call: { error, requestId } }: { readonly call: LiveCall }): VNode {
  return html`<tr class="failed why-row">
    <td></td>
    <td colspan=${COLUMNS.length - 1}>
      <div class="death-text">${h(FailureView, { error, requestId })}</div>
    </td>
  </tr>`;
}

function DeathRow({ death }: { readonly death: LiveDeath }): VNode {
  const title = `Worker ${death.worker} of ${death.model} died: ${death.how}.`;
  return html`<tr class="death-row">
    <td data-label="Time">${clock(death.at)}</td>
    <td colspan=${COLUMNS.length - 1}>
      <div class="death-text">
        <strong><span aria-hidden="true">▲ </span>${title}</strong> ${deathText(death)}
        ${h(DeathDetails, { death })}
      </div>
    </td>
  </tr>`;
}

/** The list of ended calls, in which the deaths of workers stand at their time; it can be filtered. */
import { useState } from 'preact/hooks';
import type { LiveCall, LiveDeath } from '../../status/live-types.js';
import { logsAddress } from '../app/address.js';
import { isFailed, type History } from '../live/history.js';
import { checkbox, holdButton, searchField, wordFilter } from '../parts/controls.js';
import { bytes, clock, duration } from '../parts/format.js';
import { html, h, type VNode, panel, tableCells, tableHead } from '../parts/html.js';
import { deathText } from './models.js';
import { DeathDetails, FailureView } from './words.js';

const COLUMNS = ['Time', 'Model', 'Call', 'Result', 'Queue', 'Run', 'In, out', 'Worker', 'Request id'];

/** The last calls, and between them the deaths of workers, so that one sees what a death did to which call. */
export function TimelineView({ history }: { readonly history: History }): VNode {
  const [filter, setFilter] = useState('');
  const [failedOnly, setFailedOnly] = useState(false);
  const [held, setHeld] = useState<readonly (LiveCall | LiveDeath)[] | null>(null);
  const entries = held ?? timelineOf(history, filter, failedOnly);
  const controls = html`
    ${searchField('Filter calls', 'Filter: model, route, 500, code, request id, !word', filter, (text) => {
      setHeld(null);
      setFilter(text);
    })}
    ${checkbox('failed only', failedOnly, () => {
      setHeld(null);
      setFailedOnly(!failedOnly);
    })}
    ${holdButton(held !== null, () => setHeld(held === null ? entries : null))}
  `;
  const empty = filter === '' && !failedOnly ? 'No call yet.' : 'No call matches the filter.';
  const table = html`<div class="scroll" tabindex="0" role="region" aria-label="Calls">
    <table class="rows calls">
      ${tableHead(COLUMNS)}
      <tbody>
        ${entries.map((entry) => ('how' in entry ? deathRow(entry) : callRows(entry)))}
      </tbody>
    </table>
  </div>`;
  const content = entries.length === 0 ? html`<p class="muted">${empty}</p>` : table;
  return panel('calls', 'Last calls', '', controls, content);
}

/**
 * Newest first. A death comes before what it did to a call at the same time. Failed calls reach further back than all calls.
 * `text`: every word of it must be in the entry; `!word`: must not be.
 */
export function timelineOf(
  { calls, failedCalls, deaths }: Pick<History, 'calls' | 'failedCalls' | 'deaths'>,
  text: string,
  failedOnly: boolean,
): (LiveCall | LiveDeath)[] {
  const matches = wordFilter(text);
  return [...deaths, ...(failedOnly ? failedCalls : calls)]
    .filter((entry) => matches(textOf(entry)))
    .sort((a, b) => a.at - b.at)
    .reverse();
}

function textOf(entry: LiveCall | LiveDeath): string {
  const { model, version, requestId, worker } = entry;
  const own =
    'how' in entry
      ? [entry.pid, entry.how, entry.cause]
      : [entry.route, entry.method, entry.path, entry.status ?? 'left', entry.code];
  return [model, version, `worker ${worker ?? '–'}`, ...own, requestId].join(' ');
}

/** A call, and below it why it failed. */
function callRows(call: LiveCall): unknown {
  const { id, at, model, version, route, method, path, status, code, queueMs, runMs, requestId } = call;
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
    `${bytes(call.inBytes)}, ${bytes(call.outBytes)}`,
    call.worker ?? '–',
    html`<a href=${logsAddress({ request: requestId })} title="Log lines of this call"
      ><code>${requestId}</code></a
    >`,
  ];
  return [
    html`<tr key=${`call ${id}`} class=${isBad ? 'failed' : ''}>
      ${tableCells(COLUMNS, cells)}
    </tr>`,
    isBad &&
      html`<tr key=${`why ${id}`} class="failed why-row">
        <td></td>
        <td colspan=${COLUMNS.length - 1}>
          <div class="death-text">${h(FailureView, { error: call.error, requestId })}</div>
        </td>
      </tr>`,
  ];
}

function deathRow(death: LiveDeath): VNode {
  const title = `Worker ${death.worker} of ${death.model} died: ${death.how}.`;
  return html`<tr key=${`death ${death.id}`} class="death-row">
    <td data-label="Time">${clock(death.at)}</td>
    <td colspan=${COLUMNS.length - 1}>
      <div class="death-text">
        <strong><span aria-hidden="true">▲ </span>${title}</strong> ${deathText(death)}
        ${h(DeathDetails, { death })}
      </div>
    </td>
  </tr>`;
}

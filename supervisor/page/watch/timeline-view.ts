import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { HiddenBecause, LiveCall, LiveDeath } from '../../status/live-types.js';
import { isFailed, type History } from '../live/history.js';
import { bytes, clock, duration } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { deathText } from './names.js';
import { logsAddress } from '../app/address.js';
import { DeathDetails } from './death-details.js';
import { FailureView } from './failure-view.js';
import { timelineOf, type TimelineEntry } from './timeline.js';

interface TimelineProps {
  readonly history: History;
  readonly hidden: HiddenBecause | null;
  readonly filter: string;
  readonly setFilter: (text: string) => void;
}

const COLUMNS = ['Time', 'Model', 'Call', 'Result', 'Queue', 'Run', 'In, out', 'Worker', 'Request id'];

/** The last calls, and between them the deaths of workers, so that one sees what a death did to which call. */
export function TimelineView({ history, hidden, filter, setFilter }: TimelineProps): VNode {
  const [failedOnly, setFailedOnly] = useState(false);
  const [held, setHeld] = useState<readonly TimelineEntry[] | null>(null);
  const entries = held ?? timelineOf(history, { text: filter, failedOnly });
  const live = (): readonly TimelineEntry[] => timelineOf(history, { text: filter, failedOnly });
  return html`<section class="panel" aria-labelledby="calls-title">
    <div class="panel-head">
      <h2 id="calls-title">Last calls</h2>
      <input
        type="search"
        placeholder="Filter: model, route, 500, code, request id, !word"
        aria-label="Filter calls"
        value=${filter}
        onInput=${(event: Event) => {
          setHeld(null);
          setFilter((event.target as HTMLInputElement).value);
        }}
      />
      <label class="check">
        <input
          type="checkbox"
          checked=${failedOnly}
          onChange=${() => {
            setHeld(null);
            setFailedOnly(!failedOnly);
          }}
        />
        failed only
      </label>
      <button
        type="button"
        class="small quiet"
        aria-pressed=${held !== null}
        onClick=${() => setHeld(held === null ? live() : null)}
      >
        ${held === null ? 'Hold' : 'Go on'}
      </button>
    </div>
    ${
      entries.length === 0
        ? html`<p class="muted">
            ${filter === '' && !failedOnly ? 'No call yet.' : 'No call matches the filter.'}
          </p>`
        : html`<div class="scroll" tabindex="0" role="region" aria-label="Calls">
            <table class="rows calls">
              <thead>
                <tr>
                  ${COLUMNS.map((name) => html`<th scope="col" key=${name}>${name}</th>`)}
                </tr>
              </thead>
              <tbody>
                ${entries.map((entry) =>
                  entry.kind === 'call'
                    ? [
                        h(CallRow, { key: `call ${entry.call.id}`, call: entry.call }),
                        isFailed(entry.call) &&
                          h(FailureRow, { key: `why ${entry.call.id}`, call: entry.call, hidden }),
                      ]
                    : h(DeathRow, { key: `death ${entry.death.id}`, death: entry.death, hidden }),
                )}
              </tbody>
            </table>
          </div>`
    }
  </section>`;
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
    ${cells.map((cell, i) => html`<td key=${COLUMNS[i]} data-label=${COLUMNS[i]}>${cell}</td>`)}
  </tr>`;
}

/** Why the call above it failed. */
function FailureRow({
  call,
  hidden,
}: {
  readonly call: LiveCall;
  readonly hidden: HiddenBecause | null;
}): VNode {
  const { error, requestId } = call;
  return html`<tr class="failed why-row">
    <td></td>
    <td colspan=${COLUMNS.length - 1}>
      <div class="death-text">${h(FailureView, { error, requestId, hidden })}</div>
    </td>
  </tr>`;
}

function DeathRow({
  death,
  hidden,
}: {
  readonly death: LiveDeath;
  readonly hidden: HiddenBecause | null;
}): VNode {
  const title = `Worker ${death.worker} of ${death.model} died: ${death.how}.`;
  return html`<tr class="death-row">
    <td data-label="Time">${clock(death.at)}</td>
    <td colspan=${COLUMNS.length - 1}>
      <div class="death-text">
        <strong><span aria-hidden="true">▲ </span>${title}</strong> ${deathText(death)}
        ${h(DeathDetails, { death, hidden })}
      </div>
    </td>
  </tr>`;
}

import type { VNode } from 'preact';
import type { HiddenBecause, LiveDeath } from '../../status/live-types.js';
import { logsAddress } from '../app/address.js';
import { age, clock } from '../parts/format.js';
import { html, h } from '../parts/html.js';

export interface DeathProps {
  readonly death: LiveDeath;
  readonly hidden: HiddenBecause | null;
  readonly isOpen?: boolean;
  /** Says that the worker died, if nothing else does. */
  readonly title?: string;
}

/** All facts of a death, with the worker's own last words. */
export function DeathDetails({ death, hidden, isOpen = false, title }: DeathProps): VNode {
  const { at, pid, how, cause, hint, uptimeMs, calls, why, stderr, requestId } = death;
  return html`<details class="death" open=${isOpen}>
    <summary>
      ${title === undefined ? `Last words of worker ${death.worker} (pid ${pid})` : html`<span class="bad-text"><span aria-hidden="true">▲ </span>${title}</span>`}
    </summary>
    <dl class="facts">
      <dt>Died</dt>
      <dd>${clock(at)}: ${how}${how.includes(cause) ? '' : ` (${cause})`}</dd>
      <dt>Lived</dt>
      <dd>${age(uptimeMs)}, ${calls} ${calls === 1 ? 'call' : 'calls'} finished</dd>
      ${
        hint !== '' &&
        html`<dt>Likely</dt>
          <dd>${hint}</dd>`
      }
      ${
        requestId !== '' &&
        html`<dt>Running</dt>
          <dd><code>${requestId}</code></dd>`
      }
      ${
        why !== '' &&
        html`<dt>It said</dt>
          <dd class="words">${why}</dd>`
      }
    </dl>
    ${
      hidden !== null
        ? h(HiddenWords, { hidden })
        : stderr.length === 0
          ? html`<p class="muted">It wrote nothing to stderr.</p>`
          : html`<pre tabindex="0" aria-label="Last lines of stderr">${stderr.join('\n')}</pre>`
    }
    ${hidden === null && html`<p><a href=${logsAddress({ worker: String(death.worker) })}>Log lines of worker ${death.worker}</a></p>`}
  </details>`;
}

const WHY_HIDDEN: Readonly<Record<HiddenBecause, string>> = {
  remote: 'your connection comes from another machine (or from outside of the container)',
  host: 'the address in your browser is not a name of this machine',
  proxied: 'your connection comes through a proxy',
  page: 'the request came from a page of another origin',
};

/** Says why the app's words are missing, and how to get them. */
export function HiddenWords({ hidden }: { readonly hidden: HiddenBecause }): VNode {
  return html`<p class="muted hidden-words">
    The app's output and messages are hidden, because ${WHY_HIDDEN[hidden]}. Start the server with
    ${' '}<code>--api-key</code>${' '} to see them here with the key, or read the server's log.
  </p>`;
}

/** The app's own words, which some viewers may not read: errors of calls, and the last words of workers. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { HiddenBecause, LiveCall, LiveDeath, LiveFailure } from '../../status/live-types.js';
import { logsAddress } from '../app/address.js';
import type { History } from '../live/history.js';
import { CopyButton } from '../parts/controls.js';
import { age, clock, plural } from '../parts/format.js';
import { html, h, type VNode, factList } from '../parts/html.js';

const Hidden = createContext<HiddenBecause | null>(null);

/** Tells all parts of `content` why the viewer does not get the app's words; null if they are shown. */
export function withHidden(hidden: HiddenBecause | null, content: VNode): VNode {
  return html`<${Hidden.Provider} value=${hidden}>${content}<//>`;
}

export function useHidden(): HiddenBecause | null {
  return useContext(Hidden);
}

const WHY_HIDDEN: Readonly<Record<HiddenBecause, string>> = {
  remote: 'your connection comes from another machine (or from outside of the container)',
  host: 'the address in your browser is not a name of this machine',
  proxied: 'your connection comes through a proxy',
  page: 'the request came from a page of another origin',
};

/** Says why the app's words are missing, and how to get them. */
export function HiddenWords(): VNode | null {
  const hidden = useHidden();
  if (hidden === null) return null;
  return html`<p class="muted hidden-words">
    The app's output and messages are hidden, because ${WHY_HIDDEN[hidden]}. Start the server with
    ${' '}<code>--api-key</code>${' '} to see them here with the key, or read the server's log.
  </p>`;
}

/** The failed call of this request, as far as the page has seen it. */
export function failedCall({ failedCalls }: History, requestId: string): LiveCall | undefined {
  return failedCalls.findLast((call) => call.requestId === requestId);
}

interface FailureProps {
  readonly error: LiveFailure | null;
  readonly requestId: string;
  readonly isOpen?: boolean;
}

/** Why a call failed: type, message and stack of what the app threw, and the way to its lines in the log. */
export function FailureView({ error, requestId, isOpen = false }: FailureProps): VNode {
  const isHidden = useHidden() !== null;
  const lines = html`<a href=${logsAddress({ request: requestId })}>Log lines of this call</a>`;
  return html`<div class="failure">
    ${
      isHidden
        ? html`${error?.message && html`<p>${error.message}</p>`} ${h(HiddenWords, {})}`
        : reasonOf(error, lines, isOpen)
    }
  </div>`;
}

function reasonOf(error: LiveFailure | null, lines: VNode, isOpen: boolean): VNode {
  if (error === null) return html`<p class="muted">The app answered so itself. ${lines}</p>`;
  if (error.detail === '') return html`<p>${error.message} ${lines}</p>`;
  return html`<p><strong class="thrown">${failureTitle(error)}</strong> ${lines}</p>
    <details open=${isOpen}>
      <summary>Stack</summary>
      <pre tabindex="0" aria-label="Stack of the error">${error.detail}</pre>
      ${h(CopyButton, { text: error.detail, label: 'the stack' })}
    </details>`;
}

/**
 * Type and message of what was thrown: the first line of a stack of JavaScript, the last line of a traceback of Python. The
 * message of the answer where there is none.
 */
export function failureTitle({ message, detail }: LiveFailure): string {
  const lines = detail.split('\n').filter((line) => line.trim() !== '');
  const traceback = lines.findLastIndex((line) => line.startsWith('Traceback (most recent call last)'));
  const thrown =
    traceback < 0 ? lines[0] : (lines.slice(traceback + 1).find((line) => !/^\s/.test(line)) ?? lines.at(-1));
  return thrown?.trim() ?? message;
}

interface DeathProps {
  readonly death: LiveDeath;
  readonly isOpen?: boolean;
  /** Says that the worker died, if nothing else does. */
  readonly title?: string;
}

/** All facts of a death, with the worker's own last words. */
export function DeathDetails({ death, isOpen = false, title }: DeathProps): VNode {
  const { at, pid, how, cause, hint, uptimeMs, calls, why, stderr, requestId, worker } = death;
  const isHidden = useHidden() !== null;
  return html`<details class="death" open=${isOpen}>
    <summary>
      ${title === undefined ? `Last words of worker ${worker} (pid ${pid})` : html`<span class="bad-text"><span aria-hidden="true">▲ </span>${title}</span>`}
    </summary>
    ${factList('facts', [
      ['Died', `${clock(at)}: ${how}${how.includes(cause) ? '' : ` (${cause})`}`],
      ['Lived', `${age(uptimeMs)}, ${plural(calls, 'call')} finished`],
      ['Likely', hint],
      ['Running', requestId && html`<code>${requestId}</code>`],
      ['It said', why],
    ])}
    ${isHidden ? h(HiddenWords, {}) : lastLines(stderr)}
    ${!isHidden && html`<p><a href=${logsAddress({ worker: String(worker) })}>Log lines of worker ${worker}</a></p>`}
  </details>`;
}

function lastLines(stderr: readonly string[]): VNode {
  if (stderr.length === 0) return html`<p class="muted">It wrote nothing to stderr.</p>`;
  return html`<pre tabindex="0" aria-label="Last lines of stderr">${stderr.join('\n')}</pre>`;
}

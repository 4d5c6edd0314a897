import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import type { LiveDeath } from '../../status/live-types.js';
import { logsAddress } from '../app/address.js';
import { age, clock, plural } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { factList, type Fact } from '../parts/layout.js';
import { Hidden, HiddenWords } from './hidden-words.js';

interface DeathProps {
  readonly death: LiveDeath;
  readonly isOpen?: boolean;
  /** Says that the worker died, if nothing else does. */
  readonly title?: string;
}

/** All facts of a death, with the worker's own last words. */
export function DeathDetails({ death, isOpen = false, title }: DeathProps): VNode {
  const { at, pid, how, cause, hint, uptimeMs, calls, why, stderr, requestId } = death;
  const isHidden = useContext(Hidden) !== null;
  const facts: readonly Fact[] = [
    ['Died', `${clock(at)}: ${how}${how.includes(cause) ? '' : ` (${cause})`}`],
    ['Lived', `${age(uptimeMs)}, ${plural(calls, 'call')} finished`],
    ['Likely', hint],
    ['Running', requestId === '' ? '' : html`<code>${requestId}</code>`],
    ['It said', why, 'words'],
  ];
  return html`<details class="death" open=${isOpen}>
    <summary>
      ${title === undefined ? `Last words of worker ${death.worker} (pid ${pid})` : html`<span class="bad-text"><span aria-hidden="true">▲ </span>${title}</span>`}
    </summary>
    ${factList(facts.filter(([, value]) => value !== ''))}
    ${
      isHidden
        ? h(HiddenWords, {})
        : stderr.length === 0
          ? html`<p class="muted">It wrote nothing to stderr.</p>`
          : html`<pre tabindex="0" aria-label="Last lines of stderr">${stderr.join('\n')}</pre>`
    }
    ${!isHidden && html`<p><a href=${logsAddress({ worker: String(death.worker) })}>Log lines of worker ${death.worker}</a></p>`}
  </details>`;
}

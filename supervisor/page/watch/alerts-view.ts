import { useEffect } from 'preact/hooks';
import type { Store } from '../app/store.js';
import type { Connection } from '../live/connection.js';
import { age, plural } from '../parts/format.js';
import { html, h, type VNode } from '../parts/html.js';
import { alertsOf, WARNING, type Alert } from './alerts.js';
import { DeathDetails } from './words.js';

const LEVELS = { bad: ['▲', 'Problem'], warn: ['◆', 'Warning'] } as const;

const NAME = 'banana-serve';

/** Everything that a person has to know first, above both views; the number of problems is in the title of the tab. */
export function AlertsView({ store }: { readonly store: Store }): VNode {
  const { connection, history } = store;
  const known = history === null || hasEndedWell(connection) ? [] : alertsOf(history);
  const alerts = [connectionAlert(connection), ...known].filter((alert) => alert !== null);
  const problems = alerts.filter(({ level }) => level === 'bad').length;
  useEffect(() => {
    document.title = problems === 0 ? NAME : `▲ ${plural(problems, 'problem')} · ${NAME}`;
  }, [problems]);
  return html`<section class="alerts" aria-label="Alerts">
    <p class="offscreen" role="status">${alerts.map(({ title }) => title).join('. ')}</p>
    ${alerts.map(article)}
  </section>`;
}

function article({ id, level, title, text, todo, death, opensDeath }: Alert): VNode {
  const [sign, word] = LEVELS[level];
  return html`<article key=${id} class=${`alert ${level}`}>
    <p class="title">
      <span class="sign" aria-hidden="true">${sign}</span>
      <span class="offscreen">${word}: </span>${title}
    </p>
    ${text !== '' && html`<p class="text">${text}</p>`}
    ${todo !== '' && html`<p class="text todo">${todo}</p>`}
    ${death !== null && h(DeathDetails, { death, isOpen: opensDeath })}
  </article>`;
}

/** A server that has ended as it should has no other problems; one that could not start ended because of them. */
function hasEndedWell(connection: Connection): boolean {
  return connection.state === 'ended' && connection.reason !== 'failed';
}

const ENDS = {
  drained: 'It has finished its calls and ended.',
  cut: 'The drain timeout passed before all calls were finished: the rest was cut.',
  failed: 'No worker could start.',
} as const;

function connectionAlert(connection: Connection): Alert | null {
  const alert = { ...WARNING, id: 'connection', level: 'bad' } as const;
  if (connection.state === 'ended')
    return {
      ...alert,
      title: 'The server has ended',
      text: `${ENDS[connection.reason]} What you see is its last state.`,
      todo: 'This page connects by itself as soon as a server runs here again.',
    };
  if (connection.state !== 'waiting') return null;
  const lostMs = performance.now() - connection.since;
  return {
    ...alert,
    title: 'No connection to the server',
    text: `${connection.problem} What you see is old${lostMs < 2000 ? '' : `, by ${age(lostMs)}`}.`,
    todo: 'If it has crashed or was killed, start it again: this page connects by itself.',
  };
}

import { quietButton } from '../parts/controls.js';
import { age } from '../parts/format.js';
import { html, type VNode } from '../parts/html.js';
import { stateMark, type Tone } from '../parts/layout.js';
import { saveBlob } from '../parts/media.js';
import { keyHeaders } from '../live/key.js';
import { serverState } from '../watch/alerts.js';
import type { Store } from './store.js';
import type { View } from './address.js';

const VIEWS: readonly (readonly [View, string])[] = [
  ['try', 'Try it'],
  ['watch', 'Watch it'],
  ['logs', 'Logs'],
];

/** Name and state of the server, and the way between the views. */
export function header(store: Store, view: View): VNode {
  return html`<header class="top">
    <h1><span class="brand" aria-hidden="true"></span>banana-serve</h1>
    ${stateLine(store)}
    <nav aria-label="Views">
      ${VIEWS.map(
        ([name, title]) =>
          html`<a href=${`#${name}`} aria-current=${name === view ? 'page' : undefined}>${title}</a>`,
      )}
    </nav>
    <a
      href="openapi.json"
      class="api-link"
      onClick=${(event: Event) => {
        if (store.key === '') return;
        event.preventDefault(); // a link can send no key
        void saveOpenApi();
      }}
      >OpenAPI</a
    >
    ${store.key !== '' && quietButton('Forget the key', () => store.useKey(''))}
  </header>`;
}

/** Saves the OpenAPI document of a server that wants a key for it. */
async function saveOpenApi(): Promise<void> {
  const response = await fetch('openapi.json', { headers: keyHeaders() });
  saveBlob(await response.blob(), 'openapi.json');
}

const NOT_LIVE: Readonly<Record<Exclude<Store['connection']['state'], 'live'>, [Tone, string]>> = {
  ended: ['bad', 'ended'],
  waiting: ['bad', 'not connected'],
  'needs key': ['warn', 'needs a key'],
  connecting: ['busy', 'connecting'],
  hidden: ['off', 'paused'],
};

function stateLine({ connection: { state }, history }: Store): VNode {
  const server = history?.server ?? null;
  if (state !== 'live' || history === null || server === null)
    return html`<p class="server-state">${stateMark(...NOT_LIVE[state === 'live' ? 'connecting' : state])}</p>`;
  return html`<p class="server-state">
    ${stateMark(...serverState(history))}
    <span class="muted"> for ${age(server.uptimeMs)} · version ${server.version}</span>
  </p>`;
}

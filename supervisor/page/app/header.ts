import type { VNode } from 'preact';
import { age } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { quietButton } from '../parts/controls.js';
import { saveBlob } from '../parts/media-view.js';
import { State } from '../parts/state.js';
import type { Tone } from '../parts/tone.js';
import { serverState } from '../watch/server-state.js';
import type { History } from '../live/history.js';
import { keyHeaders } from '../live/key.js';
import type { Store } from './store.js';
import type { View } from './address.js';

const VIEWS: readonly (readonly [View, string])[] = [
  ['try', 'Try it'],
  ['watch', 'Watch it'],
  ['logs', 'Logs'],
];

/** Name and state of the server, and the way between the views. */
export function Header({ store, view }: { readonly store: Store; readonly view: View }): VNode {
  return html`<header class="top">
    <h1><span class="brand" aria-hidden="true"></span>banana-serve</h1>
    ${h(ServerState, { store })}
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

function ServerState({ store: { connection, history } }: { readonly store: Store }): VNode {
  const server = history?.server ?? null;
  const [tone, text] = stateOf(connection.state, history);
  const isLive = connection.state === 'live' && server !== null && history !== null;
  return html`<p class="server-state">
    ${h(State, { tone, text })}
    ${isLive && html`<span class="muted"> for ${age(history.at - server.startedAt)} · version ${server.version}</span>`}
  </p>`;
}

function stateOf(connection: Store['connection']['state'], history: History | null): [Tone, string] {
  switch (connection) {
    case 'live':
      return history === null ? ['busy', 'connecting'] : serverState(history);
    case 'ended':
      return ['bad', 'ended'];
    case 'waiting':
      return ['bad', 'not connected'];
    case 'needs key':
      return ['warn', 'needs a key'];
    case 'connecting':
      return ['busy', 'connecting'];
    case 'hidden':
      return ['off', 'paused'];
  }
}

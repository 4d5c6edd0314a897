import type { VNode } from 'preact';
import { age } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { State } from '../parts/state.js';
import type { Tone } from '../parts/tone.js';
import type { Store } from './store.js';
import type { View } from './view.js';

const VIEWS: readonly (readonly [View, string])[] = [
  ['try', 'Try it'],
  ['watch', 'Watch it'],
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
    ${
      store.key !== '' &&
      html`<button type="button" class="small quiet" onClick=${() => store.useKey('')}>
        Forget the key
      </button>`
    }
  </header>`;
}

function ServerState({ store: { connection, history } }: { readonly store: Store }): VNode {
  const server = history?.server ?? null;
  const [tone, text] = stateOf(connection.state, server?.state ?? null);
  const isLive = connection.state === 'live' && server !== null && history !== null;
  return html`<p class="server-state">
    ${h(State, { tone, text })}
    ${isLive && html`<span class="muted"> for ${age(history.at - server.startedAt)} · version ${server.version}</span>`}
  </p>`;
}

type ServerStateName = 'starting' | 'ready' | 'idle' | 'unhealthy' | 'failing' | 'draining';

const TONES: Readonly<Record<ServerStateName, Tone>> = {
  starting: 'busy',
  ready: 'good',
  idle: 'good',
  unhealthy: 'bad',
  failing: 'bad',
  draining: 'warn',
};

function stateOf(connection: Store['connection']['state'], server: ServerStateName | null): [Tone, string] {
  switch (connection) {
    case 'live':
      return server === null ? ['busy', 'connecting'] : [TONES[server], server];
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

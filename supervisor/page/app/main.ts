/**
 * The page at `/`: connects it to its server, and puts it into the document. What is wrong comes first, then one of three
 * views. The one for calls stays as it was left.
 */
import { render } from 'preact';
import { useEffect, useState, useRef } from 'preact/hooks';
import { html, h, type VNode, stateMark, type Tone } from '../parts/html.js';
import { LogsView } from '../logs/logs-view.js';
import { TryView } from '../try/try-view.js';
import { AlertsView, serverState } from '../watch/alerts.js';
import { loadingView } from '../watch/loading.js';
import { WatchView } from '../watch/watch-view.js';
import { withHidden } from '../watch/words.js';
import { useAddress, type View } from './address.js';
import { startStore, type Store } from './store.js';
import { keyField, quietButton } from '../parts/controls.js';
import { age } from '../parts/format.js';
import { saveBlob } from '../parts/media.js';
import { keyHeaders } from '../live/key.js';

function Page(): VNode | null {
  const { view, wishes } = useAddress();
  const [store, draw] = useState<Store | null>(null);
  useEffect(() => startStore(draw), []); // drawn by state: `render` anew would give the ids of fields (useId) again
  if (store === null) return null;
  const { asksKey, history, viewer } = store;
  const content = html`
    ${header(store, view)} ${asksKey && h(KeyPrompt, { store })} ${h(AlertsView, { store })}
    ${history !== null && loadingView(history)}
    <main>
      <section hidden=${view !== 'try'} aria-label="Try it">${h(TryView, { store })}</section>
      ${view === 'watch' && html`<section aria-label="Watch it">${h(WatchView, { store })}</section>`}
      ${view === 'logs' && html`<section aria-label="Logs of the server">${h(LogsView, { store, wishes })}</section>`}
    </main>
  `;
  return withHidden(viewer?.hidden ?? null, content);
}

/** Asks for the API key, which every request of the page needs then. */
function KeyPrompt({ store }: { readonly store: Store }): VNode {
  const [key, setKey] = useState('');
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (key.trim() !== '') store.useKey(key.trim());
  };
  const wasWrong = store.connection.state === 'needs key' && store.key !== '';
  return html`<form class="panel key-prompt" onSubmit=${submit}>
    <h2>This server needs an API key</h2>
    <p class="muted">
      It is kept for this tab until you close it, and sent to this server only. It is the value of
      ${' '}<code>--api-key</code>.
    </p>
    <div class="row">
      ${keyField('key', 'API key', key, wasWrong, setKey, {
        ref: field,
        'aria-describedby': wasWrong ? 'key-problem' : undefined,
      })}
      <button type="submit" class="primary">Use this key</button>
    </div>
    ${wasWrong && html`<p id="key-problem" class="problem" role="alert">The server does not know this key.</p>`}
  </form>`;
}

const VIEWS: readonly (readonly [View, string])[] = [
  ['try', 'Try it'],
  ['watch', 'Watch it'],
  ['logs', 'Logs'],
];

/** Name and state of the server, and the way between the views. */
function header(store: Store, view: View): VNode {
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

const place = document.getElementById('page');
if (place === null) throw new Error('index.html has no element for the page');
render(h(Page, {}), place);

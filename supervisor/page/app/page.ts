/** The whole page: what is wrong comes first, then one of three views. The one for calls stays as it was left. */
import type { VNode } from 'preact';
import { html, h } from '../parts/html.js';
import { LogsView } from '../logs/logs-view.js';
import { TryView } from '../try/try-view.js';
import { AlertsView } from '../watch/alerts-view.js';
import { Hidden } from '../watch/hidden-words.js';
import { LoadingView } from '../watch/loading-view.js';
import { WatchView } from '../watch/watch-view.js';
import { useAddress } from './address.js';
import { Header } from './header.js';
import { KeyPrompt } from './key-prompt.js';
import { useStore } from './store.js';

export function Page(): VNode {
  const store = useStore();
  const { view, wishes } = useAddress();
  const { asksKey, history, viewer } = store;
  const content = html`
    ${h(Header, { store, view })} ${asksKey && h(KeyPrompt, { store })} ${h(AlertsView, { store })}
    ${history !== null && h(LoadingView, { history })}
    <main>
      <section hidden=${view !== 'try'} aria-label="Try it">${h(TryView, { store })}</section>
      ${view === 'watch' && html`<section aria-label="Watch it">${h(WatchView, { store })}</section>`}
      ${view === 'logs' && html`<section aria-label="Logs of the server">${h(LogsView, { store, wishes })}</section>`}
    </main>
  `;
  return html`<${Hidden.Provider} value=${viewer?.hidden ?? null}>${content}<//>`;
}

/**
 * The page at `/`: connects it to its server, and puts it into the document. What is wrong comes first, then one of three
 * views. The one for calls stays as it was left.
 */
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { html, h, type VNode } from '../parts/html.js';
import { LogsView } from '../logs/logs-view.js';
import { TryView } from '../try/try-view.js';
import { AlertsView } from '../watch/alerts-view.js';
import { loadingView } from '../watch/loading.js';
import { WatchView } from '../watch/watch-view.js';
import { withHidden } from '../watch/words.js';
import { useAddress } from './address.js';
import { header } from './header.js';
import { KeyPrompt } from './key-prompt.js';
import { startStore, type Store } from './store.js';

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

const place = document.getElementById('page');
if (place === null) throw new Error('index.html has no element for the page');
render(h(Page, {}), place);

/** The app's own words, such as its messages and prints, are for some viewers only. */
import { createContext, type VNode } from 'preact';
import { useContext } from 'preact/hooks';
import type { HiddenBecause } from '../../status/live-types.js';
import { html } from '../parts/html.js';

/** Why the viewer of the page does not get the app's words; null if they are shown. */
export const Hidden = createContext<HiddenBecause | null>(null);

const WHY_HIDDEN: Readonly<Record<HiddenBecause, string>> = {
  remote: 'your connection comes from another machine (or from outside of the container)',
  host: 'the address in your browser is not a name of this machine',
  proxied: 'your connection comes through a proxy',
  page: 'the request came from a page of another origin',
};

/** Says why the app's words are missing, and how to get them. */
export function HiddenWords(): VNode | null {
  const hidden = useContext(Hidden);
  if (hidden === null) return null;
  return html`<p class="muted hidden-words">
    The app's output and messages are hidden, because ${WHY_HIDDEN[hidden]}. Start the server with
    ${' '}<code>--api-key</code>${' '} to see them here with the key, or read the server's log.
  </p>`;
}

import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { clock } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { State } from '../parts/state.js';
import type { Tone } from '../parts/tone.js';
import type { PanelProps } from './call-panel.js';
import { openSocket, type ConsoleSocket, type SocketNews, type SocketState } from './open-socket.js';
import { socketUrlOf } from './targets.js';

const TONES: Readonly<Record<SocketState, Tone>> = { closed: 'off', connecting: 'busy', open: 'good' };
const MAX_NEWS = 500;

interface NumberedNews extends SocketNews {
  readonly number: number;
}

/** A conversation with a WebSocket route. */
export function SocketConsole({ target, path }: PanelProps): VNode {
  const [state, setState] = useState<SocketState>('closed');
  const [news, setNews] = useState<readonly NumberedNews[]>([]);
  const [text, setText] = useState('');
  const socket = useRef<ConsoleSocket | null>(null);
  useEffect(() => () => socket.current?.close(), []);
  const url = socketUrlOf(path, document.baseURI);
  const tell = (one: SocketNews): void =>
    setNews((all) => [...all, { ...one, number: (all.at(-1)?.number ?? 0) + 1 }].slice(-MAX_NEWS));
  const connect = (): void => {
    socket.current = openSocket(url, setState, tell);
  };
  const send = (event: Event): void => {
    event.preventDefault();
    if (state !== 'open') return;
    socket.current?.send(text);
    tell({ from: 'us', text, at: Date.now() });
    setText('');
  };
  return html`<section class="panel console" aria-label=${`WebSocket ${target.route.path}`}>
    <div class="panel-head">
      <h2>WebSocket</h2>
      ${h(State, { tone: TONES[state], text: state })}
      <code class="muted target">${url}</code>
      ${
        state === 'closed'
          ? html`<button type="button" class="primary" onClick=${connect}>Connect</button>`
          : html`<button type="button" onClick=${() => socket.current?.close()}>Disconnect</button>`
      }
    </div>
    <div class="items" tabindex="0" role="log" aria-label="Messages">
      ${news.map((one) => h(NewsItem, { key: one.number, news: one }))}
    </div>
    ${news.length === 0 && html`<p class="muted">Connect, then send messages. Each one that comes back appears here.</p>`}
    <form class="row" onSubmit=${send}>
      <input
        aria-label="Message"
        autocomplete="off"
        placeholder="Message"
        value=${text}
        disabled=${state !== 'open'}
        onInput=${(event: Event) => setText((event.target as HTMLInputElement).value)}
      />
      <button type="submit" class="primary" disabled=${state !== 'open'}>Send</button>
    </form>
  </section>`;
}

const SIGNS: Readonly<Record<SocketNews['from'], readonly [sign: string, word: string]>> = {
  us: ['→', 'sent'],
  app: ['←', 'received'],
  server: ['·', 'connection'],
};

function NewsItem({ news: { from, text, at } }: { readonly news: SocketNews }): VNode {
  const [sign, word] = SIGNS[from];
  return html`<div class="item">
    <span class="muted at">${clock(at)}</span>
    <span aria-hidden="true">${sign}</span><span class="offscreen">${word}: </span>
    ${from === 'server' ? html`<span class="muted">${text}</span>` : html`<code>${text}</code>`}
  </div>`;
}

import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { keyProtocols } from '../live/key.js';
import { typed } from '../parts/controls.js';
import { bytes, clock } from '../parts/format.js';
import { html, h } from '../parts/html.js';
import { State } from '../parts/state.js';
import type { Tone } from '../parts/tone.js';
import type { PanelProps } from './call-panel.js';
import { socketUrlOf } from './targets.js';

type SocketState = 'closed' | 'connecting' | 'open';

interface SocketNews {
  /** `server`: news of the connection itself. */
  readonly from: 'us' | 'app' | 'server';
  readonly text: string;
  /** Calendar time. */
  readonly at: number;
}

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
  const socket = useRef<WebSocket | null>(null);
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
        onInput=${typed(setText)}
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

function openSocket(
  url: string,
  setState: (state: SocketState) => void,
  tell: (news: SocketNews) => void,
): WebSocket {
  const socket = new WebSocket(url, keyProtocols());
  const say = (from: SocketNews['from'], text: string): void => tell({ from, text, at: Date.now() });
  let wasOpen = false;
  socket.binaryType = 'arraybuffer';
  setState('connecting');
  socket.addEventListener('open', () => {
    wasOpen = true;
    setState('open');
    say('server', 'connected');
  });
  socket.addEventListener('message', ({ data }: MessageEvent<string | ArrayBuffer>) =>
    say('app', typeof data === 'string' ? data : `${bytes(data.byteLength)} of binary data`),
  );
  socket.addEventListener('close', ({ code, reason }) => {
    setState('closed');
    say('server', wasOpen ? closed(code, reason) : REFUSED);
  });
  return socket;
}

/** A browser tells a page nothing else of a handshake that failed. */
const REFUSED =
  'the server has not accepted the connection: it may need a key, have no free place, or refuse this page (--cors-origin)';

function closed(code: number, reason: string): string {
  return `closed with ${code}${reason === '' ? '' : `: ${reason}`}`;
}

import { useEffect, useRef, useState } from 'preact/hooks';
import type { DialectPath } from '../../status/live-types.js';
import { keyProtocols } from '../live/key.js';
import { typed } from '../parts/controls.js';
import { bytes, clock } from '../parts/format.js';
import { html, type VNode, stateMark } from '../parts/html.js';
import { urlOf } from './targets.js';

interface News {
  /** Counts up. */
  readonly number: number;
  /** `server`: news of the connection itself. */
  readonly from: 'us' | 'app' | 'server';
  readonly text: string;
  /** Calendar time. */
  readonly at: number;
}

const TONES = { closed: 'off', connecting: 'busy', open: 'good' } as const;
const MAX_NEWS = 500;

/** A conversation with a WebSocket route. */
export function SocketConsole({
  route,
  path,
}: {
  readonly route: string;
  readonly path: DialectPath;
}): VNode {
  const [state, setState] = useState<keyof typeof TONES>('closed');
  const [news, setNews] = useState<readonly News[]>([]);
  const [text, setText] = useState('');
  const socket = useRef<WebSocket | null>(null);
  useEffect(() => () => socket.current?.close(), []);
  const url = urlOf(path, document.baseURI).replace(/^http/, 'ws');
  const tell = (from: News['from'], said: string): void =>
    setNews((all) => {
      const number = (all.at(-1)?.number ?? 0) + 1;
      return [...all, { number, from, text: said, at: Date.now() }].slice(-MAX_NEWS);
    });
  const connect = (): void => void (socket.current = openSocket(url, setState, tell));
  const send = (event: Event): void => {
    event.preventDefault();
    if (state !== 'open') return;
    socket.current?.send(text);
    tell('us', text);
    setText('');
  };
  return html`<section class="panel console" aria-label=${`WebSocket ${route}`}>
    <div class="panel-head">
      <h2>WebSocket</h2>
      ${stateMark(TONES[state], state)}
      <code class="muted target">${url}</code>
      ${
        state === 'closed'
          ? html`<button type="button" class="primary" onClick=${connect}>Connect</button>`
          : html`<button type="button" onClick=${() => socket.current?.close()}>Disconnect</button>`
      }
    </div>
    <div class="items" tabindex="0" role="log" aria-label="Messages">${news.map(newsItem)}</div>
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

function openSocket(
  url: string,
  setState: (state: keyof typeof TONES) => void,
  tell: (from: News['from'], text: string) => void,
): WebSocket {
  const socket = new WebSocket(url, keyProtocols());
  let wasOpen = false;
  socket.binaryType = 'arraybuffer';
  setState('connecting');
  socket.onopen = () => {
    wasOpen = true;
    setState('open');
    tell('server', 'connected');
  };
  socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) =>
    tell('app', typeof data === 'string' ? data : `${bytes(data.byteLength)} of binary data`);
  socket.onclose = ({ code, reason }) => {
    setState('closed');
    tell('server', wasOpen ? `closed with ${code}${reason === '' ? '' : `: ${reason}`}` : REFUSED);
  };
  return socket;
}

/** A browser tells a page nothing else of a handshake that failed. */
const REFUSED =
  'the server has not accepted the connection: it may need a key, have no free place, or refuse this page (--cors-origin)';

const SIGNS: Readonly<Record<News['from'], readonly [sign: string, word: string]>> = {
  us: ['→', 'sent'],
  app: ['←', 'received'],
  server: ['·', 'connection'],
};

function newsItem({ number, from, text, at }: News): VNode {
  const [sign, word] = SIGNS[from];
  return html`<div class="item" key=${number}>
    <span class="muted at">${clock(at)}</span>
    <span aria-hidden="true">${sign}</span><span class="offscreen">${word}: </span>
    ${from === 'server' ? html`<span class="muted">${text}</span>` : html`<code>${text}</code>`}
  </div>`;
}

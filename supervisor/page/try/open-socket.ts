/** One WebSocket of the console. */
import { keyProtocols } from '../live/key.js';
import { bytes } from '../parts/format.js';

export type SocketState = 'closed' | 'connecting' | 'open';

export interface SocketNews {
  /** `server`: news of the connection itself. */
  readonly from: 'us' | 'app' | 'server';
  readonly text: string;
  /** Calendar time. */
  readonly at: number;
}

export interface ConsoleSocket {
  send(text: string): void;
  close(): void;
}

export function openSocket(
  url: string,
  setState: (state: SocketState) => void,
  tell: (news: SocketNews) => void,
): ConsoleSocket {
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
  return { send: (text) => socket.send(text), close: () => socket.close() };
}

/** A browser tells a page nothing else of a handshake that failed. */
const REFUSED =
  'the server has not accepted the connection: it may need a key, have no free place, or refuse this page (--cors-origin)';

function closed(code: number, reason: string): string {
  return `closed with ${code}${reason === '' ? '' : `: ${reason}`}`;
}

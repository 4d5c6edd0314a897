/** Sends a call and follows its answer as it arrives. */
import { keyHeaders } from '../live/key.js';
import { AnswerBody } from './answer-body.js';
import type { CallRequest } from './snippets.js';

export interface Answer {
  /** `failed`: there is no answer, or it was cut off; `problem` says so. */
  readonly phase: 'sending' | 'receiving' | 'done' | 'cancelled' | 'failed';
  /** Ours until the answer says another one. */
  readonly requestId: string;
  /** Null until the head of the answer arrives. */
  readonly head: {
    readonly status: number;
    readonly statusText: string;
    readonly headers: readonly (readonly [name: string, value: string])[];
    /** Milliseconds by what they were spent on, such as `queue` and `run`. */
    readonly times: Readonly<Record<string, number>>;
    /** Id of the background job that was started; else empty. */
    readonly jobId: string;
    readonly retryAfter: string;
  } | null;
  /** Grows in place. */
  readonly body: AnswerBody | null;
  /** Time since the request was sent. */
  readonly ms: number;
  readonly problem: string;
}

/** A stream of many small pieces is not drawn for each of them. */
const DRAW_MS = 50;

/** Resolves when nothing follows. `update` gets a new object whenever there is something to draw. */
export async function sendCall(
  request: CallRequest,
  payload: BodyInit | null,
  signal: AbortSignal,
  update: (answer: Answer) => void,
): Promise<void> {
  const sentAt = performance.now();
  const elapsed = (): number => performance.now() - sentAt;
  const requestId = newRequestId();
  let answer: Answer = { phase: 'sending', requestId, head: null, body: null, ms: 0, problem: '' };
  const show = (change: Partial<Answer>): void => {
    answer = { ...answer, ...change, ms: elapsed() };
    update(answer);
  };
  show({});
  try {
    const headers = { ...Object.fromEntries(request.headers), 'X-Request-Id': requestId, ...keyHeaders() };
    const response = await fetch(request.url, { method: 'POST', headers, body: payload, signal });
    const body = new AnswerBody(response.headers.get('Content-Type') ?? '');
    const givenId = response.headers.get('X-Request-Id') ?? requestId;
    show({ phase: 'receiving', requestId: givenId, head: headOf(response), body });
    const reader = response.body?.getReader();
    let drawnAt = -Infinity;
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      body.push(part.value, elapsed());
      if (elapsed() - drawnAt < DRAW_MS) continue;
      drawnAt = elapsed();
      show({});
    }
    body.end(elapsed());
    show({ phase: 'done' });
  } catch {
    answer.body?.end(elapsed());
    show(signal.aborted ? { phase: 'cancelled' } : { phase: 'failed', problem: problemOf(answer) });
  }
}

/** Browsers say no more of a failed request than that it failed. */
function problemOf({ head }: Answer): string {
  return head === null
    ? 'There was no answer: the server cannot be reached, it closed the connection, or the app redirects to another site.'
    : 'The answer ended before it was complete: the app failed while it sent it, or its worker died.';
}

function headOf({ status, statusText, headers }: Response): Answer['head'] {
  return {
    status,
    statusText,
    headers: [...headers],
    times: serverTimes(headers.get('Server-Timing') ?? ''),
    jobId: headers.get('X-Banana-Job-Id') ?? '',
    retryAfter: headers.get('Retry-After') ?? '',
  };
}

/** Reads the header `Server-Timing`. An app's own entries may stand before the server's, so the last of a name counts. */
export function serverTimes(header: string): Record<string, number> {
  const times: Record<string, number> = {};
  for (const entry of header.split(',')) {
    const [, name, ms] = /^\s*([\w-]+)\s*;.*\bdur=([\d.]+)/.exec(entry) ?? [];
    if (name !== undefined) times[name] = Number(ms);
  }
  return times;
}

/** crypto.randomUUID does not exist where the page came by plain http from another machine. */
function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

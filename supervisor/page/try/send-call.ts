/** Sends a call and follows its answer as it arrives. */
import { keyHeaders } from '../live/key.js';
import { AnswerBody } from './answer-body.js';
import type { CallRequest } from './call-request.js';
import { serverTimes, type ServerTimes } from './server-timing.js';

/** `failed`: there is no answer, or it was cut off; `problem` says so. */
export type Phase = 'sending' | 'receiving' | 'done' | 'cancelled' | 'failed';

export interface Answer {
  readonly phase: Phase;
  /** Ours until the answer says another one. */
  readonly requestId: string;
  /** Null until the head of the answer arrives. */
  readonly head: AnswerHead | null;
  /** Grows in place. */
  readonly body: AnswerBody | null;
  /** Time since the request was sent. */
  readonly ms: number;
  readonly problem: string;
}

export interface AnswerHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly times: ServerTimes;
  /** Id of the background job that was started; else empty. */
  readonly jobId: string;
  readonly retryAfter: string;
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
  let answer: Answer = {
    phase: 'sending',
    requestId: newRequestId(),
    head: null,
    body: null,
    ms: 0,
    problem: '',
  };
  const show = (change: Partial<Answer>): void => {
    answer = { ...answer, ...change, ms: elapsed() };
    update(answer);
  };
  show({});
  try {
    const headers = [...request.headers, ['X-Request-Id', answer.requestId] as const];
    const response = await fetch(request.url, {
      method: 'POST',
      headers: { ...Object.fromEntries(headers), ...keyHeaders() },
      body: payload,
      signal,
    });
    const body = new AnswerBody(response.headers.get('Content-Type') ?? '');
    show({ phase: 'receiving', ...headOf(response, answer.requestId), body });
    await readBody(response, (bytes, isDue) => {
      body.push(bytes, elapsed());
      if (isDue) show({});
    });
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
    ? 'There was no answer: the server cannot be reached, or it closed the connection.'
    : 'The answer ended before it was complete: the app failed while it sent it, or its worker died.';
}

function headOf(response: Response, ownId: string): Pick<Answer, 'head' | 'requestId'> {
  const { status, statusText, headers } = response;
  return {
    requestId: headers.get('X-Request-Id') ?? ownId,
    head: {
      status,
      statusText,
      headers: [...headers],
      times: serverTimes(headers.get('Server-Timing')),
      jobId: headers.get('X-Banana-Job-Id') ?? '',
      retryAfter: headers.get('Retry-After') ?? '',
    },
  };
}

async function readBody(
  response: Response,
  take: (bytes: Uint8Array<ArrayBuffer>, isDue: boolean) => void,
): Promise<void> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  let drawnAt = -Infinity;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const isDue = performance.now() - drawnAt >= DRAW_MS;
    if (isDue) drawnAt = performance.now();
    take(part.value, isDue);
  }
}

/** crypto.randomUUID does not exist where the page came by plain http from another machine. */
function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `page-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}

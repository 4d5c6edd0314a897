/** Calls with a JSON input, and what tests want to know of the answers. */
import assert from 'node:assert/strict';
import type { Cues } from './cues.js';
import { call, eventually, type Answer, type Server } from './server.js';

export interface AskOptions {
  readonly id?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export function ask(server: Pick<Server, 'url'>, input: unknown, options: AskOptions = {}): Promise<Answer> {
  const id: Record<string, string> = options.id === undefined ? {} : { 'x-request-id': options.id };
  const headers = { 'content-type': 'application/json', ...id, ...options.headers };
  const init = options.signal === undefined ? {} : { signal: options.signal };
  return call(server.url, JSON.stringify(input), headers, init);
}

export interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly requestId: string;
  readonly source: string;
  /** Absent in the answers of the gateway and of Multi Model Server. */
  readonly begun?: boolean;
}

/** The error of an answer; all fields are empty if it is not an error. */
export function errorOf(answer: Answer): ErrorBody {
  const { error } = answer.json<{ error?: ErrorBody }>();
  return error ?? { code: '', message: '', requestId: '', source: '' };
}

/**
 * Makes a call that has begun when its deadline passes, by the notes of its app, and checks its answer. Longer deadlines are tried
 * until one is enough for that. Returns the id of the call.
 */
export async function askPastDeadline(server: Server, cues: Cues, input: unknown): Promise<string> {
  for (let seconds = 1; ; seconds *= 2) {
    const id = `late-${seconds}`;
    const startedAtMs = performance.now();
    const answer = await ask(server, input, {
      id,
      headers: { 'x-request-timeout-seconds': String(seconds) },
    });
    const tookMs = performance.now() - startedAtMs;
    assert.deepEqual([answer.status, errorOf(answer).code], [504, 'SERVE_DEADLINE']);
    assert.ok(tookMs >= 1000 * seconds - 1, `not before its time: ${tookMs} ms of ${seconds} s`);
    if (cues.notes().includes(`begun ${id}`)) return id;
  }
}

/** The pid of the worker that answered. */
export async function pidOf(server: Server, input: unknown = {}): Promise<number> {
  return (await ask(server, input)).json<{ pid: number }>().pid;
}

/** Calls until the server knows that calls are short and sends at least two ahead. Returns the pid of the last answer. */
export async function warmUp(server: Server): Promise<number> {
  let pid = 0;
  const isWarm = async (): Promise<boolean> => {
    for (let i = 0; i < 10; i += 1) pid = await pidOf(server);
    const { mean, slow } = (await server.status()).model.runMs;
    return mean !== null && mean < 1.5 && slow !== null && slow < 20;
  };
  await eventually(isWarm, 60_000, () => 'calls are never short');
  return pid;
}

/** The server's own log lines; for a server started with `--log-format json`. */
export function logLines(server: Pick<Server, 'stderr'>): Record<string, unknown>[] {
  const lines = server.stderr().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

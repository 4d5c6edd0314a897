/**
 * Several calls in one write on one connection: the server has them all in the same turn of its event loop, in this
 * order. What `fetch` sends at once arrives one by one, in any order.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { warmUp } from './ask.js';
import type { Cues } from './cues.js';
import type { Answer, Server } from './server.js';

export interface PipelinedCall {
  readonly input: unknown;
  readonly id: string;
}

/** The answers, in the order of the calls. */
export async function askAtOnce(
  server: Pick<Server, 'url'>,
  calls: readonly PipelinedCall[],
): Promise<Answer[]> {
  return readAnswers(await sendAtOnce(server, calls), calls.length);
}

/** The first `count` answers on this connection, which then ends. */
export async function readAnswers(socket: Socket, count: number): Promise<Answer[]> {
  const answers: Answer[] = [];
  let data = Buffer.alloc(0);
  for await (const chunk of socket) {
    data = Buffer.concat([data, chunk as Buffer]);
    for (let taken = takeAnswer(data); taken !== null; taken = takeAnswer(data)) {
      answers.push(taken.answer);
      data = data.subarray(taken.bytes);
    }
    if (answers.length === count) break; // ends the socket too
  }
  return answers;
}

/** Only sends; destroying the socket leaves all the calls. */
export async function sendAtOnce(
  server: Pick<Server, 'url'>,
  calls: readonly PipelinedCall[],
): Promise<Socket> {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(calls.map(requestText).join(''));
  return socket;
}

export interface ThreeHeld {
  /** The worker that holds them. */
  readonly pid: number;
  readonly socket: Socket;
  readonly ids: readonly [running: string, second: string, third: string];
  /** Lets the first two go on; the third would answer at once. */
  readonly letGo: () => void;
}

/** Makes ids and cues unique. */
let batches = 0;

/**
 * Three calls to a server with one worker of `works.mjs`: the first runs, the others were sent ahead. Tries again when a
 * busy machine interrupts the server in their midst: it then knows better than to send them ahead. What an attempt has
 * held was long by any measure, so each begins with short calls.
 */
export async function holdThree(server: Server, cues: Cues): Promise<ThreeHeld> {
  for (let attempt = 1; ; attempt += 1) {
    const pid = await warmUp(server);
    batches += 1;
    const ids = [`running-${batches}`, `second-${batches}`, `third-${batches}`] as const;
    const cue = `go on ${batches}`;
    const inputs = [{ until: cue }, { until: cue }, {}];
    const socket = await sendAtOnce(
      server,
      ids.map((id, i) => ({ id, input: inputs[i] })),
    );
    await cues.untilNoted(`begun ${ids[0]}`);
    const { model } = await server.status();
    if (model.workers[0]?.held === 3) return { pid, socket, ids, letGo: () => cues.give(cue) };
    assert.ok(attempt < 10, 'calls are never sent ahead');
    cues.give(cue);
    await readAnswers(socket, 3);
  }
}

function requestText({ input, id }: PipelinedCall): string {
  const body = JSON.stringify(input);
  const headers = ['Host: test', 'Content-Type: application/json', `X-Request-Id: ${id}`];
  return `POST / HTTP/1.1\r\n${headers.join('\r\n')}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** The first answer in `data` and its length; null while it is incomplete. */
function takeAnswer(data: Buffer): { answer: Answer; bytes: number } | null {
  const headEnd = data.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [statusLine = '', ...lines] = data.toString('latin1', 0, headEnd).split('\r\n');
  const headers = new Headers(lines.map((line) => line.split(': ', 2) as [string, string]));
  const bytes = headEnd + 4 + Number(headers.get('content-length'));
  if (data.length < bytes) return null;
  const text = data.toString('utf8', headEnd + 4, bytes);
  const status = Number(statusLine.split(' ')[1]);
  return { answer: { status, headers, text, json: <T>() => JSON.parse(text) as T }, bytes };
}

/**
 * A worker process.
 *
 * 1. Claims fd 3 and fd 4 for frames, fd 5 for the note of what has begun, and says `hello`, before any user code.
 * 2. On `start`: imports the app (`loaded`), runs init and the example (`ready`).
 * 3. Hands calls to the run loop until `stop`, a fatal error, or the end of the stream: the front is gone.
 */
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { Channel } from '../protocol/channel.js';
import { ServeError, describeThrown, protocolError, type ErrorCode } from '../protocol/errors.js';
import { lightSocket } from '../protocol/light-socket.js';
import {
  MAX_TEXT_CHARS,
  PROTOCOL_VERSION,
  type Call,
  type Message,
  type StartSpec,
} from '../protocol/messages.js';
import { watchAppExit } from './app-exit.js';
import { appLog } from './app-log.js';
import { ArrivingCalls } from './arriving-calls.js';
import { noteBegun } from './begun-note.js';
import { blockOnOutput } from './blocking-output.js';
import { offerWebhooks } from './api/send-webhook.js';
import type { WorkerInfo } from './api/types.js';
import { CallContext } from './call-context.js';
import { isClosedSocket } from './call-socket.js';
import { AppLoadError } from './explain-load-error.js';
import { loadApp } from './load-app.js';
import type { LoadedApp } from './loaded-app.js';
import { NO_ATTRIBUTION, attributePrints, type PrintAttribution } from './print-attribution.js';
import { outlookOf, type Outlook } from './outlook.js';
import { RunLoop } from './run-loop.js';
import { firstFrameOutside, withoutOwnFrames } from './stack-frame.js';
import { SLEEP_AT_ONCE, StayAwake } from './stay-awake.js';
import { WebhookHandover } from './webhook-handover.js';

/** Enough for a 64-pixel image as JSON. */
const MAX_EXAMPLE_CHARS = 240;

const UP_FD = 3;
const DOWN_FD = 4;

const arriving = new ArrivingCalls((batch) => runLoop().accept(batch));
let app: LoadedApp | null = null;
let loop: RunLoop | null = null;
let isStopping = false;

const channel = new Channel(
  lightSocket(DOWN_FD),
  new Socket({ fd: UP_FD, readable: false, writable: true }),
  { onMessage, onReadEnd: () => loop?.pump(), onEnd, onWriteError: dieWithFront },
  writeUp,
);
const exit = watchAppExit((what) => {
  if (isStopping) return; // that is how this app ends when it is asked to
  // An app that waits for its database may end like this, too: the same end twice is no proof that it always will.
  sendFatal(loop === null ? 'SERVE_INIT_FAILED' : 'SERVE_WORKER_LOST', what, '', 'transient');
  channel.flush();
});
const webhooks = new WebhookHandover(channel, () => loop?.runningRequestId ?? '');
offerWebhooks(webhooks);
channel.send({ type: 'hello', protocol: PROTOCOL_VERSION, runtime: `node ${process.version}` });
channel.flush();

process.on('unhandledRejection', (reason) => {
  if (isClosedSocket(reason)) return; // a client has left, and a timer of the app's went on sending
  process.stderr.write(`Unhandled rejection: ${describeThrown(reason).stack}\n`);
  const error = new ServeError(
    'SERVE_WORKER_LOST',
    'an unhandled rejection left the app in an unknown state',
  );
  if (loop === null) exitFatally('SERVE_INIT_FAILED', describeThrown(reason).message, '', outlookOf(reason));
  else retireThenExit(error);
});

/** The socket is full (EAGAIN), or broken: then the stream's own write meets the same, and waits or tells. */
function writeUp(bytes: Uint8Array): number {
  try {
    return writeSync(UP_FD, bytes);
  } catch {
    return 0;
  }
}

function onMessage(message: Message, pieces: Buffer[]): void {
  switch (message.type) {
    case 'start':
      start(message.spec).catch((thrown: unknown) => {
        const { message: text, stack } = describeThrown(thrown);
        exitFatally('SERVE_INTERNAL', text, stack, 'unknown');
      });
      return;
    case 'call':
      arriving.takeFrame(message, pieces);
      return;
    case 'body':
      arriving.takeBody(message.id, pieces);
      return;
    case 'cancel':
      if (arriving.drop(message.id)) runLoop().sendCancelled(message.id);
      else runLoop().cancel(message.id, message.reason);
      return;
    case 'credit':
      runLoop().grantCredit(message.id, message.bytes);
      return;
    case 'data':
      runLoop().takeData(message, pieces);
      return;
    case 'webhookDone':
      webhooks.onDone(message.ref, message.outcome);
      return;
    case 'stop':
      stop();
      return;
    default:
      throw protocolError(`a worker cannot take ${message.type}`);
  }
}

async function start(spec: StartSpec): Promise<void> {
  blockOnOutput();
  process.title = `banana-serve worker ${spec.worker}`;
  const prints = spec.printMark === '' ? NO_ATTRIBUTION : attributePrints(spec.printMark);
  const worker: WorkerInfo = { index: spec.worker, gpu: spec.device.gpu, threads: spec.device.threads };
  const loaded = await loadOrExit(spec.app, spec.appPlace ?? '');
  if (loaded === null) return;
  channel.send({
    type: 'loaded',
    info: {
      routes: loaded.routes,
      modelOptions: plainOptions(loaded.modelOptions),
      example: exampleText(loaded),
    },
  });
  channel.flush();
  const initMs = await initOrExit(spec.app, loaded, worker, prints);
  if (initMs === null) return;
  app = loaded;
  loop = new RunLoop({
    channel,
    app: loaded,
    worker,
    prints,
    maxOutputBytes: spec.limits.maxOutputBytes,
    streamWindowBytes: spec.limits.streamWindowBytes,
    noteBegun,
    onIdleAfterRetire: () => onIdle(),
    idleness: worker.threads > 1 ? new StayAwake() : SLEEP_AT_ONCE,
  });
  channel.send({ type: 'ready', initMs });
  channel.flush();
}

async function loadOrExit(path: string, place: string): Promise<LoadedApp | null> {
  try {
    return await loadApp(path, place);
  } catch (thrown) {
    const { message, stack } = describeThrown(thrown);
    if (thrown instanceof AppLoadError) {
      exitFatally('SERVE_APP_INVALID', message, '', thrown.permanent ? 'permanent' : outlookOf(thrown));
    } else exitFatally('SERVE_APP_INVALID', message, stack, outlookOf(thrown));
    return null;
  }
}

async function initOrExit(
  path: string,
  loaded: LoadedApp,
  worker: WorkerInfo,
  prints: PrintAttribution,
): Promise<number | null> {
  const startedAtMs = performance.now();
  let step = 'init';
  try {
    await loaded.init({ worker, log: appLog(channel, '') });
    step = 'the example call';
    if (loaded.example !== null) await runExample(loaded, loaded.example, worker, prints);
    return performance.now() - startedAtMs;
  } catch (thrown) {
    const { message, stack } = describeThrown(thrown);
    const threw = `${firstFrameOutside(stack) ?? path}: ${step} threw:`;
    const detail = `${threw} ${withoutOwnFrames(stack)}`;
    exitFatally('SERVE_INIT_FAILED', `${threw} ${message}`, detail, outlookOf(thrown));
    return null;
  }
}

async function runExample(
  loaded: LoadedApp,
  example: NonNullable<LoadedApp['example']>,
  worker: WorkerInfo,
  prints: PrintAttribution,
): Promise<void> {
  const call: Call = {
    id: 0,
    bodyBytes: 0,
    requestId: 'example',
    route: example.route,
    path: example.route,
    query: '',
    format: 'json',
    contentType: '',
    accept: '',
    deadlineMs: null,
    headers: '',
    method: 'POST',
    params: '',
    asciiJson: false,
  };
  const ctx = new CallContext(call, [], worker, (...ids) => appLog(channel, ...ids));
  const { consumeOutput } = await import('./reply/consume-output.js');
  await prints.run('example', async () =>
    consumeOutput(await loaded.handle(example.route, example.input, ctx), call),
  );
}

/** Returns options as plain data, because a function or a class instance in them must not break the message. */
function plainOptions(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(options)) as Record<string, unknown>;
}

/** Returns the example as a person may paste it; empty if it is too long, or if JSON would make something else of it (bytes). */
function exampleText({ example }: LoadedApp): string {
  if (example === null) return '';
  try {
    const text = JSON.stringify(example.input) as string | undefined;
    const isWhole = text !== undefined && isDeepStrictEqual(JSON.parse(text), example.input);
    return isWhole && text.length <= MAX_EXAMPLE_CHARS ? text : '';
  } catch {
    return ''; // not JSON: the example itself is run and reported later
  }
}

function runLoop(): RunLoop {
  if (loop === null) throw protocolError('a call before ready');
  return loop;
}

let onIdle: () => void = () => {};

/** Retires a worker whose app is in doubt: it finishes the running call, begins no other, says why, and ends. Calls that have not begun go back to the queue. */
function retireThenExit(error: ServeError): void {
  onIdle = () => exitFatally(error.code, error.message, '', 'unknown');
  runLoop().retire(null);
}

function stop(): void {
  isStopping = true;
  onIdle = () => {
    shutDown().catch((thrown: unknown) => {
      process.stderr.write(`shutdown threw: ${describeThrown(thrown).stack}\n`);
      exitWhenFlushed(1);
    });
  };
  if (loop === null) onIdle();
  else loop.retire('the server is stopping');
}

async function shutDown(): Promise<void> {
  await app?.shutdown();
  exitWhenFlushed(0);
}

function exitFatally(code: ErrorCode, message: string, detail: string, outlook: Outlook): void {
  sendFatal(code, message, detail, outlook);
  exitWhenFlushed(1);
}

function sendFatal(code: ErrorCode, message: string, detail: string, outlook: Outlook): void {
  channel.send({
    type: 'fatal',
    code,
    message: message.slice(0, MAX_TEXT_CHARS),
    detail: detail.slice(0, MAX_TEXT_CHARS),
    permanent: outlook === 'permanent',
    transient: outlook === 'transient',
  });
}

/** Exiting right after a write loses what the kernel has not taken (measured on Node 20: 2 MiB, 10% arrived). */
function exitWhenFlushed(code: number): void {
  channel.flush();
  channel.onceFlushed(() => exit(code));
}

function onEnd(error: ServeError | null): void {
  if (error !== null) process.stderr.write(`The front broke the protocol: ${error.detail}\n`);
  dieWithFront();
}

/** Ends this worker, which nobody can hear any more, and the programs that it started. */
function dieWithFront(): void {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } finally {
    exit(1); // not a group leader: started by hand
  }
}

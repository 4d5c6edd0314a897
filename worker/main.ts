/**
 * The entry of a worker process.
 *
 * 1. Claims fd 3 and fd 4 for frames and fd 5 for the note of what has begun, and sends `hello`, before any user code.
 * 2. On `start`: imports the app (`loaded`), runs init and the example (`ready`); see `start-app.ts`.
 * 3. Passes calls to the run loop until `stop`, a fatal error, or the end of the stream, which means the front is gone.
 */
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { Channel } from '../protocol/wire/channel.js';
import { ServeError, describeThrown, protocolError, type ErrorCode } from '../protocol/errors.js';
import { lightSocket } from '../protocol/wire/light-socket.js';
import { MAX_TEXT_CHARS } from '../protocol/wire/limits.js';
import { PROTOCOL_VERSION, type Message, type StartSpec } from '../protocol/wire/messages.js';
import { V8_VERSION } from '../protocol/values/v8-values.js';
import { watchAppExit, stackOfApp } from './process/stack-frame.js';
import { appLog } from './report/app-log.js';
import { appMetrics } from './report/app-metrics.js';
import { ArrivingCalls } from './run/arriving-calls.js';
import { BegunTimes, ONE_AT_A_TIME } from './process/begun-note.js';
import {
  blockOnOutput,
  DOWN_FD,
  UP_FD,
  dieIfLost,
  refuseFork,
  watchDescriptors,
} from './process/descriptors.js';
import { writeHintsTo } from './process/hint-once.js';
import { offerWebhooks } from './api/send-webhook.js';
import type { WorkerInfo } from './api/types.js';
import { isClosedSocket } from './run/call-socket.js';
import type { LoadedApp } from './adapters/loaded-app.js';
import { NO_ATTRIBUTION, attributePrints } from './report/print-attribution.js';
import { outlookOf, type Outlook } from './failures/outlook.js';
import { RunLoop } from './run/run-loop.js';
import { preloadTypeScript } from './load/register-typescript.js';
import { StartFailure, importApp, initApp, loadedInfo } from './load/start-app.js';
import { SLEEP_AT_ONCE, StayAwake } from './process/stay-awake.js';
import { WebhookHandover } from './run/webhook-handover.js';

/** Errors of a write after the front has exited. */
const FRONT_GONE: ReadonlySet<string> = new Set(['EPIPE', 'ECONNRESET']);

refuseFork();
const arriving = new ArrivingCalls((batch) => runLoop().accept(batch));
let app: LoadedApp | null = null;
let loop: RunLoop | null = null;
let isStopping = false;

const channel = new Channel(
  lightSocket(DOWN_FD),
  new Socket({ fd: UP_FD, readable: false, writable: true }),
  {
    onMessage,
    room: (message, bytes) => arriving.room(message, bytes),
    onReadEnd: () => loop?.pump(),
    onEnd,
    onWriteError,
  },
  writeUp,
);
const exit = watchAppExit((what) => {
  if (isStopping) return; // this app ends like this when it is asked to stop
  // An app that waits for its database may end like this too: one such end does not prove that it always will.
  sendFatal(loop === null ? 'SERVE_INIT_FAILED' : 'SERVE_WORKER_LOST', what, '', 'transient');
  channel.flush();
});
const webhooks = new WebhookHandover(channel, () => loop?.runningRequestId ?? '');
offerWebhooks(webhooks);
writeHintsTo((line) => appLog(channel, loop?.runningRequestId ?? '').warn(line));
watchDescriptors();
const runtime = `node ${process.version}`;
channel.send({ type: 'hello', protocol: PROTOCOL_VERSION, runtime, values: V8_VERSION });
channel.flush();

if (process.argv.includes('--typescript')) void preloadTypeScript();

process.on('unhandledRejection', (reason) => {
  if (isClosedSocket(reason)) return; // a client has left, and a timer of the app went on sending
  process.stderr.write(`Unhandled rejection: ${stackOfApp(describeThrown(reason).stack)}\n`);
  const error = new ServeError(
    'SERVE_WORKER_LOST',
    'an unhandled rejection left the app in an unknown state',
  );
  if (loop === null) exitFatally('SERVE_INIT_FAILED', describeThrown(reason).message, '', outlookOf(reason));
  else retireThenExit(error);
});

/**
 * Writes as much as the socket takes. If it is full (EAGAIN) or broken, the stream's own write waits or reports the
 * error.
 */
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
      start(message.spec).catch(failStart);
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
      runLoop().running(message.id)?.grantCredit(message.bytes);
      return;
    case 'data':
      runLoop().running(message.id)?.socket?.onData(pieces, message.text, message.last);
      return;
    case 'webhookDone':
      webhooks.onDone(message.ref);
      return;
    case 'ping':
      channel.send({ type: 'pong', ref: message.ref });
      channel.flush();
      return;
    case 'stop':
      stop();
      return;
    default:
      throw protocolError(`a worker cannot take ${message.type}`);
  }
}

async function start(spec: StartSpec): Promise<void> {
  Object.assign(process.env, spec.env);
  blockOnOutput();
  process.title = `banana-serve worker ${spec.worker}`;
  const prints = spec.printMark === '' ? NO_ATTRIBUTION : attributePrints(spec.printMark);
  const worker: WorkerInfo = { index: spec.worker, gpu: spec.device.gpu, threads: spec.device.threads };
  const metrics = appMetrics(channel);
  const loaded = await importApp(spec);
  // as many calls at the same time as the app takes and the operator allows
  const concurrency = Math.min(loaded.description.concurrency, spec.concurrency ?? Infinity);
  channel.send({ type: 'loaded', info: loadedInfo(loaded, concurrency) });
  channel.flush();
  const initMs = await initApp(loaded, { channel, spec, worker, metrics, prints });
  dieIfLost();
  app = loaded;
  const isAlone = concurrency === 1;
  loop = new RunLoop({
    channel,
    app: loaded,
    worker,
    metrics,
    prints,
    maxOutputBytes: spec.limits.maxOutputBytes,
    streamWindowBytes: spec.limits.streamWindowBytes,
    concurrency,
    note: isAlone ? ONE_AT_A_TIME : new BegunTimes(concurrency),
    activity: isAlone && worker.threads > 1 ? new StayAwake() : SLEEP_AT_ONCE,
    onIdleAfterRetire: () => onIdle(),
    onDoubt: retireThenExit,
  });
  channel.send({ type: 'ready', initMs });
  channel.flush();
}

function failStart(thrown: unknown): void {
  if (thrown instanceof StartFailure) {
    exitFatally(thrown.code, thrown.message, thrown.detail, thrown.outlook);
  } else {
    const { message, stack } = describeThrown(thrown);
    exitFatally('SERVE_INTERNAL', message, stack, 'unknown');
  }
}

function runLoop(): RunLoop {
  if (loop === null) throw protocolError('a call before ready');
  return loop;
}

let onIdle: () => void = () => {};

/**
 * Retires a worker whose app is in doubt: it finishes what runs, begins no other call, reports the reason, and ends.
 * Calls that have not begun go back to the queue.
 */
function retireThenExit(error: ServeError): void {
  onIdle = () => exitFatally(error.code, error.message, '', 'unknown');
  runLoop().retire(null, error.message);
}

function stop(): void {
  isStopping = true;
  onIdle = () => {
    shutDown().catch((thrown: unknown) => {
      process.stderr.write(`shutdown threw: ${stackOfApp(describeThrown(thrown).stack)}\n`);
      exitWhenFlushed(1);
    });
  };
  if (loop === null) onIdle();
  else loop.retire('the server is stopping', null);
}

async function shutDown(): Promise<void> {
  await app?.shutdown?.();
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

/**
 * Exits once everything is written: exiting right after a write loses what the kernel has not taken (measured on Node
 * 20: of 2 MiB, 10% arrived).
 */
function exitWhenFlushed(code: number): void {
  channel.flush();
  channel.onceFlushed(() => exit(code));
}

function onEnd(error: ServeError | null): void {
  dieIfLost(); // the bytes may come from a socket of the app that has this descriptor now
  if (error !== null) process.stderr.write(`The front broke the protocol: ${error.detail}\n`);
  dieWithFront();
}

function onWriteError({ code = '' }: NodeJS.ErrnoException): void {
  // Node itself has closed fd 3 by now. If the error is EBADF, the app had closed it before.
  dieIfLost(FRONT_GONE.has(code) ? DOWN_FD : UP_FD);
  dieWithFront();
}

/** Ends this worker, which has lost its front, and the programs that it started. */
function dieWithFront(): void {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } finally {
    exit(1); // not a group leader: started by hand
  }
}

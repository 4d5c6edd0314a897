/**
 * Starts an app: import, `init`, one call with the example. A failure is a {@link StartFailure}, which ends the worker.
 */
import { isDeepStrictEqual } from 'node:util';
import { describeThrown, type ErrorCode } from '../../protocol/errors.js';
import { MAX_TEXT_CHARS } from '../../protocol/wire/limits.js';
import type { Call, LoadedInfo, StartSpec } from '../../protocol/wire/messages.js';
import { appLog } from '../report/app-log.js';
import { CallContext, type CallSurroundings } from '../run/call-context.js';
import { AppLoadError } from './explain-load-error.js';
import { loadApp } from './load-app.js';
import { acceptedInput, acceptedOutput } from '../adapters/schemas.js';
import type { LoadedApp, OwnDescription } from '../adapters/loaded-app.js';
import { sendMetrics } from '../report/app-metrics.js';
import { outlookOf, type Outlook } from '../failures/outlook.js';
import type { PrintAttribution } from '../report/print-attribution.js';
import { firstFrameOutside, withoutOwnFrames } from '../process/stack-frame.js';
import { encodeOutput } from '../reply/encode-output.js';
import { isPotassiumResponse, replyOf } from '../reply/reply-of.js';
import { sendStream, type StreamOut } from '../reply/stream.js';

/** Why a worker cannot start. `detail` is for the log; `outlook` says whether the next start may succeed. */
export class StartFailure extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly detail: string,
    readonly outlook: Outlook,
  ) {
    super(message);
  }
}

/** @throws StartFailure */
export async function importApp(spec: StartSpec): Promise<LoadedApp> {
  try {
    if (spec.service !== undefined) enter(spec.service.modelDir);
    return await withDescribedSchemas(await loadApp(spec), spec.app);
  } catch (thrown) {
    const { message, stack } = describeThrown(thrown);
    if (!(thrown instanceof AppLoadError))
      throw new StartFailure('SERVE_APP_INVALID', message, stack, outlookOf(thrown));
    const outlook = thrown.permanent ? 'permanent' : outlookOf(thrown);
    throw new StartFailure('SERVE_APP_INVALID', message, '', outlook);
  }
}

/** Adds the JSON Schemas of the app's routes to its description. */
async function withDescribedSchemas(app: LoadedApp, path: string): Promise<LoadedApp> {
  if (app.schemas === undefined) return app;
  const { describeSchemas } = await import('./describe-schemas.js');
  return { ...app, description: { ...app.description, routes: await describeSchemas(app, path) } };
}

/**
 * Makes the model's folder the working directory, because a service opens its files by relative paths. @throws
 * AppLoadError
 */
function enter(modelDir: string): void {
  try {
    process.chdir(modelDir);
  } catch (cause) {
    const { message } = cause as Error;
    throw new AppLoadError(`${modelDir}: the model's folder cannot be entered: ${message}`, { cause });
  }
}

/** Describes an app to the front, before its `init` runs. `concurrency`: the calls that run at the same time. */
export function loadedInfo({ description, shutdown }: LoadedApp, concurrency: number): LoadedInfo {
  const { concurrency: _asked, tokenInput: _own, ...described } = description;
  return {
    ...described,
    ...(concurrency === 1 ? {} : { concurrency }),
    modelOptions: plainOptions(description.modelOptions),
    example: exampleText(description),
    shutdown: shutdown !== undefined,
  };
}

/** The process and the slot in which an app starts. */
export interface Start extends CallSurroundings {
  readonly spec: StartSpec;
  readonly prints: PrintAttribution;
}

/** Runs `init` and the example, and returns how many ms they took. @throws StartFailure */
export async function initApp(app: LoadedApp, start: Start): Promise<number> {
  const { channel, spec, worker, metrics } = start;
  const startedAtMs = performance.now();
  let step = app.initStep ?? 'init';
  try {
    const log = appLog(channel, '');
    await app.init(
      { worker, log, metrics },
      { spec, sendMetrics: (measured) => sendMetrics(channel, measured) },
    );
    if (app.warmUp !== undefined && spec.skipsWarmUp !== true) {
      channel.send({ type: 'warmUp', advice: app.warmUp.advice });
      channel.flush(); // a run may hold this thread for ever
      await app.warmUp.run({ worker, log });
    }
    step = 'the example call';
    if (app.description.example !== null) await runExample(app, app.description.example, start);
    return performance.now() - startedAtMs;
  } catch (thrown) {
    const { message, stack } = describeThrown(thrown);
    const threw = `${firstFrameOutside(stack) ?? spec.app}: ${step} threw:`;
    const detail = `${threw} ${withoutOwnFrames(stack)}`;
    throw new StartFailure('SERVE_INIT_FAILED', `${threw} ${message}`, detail, outlookOf(thrown));
  }
}

async function runExample(
  app: LoadedApp,
  { route, input }: NonNullable<OwnDescription['example']>,
  start: Start,
): Promise<void> {
  const call: Call = {
    id: 0,
    bodyBytes: 0,
    requestId: 'example',
    route,
    path: route,
    query: '',
    format: 'json',
    contentType: '',
    accept: '',
    deadlineMs: null,
    headers: '',
    method: 'POST',
    params: '',
    asciiJson: false,
    answer: 'auto',
    dialectParams: '',
  };
  const ctx = new CallContext(call, [], start);
  const schemas = app.schemas?.(route);
  await start.prints.run('example', async () => {
    const output = await app.handle(route, await acceptedInput(schemas?.input, input), ctx);
    await consumeOutput(await acceptedOutput(schemas?.output, output), call);
  });
}

/** Returns options as plain data, so that a function or a class instance in them does not break the message. */
function plainOptions(options: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return JSON.parse(JSON.stringify(options)) as Record<string, unknown>;
}

/** Returns the example as JSON; empty if it is too long for a message, or if JSON would change it (bytes). */
function exampleText({ example }: OwnDescription): string {
  if (example === null) return '';
  try {
    const text = JSON.stringify(example.input) as string | undefined;
    const isWhole = text !== undefined && isDeepStrictEqual(JSON.parse(text), example.input);
    return isWhole && text.length <= MAX_TEXT_CHARS ? text : '';
  } catch {
    return ''; // not JSON: the example itself is run and reported later
  }
}

/** Encodes a value, or every item of a stream. Rejects with the error that a caller would get. */
export async function consumeOutput(output: unknown, call: Call): Promise<void> {
  if (output instanceof Error) throw output;
  const { head, body } = await replyOf(output);
  if (body.kind === 'bytes') return;
  if (body.kind !== 'stream') await encodeOutput(body.value, call);
  else if (!isPotassiumResponse(output))
    await sendStream(body.iterator, call.accept, body.byAccept === true ? null : head, NOWHERE);
}

/** The receiver of the example's stream, which takes everything. */
const NOWHERE: StreamOut = { head: () => {}, chunk: () => {}, wait: () => null, cancelled: false };

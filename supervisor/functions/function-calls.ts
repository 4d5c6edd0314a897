/**
 * The calls of a model as a function: a door to the model beside HTTP. A call takes its place in the model's queue, waits for
 * the app if no worker has loaded it yet, and is submitted as a call over HTTP is; its sink settles the caller's promise.
 */
import { ServeError, asCallers, configError, httpStatus, type ErrorCode } from '../../protocol/errors.js';
import { MSGPACK_VALUES } from '../../protocol/values/msgpack-values.js';
import { V8_VALUES } from '../../protocol/values/v8-values.js';
import type { Admission } from '../dispatch/arrivals.js';
import { Call, newRequestId, type CallMessage } from '../dispatch/call.js';
import { Hold, LONGEST_MS } from '../machine/guest.js';
import { startLimit } from '../machine/limit-timer.js';
import { slabs, type Lease } from '../memory/slabs.js';
import type { Routes } from '../models/generations.js';
import { rootOrOnlyRoute } from '../models/main-route.js';
import type { Model } from '../models/model.js';
import { FunctionSink, type Caller } from './function-sink.js';
import type { FunctionCallOptions } from './function-types.js';

/** The formats of input and answer, by the name of a file of the worker's `formats/`. */
const FORMATS = { v8: V8_VALUES, 'msgpack-values': MSGPACK_VALUES };

/** Learns of the end of a call; `call`: null if it was refused; `error`: null if it was answered. */
type OnEnded = (model: Model, call: Call | null, error: ServeError | null) => void;

export class FunctionCalls {
  /** Keeps the program alive while a call is pending. */
  readonly hold = new Hold();
  readonly #signals = new SharedSignals();
  readonly #onEnded: OnEnded;

  constructor(onEnded: OnEnded) {
    this.#onEnded = onEnded;
  }

  /** Calls the route of this path; null: the route `/`, else the only one. Rejects with a ServeError, also if `find` throws one. */
  call(
    find: () => Model,
    path: string | null,
    input: unknown,
    options: FunctionCallOptions = {},
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      let model: Model | null = null;
      const refuse = (thrown: unknown): void => {
        const error = notBegun(thrown);
        if (model !== null && error instanceof ServeError) this.#onEnded(model, null, error);
        reject(error);
      };
      try {
        const checked = checkedOptions(options);
        model = find();
        this.#begin(model, path, input, checked, { resolve, reject, refuse });
      } catch (thrown) {
        refuse(thrown);
      }
    });
  }

  #begin(
    model: Model,
    path: string | null,
    input: unknown,
    { signal, timeoutMs, onProgress }: FunctionCallOptions,
    { refuse, ...caller }: Pick<Caller, 'resolve' | 'reject'> & { refuse(thrown: unknown): void },
  ): void {
    if (signal?.aborted === true) throw cancelled(signal);
    const acceptedAtMs = performance.now();
    const deadlineAtMs = timeoutMs === undefined ? null : acceptedAtMs + timeoutMs;
    const { dispatcher, spec } = model;
    const format = FORMATS[spec.program.values ?? 'v8'];
    let lease: Lease | undefined;
    const body = format.write(
      input,
      'input',
      'SERVE_BAD_BODY',
      (bytes) => (lease = slabs.take(bytes)).buffer,
    );
    const place = dispatcher.admit(body.length);
    const submit = (routes: Routes): void => {
      if (signal?.aborted === true) throw cancelled(signal);
      const route = routeIn(routes, path);
      if (deadlineAtMs !== null) dispatcher.checkDeadline(deadlineAtMs);
      let leave = (): void => {};
      const onEnd: Caller['onEnd'] = (call, error) => {
        leave();
        this.hold.end();
        this.#onEnded(model, call, error);
      };
      const sink = new FunctionSink(dispatcher, format, { ...caller, onProgress, onEnd });
      const message = describe(model, route, body.length, timeoutMs);
      const call = new Call(message, [body], { acceptedAtMs, deadlineAtMs }, sink, lease);
      this.hold.begin();
      if (signal !== undefined)
        leave = this.#signals.add(signal, () =>
          dispatcher.giveUp(call, cancelled(signal), 'the caller gave the call up'),
        );
      dispatcher.submit(call, place);
    };
    try {
      if (model.routes !== null) submit(model.routes);
      else
        void this.#whenLoaded(model, place, signal, deadlineAtMs)
          .then(submit)
          .catch((thrown: unknown) => {
            place.release();
            refuse(thrown);
          });
    } catch (thrown) {
      place.release();
      throw thrown;
    }
  }

  /** Waits for the app, at most as long as a call may wait in the queue, or until its deadline. */
  async #whenLoaded(
    model: Model,
    place: Admission,
    signal: AbortSignal | undefined,
    deadlineAtMs: number | null,
  ): Promise<Routes> {
    const queueAtMs = performance.now() + model.options.queueTimeout;
    const untilMs = Math.min(queueAtMs, deadlineAtMs ?? Infinity);
    let why = new ServeError(untilMs < queueAtMs ? 'SERVE_DEADLINE' : 'SERVE_QUEUE_TIMEOUT');
    let giveUp = (): void => {};
    const givenUp = new Promise<void>((resolve) => (giveUp = resolve));
    const limit = startLimit(Math.max(0, untilMs - performance.now()), giveUp);
    place.begin((evicted) => {
      why = evicted;
      giveUp();
    });
    const leave =
      signal &&
      this.#signals.add(signal, () => {
        why = cancelled(signal);
        giveUp();
      });
    this.hold.begin();
    try {
      const routes = await model.whenLoaded(givenUp, untilMs);
      if (routes === null) throw why;
      return routes;
    } finally {
      limit.stop();
      leave?.();
      this.hold.end();
    }
  }
}

function describe(
  model: Model,
  route: string,
  bodyBytes: number,
  timeoutMs: number | undefined,
): CallMessage {
  const { name, version, program } = model.spec;
  const { values: format = 'v8' } = program;
  return {
    id: 0,
    model: name,
    version,
    client: '',
    statusOf: ({ code, status }) => status || httpStatus(code),
    bodyBytes,
    requestId: newRequestId(),
    route,
    path: route,
    query: '',
    format,
    contentType: '',
    accept: '',
    deadlineMs: timeoutMs === undefined ? null : Date.now() + timeoutMs,
    headers: '',
    method: 'POST',
    params: '',
    asciiJson: false,
    answer: format,
    dialectParams: '',
  };
}

/** @throws SERVE_NOT_FOUND */
function routeIn(routes: Routes, path: string | null): string {
  if (path === null) return onlyRoute(routes);
  const route = routes.get(path);
  if (route?.kind === 'websocket')
    throw new ServeError('SERVE_NOT_FOUND', `The route ${path} is a WebSocket, not a function.`);
  if (route !== undefined) return path;
  throw new ServeError(
    'SERVE_NOT_FOUND',
    `The app has no route ${path}; it has ${listed([...routes.keys()])}.`,
  );
}

const onlyRoute = rootOrOnlyRoute(
  (paths) =>
    new ServeError(
      'SERVE_NOT_FOUND',
      `The app has several routes, ${listed(paths)}: name one, .route('/x')(input).`,
    ),
);

function listed(paths: readonly string[]): string {
  return paths.length === 0 ? 'none' : paths.join(', ');
}

/** @throws SERVE_CONFIG if an option has a wrong value */
function checkedOptions(options: FunctionCallOptions): FunctionCallOptions {
  if (typeof options !== 'object' || options === null) throw wrong('options', options, 'an object');
  const { signal, timeoutMs, onProgress } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw wrong('signal', signal, 'an AbortSignal');
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    throw wrong('timeoutMs', timeoutMs, 'a number of ms above 0');
  if (onProgress !== undefined && typeof onProgress !== 'function')
    throw wrong('onProgress', onProgress, 'a function');
  // No timer is so long: the call has no limit.
  return { signal, onProgress, timeoutMs: (timeoutMs ?? 0) > LONGEST_MS ? undefined : timeoutMs };
}

function wrong(name: string, given: unknown, allowed: string): ServeError {
  return configError(`${name} of a call: ${String(given)} is not allowed; give ${allowed}.`);
}

function cancelled(signal: AbortSignal): ServeError {
  const code: ErrorCode = 'SERVE_CANCELLED';
  return new ServeError(code, 'The caller has given the call up.', { cause: signal.reason });
}

/** The error of a call, or of a start, that never came to a worker. */
export function notBegun(thrown: unknown): Error {
  return thrown instanceof ServeError ? asCallers(thrown, false) : (thrown as Error);
}

/** Listens to the signals of calls: once to each signal, however many calls it was given to, and no longer than they take. */
class SharedSignals {
  readonly #calls = new Map<
    AbortSignal,
    { readonly onAborts: Set<() => void>; readonly listener: () => void }
  >();

  /** Calls `onAbort` when the signal is aborted, unless the function returned is called before. The signal is not aborted yet. */
  add(signal: AbortSignal, onAbort: () => void): () => void {
    const { onAborts } = this.#calls.get(signal) ?? this.#listen(signal);
    onAborts.add(onAbort);
    return () => {
      onAborts.delete(onAbort);
      if (onAborts.size === 0) this.#leave(signal);
    };
  }

  #listen(signal: AbortSignal) {
    const onAborts = new Set<() => void>();
    const listener = (): void => {
      for (const onAbort of [...onAborts]) onAbort();
    };
    const shared = { onAborts, listener };
    this.#calls.set(signal, shared);
    signal.addEventListener('abort', listener, { once: true });
    return shared;
  }

  #leave(signal: AbortSignal): void {
    const shared = this.#calls.get(signal);
    if (shared === undefined) return;
    this.#calls.delete(signal);
    signal.removeEventListener('abort', shared.listener);
  }
}

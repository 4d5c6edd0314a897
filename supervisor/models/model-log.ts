/** Logs the events of a model's workers and calls, in plain words. */
import { isAppsRefusal, type ErrorCode, type ServeError } from '../../protocol/errors.js';
import { splitHeaderLines, validTraceparent } from '../../protocol/text/headers.js';
import { callFacts, type CallMessage } from '../dispatch/call.js';
import type { Log } from '../observe/log.js';
import { formatMs } from '../options/units.js';
import type { Slot } from '../slots/slot.js';
import type { DyingCall, Fatal, WorkerDeath } from '../processes/worker-death.js';

export class ModelLog {
  readonly #log: Log;
  readonly #label: () => string;
  /** Errors of dying workers that were logged in full since a worker was last ready; repetitions get one line. */
  readonly #logged = new Set<string>();

  /** `label`: the model's name if the server has several, else empty. */
  constructor(log: Log, label: () => string) {
    this.#log = log;
    this.#label = label;
  }

  transition(worker: number, from: string, to: string, event: string): void {
    this.#log.debug({ ...this.#who(worker), event }, `worker ${this.#named(worker)}: ${from} -> ${to}`);
  }

  ready(worker: number, pid: number, initMs: number): void {
    this.forgetErrors();
    const facts = { ...this.#who(worker), pid, initMs: Math.round(initMs) };
    this.#log.info(facts, `worker ${this.#named(worker)} is ready (init ${formatMs(initMs)})`);
  }

  /** `what`: says what happens to the worker, behind its name. */
  worker(worker: number, what: string, level: 'info' | 'warn' | 'error' = 'info'): void {
    this.#log[level](this.#who(worker), `worker ${this.#named(worker)} ${what}`);
  }

  slowWarmUp(worker: number, advice: string): void {
    this.#log.warn(this.#who(worker), `the warm-up of worker ${this.#named(worker)} takes long. ${advice}`);
  }

  noStandby(why: string): void {
    this.#log.warn(this.#facts, `--standby: no further worker${this.#whose} stands by: ${why}`);
  }

  batchless(batchSize: number, cure: string): void {
    const text = `--batch-size is ${batchSize}, but no route${this.#whose} takes batches: ${cure}`;
    this.#log.warn(this.#facts, text);
  }

  serial(concurrency: number): void {
    this.#log.warn(
      this.#facts,
      `--concurrency is ${concurrency}, but the calls${this.#whose} run one after the other: it is only a ceiling, and the app's config does not set concurrency`,
    );
  }

  replacingFailed(error: ServeError): void {
    const why = firstLine(error.detail || error.message);
    this.#log.error(this.#facts, `the workers are not replaced; the old ones continue: ${why}`);
  }

  /** Lets errors that were logged in full be logged in full again. */
  forgetErrors(): void {
    this.#logged.clear();
  }

  /** Logs a line of the app. */
  appLine(worker: number, level: string, message: string, fields: string, requestId: string): void {
    const write = level === 'debug' || level === 'warn' || level === 'error' ? level : 'info';
    const extra = fields === '' ? {} : parseFields(fields);
    this.#log[write]({ ...extra, ...this.#who(worker), ...(requestId === '' ? {} : { requestId }) }, message);
  }

  callError(worker: number, call: CallMessage, error: ServeError): void {
    if (error.code === 'SERVE_INPUT_INVALID' && call.job === undefined) {
      const facts = { ...callFacts(call), status: call.statusOf(error), code: error.code };
      this.#log.info(
        { ...this.#who(worker), ...facts, paths: wrongPaths(error) },
        'the input of a call is invalid',
      );
    }
    if (CALLERS_FAULT.has(error.code) || isAppsRefusal(error)) return;
    const text = error.detail === '' ? error.message : error.detail;
    const given = splitHeaderLines(call.headers).find(([name]) => name.toLowerCase() === 'traceparent')?.[1];
    const traceparent = validTraceparent(given) ?? undefined;
    const facts = { ...callFacts(call), status: call.statusOf(error), traceparent, code: error.code };
    this.#log.error({ ...this.#who(worker), ...facts }, text);
  }

  death(slot: Slot, death: WorkerDeath): void {
    const facts = {
      ...this.#who(slot.index),
      pid: death.pid,
      uptimeMs: Math.round(death.uptimeMs),
      calls: death.finishedCalls,
    };
    const { call, how } = death;
    const named = `worker ${this.#named(slot.index)}`;
    if (death.wanted) {
      this.#log.info(facts, `${named} has stopped (${how})`);
      return;
    }
    const during = call === null ? '' : ` while running ${described(call)}`;
    const hint = death.hint === '' ? '' : `; ${death.hint}`;
    // The worker's own text stands last, because it may end in any way.
    const said = death.fatal === null ? '' : `: ${this.#fullOnce(death.fatal)}`;
    const lastLines = death.stderrTail.length === 0 ? {} : { lastStderr: death.stderrTail };
    this.#log.error(
      { ...facts, ...call?.facts, ...lastLines },
      `${named} died (${how})${during}${hint}; ${nextStep(slot)}${said}`,
    );
  }

  get #whose(): string {
    const label = this.#label();
    return label === '' ? '' : ` of ${label}`;
  }

  /** `0`, or `digits/0` among several models. */
  #named(worker: number): string {
    const label = this.#label();
    return label === '' ? String(worker) : `${label}/${worker}`;
  }

  #who(worker: number): { model?: string; worker: number } {
    return { ...this.#facts, worker };
  }

  get #facts(): { model?: string } {
    const model = this.#label();
    return model === '' ? {} : { model };
  }

  /** Gives an error in full the first time, and its first line after that. */
  #fullOnce({ message, detail }: Fatal): string {
    if (this.#logged.has(message)) return `the same error again: ${firstLine(message)}`;
    this.#logged.add(message);
    return detail || message;
  }
}

function described({ facts: { requestId, route }, others }: DyingCall): string {
  return `call ${requestId} of ${route}${others === 0 ? '' : ` and ${others} more`}`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] as string;
}

/** Errors that are not logged: the caller gets them, and may cause thousands of them. */
const CALLERS_FAULT: ReadonlySet<ErrorCode> = new Set(['SERVE_BAD_BODY', 'SERVE_CANCELLED']);

/** The places of the wrong values, for a line of the log: messages of issues may quote the input. */
export function wrongPaths({ issues }: ServeError): string[] {
  return issues.slice(0, MOST_PATHS).map(({ path }) => path.join('.'));
}

const MOST_PATHS = 10;

/** Parses the fields of a worker's log line; text that is not JSON becomes one field. */
function parseFields(fields: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(fields);
    return typeof value === 'object' && value !== null ? withoutReserved(value) : { fields: value };
  } catch {
    return { fields };
  }
}

/** Names of fields that every line of the log has. */
const RESERVED_NAMES: readonly string[] = ['level', 'time', 'pid', 'msg'];

/** Renames fields that would overwrite the level, the time or the message of the line: their values may come from a client. */
function withoutReserved(fields: object): Record<string, unknown> {
  const named = Object.entries(fields as Record<string, unknown>);
  return Object.fromEntries(
    named.map(([name, value]) => [RESERVED_NAMES.includes(name) ? `app_${name}` : name, value]),
  );
}

function nextStep({ state }: Slot): string {
  switch (state.name) {
    case 'backoff':
      return `restarting in ${formatMs(state.untilMs - performance.now())}`;
    case 'latched':
      return 'it will not be restarted';
    case 'closing':
    case 'closed':
      return 'it is not replaced';
    case 'live':
    case 'renewing':
      return 'another worker has taken its place';
    case 'waiting':
    case 'replacing':
      return 'restarting now';
  }
}

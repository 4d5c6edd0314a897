/** Writes a model's workers and calls to the log, in words for the person who reads it at night. */
import type { ErrorCode, ServeError } from '../../protocol/errors.js';
import { splitHeaderLines } from '../../protocol/text/header-lines.js';
import { validTraceparent } from '../../protocol/text/traceparent.js';
import type { JobCall } from '../dispatch/job.js';
import type { Log } from '../observe/log.js';
import { formatMs } from '../options/units.js';
import type { Slot } from '../slots/slot.js';
import type { DyingCall, Fatal, WorkerDeath } from '../processes/worker-death.js';

export class ModelLog {
  readonly #log: Log;
  readonly #label: () => string;
  /** Errors of dying workers that were told in full since a worker was last ready; they are told so only once. */
  readonly #told = new Set<string>();

  /** `label`: the model's name while there are several to tell apart, else empty. */
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

  batchless(batchSize: number, cure: string): void {
    const whose = this.#label() === '' ? '' : ` of ${this.#label()}`;
    this.#log.warn(`--batch-size is ${batchSize}, and no route${whose} takes batches: ${cure}`);
  }

  replacingFailed(error: ServeError): void {
    const why = firstLine(error.detail || error.message);
    this.#log.error(`the workers are not replaced; the old ones continue: ${why}`);
  }

  /** An error that was told is told in full again. */
  forgetErrors(): void {
    this.#told.clear();
  }

  /** A line of the app's own. */
  appLine(worker: number, level: string, message: string, fields: string, requestId: string): void {
    const write = level === 'debug' || level === 'warn' || level === 'error' ? level : 'info';
    const extra = fields === '' ? {} : parseFields(fields);
    this.#log[write]({ ...extra, ...this.#who(worker), ...(requestId === '' ? {} : { requestId }) }, message);
  }

  callError(worker: number, { requestId, route, headers }: JobCall, error: ServeError): void {
    if (CALLERS_FAULT.has(error.code)) return;
    const text = error.detail === '' ? error.message : error.detail;
    const given = splitHeaderLines(headers).find(([name]) => name.toLowerCase() === 'traceparent')?.[1];
    const traceparent = validTraceparent(given) ?? undefined;
    this.#log.error({ ...this.#who(worker), requestId, route, traceparent, code: error.code }, text);
  }

  death(slot: Slot, death: WorkerDeath): void {
    const facts = {
      ...this.#who(slot.index),
      pid: death.pid,
      uptimeMs: Math.round(death.uptimeMs),
      calls: death.finishedCalls,
    };
    if (death.wanted) {
      this.#log.info(facts, `worker ${this.#named(slot.index)} has stopped (${death.how})`);
      return;
    }
    const { call } = death;
    const during = call === null ? '' : ` while running ${described(call)}`;
    const hint = death.hint === '' ? '' : `; ${death.hint}`;
    // The worker's own words stand last: whatever they end with, nothing of ours follows.
    const said = death.fatal === null ? '' : `: ${this.#tellOnce(death.fatal)}`;
    const lastLines = death.stderrTail.length === 0 ? {} : { lastStderr: death.stderrTail };
    this.#log.error(
      { ...facts, requestId: call?.requestId, route: call?.route, ...lastLines },
      `worker ${this.#named(slot.index)} died (${death.how})${during}${hint}; ${nextStep(slot)}${said}`,
    );
  }

  /** `0`, or `digits/0` among several models. */
  #named(worker: number): string {
    const label = this.#label();
    return label === '' ? String(worker) : `${label}/${worker}`;
  }

  #who(worker: number): { model?: string; worker: number } {
    const model = this.#label();
    return model === '' ? { worker } : { model, worker };
  }

  /** Gives an error in full the first time, and its first line after that. */
  #tellOnce({ message, detail }: Fatal): string {
    if (this.#told.has(message)) return `the same error again: ${firstLine(message)}`;
    this.#told.add(message);
    return detail || message;
  }
}

function described({ requestId, route, others }: DyingCall): string {
  return `call ${requestId} of ${route}${others === 0 ? '' : ` and ${others} more of its batch`}`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] as string;
}

/** Errors that are not logged: the caller is told, and may cause a thousand of them. */
const CALLERS_FAULT: ReadonlySet<ErrorCode> = new Set(['SERVE_BAD_BODY', 'SERVE_CANCELLED']);

/** A worker's log line must not harm the front, whatever is in it. */
function parseFields(fields: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(fields);
    return typeof value === 'object' && value !== null ? besideTheLines(value) : { fields: value };
  } catch {
    return { fields };
  }
}

/** Names that each line of the log has by itself. */
const NAMES_OF_LINES: readonly string[] = ['level', 'time', 'msg'];

/** The fields may be a client's words, which must not say how grave a line is, and when it was written. */
function besideTheLines(fields: object): Record<string, unknown> {
  const named = Object.entries(fields as Record<string, unknown>);
  return Object.fromEntries(
    named.map(([name, value]) => [NAMES_OF_LINES.includes(name) ? `app_${name}` : name, value]),
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
      return 'no other follows it';
    case 'live':
    case 'renewing':
      return 'another worker has its place';
    case 'waiting':
    case 'replacing':
      return 'restarting now';
  }
}

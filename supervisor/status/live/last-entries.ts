/**
 * The last calls of a server, and the last deaths of workers that it had not asked for, for the page. They run for every
 * call and death, so they only copy what is there; nothing of a call, its request or a worker is kept alive.
 */
import { isAppsRefusal, seenStatus, type ServeError } from '../../../protocol/errors.js';
import type { Call } from '../../dispatch/call.js';
import { shownMessage } from '../../http/access/app-words.js';
import type { CountedRequest, RequestObserver } from '../../http/request/request-context.js';
import { writtenPath } from '../../http/socket/request-facts.js';
import type { Model } from '../../models/model.js';
import type { WorkerDeath } from '../../processes/worker-death.js';
import type { Slot } from '../../slots/slot.js';
import type { LiveCall, LiveDeath } from '../live-types.js';

/** A list that only grows, second by second. */
export class RecentList<Entry> {
  /** Entries up to the end of the last second, oldest first, as far as they are kept. */
  past: readonly Entry[] = [];
  /** Entries of the last second. */
  last: readonly Entry[] = [];
  readonly #kept: number;
  #now: Entry[] = [];

  constructor(kept: number) {
    this.#kept = kept;
  }

  add(entry: Entry): void {
    this.#now.push(entry);
    if (this.#now.length === 2 * this.#kept) this.#now = this.#now.slice(-this.#kept);
  }

  endSecond(): void {
    this.last = this.#now.slice(-this.#kept);
    this.#now = [];
    if (this.last.length > 0) this.past = [...this.past, ...this.last].slice(-this.#kept);
  }
}

export const CALLS_KEPT = 200;
const MAX_PATH_CHARS = 200;
const MAX_MESSAGE_CHARS = 500;
/** A longer stack loses its middle: the beginning or the end says most, which one depends on the language. */
export const MAX_DETAIL_CHARS = 3000;
/** Least time between two calls without a valid key in the list: strangers must not push the others out of it. */
const STRANGERS_PAUSE_MS = 1000;

/** A call, with the message of its error for viewers who may not read the app's words. */
interface KeptCall extends LiveCall {
  readonly publicMessage: string;
}

/** A call that was refused before its route was known. */
const NOT_RUN = { route: '', queueMs: 0, runMs: 0, inBytes: 0, outBytes: 0, worker: null };

export class LastCalls implements Partial<RequestObserver> {
  readonly list = new RecentList<KeptCall>(CALLS_KEPT);
  #lastId = 0;
  #strangerAtMs = -Infinity;

  settled({ model }: CountedRequest, call: Call, status: number, error: ServeError | null): void {
    const { message, hasBegun } = call;
    this.#add(model, status, error, {
      route: message.route,
      method: message.method,
      path: shortened(message.path, MAX_PATH_CHARS),
      queueMs: rounded(call.queueMs(performance.now())),
      runMs: rounded(call.runMs),
      inBytes: message.bodyBytes,
      outBytes: call.replyBytes,
      worker: hasBegun ? call.worker : null,
      requestId: message.requestId,
    });
  }

  refused({ counts, model, request, requestId }: CountedRequest, error: ServeError, status: number): void {
    if (!counts || (error.code === 'SERVE_UNAUTHORIZED' && !this.#isStrangersTurn())) return;
    const path = shortened(writtenPath(request.url), MAX_PATH_CHARS);
    this.#add(model, status, error, { ...NOT_RUN, method: request.method ?? '', path, requestId });
  }

  #add(
    model: Model | null,
    status: number,
    error: ServeError | null,
    facts: Omit<LiveCall, 'id' | 'at' | 'model' | 'version' | 'status' | 'code' | 'error'>,
  ): void {
    const shown = (message: string): string => shortened(message, MAX_MESSAGE_CHARS);
    this.#lastId += 1;
    this.list.add({
      id: this.#lastId,
      at: Date.now(),
      model: model?.spec.name ?? '',
      version: model?.spec.version ?? '',
      status: error === null ? status : seenStatus(status, error),
      code: error === null || isAppsRefusal(error) ? 'ok' : error.code,
      ...facts,
      error: error && { message: shown(error.message), detail: withoutMiddle(error.detail) },
      publicMessage: error === null ? '' : shown(shownMessage(error, false)),
    });
  }

  #isStrangersTurn(): boolean {
    const nowMs = performance.now();
    const isTurn = nowMs - this.#strangerAtMs >= STRANGERS_PAUSE_MS;
    if (isTurn) this.#strangerAtMs = nowMs;
    return isTurn;
  }
}

/** The calls as a viewer gets them, who may read the app's words or not. */
export function shownCalls(calls: readonly KeptCall[], showsWords: boolean): LiveCall[] {
  return calls.map(({ publicMessage, ...call }) => {
    const hides = !showsWords && call.error !== null;
    return hides ? { ...call, error: { message: publicMessage, detail: '' } } : call;
  });
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** A part of a string keeps the whole one in memory, so a long one is copied. */
function shortened(text: string, max: number): string {
  return text.length > max ? Buffer.from(text.slice(0, max)).toString() : text;
}

function withoutMiddle(text: string): string {
  if (text.length <= MAX_DETAIL_CHARS) return text;
  const half = MAX_DETAIL_CHARS / 2;
  return Buffer.from(`${text.slice(0, half)}\n…\n${text.slice(-half)}`).toString();
}

const DEATHS_KEPT = 100;
const STDERR_LINES_KEPT = 20;
const MAX_LINE_CHARS = 200;
/** Longest reason that a worker gave itself. */
const MAX_WHY_CHARS = 2000;

export class LastDeaths {
  readonly list = new RecentList<LiveDeath>(DEATHS_KEPT);
  readonly #keyOf: (model: Model) => number;
  readonly #ids = new WeakMap<WorkerDeath, number>();
  #lastId = 0;

  constructor(keyOf: (model: Model) => number) {
    this.#keyOf = keyOf;
  }

  /** Number of the last death of a worker of this slot; null if none died since it last started anew, or none was noted. */
  idOf({ lastDeath }: Pick<Slot, 'lastDeath'>): number | null {
    return lastDeath === null ? null : (this.#ids.get(lastDeath) ?? null);
  }

  died(model: Model, { index }: Pick<Slot, 'index'>, death: WorkerDeath): void {
    if (death.wanted) return;
    const { name, version } = model.spec;
    const { pid, how, cause, during, hint } = death;
    this.#lastId += 1;
    this.#ids.set(death, this.#lastId);
    this.list.add({
      id: this.#lastId,
      at: death.at.getTime(),
      key: this.#keyOf(model),
      model: name,
      version,
      worker: index,
      pid,
      how,
      cause,
      during,
      requestId: death.call?.facts.requestId ?? '',
      uptimeMs: Math.round(death.uptimeMs),
      calls: death.finishedCalls,
      hint,
      why: copied(death.fatal?.message ?? '', MAX_WHY_CHARS),
      stderr: death.stderrTail.slice(-STDERR_LINES_KEPT).map((line) => copied(line, MAX_LINE_CHARS)),
    });
  }
}

/** The deaths as a viewer gets them, who may read the app's words or not. */
export function shownDeaths(deaths: readonly LiveDeath[], showsWords: boolean): readonly LiveDeath[] {
  return showsWords ? deaths : deaths.map((death) => ({ ...death, why: '', stderr: [] }));
}

/** The lines of a tail are parts of one text, which a part would keep in memory. */
function copied(text: string, maxChars: number): string {
  return Buffer.from(text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text).toString();
}

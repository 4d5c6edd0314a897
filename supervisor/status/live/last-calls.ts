/**
 * The last calls of a server, for the page. It runs once for every call, so it only copies what is there; nothing of a call
 * or its request is kept alive.
 */
import { isAppsRefusal, seenStatus, type ServeError } from '../../../protocol/errors.js';
import type { Call } from '../../dispatch/call.js';
import type { CountedRequest, RequestObserver } from '../../http/request/request-context.js';
import { writtenPath } from '../../http/socket/request-facts.js';
import { shownMessage } from '../../http/access/app-words.js';
import type { Model } from '../../models/model.js';
import type { LiveCall, LiveFailure } from '../live-types.js';
import { RecentList } from './recent-list.js';

export const CALLS_KEPT = 200;
const MAX_PATH_CHARS = 200;
export const MAX_MESSAGE_CHARS = 500;
/** A longer stack loses its middle: the beginning or the end says most, which one depends on the language. */
export const MAX_DETAIL_CHARS = 3000;
/** Least time between two calls without a valid key in the list: strangers must not push the others out of it. */
const STRANGERS_PAUSE_MS = 1000;

/** A call with what viewers see of its error who may not read the app's words. */
interface KeptCall extends LiveCall {
  readonly publicError: LiveFailure | null;
}

/** The facts of a call that its end does not decide. */
type CallFacts = Omit<LiveCall, 'id' | 'at' | 'model' | 'version' | 'status' | 'code' | 'error'>;

/** A call that was refused before its route was known. */
const NOT_RUN = { route: '', queueMs: 0, runMs: 0, inBytes: 0, outBytes: 0, worker: null };

export class LastCalls implements Partial<RequestObserver> {
  readonly list = new RecentList<KeptCall>(CALLS_KEPT);
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

  #add(model: Model | null, status: number, error: ServeError | null, facts: CallFacts): void {
    this.list.add({
      id: this.list.lastId + 1,
      at: Date.now(),
      model: model?.spec.name ?? '',
      version: model?.spec.version ?? '',
      status: seenStatus(status, error),
      code: codeOf(error),
      ...facts,
      error: failureOf(error),
      publicError: publicFailureOf(error),
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
  return calls.map(({ publicError, ...call }) => (showsWords ? call : { ...call, error: publicError }));
}

function failureOf(error: ServeError | null): LiveFailure | null {
  if (error === null) return null;
  return {
    message: shortened(error.message, MAX_MESSAGE_CHARS),
    detail: withoutMiddle(error.detail, MAX_DETAIL_CHARS),
  };
}

function publicFailureOf(error: ServeError | null): LiveFailure | null {
  if (error === null) return null;
  return { message: shortened(shownMessage(error, false), MAX_MESSAGE_CHARS), detail: '' };
}

function codeOf(error: ServeError | null): string {
  return error === null || isAppsRefusal(error) ? 'ok' : error.code;
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}

/** A part of a string keeps the whole one in memory, so a long one is copied. */
function shortened(text: string, max: number): string {
  return text.length > max ? Buffer.from(text.slice(0, max)).toString() : text;
}

function withoutMiddle(text: string, max: number): string {
  if (text.length <= max) return text;
  return Buffer.from(`${text.slice(0, max / 2)}\n…\n${text.slice(-max / 2)}`).toString();
}

/** One request with everything that the code which answers it shares. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServeError } from '../../../protocol/errors.js';
import type { Model } from '../../models/model.js';
import type { Failure } from '../socket/refuse.js';
import { requestIdOf } from '../socket/request-facts.js';
import { nameAnswer } from '../socket/unsent-answers.js';
import type { LoggedRequest, Backend } from './backend.js';

/** The server's listener that received a request. */
export type Listener = 'main' | 'management' | 'metrics';

export interface RequestContext extends LoggedRequest {
  readonly backend: Backend;
  readonly listener: Listener;
  readonly request: IncomingMessage;
  /** For a WebSocket request, not attached to the connection; used only if the request is refused. */
  readonly response: ServerResponse;
  /** The decoded path (`namedPath`); as the client wrote it if it cannot be decoded. */
  readonly path: string;
  /** Whether the request is a WebSocket handshake. */
  readonly isWebSocket: boolean;
  /** On the monotonic clock. */
  readonly acceptedAtMs: number;
  /** From the headers; a dialect whose clients send it in the body sets it once the body is read. */
  requestId: string;
  /** Read at once, because a connection that is gone has none. */
  readonly client: string;
  /** The dialect that has claimed the request; before that, the listener's default. */
  dialect: AnswerStyle;
  counts: boolean;
  hasKey: boolean;
  isProbe: boolean;
  isLogged: boolean;
  model: Model | null;
}

/** Sets the request id: from the headers, else `inBody`, else a new one. */
export function nameRequest(context: RequestContext, inBody: string | null = null): void {
  context.requestId = requestIdOf(context.request.headers, context.headerNames.callIds, inBody);
  nameAnswer(context.response, context.requestId);
}

/** The formats of a dialect's answers: the part of a dialect that is used after a request is claimed. */
export interface AnswerStyle {
  readonly name: string;
  /** Converts an error to this dialect's form. `context` is null for a request that the HTTP parser has refused. */
  fail(error: ServeError, requestId: string, context: RequestContext | null): Failure;
  /** Headers of every answer to a request that this dialect has claimed. */
  headers?(context: RequestContext): Readonly<Record<string, string>>;
  /** Names of those headers, in lower case, that an app may not set; its values for them are dropped. */
  readonly ownHeaders?: ReadonlySet<string>;
  /** The answer to a background call, if the contract with its clients fixes it; by default it names the job. */
  readonly startedBody?: string;
  /** Whether an answer with this status, the app's or the dialect's own, closes its connection; for errors, `fail` decides. */
  closes?(status: number): boolean;
}

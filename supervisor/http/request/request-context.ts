/** One request, as those who answer it share it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServeError } from '../../../protocol/errors.js';
import type { Model } from '../../models/model.js';
import type { Failure } from '../socket/refuse.js';
import { requestIdOf } from '../socket/request-id.js';
import { nameAnswer } from '../socket/watched-response.js';
import type { LoggedRequest, Backend } from './backend.js';

/** Which of the server's listeners a request has come by. */
export type Listener = 'main' | 'management' | 'metrics';

export interface RequestContext extends LoggedRequest {
  readonly backend: Backend;
  readonly listener: Listener;
  readonly request: IncomingMessage;
  /** For a request of a WebSocket it is on no connection yet, and is used only if the request is refused. */
  readonly response: ServerResponse;
  /** The one that the request names, as `namedPath` reads it; what the client wrote if that cannot be read. */
  readonly path: string;
  /** Whether the request asks to become a WebSocket. */
  readonly isWebSocket: boolean;
  /** On the monotonic clock. */
  readonly acceptedAtMs: number;
  /** From the headers; a dialect that has one in the body sets it once that is read. */
  requestId: string;
  /** The dialect that has claimed the request; until one has, the listener's default. */
  dialect: AnswerStyle;
  counts: boolean;
  isLogged: boolean;
  model: Model | null;
}

/** Names the request by its headers, else by the id in its body, if it has one, else anew. */
export function nameRequest(context: RequestContext, inBody: string | null = null): void {
  context.requestId = requestIdOf(context.request.headers, context.headerNames.callIds, inBody);
  nameAnswer(context.response, context.requestId);
}

/** How a dialect speaks: all that the core knows of it once a request is claimed. */
export interface AnswerStyle {
  readonly name: string;
  fail(error: ServeError, requestId: string, context: RequestContext | null): Failure;
  headers?(context: RequestContext): Readonly<Record<string, string>>;
  /** The names of those headers in lower case, where an app may not set them: what it says of them is left out. */
  readonly ownHeaders?: ReadonlySet<string>;
  /** Whether an answer with this status ends its connection; of errors the `Failure` says it. */
  closes?(status: number): boolean;
}

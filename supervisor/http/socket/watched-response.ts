/**
 * Responses that report to `UnsentAnswers` when the kernel does not take a write at once; this server creates no
 * others.
 */
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { ServeError } from '../../../protocol/errors.js';
import { onceClosed } from './request-facts.js';
import type { UnsentAnswers } from './unsent-answers.js';
import type { Answer } from './unsent-connection.js';

const CUT = Symbol('cut');

/** Calls back if the connection is cut because its client reads too slowly, before the response closes. */
export function onceCut(response: ServerResponse, callback: (error: ServeError) => void): void {
  response.once(CUT, callback);
}

const OVER = Symbol('over');

/** Calls back once nothing of the answer is needed any more: it was sent, was cut, or has no client. Perhaps more than once. */
export function onceOver(request: IncomingMessage, response: ServerResponse, callback: () => void): void {
  if (request.socket.destroyed) {
    callback();
    return;
  }
  response.once(OVER, callback);
  onceClosed(request, response, callback);
}

const NAME = Symbol('name');

interface Named {
  [NAME]?: string;
}

/** Gives an answer the id of its request, for the log if it is cut. */
export function nameAnswer(response: ServerResponse, requestId: string): void {
  (response as Named)[NAME] = requestId;
}

/** `onCut` gets the cut responses that have no `onceCut` listener, with the id that they were given. */
export function watchedResponses(
  unsent: UnsentAnswers,
  onCut: (request: IncomingMessage, requestId: string, error: ServeError) => void,
): typeof ServerResponse {
  return class WatchedResponse<R extends IncomingMessage = IncomingMessage>
    extends ServerResponse<R>
    implements Answer
  {
    get queuedBytes(): number {
      return this.socket === null ? this.writableLength : 0;
    }

    get isOut(): boolean {
      return this.writableFinished;
    }

    onCut(error: ServeError): void {
      this.emit(OVER);
      if (!this.emit(CUT, error)) onCut(this.req, (this as Named)[NAME] ?? '', error);
    }

    override write(...args: unknown[]): boolean {
      const hasRoom = super.write(...(args as Parameters<ServerResponse['write']>));
      if (!hasRoom) unsent.watch(this.req.socket, this);
      return hasRoom;
    }

    override end(...args: unknown[]): this {
      super.end(...(args as Parameters<ServerResponse['end']>));
      if (this.writableLength > 0) unsent.watch(this.req.socket, this);
      return this;
    }
  };
}

/** Server-sent events to one viewer of the live data. The head is sent with the first of them. */
import { isThisMachine } from '../../options/address.js';
import { hiddenBecause, type HiddenBecause } from '../access/app-words.js';
import type { Viewer } from '../request/served-page.js';
import type { RequestContext } from '../request/request-context.js';
import { onceClosed } from '../socket/request-facts.js';
import { commonHeaders } from './own-answers.js';

export class EventStream implements Viewer {
  readonly hidden: HiddenBecause | null;
  readonly leavesFirst: boolean;
  readonly #context: RequestContext;

  constructor(context: RequestContext) {
    this.#context = context;
    this.hidden = hiddenBecause(context);
    this.leavesFirst = !context.hasKey && context.client !== 'unix' && !isThisMachine(context.client);
  }

  get isFree(): boolean {
    const { response } = this.#context;
    return response.writableLength === 0 && !response.destroyed;
  }

  /** Sends the head, if it was not sent yet. */
  open(): void {
    const { response } = this.#context;
    if (response.headersSent) return;
    response.writeHead(200, {
      ...commonHeaders(this.#context),
      'Content-Type': 'text/event-stream',
      // No proxy and no compression may hold events back.
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
  }

  send(bytes: Buffer): boolean {
    const { response } = this.#context;
    if (!this.isFree) return false;
    this.open();
    response.write(bytes);
    return true;
  }

  /** A client that does not read is cut: the server's end does not wait for it. */
  end(bytes: Buffer): void {
    if (this.send(bytes)) this.#context.response.end();
    else this.cut();
  }

  cut(): void {
    this.#context.response.destroy();
  }

  onceGone(callback: () => void): void {
    onceClosed(this.#context.request, this.#context.response, callback);
  }
}

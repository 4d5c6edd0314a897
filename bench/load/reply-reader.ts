/**
 * Finds where HTTP/1.1 replies end, and their status, as cheaply as JavaScript can: no header map, no body kept.
 * One reply at a time per connection, with Content-Length: what a keep-alive caller of this server sees.
 */

const HEAD_END = Buffer.from('\r\n\r\n');
const NO_BYTES = Buffer.alloc(0);

export class ReplyReader {
  readonly #onReply: (status: number, closing: boolean) => void;
  #partialHead: Buffer = NO_BYTES;
  #status = 0;
  #closing = false;
  #bodyMissing = 0;
  /** Content-Length as the server last spelled it: a plain search is cheaper than a case-blind one. */
  #lengthHeader = '\r\nContent-Length: ';

  constructor(onReply: (status: number, closing: boolean) => void) {
    this.#onReply = onReply;
  }

  /** Reads `chunk`, whose memory the caller may reuse afterwards. @throws an Error on what it cannot follow */
  push(chunk: Buffer): void {
    if (this.#bodyMissing > 0) {
      this.#bodyMissing -= chunk.length;
      if (this.#bodyMissing < 0) throw new Error('a reply is longer than its Content-Length');
      if (this.#bodyMissing === 0) this.#onReply(this.#status, this.#closing);
      return;
    }
    this.#readHead(this.#partialHead.length === 0 ? chunk : Buffer.concat([this.#partialHead, chunk]));
  }

  #readHead(bytes: Buffer): void {
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) {
      this.#partialHead = Buffer.from(bytes);
      return;
    }
    this.#partialHead = NO_BYTES;
    const head = bytes.toString('latin1', 0, end);
    this.#status = Number(head.slice(9, 12));
    this.#closing = head.includes('close') && /\r\nconnection: close/i.test(head);
    const bodyBytes = this.#contentLength(head);
    this.#bodyMissing = bodyBytes - (bytes.length - end - HEAD_END.length);
    if (this.#bodyMissing < 0) throw new Error('bytes follow the last expected reply');
    if (this.#bodyMissing === 0) this.#onReply(this.#status, this.#closing);
  }

  #contentLength(head: string): number {
    let at = head.indexOf(this.#lengthHeader);
    if (at < 0) {
      const spelled = /\r\ncontent-length: /i.exec(head);
      if (spelled === null) throw new Error(`a reply without Content-Length: ${head.slice(0, 80)}`);
      [this.#lengthHeader] = spelled;
      at = spelled.index;
    }
    return parseInt(head.slice(at + this.#lengthHeader.length, at + this.#lengthHeader.length + 12), 10);
  }
}

/**
 * Server-sent events about one job: its page at first and at each change, the last one with its end. A client that reads
 * slowly gets the newest page, not every one.
 */
import { Readable } from 'node:stream';
import { hasEnded, type JobRecord } from '../../../jobs/kept-jobs.js';
import { readResult } from '../../answer/job-answers.js';
import { SENT_SLICE_BYTES, inTurns } from '../../json/slices.js';
import type { RequestContext } from '../../request/request-context.js';
import { describeJob, includesResult } from './job-page.js';

/** Proxies and load balancers drop a connection on which nothing comes for a minute. */
const KEEP_ALIVE_MS = 20_000;

export class JobEvents extends Readable {
  readonly #context: RequestContext;
  readonly #id: string;
  readonly #showsWords: boolean;
  readonly #unwatch: () => void;
  readonly #keepAlive: NodeJS.Timeout;
  /** The rest of the page that is being sent. */
  #pieces: AsyncIterator<Buffer, void> | null = null;
  /** Whether the client takes more, and whether it has not been told of the newest change. */
  #isWanted = false;
  #isNew = true;
  #isWriting = false;
  #isOver = false;

  constructor(context: RequestContext, id: string, showsWords: boolean) {
    super();
    this.#context = context;
    this.#id = id;
    this.#showsWords = showsWords;
    this.#unwatch = context.backend.jobs.watch(id, (record) => this.#onChange(record));
    this.#keepAlive = setInterval(() => {
      if (this.#isWanted && !this.#isWriting) this.push(':\n\n'); // then no page is being sent
    }, KEEP_ALIVE_MS);
  }

  override _read(): void {
    this.#isWanted = true;
    this.#write();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    clearInterval(this.#keepAlive);
    this.#unwatch();
    callback(error);
  }

  /** `record` is null when the server ends. */
  #onChange(record: JobRecord | null): void {
    this.#isNew = true;
    if (record === null) this.#isOver = true;
    if (record === null && !this.#isWanted) this.destroy(); // the server's end does not wait for a client that does not read
    this.#write();
  }

  #write(): void {
    if (!this.#isWanted || this.#isWriting || this.destroyed) return;
    if (this.#pieces === null && !this.#isNew) return;
    this.#isWriting = true;
    this.#next().then(
      (piece) => {
        this.#isWriting = false;
        if (piece === null && this.#isOver) {
          this.push(null);
          return;
        }
        if (piece !== null) this.#isWanted = this.push(piece);
        this.#write();
      },
      (error: Error) => this.destroy(error),
    );
  }

  /** The next piece; null at the end of a page. */
  async #next(): Promise<Buffer | null> {
    if (this.#pieces === null) {
      this.#isNew = false;
      this.#pieces = this.#page();
    }
    const piece = await this.#pieces.next();
    if (piece.done !== true) return piece.value;
    this.#pieces = null;
    return null;
  }

  /** A large one is sent in pieces as its client takes them: thousands may watch one job. */
  async *#page(): AsyncGenerator<Buffer, void> {
    const record = await this.#context.backend.jobs.get(this.#id);
    if (record === null || hasEnded(record)) this.#isOver = true;
    if (record === null) return;
    const body = includesResult(record) ? await readResult(this.#context, record) : null;
    const { pieces, bytes } = await describeJob(record, body, this.#showsWords);
    if (bytes <= SENT_SLICE_BYTES) {
      yield Buffer.concat([DATA, ...Array.from(pieces, onOneLine), END]);
      return;
    }
    yield DATA;
    for await (const piece of inTurns(pieces)) yield onOneLine(piece);
    yield END;
  }
}

const DATA = Buffer.from('data: ');
const END = Buffer.from('\n\n');
const [LINE_FEED, RETURN, SPACE] = [0x0a, 0x0d, 0x20];

/** A line break in JSON is white space, and would end the event. */
function onOneLine(json: Buffer): Buffer {
  if (!json.includes(LINE_FEED) && !json.includes(RETURN)) return json;
  return Buffer.from(json.map((byte) => (byte === LINE_FEED || byte === RETURN ? SPACE : byte)));
}

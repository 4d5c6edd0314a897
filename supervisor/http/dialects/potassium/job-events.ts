/**
 * Server-sent events about one job: its page at first and at each change, the last one with its end. A client that reads
 * slowly gets the newest page, not every one.
 */
import { Readable } from 'node:stream';
import { hasEnded, type JobRecord, type KeptJobs } from '../../../jobs/kept-jobs.js';
import { describeJob, includesResult } from './job-page.js';

/** Proxies and load balancers drop a connection on which nothing comes for a minute. */
const KEEP_ALIVE_MS = 20_000;

export class JobEvents extends Readable {
  readonly #jobs: KeptJobs;
  readonly #id: string;
  readonly #showsWords: boolean;
  readonly #unwatch: () => void;
  readonly #keepAlive: NodeJS.Timeout;
  /** Whether the client takes more, and whether it has not been told of the newest change. */
  #isWanted = false;
  #isNew = true;
  #isWriting = false;
  #isOver = false;

  constructor(jobs: KeptJobs, id: string, showsWords: boolean) {
    super();
    this.#jobs = jobs;
    this.#id = id;
    this.#showsWords = showsWords;
    this.#unwatch = jobs.watch(id, (record) => this.#onChange(record));
    this.#keepAlive = setInterval(() => {
      if (this.#isWanted && !this.#isWriting) this.push(':\n\n');
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
    if (!this.#isNew || !this.#isWanted || this.#isWriting || this.destroyed) return;
    this.#isWriting = true;
    this.#isNew = false;
    this.#page().then(
      (page) => {
        this.#isWriting = false;
        this.#isWanted = this.push(page);
        if (this.#isOver) this.push(null);
        else this.#write();
      },
      (error: Error) => this.destroy(error),
    );
  }

  async #page(): Promise<Buffer> {
    const record = await this.#jobs.get(this.#id);
    if (record === null || hasEnded(record)) this.#isOver = true;
    if (record === null) return Buffer.alloc(0);
    const body = includesResult(record) ? await this.#jobs.readResult(this.#id) : null;
    const { pieces } = await describeJob(record, body, this.#showsWords);
    return Buffer.concat([DATA, ...Array.from(pieces, onOneLine), END]);
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

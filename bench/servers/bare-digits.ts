/** The digits model in a bare process (`bench/apps/digits-bare.ts`), whose runs are begun by messages over a pipe. */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { joinParts, partsIn } from '../parts.js';
import { source } from './child-server.js';

type Child = ChildProcessByStdio<Writable, Readable, null>;

/** The notes of the timed digits example on runs of one size; medians, in ms. */
export interface Told {
  readonly size: number;
  readonly runs: number;
  readonly ms: number;
  /** From the end of the run before to the begin of this one. */
  readonly gapMs: number;
  /** Time of a run in a tight loop. */
  readonly loopMs: number;
}

export class BareDigits {
  readonly #child: Child;
  readonly #body: Buffer;

  private constructor(child: Child, body: Buffer) {
    this.#child = child;
    this.#body = body;
  }

  /** `body`: the JSON of one call, of which every message has as many as its run is to take. */
  static async start(body: Buffer): Promise<BareDigits> {
    const child = spawn(process.execPath, ['--import', 'tsx', source('bench/apps/digits-bare.ts')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const bare = new BareDigits(child, body);
    await bare.tell();
    return bare;
  }

  /** Runs the model time and again; between an answer and the next message this process waits, busily, for `waitMs`. */
  async run(size: number, waitMs: number, forMs: number): Promise<void> {
    const message = joinParts(Array<Buffer>(size).fill(this.#body));
    for (const endMs = performance.now() + forMs; performance.now() < endMs;) {
      await this.#ask(message);
      const sendAtMs = performance.now() + waitMs;
      while (performance.now() < sendAtMs);
    }
  }

  /** Notes since the last reading. */
  async tell(): Promise<readonly Told[]> {
    const [told = Buffer.of()] = await this.#ask(joinParts([]));
    return JSON.parse(told.toString()) as Told[];
  }

  /** As a server is stopped: so it can be kept with them. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.stdin.end();
    this.#child.kill();
    await gone;
  }

  async #ask(message: Buffer): Promise<Buffer[]> {
    this.#child.stdin.write(message);
    let read: Buffer = Buffer.alloc(0);
    for (;;) {
      const [chunk] = (await once(this.#child.stdout, 'data')) as [Buffer];
      read = read.length === 0 ? chunk : Buffer.concat([read, chunk]);
      const answers = partsIn(read);
      if (answers !== null) return answers;
    }
  }
}

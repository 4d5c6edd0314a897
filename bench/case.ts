/** Input and output of a case; one file per case in `cases/`. */
import type { LoadGenerator } from './load/client.js';
import type { Row } from './report.js';
import type { Duration } from './rounds.js';
import { startBanana, type BananaOptions } from './servers/banana.js';
import { startBaseline, type BaselineKind } from './servers/baseline.js';
import type { ChildServer } from './servers/child-server.js';

export interface BenchCase {
  /** The name by which the command line asks for the case. */
  readonly name: string;
  run(bench: Bench): Promise<Row[]>;
}

interface Stoppable {
  stop(): Promise<void>;
}

/** The surroundings of one case. Everything started through it is stopped when the case ends. */
export class Bench {
  readonly generator: LoadGenerator;
  readonly duration: Duration;
  readonly notes: string[] = [];
  readonly #started: Stoppable[] = [];

  constructor(generator: LoadGenerator, duration: Duration) {
    this.generator = generator;
    this.duration = duration;
  }

  async startBanana(app: string, options?: BananaOptions): Promise<ChildServer> {
    return this.keep(await startBanana(app, options));
  }

  async startBaseline(kind: BaselineKind, app: string): Promise<ChildServer> {
    return this.keep(await startBaseline(kind, app));
  }

  /** Duration of measurements that a short round cannot show. */
  secondsAtLeast(seconds: number): number {
    return Math.max(seconds, this.duration.secondsPerRound);
  }

  keep<T extends Stoppable>(started: T): T {
    this.#started.push(started);
    return started;
  }

  /** A sentence to print under the table. */
  note(text: string): void {
    this.notes.push(text);
  }

  async close(): Promise<void> {
    await Promise.all(this.#started.map((each) => each.stop()));
  }
}

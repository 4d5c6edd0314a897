/**
 * Requests at Poisson times, whatever became of the earlier ones: the load that independent strangers make.
 * A connection is taken from the idle ones or opened; the client's clock starts when it writes the request.
 */
import { Samples } from '../statistics.js';
import { Connection, readBuffer } from './connection.js';
import { MAX_CONNECTIONS, MAX_DURATION_MS, MAX_REQUESTS, type OpenPlan, type OpenResult } from './plan.js';
import { requestsOf, targetOf } from './request-bytes.js';

/** After the last arrival, answers are awaited this many deadlines long. */
const PATIENCE = 5;

export async function runOpenLoop(plan: OpenPlan): Promise<OpenResult> {
  const run = new OpenRun(plan);
  await run.sendAll();
  return run.finish();
}

class OpenRun {
  readonly #plan: OpenPlan;
  readonly #nextRequest: () => Buffer;
  readonly #buffer = readBuffer();
  readonly #all: Connection[] = [];
  readonly #idle: Connection[] = [];
  readonly #latencies = new Samples(MAX_REQUESTS);
  readonly #lags = new Samples(MAX_REQUESTS);
  readonly #refused: Record<string, number> = {};
  readonly #random: () => number;
  readonly #cpuBefore = process.cpuUsage();
  readonly #startedAtMs = performance.now();
  readonly #sentAtMs: number[] = [];
  #sent = 0;
  #answered = 0;
  #good = 0;
  #late = 0;
  #lost = 0;
  #lastGoodAtMs = this.#startedAtMs;

  constructor(plan: OpenPlan) {
    this.#plan = plan;
    this.#nextRequest = requestsOf(plan.request);
    this.#random = seededRandom(plan.seed);
  }

  async sendAll(): Promise<void> {
    const { ratePerSecond, durationMs } = this.#plan;
    const endAtMs = this.#startedAtMs + Math.min(durationMs, MAX_DURATION_MS);
    const gapMs = (): number => (-Math.log(1 - this.#random()) * 1000) / ratePerSecond;
    for (let dueAtMs = this.#startedAtMs + gapMs(); dueAtMs < endAtMs; dueAtMs += gapMs()) {
      const waitMs = dueAtMs - performance.now();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      this.#lags.add(performance.now() - dueAtMs);
      this.#sendOne();
    }
  }

  async finish(): Promise<OpenResult> {
    const giveUpAtMs = performance.now() + PATIENCE * this.#plan.deadlineMs;
    while (this.#answered + this.#lost < this.#sent && performance.now() < giveUpAtMs) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const cpu = process.cpuUsage(this.#cpuBefore);
    for (const connection of this.#all) connection.destroy();
    return {
      sent: this.#sent,
      sentAtMs: Float64Array.from(this.#sentAtMs),
      good: this.#good,
      late: this.#late,
      refused: this.#refused,
      lost: this.#sent - this.#answered,
      elapsedMs: this.#lastGoodAtMs - this.#startedAtMs,
      latencyMs: this.#latencies.percentiles(),
      sendLagMs: this.#lags.percentiles(),
      cpuMs: (cpu.user + cpu.system) / 1000,
    };
  }

  #sendOne(): void {
    this.#sent += 1;
    this.#sentAtMs.push(performance.now() - this.#startedAtMs);
    const connection = this.#idle.pop() ?? this.#open();
    if (connection === null) this.#lost += 1;
    else connection.send(this.#nextRequest());
  }

  #open(): Connection | null {
    if (this.#all.length >= Math.min(this.#plan.maxConnections, MAX_CONNECTIONS)) return null;
    const connection = new Connection(targetOf(this.#plan.request), this, this.#buffer);
    this.#all.push(connection);
    return connection;
  }

  onReply(connection: Connection, status: number, latencyMs: number): void {
    this.#answered += 1;
    this.#idle.push(connection);
    if (status !== 200) this.#refused[status] = (this.#refused[status] ?? 0) + 1;
    else if (latencyMs > this.#plan.deadlineMs) this.#late += 1;
    else {
      this.#good += 1;
      this.#lastGoodAtMs = performance.now();
      this.#latencies.add(latencyMs);
    }
  }

  onBroken(connection: Connection, wasBusy: boolean): void {
    if (!wasBusy) return; // it is still among the idle ones: the next send connects anew
    this.#lost += 1;
    this.#idle.push(connection);
  }
}

/** Random numbers by Mulberry32: a seed gives the same arrivals in every run. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Everything that the page knows of the server: the history that it got when it connected, and every snapshot since. It
 * keeps as much as the server does: ten minutes of samples, 200 calls, 100 deaths; and the last 200 failed calls.
 */
import type {
  Column,
  LiveCall,
  LiveDeath,
  LiveDescription,
  LiveHistory,
  LiveJob,
  LiveModel,
  LiveModelHistory,
  LiveSample,
  LiveServer,
  LiveSnapshot,
} from '../../status/live-types.js';

export const MAX_SECONDS = 600;
const MAX_CALLS = 200;
const MAX_DEATHS = 100;

export class History {
  /** The server's time of the last snapshot; until the first one that of the samples. */
  at: number;
  /** Null until the first snapshot. */
  server: LiveServer | null = null;
  models: readonly LiveModel[] = [];
  /** By the keys of the models; all columns end with the last second. */
  readonly series: Map<number, LiveModelHistory>;
  readonly descriptions: Map<number, LiveDescription>;
  /** Oldest first. */
  calls: readonly LiveCall[];
  /** Failed ones, oldest first: on a busy server the page has them for longer than all calls. */
  failedCalls: readonly LiveCall[];
  /** Oldest first. */
  deaths: readonly LiveDeath[];
  /** Newest first. */
  jobs: readonly LiveJob[];
  /** Whether snapshots are missing: their seconds are empty in the columns, and their calls are not known. */
  hasGap = false;
  #number: number;

  constructor({ number, at, models, descriptions, calls, deaths, jobs }: LiveHistory) {
    this.#number = number;
    this.at = at;
    this.calls = calls;
    this.failedCalls = calls.filter(isFailed);
    this.deaths = deaths;
    this.jobs = jobs;
    this.descriptions = new Map(descriptions.map((one) => [one.key, one]));
    this.series = new Map(models.map((one) => [one.key, one]));
  }

  add(snapshot: LiveSnapshot): void {
    const missing = snapshot.number - this.#number - 1;
    if (missing > 0) this.#skip(missing);
    this.#number = snapshot.number;
    this.at = snapshot.at;
    this.server = snapshot.server;
    this.models = snapshot.models;
    for (const description of snapshot.descriptions) this.descriptions.set(description.key, description);
    this.calls = joined(this.calls, snapshot.calls, MAX_CALLS);
    this.failedCalls = joined(this.failedCalls, snapshot.calls.filter(isFailed), MAX_CALLS);
    this.deaths = joined(this.deaths, snapshot.deaths, MAX_DEATHS);
    this.jobs = snapshot.jobs ?? this.jobs;
    for (const model of snapshot.models) this.#append(model);
    this.#forgetModels();
  }

  #skip(seconds: number): void {
    this.hasGap = true;
    for (const { columns, errors } of this.series.values())
      for (const column of [...Object.values(columns), ...Object.values(errors)])
        for (let i = 0; i < Math.min(seconds, MAX_SECONDS); i += 1) append(column, null);
  }

  #append({ key, sample, errors }: LiveModel): void {
    const names = Object.keys(sample) as (keyof LiveSample)[];
    const series = this.series.get(key) ?? newSeries(key, names);
    this.series.set(key, series);
    const before = series.columns.calls.length;
    for (const name of names) append(series.columns[name], sample[name]);
    for (const code of Object.keys(errors)) series.errors[code] ??= Array<number>(before).fill(0);
    for (const [code, counts] of Object.entries(series.errors)) append(counts, errors[code] ?? 0);
  }

  #forgetModels(): void {
    const keys = new Set(this.models.map(({ key }) => key));
    for (const map of [this.series, this.descriptions])
      for (const key of map.keys()) if (!keys.has(key)) map.delete(key);
  }
}

/** Whether the client did not get what it asked for. */
export function isFailed({ status, code }: LiveCall): boolean {
  return code !== 'ok' || status === null || status >= 400;
}

function newSeries(key: number, names: readonly string[]): LiveModelHistory {
  const columns = Object.fromEntries(names.map((name) => [name, []]));
  return { key, columns: columns as unknown as LiveModelHistory['columns'], errors: {} };
}

function append(column: Column, value: number | null): void {
  column.push(value);
  if (column.length > MAX_SECONDS) column.shift();
}

function joined<T>(before: readonly T[], added: readonly T[], max: number): readonly T[] {
  return added.length === 0 ? before : [...before, ...added].slice(-max);
}

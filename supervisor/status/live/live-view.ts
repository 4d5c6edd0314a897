/**
 * Makes the data of the page: once a second `tick` measures the models and notes what has happened; `snapshot` and `history`
 * describe the server as of then.
 */
import type { FindCallPaths } from '../../http/request/call-paths.js';
import type { JobRecord, KeptJobs } from '../../jobs/kept-jobs.js';
import type { GpuUsage } from '../../machine/nvidia-smi.js';
import { LatestList } from '../../machine/latest-list.js';
import type { CallCounts } from '../../metrics/call-counts.js';
import type { Model } from '../../models/model.js';
import type { RecentLines } from '../../observe/recent-lines.js';
import type { LiveDeath, LiveDescription, LiveHistory, LiveServer, LiveSnapshot } from '../live-types.js';
import { delayStatus, serverState, type ServerFacts, type StatusSources } from '../snapshot.js';
import { AppDescriptions, type DescribedModel } from './app-descriptions.js';
import { shownCalls } from './last-calls.js';
import { withoutWords } from './last-deaths.js';
import { describeJobs } from './live-jobs.js';
import { describeModel } from './live-models.js';
import { LiveRecord } from './live-record.js';
import { ProcessMemory } from './process-memory.js';

/** The parts of the server that the data is about. */
export interface LiveSources extends Pick<StatusSources, 'registry' | 'unsent' | 'readiness'> {
  readonly facts: Pick<ServerFacts, 'version' | 'startedAt' | 'eventLoopDelay'>;
  readonly maxQueueBytes: number;
  readonly lines: RecentLines;
  readonly counts: CallCounts;
  readonly jobs: Pick<KeptJobs, 'list'>;
  /** Finds the paths of a route in all dialects. */
  readonly findPaths: FindCallPaths;
  /** Returns the resident bytes of a process; null if it is dead. */
  readMemory(pid: number): number | null;
  readGpus(): Promise<readonly GpuUsage[]>;
}

/** nvidia-smi may take seconds. */
const GPUS_PAUSE_MS = 5000;

const NEWEST_JOBS = { state: null, limit: 100, from: null };

/** Numbers of the entries of a list that were added since the second before: those above `first`, up to `last`. */
interface Span {
  readonly first: number;
  readonly last: number;
}

export class LiveView {
  readonly record: LiveRecord;
  readonly #sources: LiveSources;
  readonly #memory: ProcessMemory;
  readonly #gpus: LatestList<GpuUsage>;
  readonly #jobs: LatestList<JobRecord>;
  readonly #descriptions: AppDescriptions;
  #number = 0;
  #at = Date.now();
  #models: readonly DescribedModel[] = [];
  #described: readonly LiveDescription[] = [];
  #calls: Span = { first: 0, last: 0 };
  #deaths: Span = { first: 0, last: 0 };
  /** As of the last second with viewers. */
  #jobsText = '';
  #areJobsNew = false;

  constructor(sources: LiveSources) {
    this.#sources = sources;
    this.record = new LiveRecord(sources.counts, performance.now());
    this.#memory = new ProcessMemory((pid) => sources.readMemory(pid));
    // Without free descriptors, for one, the figures are left out.
    this.#gpus = new LatestList(() => sources.readGpus().catch(() => []), GPUS_PAUSE_MS);
    this.#jobs = new LatestList(async () => (await sources.jobs.list(NEWEST_JOBS)).records);
    this.#descriptions = new AppDescriptions(this.record.keys, sources.findPaths);
  }

  /** Ends a second. `isWatched`: whether there are viewers; only then anything is read from the system. */
  tick(isWatched: boolean): void {
    const { calls, deaths } = this.record;
    const { registry } = this.#sources;
    this.#number += 1;
    this.#at = Date.now();
    this.#models = registry
      .describe()
      .map((one) => ({ ...one, isServerDefault: one.model === registry.default }));
    this.#readSystem(isWatched);
    this.record.measure(
      this.#models.map(({ model }) => model),
      (model) => this.#memory.sumOf(pidsOf(model)),
      performance.now(),
    );
    this.#described = this.#descriptions.update(this.#models);
    this.#calls = { first: this.#calls.last, last: calls.list.lastId };
    this.#deaths = { first: this.#deaths.last, last: deaths.list.lastId };
    this.#noteJobs(isWatched);
  }

  /** A viewer comes: reads what is read only for viewers, for the end of this second. */
  prepare(): void {
    this.#jobs.look(performance.now());
  }

  /** The last second. */
  snapshot(showsWords: boolean, viewers: number): LiveSnapshot {
    return {
      number: this.#number,
      at: this.#at,
      server: this.#describeServer(viewers),
      models: this.#models.map((one) => describeModel(one, this.record, this.#memory, showsWords)),
      descriptions: this.#described,
      calls: shownCalls(this.record.calls.list.between(this.#calls.first, this.#calls.last), showsWords),
      deaths: this.#deathsAfter(this.#deaths.first, showsWords),
      jobs: this.#areJobsNew ? describeJobs(this.#jobs.latest, showsWords) : null,
    };
  }

  /** Everything up to the last second. */
  history(showsWords: boolean): LiveHistory {
    return {
      number: this.#number,
      at: this.#at,
      models: this.record.describeHistory(),
      descriptions: this.#descriptions.all,
      calls: shownCalls(this.record.calls.list.between(0, this.#calls.last), showsWords),
      deaths: this.#deathsAfter(0, showsWords),
      jobs: describeJobs(this.#jobs.latest, showsWords),
    };
  }

  #readSystem(isWatched: boolean): void {
    if (isWatched) {
      this.#memory.update(this.#models.flatMap(({ model }) => pidsOf(model)));
      this.#gpus.look(performance.now());
    } else {
      this.#memory.forget();
      this.#gpus.forget();
    }
  }

  #noteJobs(isWatched: boolean): void {
    const text = isWatched ? JSON.stringify(describeJobs(this.#jobs.latest, true)) : '';
    this.#areJobsNew = isWatched && text !== this.#jobsText;
    this.#jobsText = text;
    if (isWatched) this.#jobs.look(performance.now());
    else this.#jobs.forget();
  }

  #deathsAfter(first: number, showsWords: boolean): LiveDeath[] {
    const deaths = this.record.deaths.list.between(first, this.#deaths.last);
    return showsWords ? deaths : deaths.map(withoutWords);
  }

  #describeServer(viewers: number): LiveServer {
    const { facts, unsent, maxQueueBytes, readiness } = this.#sources;
    return {
      state: serverState(readiness()),
      version: facts.version,
      pid: process.pid,
      startedAt: facts.startedAt.getTime(),
      memoryBytes: process.memoryUsage.rss(),
      eventLoopDelayMs: delayStatus(facts.eventLoopDelay),
      unsent: unsent.describe(),
      maxQueueBytes,
      gpus: this.#gpus.latest.map(({ index, name, totalBytes, usedBytes, utilization }) => {
        return { index, name, totalBytes, usedBytes, utilization };
      }),
      viewers,
    };
  }
}

function pidsOf(model: Model): number[] {
  return model.crew.all.flatMap(({ workers }) => workers.map(({ pid }) => pid));
}

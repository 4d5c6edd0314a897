/**
 * Makes the data of the page: once a second `tick` measures the models and notes what has happened, whether somebody looks at
 * it or not; `snapshot` and `history` describe the server as of then.
 */
import { basename } from 'node:path';
import type { FindCallPaths } from '../../http/request/call-paths.js';
import type { JobRecord } from '../../jobs/job-record.js';
import type { KeptJobs } from '../../jobs/kept-jobs.js';
import type { GpuUsage } from '../../machine/nvidia-smi.js';
import { LatestList } from '../../machine/latest-list.js';
import type { CallCounts } from '../../metrics/call-counts.js';
import type { Model } from '../../models/model.js';
import type { ModelStatus, WorkerStatus } from '../../models/model-status.js';
import type { Registered } from '../../models/models.js';
import type { RecentLines } from '../../observe/recent-lines.js';
import type { LiveDescription, LiveHistory, LiveJob, LiveModel, LiveSnapshot } from '../live-types.js';
import { serverStatus, type StatusSources } from '../snapshot.js';
import { LastCalls, LastDeaths, shownCalls, shownDeaths } from './last-entries.js';
import { describeApp, describeWorker, type DescribedApp, describeJob } from './live-models.js';
import { ModelMeter } from './model-meter.js';

/** The parts of the server that the data is about. */
export interface LiveSources extends StatusSources {
  readonly lines: RecentLines;
  readonly counts: CallCounts;
  readonly jobs: StatusSources['jobs'] & Pick<KeptJobs, 'list'>;
  /** Finds the paths of a route in all dialects. */
  readonly findPaths: FindCallPaths;
  /** Returns the resident bytes of a process; null if it is dead. */
  readMemory(pid: number): number | null;
  readGpus(): Promise<readonly GpuUsage[]>;
}

/** nvidia-smi may take seconds. */
const GPUS_PAUSE_MS = 5000;

const NEWEST_JOBS = { state: null, limit: 100, from: null };

/** Every snapshot has as many changes of a model's number of workers; `/status` has more. */
const CHANGES_SHOWN = 8;

/** A model, as far as it is remembered from second to second. */
interface Watched {
  /** Names it: one that is registered again under the same name is another model. */
  readonly key: number;
  readonly meter: ModelMeter;
  app: DescribedApp | null;
}

export class LiveView {
  readonly calls = new LastCalls();
  readonly deaths = new LastDeaths((model) => this.#watched(model).key);
  readonly #sources: LiveSources;
  readonly #memory: ProcessMemory;
  readonly #gpus: LatestList<GpuUsage>;
  readonly #jobs: LatestList<JobRecord>;
  #number = 0;
  #at = Date.now();
  #tickedAtMs = performance.now();
  #lastKey = 0;
  #byModel = new Map<Model, Watched>();
  #models: readonly Registered[] = [];
  /** Descriptions that are new since the second before. */
  #described: LiveDescription[] = [];
  /** As of the last second with viewers. */
  #jobsText = '';
  #areJobsNew = false;

  constructor(sources: LiveSources) {
    this.#sources = sources;
    this.#memory = new ProcessMemory((pid) => sources.readMemory(pid));
    // Without free descriptors, for one, the figures are left out.
    this.#gpus = new LatestList(() => sources.readGpus().catch(() => []), GPUS_PAUSE_MS);
    this.#jobs = new LatestList(async () => (await sources.jobs.list(NEWEST_JOBS)).records);
  }

  /** Ends a second. `isWatched`: whether there are viewers; only then anything is read from the system. */
  tick(isWatched: boolean): void {
    this.#number += 1;
    this.#at = Date.now();
    this.#models = this.#sources.registry.describe();
    this.#byModel = new Map(this.#models.map(({ model }) => [model, this.#watched(model)]));
    this.#memory.update(isWatched ? this.#models.flatMap(({ model }) => pidsOf(model)) : []);
    this.#measure();
    this.#describeApps();
    this.calls.list.endSecond();
    this.deaths.list.endSecond();
    const jobs = isWatched ? JSON.stringify(this.#describeJobs(true)) : '';
    this.#areJobsNew = isWatched && jobs !== this.#jobsText;
    this.#jobsText = jobs;
    for (const list of [this.#gpus, this.#jobs])
      if (isWatched) list.look(performance.now());
      else list.forget();
  }

  /** A viewer comes: reads what is read only for viewers, for the end of this second. */
  prepare(): void {
    this.#jobs.look(performance.now());
  }

  /** The last second. */
  snapshot(showsWords: boolean, viewers: number): LiveSnapshot {
    const { model: _, models, ...server } = serverStatus(this.#sources, showsWords);
    return {
      number: this.#number,
      at: this.#at,
      server: { ...server, gpus: this.#gpus.latest, viewers },
      models: this.#models.map(({ model }, i) =>
        this.#describeModel(model, models[i] as ModelStatus, showsWords),
      ),
      descriptions: this.#described,
      calls: shownCalls(this.calls.list.last, showsWords),
      deaths: shownDeaths(this.deaths.list.last, showsWords),
      jobs: this.#areJobsNew ? this.#describeJobs(showsWords) : null,
    };
  }

  /** Everything up to the last second. */
  history(showsWords: boolean): LiveHistory {
    const watched = this.#models.map(({ model }) => this.#watched(model));
    return {
      number: this.#number,
      at: this.#at,
      models: watched.map(({ key, meter }) => ({ key, ...meter.history.describe() })),
      descriptions: watched.flatMap(({ app }) => app?.description ?? []),
      calls: shownCalls(this.calls.list.past, showsWords),
      deaths: shownDeaths(this.deaths.list.past, showsWords),
      jobs: this.#describeJobs(showsWords),
    };
  }

  /** A model is forgotten in the second in which it is not described any more. */
  #watched(model: Model): Watched {
    const known = this.#byModel.get(model);
    if (known !== undefined) return known;
    this.#lastKey += 1;
    const meter = new ModelMeter(model, this.#sources.counts.of(model));
    const watched = { key: this.#lastKey, meter, app: null };
    this.#byModel.set(model, watched);
    return watched;
  }

  #measure(): void {
    const nowMs = performance.now();
    const missed = Math.round((nowMs - this.#tickedAtMs) / 1000) - 1;
    this.#tickedAtMs = nowMs;
    for (const [model, { meter }] of this.#byModel) meter.measure(this.#memory.sumOf(pidsOf(model)), missed);
  }

  #describeApps(): void {
    const { registry, findPaths } = this.#sources;
    this.#described = this.#models.flatMap((one) => {
      const watched = this.#watched(one.model);
      const { app, key } = watched;
      watched.app = describeApp(app, one, one.model === registry.default, key, findPaths);
      return watched.app === app ? [] : (watched.app?.description ?? []);
    });
  }

  #describeModel(model: Model, status: ModelStatus, showsWords: boolean): LiveModel {
    const { workers, scaling, ...facts } = status;
    const { crew, options, health } = model;
    const { key, meter } = this.#watched(model);
    const { minute, calls, sample, errors, createdAt } = meter;
    return {
      ...facts,
      key,
      isLatched: health.standstill?.state === 'latched',
      isDefault: model === this.#sources.registry.default,
      app: basename(status.app),
      wantedWorkers: crew.wanted,
      changes: scaling?.changes.slice(-CHANGES_SHOWN) ?? [],
      minute,
      batchSize: options.batchSize,
      initTimeoutMs: options.initTimeout,
      batches: calls.batches(),
      workers: crew.all.map((slot, i) => ({
        ...describeWorker(slot, workers[i] as WorkerStatus, createdAt, showsWords),
        memoryBytes: this.#memory.sumOf(slot.workers.map(({ pid }) => pid)),
        lastDeath: this.deaths.idOf(slot),
      })),
      sample,
      errors,
    };
  }

  #describeJobs(showsWords: boolean): LiveJob[] {
    return this.#jobs.latest.map((record) => describeJob(record, showsWords));
  }
}

function pidsOf(model: Model): number[] {
  return model.crew.all.flatMap(({ workers }) => workers.map(({ pid }) => pid));
}

/** A read takes some 20 us. */
const READS_PER_SECOND = 64;

/** Reads the memory of processes while the page has viewers: some in each second, because every read is a file of the system. */
class ProcessMemory {
  readonly #read: (pid: number) => number | null;
  #bytes = new Map<number, number | null>();
  /** Number of the process, in the order of the list, at which the next second begins. */
  #next = 0;

  /** `read`: returns the resident bytes of a process; null if it is dead. */
  constructor(read: (pid: number) => number | null) {
    this.#read = read;
  }

  /** Reads some of these processes; the others keep their figures, and all others lose them. */
  update(pids: readonly number[]): void {
    const watched = new Set(pids);
    this.#bytes = new Map([...this.#bytes].filter(([pid]) => watched.has(pid)));
    const count = Math.min(READS_PER_SECOND, pids.length);
    for (let i = 0; i < count; i += 1) {
      const pid = pids[(this.#next + i) % pids.length] as number;
      this.#bytes.set(pid, this.#read(pid));
    }
    this.#next += count;
  }

  /** The sum of these processes; null until each of them was read, and without one. */
  sumOf(pids: readonly number[]): number | null {
    if (pids.length === 0 || !pids.every((pid) => this.#bytes.has(pid))) return null;
    return pids.reduce((sum, pid) => sum + (this.#bytes.get(pid) ?? 0), 0);
  }
}

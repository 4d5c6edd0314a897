/** The page at `/` of one server: its files, and the feed of its data, which gets the events of all calls and workers. */
import type { ServedPage } from '../http/request/backend.js';
import { readGpuUsage } from '../machine/gpu-usage.js';
import { residentBytes } from '../machine/process-memory.js';
import type { Model } from '../models/model.js';
import type { WorkerObserver } from '../models/model-resources.js';
import type { ServerPlan } from '../plan/plan-server.js';
import { LiveFeed } from '../status/live/live-feed.js';
import type { LiveSources } from '../status/live/live-view.js';
import { readPageFiles } from '../status/page-files.js';

export class PageParts implements ServedPage, WorkerObserver<Model> {
  readonly files: ServedPage['files'];
  readonly live: LiveFeed;

  constructor(
    { keys, pageFolder }: Pick<ServerPlan, 'keys' | 'pageFolder'>,
    sources: Omit<LiveSources, 'readMemory' | 'readGpus'>,
  ) {
    this.files = readPageFiles(pageFolder);
    // A failure leaves the figures of GPUs out: the start of the server and `--metrics` report it.
    const readGpus: LiveSources['readGpus'] = async () => (await readGpuUsage(process.env)).gpus;
    this.live = new LiveFeed({ ...sources, readMemory: residentBytes, readGpus }, keys.required);
  }

  ready(): void {}

  died(...death: Parameters<WorkerObserver<Model>['died']>): void {
    this.live.deaths.died(...death);
  }

  measured(): void {}
}

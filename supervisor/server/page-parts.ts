/** The page at `/` of one server: its files, and the feed of its data, which gets the events of all calls and workers. */
import type { ServedPage } from '../http/request/backend.js';
import type { KeptJobs } from '../jobs/kept-jobs.js';
import { readGpuUsage, type GpuUsage } from '../machine/gpu-usage.js';
import { residentBytes } from '../machine/process-memory.js';
import type { ServerOptions } from '../options/resolve.js';
import type { ServerPlan } from '../plan/plan-server.js';
import type { RecentLines } from '../observe/recent-lines.js';
import { LiveFeed } from '../status/live/live-feed.js';
import type { LiveSources } from '../status/live/live-view.js';
import { readPageFiles } from '../status/page-files.js';
import { readinessOf } from '../status/snapshot.js';
import type { WorkerObserver } from './models/served-models.js';

/** The parts of a server that the page shows. */
interface ShownServer extends Pick<LiveSources, 'facts' | 'unsent'> {
  readonly jobs: Pick<KeptJobs, 'list' | 'problem'>;
  readonly options: Pick<ServerOptions, 'queueBytes'>;
  readonly metrics: { readonly calls: LiveSources['counts'] };
  readonly served: ReturnType<LiveSources['served']>;
  readonly ending: { readonly isDraining: boolean };
}

export class PageParts implements ServedPage, WorkerObserver {
  readonly files: ServedPage['files'];
  readonly live: LiveFeed;

  /** `server` may still be incomplete: its parts are used from its start on. */
  constructor(
    server: ShownServer,
    lines: RecentLines,
    { keys, pageFolder }: Pick<ServerPlan, 'keys' | 'pageFolder'>,
  ) {
    this.files = readPageFiles(pageFolder);
    this.live = new LiveFeed(sourcesIn(server, lines), keys.required);
  }

  get calls(): LiveFeed['calls'] {
    return this.live.calls;
  }

  ready(): void {}

  died(...death: Parameters<WorkerObserver['died']>): void {
    this.live.deaths.died(...death);
  }

  measured(): void {}
}

function sourcesIn(server: ShownServer, lines: RecentLines): LiveSources {
  return {
    lines,
    counts: server.metrics.calls,
    maxQueueBytes: server.options.queueBytes,
    get facts() {
      return server.facts;
    },
    get jobs() {
      return server.jobs;
    },
    get unsent() {
      return server.unsent;
    },
    served: () => server.served,
    readiness: () => readinessOf(server.served, server.ending.isDraining, server.jobs),
    readMemory: residentBytes,
    readGpus,
  };
}

/** A failure leaves the figures out: the start of the server and `--metrics` report it. */
async function readGpus(): Promise<readonly GpuUsage[]> {
  return (await readGpuUsage(process.env)).gpus;
}

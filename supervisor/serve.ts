/** `serve()`: plans the server from the given options (`plan/`), opens its store of jobs, then the server (`server/`). */
import { openJobStore, type JobStoreOptions } from './jobs/open-job-store.js';
import { addressFlags } from './options/address.js';
import type { ResolvedOptions } from './options/resolve.js';
import { OPTIONS, OPTION_NAMES } from './options/table.js';
import type { ServeInternals, ServeOptions } from './plan/given-options.js';
import { planServer, type ServerPlan } from './plan/plan-server.js';
import type { ServerHandle } from './server/server-handle.js';
import { Server } from './server/server.js';
import { releasedOnFailure } from './store/stored-model.js';

/** @throws SERVE_CONFIG if an option is wrong, with nothing started; system errors of `listen` (EADDRINUSE, …) */
export async function serve(given: ServeOptions = {}, internals: ServeInternals = {}): Promise<ServerHandle> {
  const plan = await planServer(given, internals);
  const open = async (): Promise<ServerHandle> => {
    const jobStore = await openJobStore(jobStoreOptions(plan));
    return releasedOnFailure(
      () => void jobStore.close(),
      () => new Server(plan, jobStore).open(),
    );
  };
  return releasedOnFailure(() => plan.store.close(), open).catch((error: unknown) => {
    throw withPlace(error, plan.resolved);
  });
}

function jobStoreOptions({ resolved: { options }, cwd }: ServerPlan): JobStoreOptions {
  const { jobs: place, jobRetention: retentionMs, jobBytes: maxBytes } = options;
  return { place, retentionMs, maxBytes, cwd };
}

/** Adds the name of the setting to the error of an address that cannot be opened, unless that is a flag. */
function withPlace(error: unknown, { explicit }: ResolvedOptions): unknown {
  const { flags = addressFlags() } = error as { flags?: ReturnType<typeof addressFlags> };
  const name = OPTION_NAMES.find((option) => OPTIONS[option].flag === flags.port);
  const place = name === undefined ? undefined : explicit.get(name);
  return place === undefined || place === flags.port ? error : Object.assign(error as Error, { place });
}

/** The runtimes, in the order in which they are asked. */
import { configError } from '../../protocol/errors.js';
import { command } from './command.js';
import { node } from './node.js';
import type { AppSpec, Runtime, WorkerProgram } from './runtime.js';

const RUNTIMES: readonly Runtime[] = [command, node];

/** Extensions of files that can be served, the likelier ones first. */
export const APP_EXTENSIONS: readonly string[] = RUNTIMES.flatMap(({ extensions }) => extensions);

/** How workers of this app are started. @throws SERVE_CONFIG if none can be, with cause and cure */
export async function prepareProgram(
  spec: AppSpec,
  runtimes: readonly Runtime[] = RUNTIMES,
): Promise<WorkerProgram> {
  const runtime = runtimes.find((candidate) => candidate.claims(spec));
  if (runtime !== undefined) return await runtime.prepare(spec);
  const extensions = runtimes.flatMap(({ extensions }) => extensions);
  throw configError(`${spec.app}: nothing here runs such a file; an app is one of ${extensions.join(' ')}.`);
}

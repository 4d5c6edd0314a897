/** The list of runtimes, in order of precedence, and lookups in it. */
import { configError } from '../../protocol/errors.js';
import { joinSources, type Sources } from '../watch/sources.js';
import { command } from './command.js';
import { node } from './node/node.js';
import { python } from './python/python.js';
import type { AppSetting, AppSpec, Runtime, WorkerProgram } from './runtime.js';
import { unservable } from './unservable.js';

const RUNTIMES: readonly Runtime[] = [command, node, python, unservable];

/** Extensions of files that can be served, in order of preference. */
export const APP_EXTENSIONS: readonly string[] = RUNTIMES.flatMap(({ extensions }) => extensions);

/** Names of runtimes that a query or a manifest may give. */
export const RUNTIME_NAMES: readonly string[] = RUNTIMES.flatMap(({ names }) => names);

/** Sources of all runtimes, for watching: an app may have parts in another runtime's language. */
export const APP_SOURCES: Sources = joinSources(RUNTIMES.flatMap(({ sources }) => sources ?? []));

/** Default runtime name in a manifest, as in Multi Model Server's archiver. */
export const USUAL_RUNTIME_NAME = 'python';

/** Whether a file or folder of this name is only a product of running an app, which no archive needs. */
export function isLeftover(name: string): boolean {
  return RUNTIMES.some(({ leftovers }) => leftovers.some((leftover) => leftover.test(name)));
}

/** All app extensions, those of the named runtime first. */
export function extensionsFor(runtimeName: string): readonly string[] {
  const first = RUNTIMES.find(({ names }) => names.includes(runtimeName))?.extensions ?? [];
  return [...new Set([...first, ...APP_EXTENSIONS])];
}

/** Name of the runtime of files with this extension; null if there is none. */
export function runtimeNameOf(extension: string): string | null {
  return RUNTIMES.find(({ extensions }) => extensions.includes(extension))?.names[0] ?? null;
}

/** Returns the program that starts workers of this app. @throws SERVE_CONFIG with cause and remedy if there is none */
export async function prepareProgram(
  spec: AppSpec,
  setting: AppSetting,
  runtimes: readonly Runtime[] = RUNTIMES,
): Promise<WorkerProgram> {
  const runtime = runtimes.find((candidate) => candidate.claims(spec));
  if (runtime !== undefined) return await runtime.prepare(spec, setting);
  const extensions = runtimes.flatMap(({ extensions }) => extensions);
  throw configError(`${spec.app}: no runtime runs such a file; an app is one of ${extensions.join(' ')}.`);
}

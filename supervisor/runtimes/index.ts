/** The runtimes, in the order in which they are asked. */
import { configError } from '../../protocol/errors.js';
import { joinSources, type Sources } from '../watch/sources.js';
import { command } from './command.js';
import { node } from './node/node.js';
import { python } from './python/python.js';
import type { AppSetting, AppSpec, Runtime, WorkerProgram } from './runtime.js';
import { unservable } from './unservable.js';

const RUNTIMES: readonly Runtime[] = [command, node, python, unservable];

/** Extensions of files that can be served, the likelier ones first. */
export const APP_EXTENSIONS: readonly string[] = RUNTIMES.flatMap(({ extensions }) => extensions);

/** What a person, or a manifest, may say that runs a model. */
export const RUNTIME_NAMES: readonly string[] = RUNTIMES.flatMap(({ names }) => names);

/** What counts in a folder that is watched: an app may have parts in the language of another runtime. */
export const APP_SOURCES: Sources = joinSources(RUNTIMES.flatMap(({ sources }) => sources ?? []));

/** What a manifest says where no file tells what runs the model: what Multi Model Server's archiver takes. */
export const USUAL_RUNTIME_NAME = 'python';

/** Whether a file or folder of this name is left behind by running an app: no archive needs it. */
export function isLeftover(name: string): boolean {
  return RUNTIMES.some(({ leftovers }) => leftovers.some((leftover) => leftover.test(name)));
}

/** All of them; where somebody says what runs a model, those of that runtime come first. */
export function extensionsFor(runtimeName: string): readonly string[] {
  const first = RUNTIMES.find(({ names }) => names.includes(runtimeName))?.extensions ?? [];
  return [...new Set([...first, ...APP_EXTENSIONS])];
}

/** What a manifest says that runs files of this extension; null if nothing here does. */
export function runtimeNameOf(extension: string): string | null {
  return RUNTIMES.find(({ extensions }) => extensions.includes(extension))?.names[0] ?? null;
}

/** How workers of this app are started. @throws SERVE_CONFIG if none can be, with cause and cure */
export async function prepareProgram(
  spec: AppSpec,
  setting: AppSetting,
  runtimes: readonly Runtime[] = RUNTIMES,
): Promise<WorkerProgram> {
  const runtime = runtimes.find((candidate) => candidate.claims(spec));
  if (runtime !== undefined) return await runtime.prepare(spec, setting);
  const extensions = runtimes.flatMap(({ extensions }) => extensions);
  throw configError(`${spec.app}: nothing here runs such a file; an app is one of ${extensions.join(' ')}.`);
}

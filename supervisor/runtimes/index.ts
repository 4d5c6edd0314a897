/** The runtimes, in the order in which they are asked. */
import { configError } from '../../protocol/errors.js';
import { command } from './command.js';
import { node, unservable } from './node.js';
import { python } from './python/python.js';
import type { AppSetting, AppSpec, Runtime, WorkerProgram } from './runtime.js';

const RUNTIMES: readonly Runtime[] = [command, node, python, unservable];

/** Extensions of files that can be served, the likelier ones first. */
export const APP_EXTENSIONS: readonly string[] = RUNTIMES.flatMap(({ extensions }) => extensions);

/** What a person, or a manifest, may say that runs a model. */
export const RUNTIME_NAMES: readonly string[] = RUNTIMES.flatMap(({ names }) => names);

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

/** The list of runtimes, in order of precedence, and lookups in it. */
import { basename, extname } from 'node:path';
import { configError } from '../../protocol/errors.js';
import { joinSources, type Sources } from '../watch/file-tree.js';
import { node, unservable } from './node.js';
import { onnx } from './onnx/onnx.js';
import { python } from './python/python.js';
import type { AppSetting, AppSpec, Runtime, WorkerProgram } from './runtime.js';

/** Runtime of `workerCommand`: the user's own program, in any language, that speaks the wire protocol. */
const command: Runtime = {
  claims: ({ workerCommand }) => workerCommand !== null,
  prepare: ({ workerCommand }) => {
    const [program = '', ...args] = workerCommand ?? [];
    return {
      command: [program, ...args],
      env: {},
      label: basename(program),
      watches: [],
      batchCure: 'name a `maxBatch` above 1 with a route in the message `loaded`',
      warnings: [],
    };
  },
};

const RUNTIMES: readonly Runtime[] = [command, node, python, onnx, unservable];

/** The extensions of all runtimes by their use, in order of preference. */
export const EXTENSIONS = {
  entries: RUNTIMES.flatMap(({ entries = [] }) => entries),
  alone: RUNTIMES.flatMap(({ alone = [] }) => alone),
};

/** A file with one of these is served if its path is given, or if it is a single file of a model store. */
export const SERVED_EXTENSIONS = servedBy(RUNTIMES);

function servedBy(runtimes: readonly Runtime[]): readonly string[] {
  return runtimes.flatMap(({ entries = [], alone = [] }) => [...entries, ...alone]);
}

/** The file that a folder with these files is served by although it has no entry: the only one of its kind, without code. */
export function onlyModelOf(files: readonly string[]): string | null {
  if (files.some((file) => EXTENSIONS.entries.includes(extname(file)))) return null;
  const [only, second] = files.filter((file) => EXTENSIONS.alone.includes(extname(file)));
  return second === undefined ? (only ?? null) : null;
}

/** Names of runtimes that a query or a manifest may give. */
export const RUNTIME_NAMES: readonly string[] = RUNTIMES.flatMap(({ names = [] }) => names);

/** Sources of all runtimes, for watching: an app may have parts in another runtime's language. */
export const APP_SOURCES: Sources = joinSources(RUNTIMES.flatMap(({ sources }) => sources ?? []));

/** Default runtime name in a manifest, as in Multi Model Server's archiver. */
export const USUAL_RUNTIME_NAME = 'python';

/** Whether a file or folder of this name is only a product of running an app, which no archive needs. */
export function isLeftover(name: string): boolean {
  return RUNTIMES.some(({ leftovers = [] }) => leftovers.some((leftover) => leftover.test(name)));
}

/** All extensions of entries, those of the named runtime first. */
export function entryExtensionsFor(runtimeName: string): readonly string[] {
  const first = RUNTIMES.find(({ names }) => names?.includes(runtimeName))?.entries ?? [];
  return [...new Set([...first, ...EXTENSIONS.entries])];
}

/** Name of the runtime of entries with this extension; null if there is none. */
export function runtimeNameOf(extension: string): string | null {
  return RUNTIMES.find(({ entries }) => entries?.includes(extension))?.names?.[0] ?? null;
}

/** Returns the program that starts workers of this app. @throws SERVE_CONFIG with cause and remedy if there is none */
export async function prepareProgram(
  spec: AppSpec,
  setting: AppSetting,
  runtimes: readonly Runtime[] = RUNTIMES,
): Promise<WorkerProgram> {
  const runtime = runtimes.find((candidate) => candidate.claims(spec));
  if (runtime !== undefined) return await runtime.prepare(spec, setting);
  throw configError(
    `${spec.app}: no runtime runs such a file; an app is one of ${servedBy(runtimes).join(' ')}.`,
  );
}

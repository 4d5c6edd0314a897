/** The private fields of Node that workers use. test/house/node-internals.test.ts names those that a new Node lacks. */
import Module from 'node:module';
import { dirname } from 'node:path';

/** Returns the path of the file that `require(request)` loads in the module `parent`. */
export type Resolve = (request: string, parent: Parent | null, ...rest: readonly unknown[]) => string;

/** Returns what the module `request` exports. */
export type Load = (request: string, ...rest: readonly unknown[]) => unknown;

/** The module that calls `require`. */
export interface Parent {
  readonly filename?: string | null;
}

/** The parts of CommonJS, which Node 20 offers no documented hooks for; `registerHooks` is documented since Node 22.15. */
interface ModuleInternals {
  registerHooks?(hooks: { resolve: ResolveHook }): void;
  _resolveFilename: Resolve;
  _load: Load;
  _extensions: Record<string, unknown>;
  _nodeModulePaths(folder: string): string[];
}

type ResolveHook = (
  specifier: string,
  context: ResolveContext,
  next: (specifier: string, context: ResolveContext) => unknown,
) => unknown;

interface ResolveContext {
  readonly parentURL?: string | undefined;
}

const internals = Module as unknown as ModuleInternals;

/** Whether this Node resolves ES modules by hooks in the main thread. */
export const HAS_RESOLVE_HOOKS = internals.registerHooks !== undefined;

/** Adds a hook to the resolution of ES modules, on a Node that has such hooks. */
export function addResolveHook(resolve: ResolveHook): void {
  internals.registerHooks?.({ resolve });
}

/** The `node_modules` folders in which Node looks for the packages of a file in `folder`. */
export function packageFolders(folder: string): readonly string[] {
  return internals._nodeModulePaths(folder);
}

/** A module that stands for an importing file at `path`, which need not exist. */
export function moduleAt(path: string): Parent {
  return Object.assign(new Module(path), { filename: path, paths: packageFolders(dirname(path)) });
}

/** Puts a resolver in the place of the one that `require` uses. */
export function replaceResolver(replace: (before: Resolve) => Resolve): void {
  internals._resolveFilename = replace(internals._resolveFilename);
}

/** Puts a loader of modules in the place of the one that `require` uses. */
export function replaceLoad(replace: (before: Load) => Load): void {
  internals._load = replace(internals._load);
}

/** The resolver of `require` and its loaders by file extension, as they are now. */
export interface RequireParts {
  readonly resolve: Resolve;
  readonly loaders: Readonly<Record<string, unknown>>;
}

export function requireParts(): RequireParts {
  return { resolve: internals._resolveFilename, loaders: { ...internals._extensions } };
}

/** Makes `require` use these parts; loaders of further extensions stay. */
export function useRequireParts({ resolve, loaders }: RequireParts): void {
  internals._resolveFilename = resolve;
  Object.assign(internals._extensions, loaders);
}

/** The libuv stream of `process.stdout` or `process.stderr`. */
export interface OutputInternals {
  readonly _handle?: { setBlocking?(on: boolean): void };
}

/** Makes writes to a pipe wait for room in it; there is no documented way. Without the field, prints are only less prompt. */
export function setBlocking(output: NodeJS.WriteStream): void {
  (output as OutputInternals)._handle?.setBlocking?.(true);
}
